// The bodies of <neap/mutate/rewrite.hpp>.
#pragma once

#include <neap/mutate/rewrite.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/core/span_of.hpp>

#include <memory>

namespace neap { inline namespace v0 {

NEAP_FUNC std::optional<match> rule_matcher::find(rule const& what, op_graph const& g, op_id o, op_id second,
                                                  std::uint32_t way) {
  rule_matcher f{what, g, way};
  auto& m = f.m_;
  m.graph_ = &g;
  m.letter_.fill(nothing<value_id>);
  m.slot_.fill(nothing<op_id>);
  m.op_.fill(nothing<op_id>);
  m.root_ = o;
  if (!f.has(what.from.root, g.output(o, f.output_of(what.from.root)))) return std::nullopt;
  if (what.from.second >= 0) {
    m.second_ = second;
    auto const k = static_cast<std::uint8_t>(what.from.second);
    if (second == nothing<op_id> || !f.has(k, g.output(second, f.output_of(k)))) return std::nullopt;
  }
  if (!f.is_closed() || !f.is_read(m.root_) || (m.second_ != nothing<op_id> && !f.is_read(m.second_)) ||
      (what.when && !what.when(m)))
    return std::nullopt;
  return m;
}

NEAP_FUNC bool rule_matcher::has(std::uint8_t k, value_id v) {
  auto const& n = what_.from.nodes[k];
  if (n.is == pattern::node::kind::letter) {
    auto& is = m_.letter_[n.number];
    if (is == nothing<value_id>) is = v;
    return is == v;
  }
  auto const o = g_.producer(v);
  if (o == nothing<op_id> || g_.record(o).part != nothing<part_id> || !g_.may_replace(o) ||
      !is_of(n, *g_.meaning(o).facets) || (!g_.parts().empty() && serves_parts(g_, o)))
    return false;
  if (g_.output(o, n.output) != v || !is_floating(g_.type(v).element)) return false;
  if (n.slot >= 0) {
    auto& in = m_.slot_[static_cast<std::uint8_t>(n.slot)];
    if (in != nothing<op_id> && !detail::same_operator(g_.meaning(in), g_.meaning(o))) return false;
    in = o;
  }
  m_.op_[k] = o;
  if (n.is == pattern::node::kind::any) return true;
  auto const in = g_.inputs(o);
  if (in.size() != n.arity) return false;
  bool const turned = n.commutes && (way_ >> turn_++ & 1) != 0;
  for (std::uint8_t i = 0; i < n.arity; ++i)
    if (!has(n.argument[i], in[turned ? 1u - i : i])) return false;
  return true;
}

NEAP_FUNC bool rule_matcher::is_matched(op_id o) const {
  for (auto x : m_.op_)
    if (x == o) return true;
  return false;
}

NEAP_FUNC bool rule_matcher::is_read(op_id o) const {
  for (auto v : g_.outputs(o))
    if (g_.is_kept(v) || !g_.uses(v).empty()) return true;
  return false;
}

NEAP_FUNC bool rule_matcher::is_closed() const {
  for (auto o : m_.op_) {
    if (o == nothing<op_id> || o == m_.root_ || o == m_.second_ || flow::is_view(g_, o)) continue;
    for (auto v : g_.outputs(o)) {
      if (g_.is_kept(v)) return false;
      for (auto const& r : g_.uses(v))
        if (!is_matched(r.op)) return false;
    }
  }
  return true;
}

namespace detail {

/// Who needs what in a graph that an editor has changed, whose order is given. O(ops + edges).
class order_needs {
 public:
  order_needs(graph_editor& edit, schedule const& order) : edit_(edit), g_(edit.graph()) {
    readers_.resize(g_.value_count()), dead_.resize(g_.op_count());
    for (auto o : order)
      for (auto v : g_.inputs(o)) ++readers_[index(v)];
    for (auto v : g_.kept()) ++readers_[index(v)];
  }
  bool is_dead(op_id o) const { return dead_[index(o)]; }
  bool is_needed(op_id o) const {
    auto const stays_elsewhere = [&] {
      auto const all = g_.ops();
      return std::any_of(all.begin(), all.end(),
                         [&](op_id x) { return x != o && g_.origin(x) == g_.origin(o) && !dead_[index(x)]; });
    };
    bool needed = g_.outputs(o).empty() || is_pinned_to_stay(g_, o, stays_elsewhere);
    for (auto v : g_.outputs(o)) needed |= readers_[index(v)] > 0 || g_.record(v).alias == alias_kind::update;
    return needed;
  }
  void remove(op_id o, std::vector<op_id>& stack) {
    dead_[index(o)] = true;
    edit_.remove(o);
    for (auto v : g_.inputs(o)) {
      --readers_[index(v)];
      if (auto const p = g_.producer(v); p != nothing<op_id>) stack.push_back(p);
    }
  }
  /// The order without the dead ops, by their new numbers.
  void renumber(schedule& order) const { drop_ops(order, dead_); }

 private:
  graph_editor& edit_;
  op_graph const& g_;
  std::vector<std::uint32_t> readers_;  // by value; to be kept counts as one
  std::vector<bool> dead_;
};

/// Puts a rule's right side into a graph.
class rule_builder {
 public:
  rule_builder(rule const& what, match const& m, op_graph const& g) : what_(what), m_(m), g_(g), edit_(g) {
    old_ = {m.result(), nothing<value_id>};
    old_[0] = output_of_root(what.from.root);
    if (what.from.second >= 0) old_[1] = output_of_root(static_cast<std::uint8_t>(what.from.second));
  }

  /// The edited graph and order; nothing if the rule cannot be applied here.
  std::optional<edited> build(schedule const& order, bool check) && {
    if (!emit() || !settle(0) || (old_[1] != nothing<value_id> && !settle(1)) || runs_in_circle()) return std::nullopt;
    if (!readers_accept()) {
      for (int k = 0; k < 2; ++k)
        if (old_[k] != nothing<value_id> && !copy_result(k)) return std::nullopt;
      if (!readers_accept()) return std::nullopt;
    }
    if (is_copy_for_copy()) return std::nullopt;
    if (check) check_values();
    for (int k = 0; k < 2; ++k)
      if (old_[k] != nothing<value_id>) edit_.replace_uses(old_[k], new_[k]);
    auto const added = edit_.graph().op_count() - g_.op_count();
    for (std::size_t i = 0; i < added; ++i) edit_.set_rewritten(id_at<op_id>(g_.op_count() + i));
    std::vector<op_id> dead;
    for (auto o : rule_matcher::ops(m_))
      if (o != nothing<op_id>) dead.push_back(o);
    schedule with_new;
    with_new.order.reserve(order.size() + added);
    auto const add_new = [&] {
      for (std::size_t i = 0; i < added; ++i) with_new.order.push_back(id_at<op_id>(g_.op_count() + i));
    };
    for (auto o : order) {
      if (o == m_.root()) add_new();
      with_new.order.push_back(o);
    }
    order_needs needs(edit_, with_new);
    remove_dead_ops(std::move(dead), needs);
    needs.renumber(with_new);
    edited e{std::move(edit_).finish(), std::move(with_new)};
    if (e.graph.digest() == g_.digest()) return std::nullopt;
    if (what_.from.second < 0 && !e.graph.has_updates()) return e;
    flow_facts const facts(e.graph, no_cost{});
    if (check_order(facts, e.order)) return e;
    schedule old_ones;
    auto const new_ones = e.graph.op_count();
    for (auto o : e.order)
      if (!e.graph.record(o).rewritten || g_.origin_count() > index(e.graph.origin(o))) old_ones.order.push_back(o);
    if (old_ones.size() == new_ones) return std::nullopt;
    try {
      e.order = complete_order(facts, old_ones);
    } catch (error const&) { return std::nullopt; }  // a reader would have to run after the op that overwrites it
    return e;
  }

 private:
  value_id output_of_root(std::uint8_t k) const {
    return g_.output(rule_matcher::ops(m_)[k], what_.from.nodes[k].output);
  }

  bool emit() {
    try {
      if (what_.build) {
        new_[0] = what_.build(m_, edit_);
        return new_[0] != nothing<value_id> && new_[0] != old_[0];
      }
      new_[0] = emit(what_.to.root);
      if (what_.to.second >= 0) new_[1] = emit(static_cast<std::uint8_t>(what_.to.second));
      return new_[0] != old_[0];
    } catch (error const&) { return false; }  // a shape rule refuses: not here
  }
  value_id emit(std::uint8_t k) {
    auto const& n = what_.to.nodes[k];
    if (n.is == pattern::node::kind::letter) return m_.value(pattern::letter{n.number});
    std::array<value_id, pattern::max_arguments> in;
    for (std::uint8_t i = 0; i < n.arity; ++i) in[i] = emit(n.argument[i]);
    alignas(16) std::byte bytes[512];
    auto const* facets = n.facets;
    void const* attributes = bytes;
    if (n.slot >= 0) {
      auto const o = rule_matcher::slot(m_, n.slot);
      // The editor's list of attributes may move as it grows; the graph that was matched stands still.
      facets = g_.meaning(o).facets, attributes = g_.meaning(o).bytes;
    } else if (n.make) {
      n.make(m_, bytes);
    } else {
      facets->construct(bytes);
    }
    std::span<value_id const> const arguments{in.data(), n.arity};
    for (std::size_t i = g_.op_count(); i < edit_.graph().op_count(); ++i) {  // the same once more: one op
      auto const o = id_at<op_id>(i);
      auto const have = edit_.graph().inputs(o);
      if (same_operator(edit_.graph().view(o), {facets, attributes}) &&
          std::equal(have.begin(), have.end(), arguments.begin(), arguments.end()))
        return edit_.output(o, n.output);
    }
    return edit_.emit({facets, attributes}, arguments)[n.output];
  }

  /// Whether the rule is about this op: one of the left side; for a rule that emits its right side itself, an argument's
  /// maker.
  bool is_left(op_id o) const {
    for (auto x : rule_matcher::ops(m_))
      if (x == o) return true;
    if (what_.build)
      for (auto v : m_.arguments())
        if (g_.producer(v) == o) return true;
    return false;
  }
  bool is_new(value_id v) const {
    auto const o = edit_.graph().producer(v);
    return o != nothing<op_id> && index(o) >= g_.op_count();
  }
  bool is_own(value_id v) const { return is_new(v) && edit_.graph().record(v).alias == alias_kind::fresh; }

  /// The new result may stand for the old one, as far as types and storages go; copied if that makes it so.
  bool settle(int k) {
    auto const& g = edit_.graph();
    if (!(g.type(new_[k]) == g.type(old_[k]))) return false;
    auto const s = g_.storage(old_[k]);
    if (!is_own(new_[k]) && g.storage(new_[k]) != s && is_read_by_writer_of(g.storage(new_[k]), s)) return false;
    bool const overwritten = g_.is_overwritten(s), updated = g_.record(s).updates != 0 || overwritten;
    if (overwritten && g_.bytes(s) != g_.type(old_[k]).bytes()) return false;
    bool stays = updated || g_.is_kept(old_[k]);
    for (auto v : g_.kept()) stays = stays || g_.storage(v) == s;  // a view of it
    if (!stays) return true;
    bool const is_view = g_.record(old_[k]).alias != alias_kind::fresh;
    // An output is a value of its own.
    if (g_.is_kept(old_[k]) && (!is_new(new_[k]) || (k == 1 && new_[0] == new_[1]))) return !is_view && copy_result(k);
    if (is_view) return !updated && g.storage(new_[k]) == s && g.layout(new_[k]) == g_.layout(old_[k]);
    // What is kept or written lies in a storage of its own.
    if (is_own(new_[k]) && !(k == 1 && new_[0] == new_[1]))
      return g.layout(new_[k]) == g_.layout(old_[k]) || copy_result(k);
    return copy_result(k);
  }
  /// Whether an op that writes one storage reads another.
  bool is_read_by_writer_of(storage_id written, storage_id read) const {
    if (index(written) >= g_.storage_count()) return false;
    if (g_.record(written).updates == 0 && !g_.is_overwritten(written)) return false;
    for (auto o : g_.ops()) {
      bool writes = false, reads = false;
      for (auto v : g_.outputs(o))
        writes = writes || (g_.record(v).alias == alias_kind::update && g_.storage(v) == written) ||
                 (g_.overwrites(v) != nothing<value_id> && g_.storage(g_.overwrites(v)) == written);
      for (auto v : g_.inputs(o)) reads = reads || g_.storage(v) == read;
      if (writes && reads) return true;
    }
    return false;
  }
  bool copy_result(int k) {
    if (!(g_.layout(old_[k]) == tensor_layout::dense(g_.type(old_[k])))) return false;
    if (is_own(new_[k]) && edit_.graph().layout(new_[k]) == g_.layout(old_[k])) return true;
    new_[k] = edit_.emit(view_of(op::copy{}), {&new_[k], 1}).front();
    return true;
  }

  /// A copy in the place of a copy of the same.
  bool is_copy_for_copy() const {
    auto const made_by = edit_.graph().producer(new_[0]);
    return g_.means<op::copy>(m_.root()) && made_by != nothing<op_id> && edit_.graph().as<op::copy>(made_by) &&
           edit_.graph().inputs(made_by)[0] == g_.inputs(m_.root())[0];
  }
  /// Of two roots: whether one depends on the other.
  bool runs_in_circle() const {
    if (old_[1] == nothing<value_id>) return false;
    return depends(g_.producer(old_[0]), g_.producer(old_[1])) || depends(g_.producer(old_[1]), g_.producer(old_[0]));
  }
  bool depends(op_id from, op_id on) const {
    plain_vector<op_id> open;
    number_map seen;
    open.push_back(from);
    while (!open.empty()) {
      auto const o = open.back();
      open.resize(open.size() - 1);
      if (o == on) return true;
      for (auto x : g_.inputs(o))
        if (auto const made_by = g_.producer(x); made_by != nothing<op_id> && seen.add(index(made_by), 0))
          open.push_back(made_by);
    }
    return false;
  }

  /// Every reader's shape rule says the same of the new results as of the old ones.
  bool readers_accept() const {
    for (int k = 0; k < 2; ++k) {
      if (old_[k] == nothing<value_id>) continue;
      for (auto const& r : g_.uses(old_[k]))
        if (!accepts(r.op)) return false;
    }
    return true;
  }
  bool accepts(op_id o) const {
    auto const& g = edit_.graph();
    plain_vector<tensor_layout> layouts;
    plain_vector<value_id> in;
    bool same = true;
    for (auto x : g_.inputs(o)) {
      auto const to = x == old_[0] ? new_[0] : x == old_[1] ? new_[1] : x;
      same = same && g.layout(to) == g_.layout(x);
      layouts.push_back(g.layout(to));
      in.push_back(to);
    }
    auto const& f = g_.facets(o);
    bool writes = g_.overwrites_any(o);
    for (auto out : g_.outputs(o)) writes = writes || g_.record(out).alias == alias_kind::update;
    if (same && !writes) return true;
    if (writes)  // what it writes shares no storage with what it now reads
      for (std::size_t i = 0; i < in.size(); ++i)
        for (std::size_t j = 0; j < in.size(); ++j)
          if (i != j && g.storage(in[i]) == g.storage(in[j]) &&
              g_.storage(g_.inputs(o)[i]) != g_.storage(g_.inputs(o)[j]))
            return false;
    if (same) return true;
    if (&f == &facets_of<op::opaque>) return false;
    try {
      shape_context shapes(f.name, span_of(layouts));
      f.infer(g_.attributes(o), shapes);
      if (f.takes != layouts::any && shapes.misfits([&](tensor_layout const& l) { return fits(f.takes, l); }))
        return false;
      auto const out = shapes.outputs();
      for (std::size_t j = 0; j < out.size(); ++j)
        if (!(out[j].layout == g_.layout(g_.output(o, static_cast<int>(j))))) return false;
      return out.size() == g_.outputs(o).size();
    } catch (error const&) { return false; }
  }

  /// The given values: all that neither the matched ops nor the new ones make.
  class outside final : public given_values {
   public:
    outside(rule_builder const& b) : b_(b) {}
    bool given(value_id v, digest& name) const override {
      auto const o = b_.edit_.graph().producer(v);
      if (o != nothing<op_id>) {
        if (index(o) >= b_.g_.op_count()) return false;
        if (b_.is_left(o)) return false;
      }
      name = digest{}.mix(0x6769u).mix(index(v));
      return true;
    }

   private:
    rule_builder const& b_;
  };
  void check_values() const {
    outside const given(*this);
    field_secret const secret;
    for (int k = 0; k < 2; ++k) {
      if (old_[k] == nothing<value_id>) continue;
      field_comparison shared(secret);
      field_values in(edit_.graph(), given, shared);
      // What is too large to be checked is left unchecked: it is the caller's own rule, and the verifier judges plans.
      if (field_values::compare(in, old_[k], in, new_[k]) == field_answer::different)
        throw_error({"rewrite \"", what_.name, "\" changes what is computed"});
    }
  }

  rule const& what_;
  match const& m_;
  op_graph const& g_;
  graph_editor edit_;
  std::array<value_id, 2> old_{}, new_{nothing<value_id>, nothing<value_id>};
};

NEAP_FUNC std::optional<edited> rewritten_by(rule const& what, match const& m, op_graph const& g, schedule const& order,
                                             bool check) {
  rule_builder builder(what, m, g);
  return std::move(builder).build(order, check);
}

}  // namespace detail

}}  // namespace neap::v0
