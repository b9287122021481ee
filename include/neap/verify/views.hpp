// Whether a view shows the same elements in a plan as in the original, for operators whose views depend on where their
// arguments lie: as_strided, and those of other engines. The original's argument and view lie in one storage, so that
// each place of the view is a place of the argument; in the plan the two places must be at one address as well.
// Strides and offsets may differ: a dense view of a dense copy shows what a strided view of the strided original does,
// and a strided view of the copy does not.
//
//   original   x [2, 3] strides 1, 2   y = view strides 1, 2      y[i, j] is x[i, j]
//   planned    x [2, 3] strides 3, 1   y = view strides 3, 1      right; with strides 1, 2 wrong
//
// The addresses are linear forms over cells of the view (ir/index_cells.hpp), so that all places are compared, of any
// number.
#pragma once

#include <neap/core/sip_hash.hpp>
#include <neap/ir/graph.hpp>
#include <neap/ir/index_cells.hpp>
#include <neap/ir/operators/movement.hpp>
#include <neap/verify/value_numbers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail::plan_check {

/// Where a view lies, and what it is a view of; where each begins in the whole, if it is a piece of one.
struct shown_value {
  tensor_layout of, view;
  extents of_start, view_start;
};

class view_comparison {
 public:
  view_comparison(shown_value const& original, shown_value const& planned, hash_key key)
      : a_(original),
        b_(planned),
        key_(key) {}

  /// Whether each place of the planned view is the same place of its argument as in the original. False if that view
  /// shows more than its argument.
  bool same() {
    bool const whole = b_.of_start.empty() && b_.view_start.empty();
    if (whole && a_.of == a_.view && b_.of == b_.view) return true;
    if (b_.of_start.empty()) b_.of_start = extents::filled(a_.of.type.rank(), 0);
    if (b_.view_start.empty()) b_.view_start = extents::filled(a_.view.type.rank(), 0);
    if (!comparable()) return false;
    if (b_.view.type.count() == 0) return true;
    for (int k = 0; k < a_.of.type.rank(); ++k)
      if (a_.of.type.dims[k] > 1 && a_.of.strides[k] > 0) axes_.push_back(k);
    std::stable_sort(axes_.begin(), axes_.end(), [&](int k, int l) { return a_.of.strides[k] > a_.of.strides[l]; });
    for (std::size_t i = 0; i + 1 < axes_.size(); ++i)  // places that share an address are no place
      if (a_.of.strides[axes_[i]] < a_.of.strides[axes_[i + 1]] * a_.of.type.dims[axes_[i + 1]]) return false;
    std::vector<index_cell> open{index_cell::all_of(b_.view.type.dims)};
    for (std::uint32_t n = 0; !open.empty(); ++n) {
      if (n == max_cells) return false;
      auto const c = std::move(open.back());
      open.pop_back();
      index_frame frame(c, key_, n);
      bool const is = same_in(frame);
      if (frame.is_cut()) c.cut(frame.cut(), [&](index_cell piece) { open.push_back(std::move(piece)); });
      else if (!is) return false;
    }
    return true;
  }

 private:
  static constexpr std::uint32_t max_cells = 20'000;

  bool comparable() const {
    auto const plain = [](tensor_layout const& l) {
      return l.offset >= 0 && std::all_of(l.strides.begin(), l.strides.end(), [](auto s) { return s >= 0; });
    };
    // A view of another element type shows parts of elements.
    return a_.of.type.element == a_.view.type.element && a_.of.type.rank() == b_.of.type.rank() &&
           a_.view.type.rank() == b_.view.type.rank() && plain(a_.of) && plain(a_.view) && plain(b_.of) &&
           plain(b_.view);
  }
  bool same_in(index_frame& frame) const {
    auto const& t = frame.start();
    index_place whole = t;
    for (int k = 0; k < t.rank(); ++k) whole[k].at += b_.view_start[k];
    auto address = frame.combined(whole, a_.view.strides.begin(), a_.view.offset - a_.of.offset);
    if (address.at < 0) return false;
    index_place p(b_.of.type.rank());
    for (int k = 0; k < p.rank(); ++k) p[k].at = b_.of_start[k];  // of what has one place only
    for (auto k : axes_) {
      coordinate rest;
      if (!frame.apart(address, a_.of.strides[k], rest)) return false;
      p[k] = std::exchange(address, rest);
    }
    if (address.at != 0 || address.form != 0) return false;
    for (int k = 0; k < p.rank(); ++k) {
      p[k].at -= b_.of_start[k];
      if (frame.side(p[k], 0) <= 0 || frame.side(p[k], b_.of.type.dims[k]) >= 0) return false;
    }
    auto const from = frame.combined(p, b_.of.strides.begin(), b_.of.offset);
    auto const shown = frame.combined(t, b_.view.strides.begin(), b_.view.offset);
    return from.at == shown.at && frame.tag(from) == frame.tag(shown);
  }

  shown_value a_, b_;
  hash_key key_;
  std::vector<int> axes_;  // of the original's argument, the longest strides first
};

/// The argument, or the other output, that an output of an op lies in the storage of; nothing if it has one of its own.
inline value_id lies_in_storage_of(op_graph const& g, op_id o, std::size_t j) {
  auto const& r = g.record(g.outputs(o)[j]);
  if (r.alias == alias_kind::fresh) return nothing<value_id>;
  auto const k = static_cast<std::size_t>(r.of >= 0 ? r.of : -2 - r.of);
  if (r.of >= 0) return k < g.inputs(o).size() ? g.inputs(o)[k] : nothing<value_id>;
  return k < g.outputs(o).size() ? g.outputs(o)[k] : nothing<value_id>;
}
/// Whether what an op's views show depends on where its arguments lie. All other operators of neap's name the places.
inline bool looks_at_addresses(op_graph const& g, op_id o) { return g.as<op::opaque>(o) || g.as<op::as_strided>(o); }
/// Whether the views that an op makes show what those of the original's op do, which it is a copy of.
inline bool shows_the_same(op_graph const& original, value_numbering const& was, op_id x, op_graph const& g,
                           value_numbering const& now, op_id o) {
  if (!looks_at_addresses(g, o)) return true;
  for (std::size_t j = 0; j < g.outputs(o).size(); ++j) {
    auto const v = g.outputs(o)[j], w = original.outputs(x)[j];
    auto const of = lies_in_storage_of(g, o, j), of_w = lies_in_storage_of(original, x, j);
    if (of == nothing<value_id> && of_w == nothing<value_id>) continue;
    if (of == nothing<value_id> || of_w == nothing<value_id>) return false;
    auto const &s = g.record(g.storage(v)), &t = original.record(original.storage(w));
    // In the original's storage the same addresses are the same elements, whatever the view shows of it.
    bool const same_storage =
        now.value[s.first] == was.value[t.first] && s.bytes == t.bytes && g.layout(s.first) == original.layout(t.first);
    if (same_storage && g.layout(of) == original.layout(of_w) && g.layout(v) == original.layout(w)) continue;
    if (!view_comparison({original.layout(of_w), original.layout(w), {}, {}}, {g.layout(of), g.layout(v), {}, {}},
                         now.key)
             .same())
      return false;
  }
  return true;
}

/// Whether a value shows every byte of its storage, each once, as a dense tensor with its axes in any order does.
inline bool shows_whole_storage(op_graph const& g, value_id v) {
  auto const& l = g.layout(v);
  if (l.offset != 0 || g.bytes(g.storage(v)) != l.type.bytes()) return false;
  std::vector<std::pair<std::int64_t, std::int64_t>> axes;  // stride, extent
  for (int k = 0; k < l.type.rank(); ++k)
    if (l.type.dims[k] != 1) axes.emplace_back(l.strides[k], l.type.dims[k]);
  std::sort(axes.begin(), axes.end());
  std::int64_t dense = 1;
  for (auto const& [stride, extent] : axes)
    if (std::exchange(dense, dense * extent) != stride) return false;
  return true;
}
/// Whether an op that writes over an argument finds there, byte for byte, what the original's op does, which it is a copy
/// of: the same elements at the same places of a storage of the same size, and beside them the same bytes, which what it
/// leaves still shows. The arguments themselves have been compared.
inline bool writes_over_the_same(op_graph const& original, value_numbering const& was, op_id x, op_graph const& g,
                                 value_numbering const& now, op_id o) {
  for (std::size_t j = 0; j < g.outputs(o).size(); ++j) {
    auto const& r = g.record(g.outputs(o)[j]);
    if (r.of < 0 || r.alias == alias_kind::view) continue;
    auto v = g.inputs(o)[static_cast<std::size_t>(r.of)], w = original.inputs(x)[static_cast<std::size_t>(r.of)];
    auto const &s = g.record(g.storage(v)), &t = original.record(original.storage(w));
    if (!(g.layout(v) == original.layout(w)) || s.bytes != t.bytes) return false;
    if (shows_whole_storage(g, v)) continue;
    auto const same = [&](value_id a, value_id b) {
      return now.value[a] == was.value[b] && g.layout(a) == original.layout(b);
    };
    bool found = same(s.first, t.first);
    for (auto a = g.base(v); a != nothing<value_id> && !found; a = g.base(a))
      for (auto b = original.base(w); b != nothing<value_id> && !found; b = original.base(b))
        found = same(a, b) && shows_whole_storage(g, a);
    if (!found) return false;
  }
  return true;
}

}}}  // namespace neap::v0::detail::plan_check
