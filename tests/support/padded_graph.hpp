// Small random graphs whose buffers are larger than their tensors and whose views are smaller than their storages: where
// bytes of tensors and bytes of buffers are not the same thing.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/operators/transfer.hpp>
#include <neap/ir/standard_operators.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace neap::testing {

/// Deterministic by seed: 2 to 5 opaque ops, most of them elementwise, over buffers of 64 to 512 bytes.
inline graph padded_graph(std::uint64_t seed) {
  random_stream draw(seed, 41);
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const rows = [&] { return std::int64_t{1} << draw.below(4); };  // of 64 bytes
  auto const rows_of = [&](value_id v) { return edit.layout_of(v).type.dims[0]; };
  auto const layout = [](std::int64_t n) { return tensor_layout::dense({dtype::f32, {n, 16}}); };
  std::vector<value_id> there;
  for (auto n = draw.below(3); n > 0; --n) {
    auto const r = rows();
    there.push_back(edit.add_source_at(draw.below(2) ? role::input : role::weight, layout(r), "", 64 << draw.below(4)));
    if (edit.graph().bytes(edit.graph().storage(there.back())) < 64 * r) return padded_graph(seed + 0x100000000u);
  }
  auto const pick = [&] {
    return there[there.size() - 1 -
                 std::min<std::size_t>(draw.below(static_cast<std::uint32_t>(there.size())),
                                       draw.below(static_cast<std::uint32_t>(there.size())))];
  };
  for (auto n = 2 + draw.below(4); n > 0; --n) {
    op::opaque what;
    std::vector<value_id> in;
    std::vector<output_rule> out;
    if (!there.empty() && draw.below(4) == 0) {  // a view: some rows, or one row again and again
      in = {pick()};
      auto const most = rows_of(in[0]);
      auto l = edit.layout_of(in[0]);
      if (draw.below(3) == 0) {
        l.type.dims = {rows(), 16}, l.strides = {0, 1};
      } else {
        l.type.dims = {std::max<std::int64_t>(1, most >> draw.below(3)), 16};
        l.offset += l.strides[0] * draw.below(static_cast<std::uint32_t>(most - l.type.dims[0] + 1));
      }
      out.push_back({l, alias_kind::view, 0, -1});
    } else {
      if (!there.empty())
        for (auto k = draw.below(3); k > 0; --k) in.push_back(pick());
      what.pointwise = draw.below(5) > 0;
      for (auto k = 1 + draw.below(8) / 6; k > 0; --k) {
        auto const l = !in.empty() && draw.below(4) ? layout(rows_of(in[0])) : layout(rows());
        out.push_back({l, alias_kind::fresh, -1, l.type.bytes() << (draw.below(2) ? draw.below(3) : 0)});
      }
    }
    auto const o = edit.add_opaque(out[0].alias == alias_kind::view ? "view" : "make", what, in, out);
    for (auto v : edit.outputs_of(o)) there.push_back(v);
  }
  for (auto v : there)
    if (edit.graph().producer(v) != nothing<op_id> && draw.below(4) == 0) edit.keep(v, role::output);
  return graph(std::move(edit).finish());
}

/// The graph with one value computed again, or stored and loaded, for some of its readers, which may be views. False: there
/// is nothing to do it to.
inline bool copy_or_load(graph& g, random_stream& draw) {
  std::vector<value_id> all;
  for (auto v : g.values())
    if (!g.uses(v).empty() &&
        !(g.producer(v) != nothing<op_id> && g.bytes(g.storage(v)) == 0 && is_swap_op(g, g.producer(v))))
      all.push_back(v);
  if (all.empty()) return false;
  auto const v = all[draw.below(static_cast<std::uint32_t>(all.size()))];
  std::vector<op_id> late;
  for (auto const& u : g.uses(v))
    if (draw.below(2)) late.push_back(u.op);
  auto const p = g.producer(v);
  bool const load = p == nothing<op_id> || g.as<op::load>(p) || draw.below(2);
  graph_editor edit(g);
  if (load) {
    if (std::any_of(late.begin(), late.end(), [&](op_id o) { return g.as<op::store>(o); })) return false;
    auto stored = edit.add(op::store{}, {v})[0];
    if (draw.below(3) == 0) stored = edit.add(op::wait{}, {stored})[0];
    edit.replace_uses(v, edit.add(op::load{}, {stored})[0], late);
  } else {
    auto const j = static_cast<int>(index(v) - index(g.output(p)));
    edit.replace_uses(v, edit.output(edit.clone(p), j), late);
  }
  g = graph(std::move(edit).finish());
  return true;
}

}  // namespace neap::testing
