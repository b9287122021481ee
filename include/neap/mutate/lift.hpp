// Moves over fissions that stand in a candidate: `lift` makes one whole again, `fission_factor` cuts it into more or fewer
// parts.
//
//   parts   a0 = slice(x), b0 = f(a0), y0 = place(blank, b0), a1 = slice(x), b1 = f(a1), y1 = place(y0, b1), g(y1)
//   lifted  b = f(x), g(b)
//
// Each part knows what it was cut from (op_graph::whole). The first part says in which order the whole ops run, and what was
// done to it since - moved, computed again - is done to them; what slices, stores or joins pieces goes.
//
// After MAGIS (ASPLOS'24), which dissolves the deepest level of nested regions and moves to the neighbouring divisor.
#pragma once

#include <neap/core/number_map.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/operators/parts.hpp>
#include <neap/ir/operators/unary.hpp>
#include <neap/ir/stored.hpp>
#include <neap/mutate/fission.hpp>
#include <neap/mutate/mutator.hpp>
#include <neap/mutate/ranked_stream.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace neap { inline namespace v0 {

namespace detail {

/// The row of what an op is a part of; null if it is none, or it is not known.
inline whole_op const* whole_of(op_graph const& g, op_id o) {
  auto const& r = g.record(o);
  if (r.part == nothing<part_id> || r.whole == no_id) return nullptr;
  auto const& w = g.whole(r.whole);
  return w.fission == whole_op::stated ? nullptr : &w;
}
/// The axis along which a part's input is cut; -1: it reads the whole.
inline int cut_axis(op_graph const& g, op_id part, std::size_t i) {
  auto const &a = g.type(g.inputs(part)[i]).dims, &b = g.input_layout(*whole_of(g, part), i).type.dims;
  for (int k = 0; k < b.rank(); ++k)
    if (a[k] != b[k]) return k;
  return -1;
}

/// Builds the graph and the order in which the ops of a fission are whole again. None of its parts is cut once more.
class part_lifter {
 public:
  part_lifter(op_graph const& g, schedule const& order, std::uint32_t fission)
      : g_(g),
        order_(order),
        fission_(fission),
        edit_(g),
        gone_(g.op_count(), 0),
        made_(g.op_count(), nothing<op_id>),
        now_(g.value_count(), nothing<value_id>),
        piece_of_(g.value_count(), nothing<op_id>),
        joined_(g.value_count(), 0) {}

  /// False if something reads pieces otherwise than fission has it, so that there is nothing whole to read instead.
  bool build() {
    for (auto o : order_.order)
      if (!(is_in(o) ? make_whole(o) : pass(o))) return false;
    if (parts_ == 0) return false;
    for (std::size_t k = 0; k < g_.kept().size(); ++k) {
      auto const v = g_.kept()[k], whole = now(v);
      if (whole == v) continue;
      if (!may_stand_for(v, whole)) return false;
      edit_.replace_uses(v, whole);
    }
    remove_helpers();
    settle_order();
    return true;
  }
  /// After build(), once.
  template <class G>
  edited<G> finish() {
    return {G(std::move(edit_).finish()), std::move(out_)};
  }
  /// After build(): the fission of the new candidate that would make what there was, of whole ops that follow one another.
  /// `g` is the graph that finish() has given. Nothing if no op is there that was not there besides.
  std::optional<fission_of> undone(op_graph const& g, schedule const& order) const {
    if (first_made_ == nothing<op_id>) return std::nullopt;
    auto const v = g.inputs(order[first_])[cut_input_];
    return fission_of{{v, cut_axis_}, first_, last_, parts_, again_};
  }

 private:
  bool is_in(op_id o) const {
    auto const* w = whole_of(g_, o);
    return w && w->fission == fission_;
  }
  bool is_helper(op_id o) const { return g_.record(o).part == nothing<part_id>; }
  std::int64_t number(value_id v) const { return g_.part(g_.record(piece_of_[v]).part).number; }
  /// What stands for a value in the edited graph; nothing if it goes with the parts.
  value_id now(value_id v) const {
    if (now_[v] != nothing<value_id>) return now_[v];
    auto const o = g_.producer(v);
    return o != nothing<op_id> && gone_[o] ? nothing<value_id> : v;
  }
  /// What v was sliced from, copied or stored; nothing if it was not.
  value_id before(value_id v) const {
    auto const o = g_.producer(v);
    if (o == nothing<op_id> || !is_helper(o)) return nothing<value_id>;
    if (auto const* x = g_.as<op::slice>(o)) return x->start == 0 ? g_.inputs(o)[0] : nothing<value_id>;
    if (g_.as<op::copy>(o)) return g_.inputs(o)[0];
    if (!g_.as<op::load>(o)) return nothing<value_id>;
    auto const store = store_of(g_, g_.inputs(o)[0]);
    return store == nothing<op_id> ? nothing<value_id> : g_.inputs(store)[0];
  }
  /// What the whole op reads, laid out as it was, where its first part reads v.
  value_id whole_input(value_id v, tensor_layout const& as_it_was) const {
    for (; v != nothing<value_id>; v = before(v))
      if (auto const x = now(v); x != nothing<value_id> && edit_.layout_of(x) == as_it_was) return x;
    return nothing<value_id>;
  }

  bool make_whole(op_id o) {
    gone_[o] = true;
    auto const& r = g_.record(o);
    auto const& row = g_.part(r.part);
    auto const& w = g_.whole(r.whole);
    for (auto v : g_.outputs(o)) piece_of_[v] = o;
    parts_ = row.count;
    if (row.number != 0) return true;
    inputs_.clear();
    for (std::size_t i = 0; i < g_.inputs(o).size(); ++i) {
      auto const x = whole_input(g_.inputs(o)[i], g_.input_layout(w, i));
      if (x == nothing<value_id>) return false;
      inputs_.push_back(x);
    }
    auto const made = edit_.add_whole(r.whole, span_of(inputs_));
    gone_.resize(edit_.graph().op_count(), 0);
    if (auto const first = shown_before(made); first != nothing<op_id>) {
      stand_for(o, first);
      gone_[made] = true;
      edit_.remove(made);
      return true;
    }
    stand_for(o, made);
    made_[o] = made;
    again_ = again_ || row.of != nothing<part_id>;
    if (first_made_ != nothing<op_id>) return true;
    first_made_ = made;
    for (std::size_t i = 0; i < inputs_.size() && cut_axis_ < 0; ++i) cut_input_ = i, cut_axis_ = cut_axis(g_, o, i);
    return cut_axis_ >= 0;
  }
  void stand_for(op_id o, op_id whole) {
    for (std::size_t j = 0; j < g_.outputs(o).size(); ++j)
      now_[g_.outputs(o)[j]] = edit_.output(whole, static_cast<int>(j));
  }

  /// An op that is none of the fission's parts.
  bool pass(op_id o) {
    auto const in = g_.inputs(o);
    if (is_helper(o) && in.size() == 2 && piece_of_[in[1]] != nothing<op_id> && !joined_[in[1]] &&
        (g_.as<op::place>(o) || g_.as<op::combine_into>(o))) {
      bool const first = g_.as<op::place>(o) && number(in[1]) == 0;
      return go(o, piece_of_[in[1]], now(first ? in[1] : in[0]), true) && now_[g_.output(o)] != nothing<value_id>;
    }
    if (g_.as<op::mul_scalar>(o) && is_helper(o) && is_combined(in[0]) && how(piece_of_[in[0]]) == combine::mean)
      return go(o, piece_of_[in[0]], now(in[0]), true);
    if (is_swap_op(g_, o) || (g_.as<op::copy>(o) && is_helper(o))) {
      auto const x = in[0], whole = now(x);
      if (whole == nothing<value_id> || !(edit_.layout_of(whole) == g_.layout(x)))
        return go(o, piece_of_[x], whole, joined_[x]);
      if (is_swap_op(g_, o)) {  // of what is being put together, perhaps
        piece_of_[g_.output(o)] = piece_of_[x], joined_[g_.output(o)] = joined_[x];
        edit_.set_input(o, 0, whole);
        return true;
      }
    }
    for (std::size_t i = 0; i < in.size(); ++i) {
      auto const whole = now(in[i]);
      if (whole == in[i]) continue;
      if (!may_stand_for(in[i], whole)) return false;
      edit_.set_input(o, i, whole);
    }
    if (auto const first = shown_before(o); first != nothing<op_id>) stand_for(o, first), gone_[o] = true;
    return true;
  }
  /// Views that leave a fission were made again of the whole. Of such and what parts are views of, the op that shows the same
  /// and comes first; nothing if there is none.
  op_id shown_before(op_id o) {
    auto const& g = edit_.graph();
    auto const origin = index(g.origin(o));
    if (!flow::is_view(g, o) || views_.add(origin, static_cast<std::uint32_t>(index(o)))) return nothing<op_id>;
    op_id const first{views_.find(origin)};
    bool const of_parts = index(o) >= g_.op_count() || index(first) >= g_.op_count();
    return of_parts && is_same(o, first) ? first : nothing<op_id>;
  }
  /// The op goes; what it makes is a piece of what that part makes, and something whole stands for it, or nothing.
  bool go(op_id o, op_id part, value_id whole, bool joined) {
    auto const out = g_.output(o);
    gone_[o] = true, piece_of_[out] = part, now_[out] = whole, joined_[out] = joined;
    return true;
  }
  bool is_same(op_id o, op_id whole) const {
    auto const& g = edit_.graph();
    auto const a = g.inputs(o), b = g.inputs(whole);
    if (g.record(o).part != g.record(whole).part || !same_operator(g.view(o), g.view(whole)) ||
        !std::equal(a.begin(), a.end(), b.begin(), b.end()) || g.outputs(o).size() != g.outputs(whole).size())
      return false;
    for (std::size_t j = 0; j < g.outputs(o).size(); ++j)
      if (!(g.layout(g.outputs(o)[j]) == g.layout(g.outputs(whole)[j]))) return false;
    return true;
  }

  /// Partial results, some of them or all, combined.
  bool is_combined(value_id v) const {
    for (; v != nothing<value_id> && piece_of_[v] != nothing<op_id>; v = before(v))
      if (g_.as<op::combine_into>(g_.producer(v))) return true;
    return false;
  }
  /// How what the parts make is put together.
  combine how(op_id part) const {
    auto how = combine::concat;
    for (auto const& l : g_.links(part))
      if (l.output < 0 && cut_axis(g_, part, static_cast<std::size_t>(l.input)) == l.in_axis) how = l.how;
    return how;
  }
  /// Whether a reader of v, which goes, may read something whole instead: v is all put together.
  bool may_stand_for(value_id v, value_id whole) const {
    if (whole == nothing<value_id> || !(edit_.layout_of(whole) == g_.layout(v))) return false;
    auto const part = piece_of_[v];
    if (part == nothing<op_id>) return true;
    auto const way = how(part);
    if (is_in(g_.producer(v))) return way == combine::same;
    if (number(v) + 1 != g_.part(g_.record(part).part).count) return false;
    return way != combine::mean || g_.as<op::mul_scalar>(g_.producer(v)) || !is_combined(v);
  }

  /// What parts alone have read goes: slices, copies and rooms, and what was computed again for parts that are gone.
  void remove_helpers() {
    auto const& g = edit_.graph();
    table<value_id, std::uint32_t> readers(g.value_count(), 0);
    for (auto o : g.ops())
      if (!gone_[o])
        for (auto v : g.inputs(o)) ++readers[v];
    for (auto v : g.kept()) ++readers[v];
    for (std::size_t p = order_.size(); p-- > 0;) {
      auto const o = order_[p];
      if (gone_[o] || !is_helper(o)) continue;
      bool stays = !g_.may_recompute(o), was_read = false;
      for (auto v : g_.outputs(o)) {
        stays = stays || readers[v] != 0 || g_.record(v).alias == alias_kind::update;
        was_read = was_read || !g_.uses(v).empty();
      }
      if (stays || !was_read) continue;
      gone_[o] = true;
      for (auto v : g.inputs(o)) --readers[v];
    }
  }
  void settle_order() {
    plain_vector<std::uint32_t> renumbered(edit_.graph().op_count());
    std::uint32_t n = 0;
    for (std::size_t i = 0; i < renumbered.size(); ++i) renumbered[i] = gone_[id_at<op_id>(i)] ? no_id : n++;
    out_.order.reserve(n);
    for (auto o : order_.order) {
      if (gone_[o]) edit_.remove(o);
      else out_.order.push_back(op_id{renumbered[index(o)]});
      if (made_[o] == nothing<op_id>) continue;
      last_ = static_cast<std::uint32_t>(out_.order.size());
      if (made_[o] == first_made_) first_ = last_;
      out_.order.push_back(op_id{renumbered[index(made_[o])]});
    }
  }

  op_graph const& g_;
  schedule const& order_;
  std::uint32_t fission_;
  graph_editor edit_;
  schedule out_;
  table<op_id, std::uint8_t> gone_;
  table<op_id, op_id> made_;              // of the first parts: the whole op
  table<value_id, value_id> now_;         // what stands for what goes
  table<value_id, op_id> piece_of_;       // whose part makes it, or the last piece of it so far
  table<value_id, std::uint8_t> joined_;  // pieces are put together there
  number_map views_;                      // by origin: the last whole op that is a view
  op_id first_made_ = nothing<op_id>;
  std::size_t cut_input_ = 0;  // of the first whole op
  std::int32_t cut_axis_ = -1;
  std::int64_t parts_ = 0;
  bool again_ = false;
  std::uint32_t first_ = 0, last_ = 0;  // positions of whole ops in the new order
  plain_vector<value_id> inputs_;       // scratch
};

/// A fission that stands in a candidate.
struct standing_fission {
  std::uint32_t number = 0;  // whole_op::fission
  std::int64_t parts = 0;
  std::int64_t extent = 0;  // of the first axis that it cuts
};
/// All of them, in the order of their first parts. O(ops).
inline plain_vector<standing_fission> standing_fissions(op_graph const& g, schedule const& order) {
  plain_vector<standing_fission> all;
  plain_vector<std::uint32_t> at(g.fission_count(), no_id);
  for (auto o : order.order) {
    auto const* w = whole_of(g, o);
    if (!w) continue;
    if (at[w->fission] == no_id) {
      at[w->fission] = static_cast<std::uint32_t>(all.size());
      all.push_back({w->fission, g.part(g.record(o).part).count});
      for (std::size_t i = 0; i < g.inputs(o).size(); ++i)
        if (int const axis = cut_axis(g, o, i); axis >= 0) {
          all.back().extent = g.input_layout(*w, i).type.dims[axis];
          break;
        }
    }
  }
  return all;
}
/// The fission, or one that cuts its parts once more and is cut no more itself. O(ops) for each level.
inline std::uint32_t innermost_of(op_graph const& g, std::uint32_t fission) {
  for (auto found = fission;; fission = found) {
    for (auto o : g.ops()) {
      auto const* w = whole_of(g, o);
      if (w && w->record.whole != no_id && g.whole(w->record.whole).fission == fission) found = w->fission;
    }
    if (found == fission) return found;
  }
}

/// A candidate (without its simulation) in which the ops of a fission are whole again, and the fission that cuts them.
template <class G>
struct whole_again {
  candidate<G> whole;
  fission_of cut;
};
/// Nothing if the parts are cut once more, or something reads pieces otherwise than the fission has it.
template <class G>
std::optional<whole_again<G>> made_whole(candidate<G> const& c, std::uint32_t fission) {
  if (innermost_of(c.graph, fission) != fission) return std::nullopt;
  part_lifter build(c.graph, c.order, fission);
  if (!build.build()) return std::nullopt;
  auto e = build.template finish<G>();
  auto const cut = build.undone(e.graph, e.order);
  if (!cut) return std::nullopt;
  return whole_again<G>{{std::move(e.graph), std::move(e.order), {}}, *cut};
}

}  // namespace detail

/// The ops of a fission are whole again: what runs in parts of its parts first of all.
struct lift_of {
  std::uint32_t fission = 0;  // its number: whole_op::fission

  friend bool operator==(lift_of const&, lift_of const&) = default;

  template <class G>
  std::optional<edited<G>> apply(candidate<G> const& c) const {
    std::optional<edited<G>> out;
    for (;;) {
      op_graph const& g = out ? out->graph : c.graph;
      auto const& order = out ? out->order : c.order;
      auto const next = detail::innermost_of(g, fission);
      detail::part_lifter build(g, order, next);
      if (!build.build()) return std::nullopt;
      out = build.template finish<G>();
      if (next == fission) return out;
    }
  }
  template <class G>
  std::string describe(candidate<G> const& c) const {
    for (auto const& f : detail::standing_fissions(c.graph, c.order))
      if (f.number == fission) return detail::text_of({"make whole what runs in ", f.parts, " parts"});
    return "make whole what runs in parts";
  }
};

/// A fission has another number of parts: its ops are made whole, and cut anew.
struct factor_of {
  std::uint32_t fission = 0;  // its number: whole_op::fission
  std::int64_t parts = 2;

  friend bool operator==(factor_of const&, factor_of const&) = default;

  /// Nothing if the parts are cut once more: those would have to be lifted first.
  template <class G>
  std::optional<edited<G>> apply(candidate<G> const& c) const {
    auto was = detail::made_whole(c, fission);
    if (!was || was->cut.parts == parts) return std::nullopt;
    was->cut.parts = parts;
    return was->cut.apply(was->whole);
  }
  template <class G>
  std::string describe(candidate<G> const& c) const {
    std::string from;
    for (auto const& f : detail::standing_fissions(c.graph, c.order))
      if (f.number == fission) from = "what runs in " + std::to_string(f.parts) + " parts in ";
    return detail::text_of({"run ", from, parts, " parts"});
  }
};

namespace detail {

/// Lifts of all fissions, in the order of their first parts.
struct lifts {
  template <class G>
  plain_vector<scored<lift_of>> operator()(candidate<G> const& c) const {
    plain_vector<scored<lift_of>> found;
    for (auto const& f : standing_fissions(c.graph, c.order)) found.push_back({0, {f.number}});
    return found;
  }
};

/// The next fewer and the next more parts of all fissions.
struct factors {
  template <class G>
  plain_vector<scored<factor_of>> operator()(candidate<G> const& c) const {
    plain_vector<scored<factor_of>> found;
    for (auto const& f : standing_fissions(c.graph, c.order))
      for (int step : {-1, 1}) {
        auto n = f.parts + step;
        while (n > 1 && n <= f.extent && f.extent % n != 0) n += step;
        if (n > 1 && n <= f.extent) found.push_back({0, {f.number, n}});
      }
    return found;
  }
};

}  // namespace detail

/// The mutator: `lift_of` for every fission that stands in a candidate.
struct lift {
  template <class G>
    requires std::derived_from<G, op_graph>
  auto operator()(candidate<G> const& c) const {
    return detail::ranked_stream<lift_of, G, detail::lifts>(c, {});
  }
};

/// The mutator: `factor_of` for every fission that stands in a candidate, with the next fewer and the next more parts that
/// divide the first axis it cuts.
struct fission_factor {
  template <class G>
    requires std::derived_from<G, op_graph>
  auto operator()(candidate<G> const& c) const {
    return detail::ranked_stream<factor_of, G, detail::factors>(c, {});
  }
};

}}  // namespace neap::v0
