// The bodies of <neap/verify/whole_program.hpp>.
#pragma once

#include <neap/verify/whole_program.hpp>

#include <neap/core/error.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/separate_compilation.hpp>
#include <neap/ir/operators/movement.hpp>
#include <neap/ir/operators/parts.hpp>
#include <neap/ir/operators/unary.hpp>
#include <neap/verify/value_numbers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <variant>

namespace neap { inline namespace v0 { namespace detail { namespace plan_check {

NEAP_FUNC bool runs_parts_of_others(op_graph const& original, op_graph const& g) {
  if (!g.runs_in_parts()) return false;
  std::vector<bool> has(original.origin_count());
  for (auto o : original.ops()) has[index(original.origin(o))] = true;
  for (auto o : g.ops())
    if (auto const origin = index(g.origin(o));
        g.record(o).part != nothing<part_id> && (origin >= has.size() || !has[origin]))
      return true;
  return false;
}

class whole_program_builder {
 public:
  whole_program_builder(op_graph const& original, op_graph const& g, int choice)
      : original_(original),
        g_(g),
        choice_(choice),
        left_(choice < alike ? 0 : static_cast<std::size_t>(choice - alike) + 1),
        edit_(g),
        gone_(g.op_count(), 0),
        now_(g.value_count(), nothing<value_id>),
        piece_of_(g.value_count(), nothing<op_id>),
        first_of_(original.origin_count(), nothing<op_id>) {
    for (auto o : original.ops())
      if (auto& first = first_of_[index(original.origin(o))]; first == nothing<op_id>) first = o;
  }

  /// The program; nothing if it cannot be made of these parts. `order`: each op after those that make its inputs.
  std::optional<op_graph> operator()(std::vector<op_id> const& order) {
    try {
      for (auto o : order)
        if (!(g_.record(o).part != nothing<part_id> ? make_whole(o) : pass(o))) return std::nullopt;
      std::vector<value_id> const kept(g_.kept().begin(), g_.kept().end());
      for (auto v : kept) {
        auto const whole = now(v);
        if (whole == nothing<value_id>) return std::nullopt;
        if (whole != v) edit_.replace_uses(v, whole);
      }
      for (auto o : g_.ops())
        if (gone_[o]) edit_.remove(o);
      return std::move(edit_).finish();
    } catch (error const&) { return std::nullopt; }  // a shape rule refuses, or something reads what is no more
  }
  /// After that: whether the next choice would give another program.
  bool has_more_choices() const { return has_more_choices_; }

 private:
  op_id in_original(op_id o) const {
    auto const origin = index(g_.origin(o));
    return origin < first_of_.size() ? first_of_[origin] : nothing<op_id>;
  }
  /// A plan file says nothing of them: what the original does holds for its ops.
  plain_vector<dim_link> links_of(op_id o) const {
    auto const x = in_original(o);
    return x != nothing<op_id> ? original_.links(x) : g_.links(o);
  }
  /// An op that neither the original has nor is a part of anything.
  bool is_helper(op_id o) const {
    return g_.record(o).part == nothing<part_id> && in_original(o) == nothing<op_id> && g_.outputs(o).size() == 1;
  }
  value_id now(value_id v) const {
    if (now_[v] != nothing<value_id>) return now_[v];
    auto const o = g_.producer(v);
    return o != nothing<op_id> && gone_[o] ? nothing<value_id> : v;
  }
  bool is_first(part_id p) const {
    for (; p != nothing<part_id>; p = g_.part(p).of)
      if (g_.part(p).number != 0) return false;
    return true;
  }
  bool is_cut_once(op_id o) const { return g_.part(g_.record(o).part).of == nothing<part_id>; }
  bool runs_as(part_id p, std::int64_t number, std::int64_t count) const {
    for (; p != nothing<part_id>; p = g_.part(p).of)
      if (g_.part(p).number == number && g_.part(p).count == count) return true;
    return false;
  }
  /// Whether the parts with that number alone read a value, perhaps after more slices, copies and transfers, and none
  /// of them is of an op of the original that reads no more than `piece` itself.
  bool is_read_as(value_id v, std::int64_t number, std::int64_t count, extents const& piece) const {
    if (g_.is_kept(v) || g_.uses(v).empty()) return false;
    for (auto const& u : g_.uses(v)) {
      auto const p = g_.record(u.op).part;
      if (p == nothing<part_id>) {
        if (!passes_on(u.op) || !is_read_as(g_.output(u.op), number, count, piece)) return false;
        continue;
      }
      auto const x = in_original(u.op);
      if (!runs_as(p, number, count) || (x != nothing<op_id> && u.argument < original_.inputs(x).size() &&
                                         original_.type(original_.inputs(x)[u.argument]).dims == piece))
        return false;
    }
    return true;
  }
  bool passes_on(op_id o) const {
    return is_helper(o) && (g_.as<op::slice>(o) || g_.as<op::copy>(o) || is_transfer(g_, o));
  }
  /// A slice into the pieces that parts read.
  bool is_cut(op_id o) const {
    auto const* x = g_.as<op::slice>(o);
    if (!x || !is_helper(o)) return false;
    auto const& dims = g_.type(g_.inputs(o)[0]).dims;
    auto const axis = static_cast<int>(x->axis < 0 ? x->axis + dims.rank() : x->axis);
    auto const n = x->stop - x->start;
    return n > 0 && n < dims[axis] && dims[axis] % n == 0 && x->start % n == 0 &&
           is_read_as(g_.output(o), x->start / n, dims[axis] / n, g_.type(g_.output(o)).dims);
  }

  bool make_whole(op_id o) {
    gone_[o] = true;
    for (auto v : g_.outputs(o)) piece_of_[v] = o;
    if (!is_first(g_.record(o).part)) return true;
    auto const x = in_original(o);
    if (x != nothing<op_id> && g_.inputs(o).size() != original_.inputs(x).size()) return false;
    std::vector<value_id> in;
    bool as_there = x != nothing<op_id>;
    for (std::size_t i = 0; i < g_.inputs(o).size(); ++i) {
      auto const v = g_.inputs(o)[i];
      auto whole = now(v);
      if (x != nothing<op_id>) {
        auto const& wanted = original_.layout(original_.inputs(x)[i]);
        if (auto const found = laid_out_as(v, wanted); found != nothing<value_id>) whole = found;
        else as_there = false;
      }
      if (whole == nothing<value_id>) return false;
      in.push_back(whole);
    }
    auto const made = as_there              ? add_as_there(x, in)
                      : x != nothing<op_id> ? add(original_.view(x), in)
                                            : add_known(o, in);
    if (made == nothing<op_id> || edit_.graph().outputs(made).size() != g_.outputs(o).size()) return false;
    edit_.set_origin(made, g_.origin(o));
    edit_.set_name(made, g_.name(o));
    for (std::size_t j = 0; j < g_.outputs(o).size(); ++j)
      now_[g_.outputs(o)[j]] = edit_.output(made, static_cast<int>(j));
    return true;
  }
  /// What stands for v, or for what v is a copy of, if it lies in memory so; nothing if it does not.
  value_id laid_out_as(value_id v, tensor_layout const& l) const {
    for (;;) {
      if (auto const x = now(v); x != nothing<value_id> && edit_.layout_of(x) == l) return x;
      auto const made_by = g_.producer(v);
      if (made_by == nothing<op_id> || !g_.as<op::copy>(made_by)) return nothing<value_id>;
      v = g_.inputs(made_by)[0];
    }
  }
  op_id add_as_there(op_id x, std::vector<value_id> const& in) {
    std::vector<output_rule> rules;
    for (auto v : original_.outputs(x))
      rules.push_back({original_.layout(v), original_.record(v).alias, original_.record(v).of,
                       original_.bytes(original_.storage(v))});
    if (auto const* what = original_.as<op::opaque>(x)) {
      auto const links = original_.links(x);
      return edit_.add_opaque(original_.target(x), *what, span_of(in), rules, {}, original_.details(x), span_of(links));
    }
    return edit_.add_given(original_.view(x), span_of(in), rules);
  }
  /// An op of a known operator, with the part's attributes. Extents among these that are the part's first output's are the
  /// whole's: those that the dimension relations then make of the inputs.
  op_id add_known(op_id o, std::vector<value_id> const& in) {
    auto const& f = g_.facets(o);
    if (&f == &facets_of<op::opaque>) return nothing<op_id>;
    std::vector<std::max_align_t> room(f.size / sizeof(std::max_align_t) + 1);
    if (f.size) std::memcpy(static_cast<void*>(room.data()), g_.attributes(o), f.size);
    void const* const what = f.size ? static_cast<void const*>(room.data()) : g_.attributes(o);
    auto const& part = g_.type(g_.output(o)).dims;
    for (auto const& a : f.attributes) {
      if (a.name != "dims") continue;
      auto const have = a.get(what);
      auto const* const e = std::get_if<extents>(&have);
      if (!e || !(*e == part)) continue;
      // Each axis of an input that is cut makes one of the output longer, or is summed over.
      std::vector<std::int64_t> times;
      for (std::size_t i = 0; i < in.size() && times.empty(); ++i) {
        auto const &whole = edit_.layout_of(in[i]).type.dims, &mine = g_.type(g_.inputs(o)[i]).dims;
        for (int k = 0; k < whole.rank(); ++k)
          if (whole[k] != mine[k] && mine[k] > 0) times.push_back(whole[k] / mine[k]);
      }
      auto dims = part;
      std::vector<extents> found;
      auto const try_axes = [&](auto&& self, std::size_t from) -> void {
        if (from == times.size()) {
          a.set(room.data(), dims);
          if (std::find(found.begin(), found.end(), dims) == found.end() && goes_together(o, what, in))
            found.push_back(dims);
          return;
        }
        for (int k = 0; k < dims.rank(); ++k) {
          dims[k] *= times[from];
          self(self, from + 1);
          dims[k] /= times[from];
        }
        self(self, from + 1);
      };
      try_axes(try_axes, 0);
      if (found.empty()) return nothing<op_id>;
      a.set(room.data(), found[chosen(found.size())]);
    }
    return add({&f, what}, in);
  }
  /// Which of so many ways to take: the same each time while that is new, then each one for itself.
  std::size_t chosen(std::size_t ways) {
    if (ways == 1) return 0;
    ++open_;
    if (choice_ < alike) {
      has_more_choices_ = has_more_choices_ || open_ > 1 || ways > static_cast<std::size_t>(choice_) + 1;
      return std::min(ways - 1, static_cast<std::size_t>(choice_));
    }
    auto const at = left_ % ways;
    left_ /= ways;
    has_more_choices_ = has_more_choices_ || at + 1 < ways;
    return at;
  }
  /// Nothing if it is more than one op: inputs would have to be copied.
  op_id add(operator_view what, std::vector<value_id> const& in) {
    if (what.facets == &facets_of<op::opaque>) return nothing<op_id>;
    auto const before = edit_.graph().op_count();
    edit_.emit(what, span_of(in));
    return edit_.graph().op_count() == before + 1 ? id_at<op_id>(before) : nothing<op_id>;
  }
  /// Whether an operator takes the inputs, and relates every axis along which one is longer than that of part o to one of
  /// the first output that is longer, or sums over it.
  bool goes_together(op_id o, void const* what, std::vector<value_id> const& in) const {
    auto const& f = g_.facets(o);
    std::vector<tensor_layout> inputs, outputs;
    for (auto v : in) inputs.push_back(edit_.layout_of(v));
    shape_context shapes(f.name, span_of(inputs));
    try {
      f.infer(what, shapes);
    } catch (error const&) { return false; }
    for (auto const& x : shapes.outputs()) outputs.push_back(x.layout);
    dim_context relations(span_of(inputs), span_of(outputs));
    f.relate(what, relations);
    auto const links = std::move(relations).take();
    auto const &whole = outputs[0].type.dims, &part = g_.type(g_.output(o)).dims;
    if (whole.rank() != part.rank()) return false;
    if (!suits_readers(g_.output(o), whole)) return false;
    if (!is_cut_once(o)) return true;  // what is cut within a part may be no axis of the whole
    for (std::size_t i = 0; i < in.size(); ++i)
      for (int k = 0; k < inputs[i].type.rank(); ++k) {
        if (inputs[i].type.dims[k] == g_.type(g_.inputs(o)[i]).dims[k]) continue;
        bool related = false;
        for (auto const& l : links)
          related = related || (l.input == static_cast<int>(i) && l.in_axis == k &&
                                (l.output < 0 || (l.output == 0 && whole[l.out_axis] != part[l.out_axis])));
        if (!related) return false;
      }
    return true;
  }

  /// Whether what reads a piece can do with a whole of these extents: it is what the original reads there, pieces of it are
  /// put into their places along the axis that is longer, and so on for what rules' ops make of it element by element.
  bool suits_readers(value_id piece, extents const& whole, int depth = 8) const {
    auto const& part = g_.type(piece).dims;
    bool const cut_once = is_cut_once(g_.producer(piece));
    for (auto const& u : g_.uses(piece)) {
      if (auto const* x = g_.as<op::place>(u.op); x && u.argument == 1 && is_helper(u.op) && cut_once) {
        for (int k = 0; k < whole.rank(); ++k)
          if (whole[k] != part[k] && k != (x->axis < 0 ? x->axis + whole.rank() : x->axis)) return false;
        continue;
      }
      if (g_.record(u.op).part == nothing<part_id>) continue;
      if (auto const x = in_original(u.op); x != nothing<op_id>) {
        if (u.argument >= original_.inputs(x).size() ||
            !(original_.type(original_.inputs(x)[u.argument]).dims == whole))
          return false;
        continue;
      }
      auto const made = g_.output(u.op);
      if (depth > 0 && g_.facets(u.op).is_elementwise(g_.attributes(u.op)) && g_.type(made).dims == part &&
          !suits_readers(made, whole, depth - 1))
        return false;
    }
    return true;
  }

  bool pass(op_id o) {
    auto const in = g_.inputs(o);
    if (g_.as<op::blank>(o) && is_helper(o)) return go(o, nothing<op_id>, nothing<value_id>);
    if (is_cut(o)) return go(o, nothing<op_id>, g_.as<op::slice>(o)->start == 0 ? now(in[0]) : nothing<value_id>);
    if (is_helper(o) && in.size() == 2 && piece_of_[in[1]] != nothing<op_id> &&
        (g_.as<op::place>(o) || g_.as<op::combine_into>(o))) {
      auto const* x = g_.as<op::place>(o);
      return go(o, piece_of_[in[1]], now(in[x && x->start == 0 ? 1 : 0]));
    }
    if (g_.as<op::mul_scalar>(o) && is_helper(o) && is_sum_of_means(in[0])) return go(o, piece_of_[in[0]], now(in[0]));
    if (is_transfer(g_, o) || (g_.as<op::copy>(o) && is_helper(o))) {
      if (in.size() != 1) return false;
      auto const whole = now(in[0]);
      if (whole == nothing<value_id> || !(edit_.layout_of(whole) == g_.layout(in[0])))
        return go(o, piece_of_[in[0]], whole);
      if (is_transfer(g_, o)) piece_of_[g_.output(o)] = piece_of_[in[0]];
    }
    std::vector<value_id> wholes;
    for (auto v : in) {
      wholes.push_back(now(v));
      if (wholes.back() == nothing<value_id> || !(edit_.layout_of(wholes.back()) == g_.layout(v))) return false;
    }
    if (lacks_links(o)) return give_links(o, wholes);
    for (std::size_t i = 0; i < wholes.size(); ++i)
      if (wholes[i] != in[i]) edit_.set_input(o, i, wholes[i]);
    return true;
  }
  /// An op that came from a plan file and may be what others are shown to be parts of.
  bool lacks_links(op_id o) const {
    auto const x = in_original(o);
    if (x == nothing<op_id> || !g_.as<op::opaque>(o) || !g_.links(o).empty() || original_.links(x).empty())
      return false;
    if (g_.inputs(o).size() != original_.inputs(x).size() || g_.outputs(o).size() != original_.outputs(x).size())
      return false;
    for (std::size_t i = 0; i < g_.inputs(o).size(); ++i)
      if (!(g_.layout(g_.inputs(o)[i]) == original_.layout(original_.inputs(x)[i]))) return false;
    for (auto v : g_.outputs(o))
      if (g_.record(v).alias == alias_kind::update) return false;
    return true;
  }
  bool give_links(op_id o, std::vector<value_id> const& in) {
    auto const made = add_as_there(in_original(o), in);
    if (made == nothing<op_id>) return false;
    gone_[o] = true;
    edit_.set_origin(made, g_.origin(o));
    edit_.set_name(made, g_.name(o));
    for (std::size_t j = 0; j < g_.outputs(o).size(); ++j)
      now_[g_.outputs(o)[j]] = edit_.output(made, static_cast<int>(j));
    return true;
  }
  bool go(op_id o, op_id part, value_id whole) {
    auto const v = g_.output(o);
    gone_[o] = true, piece_of_[v] = part, now_[v] = whole;
    return true;
  }
  /// Partial means, some or all of them, added up.
  bool is_sum_of_means(value_id v) const {
    auto const o = g_.producer(v);
    if (piece_of_[v] == nothing<op_id> || o == nothing<op_id> || !g_.as<op::combine_into>(o)) return false;
    for (auto const& l : links_of(piece_of_[v]))
      if (l.output < 0 && l.how == combine::mean) return true;
    return false;
  }

  op_graph const& original_;
  op_graph const& g_;
  int choice_;
  static constexpr int alike = 3;  // choices that are the same for all
  std::size_t open_ = 0, left_ = 0;
  bool has_more_choices_ = false;
  graph_editor edit_;
  table<op_id, std::uint8_t> gone_;
  table<value_id, value_id> now_;    // what stands for what goes
  table<value_id, op_id> piece_of_;  // whose part makes it, or the last piece of it so far
  std::vector<op_id> first_of_;      // ops of the original by origin
};

NEAP_FUNC whole_program whole_program_of(op_graph const& original, op_graph const& g, std::vector<op_id> const& order,
                                         int choice) {
  whole_program_builder build(original, g, choice);
  whole_program made;
  made.program = build(order);
  made.has_more_choices = build.has_more_choices();
  return made;
}

}}}}  // namespace neap::v0::detail::plan_check
