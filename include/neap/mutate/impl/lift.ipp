// The bodies of <neap/mutate/lift.hpp>.
#pragma once

#include <neap/mutate/lift.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/ir/operators/parts.hpp>
#include <neap/ir/operators/unary.hpp>
#include <neap/ir/stored.hpp>

namespace neap { inline namespace v0 { namespace detail {

/// The row of what an op is a part of; null if it is none, or it is not known.
NEAP_FUNC whole_op const* whole_of(op_graph const& g, op_id o) {
  auto const& r = g.record(o);
  if (r.part == nothing<part_id> || r.whole == no_id) return nullptr;
  auto const& w = g.whole(r.whole);
  return w.fission == whole_op::stated ? nullptr : &w;
}
/// The axis along which a part's input is cut; -1: it reads the whole.
NEAP_FUNC int cut_axis(op_graph const& g, op_id part, std::size_t i) {
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
  edited finish() { return {std::move(edit_).finish(), std::move(out_)}; }
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

NEAP_FUNC std::optional<edited> with_whole_ops(op_graph const& g, schedule const& order, std::uint32_t fission,
                                               std::optional<fission_of>* cut) {
  part_lifter lifter(g, order, fission);
  if (!lifter.build()) return std::nullopt;
  auto e = lifter.finish();
  if (cut) *cut = lifter.undone(e.graph, e.order);
  return e;
}

NEAP_FUNC plain_vector<standing_fission> standing_fissions(op_graph const& g, schedule const& order) {
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

NEAP_FUNC std::uint32_t innermost_of(op_graph const& g, std::uint32_t fission) {
  for (auto found = fission;; fission = found) {
    for (auto o : g.ops()) {
      auto const* w = whole_of(g, o);
      if (w && w->record.whole != no_id && g.whole(w->record.whole).fission == fission) found = w->fission;
    }
    if (found == fission) return found;
  }
}

}}}  // namespace neap::v0::detail
