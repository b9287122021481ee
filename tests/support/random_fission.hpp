// Fissions to try on a candidate.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/mutate/fission.hpp>

#include <algorithm>
#include <optional>
#include <vector>

namespace neap::testing {

/// A random stretch, axis and number of parts; nothing where they do not go together.
inline std::optional<fission_of> random_fission(candidate const& c, random_stream& draw) {
  auto const& g = c.graph;
  auto const n = static_cast<std::uint32_t>(c.order.size());
  fission_of f;
  f.first = draw.below(n), f.last = f.first + draw.below(n - f.first);
  auto const v = id_at<value_id>(draw.below(static_cast<std::uint32_t>(g.value_count())));
  if (g.type(v).rank() == 0) return std::nullopt;
  f.along = {v, static_cast<std::int32_t>(draw.below(static_cast<std::uint32_t>(g.type(v).rank())))};
  f.parts = 2 + draw.below(3), f.again = draw.below(4) != 0;
  if (g.type(v).dims[f.along.axis] % f.parts != 0) return std::nullopt;
  return f;
}

/// The same with any number of parts up to eight that divides some axis which goes with the one drawn.
inline std::optional<fission_of> random_fission_of_some(candidate const& c, dimension_graph const& dims,
                                                        random_stream& draw) {
  auto f = random_fission(c, draw);
  if (!f) return f;
  f->parts = 2 + draw.below(7);
  for (auto const& a : dims.axes(dims.component(f->along.value, f->along.axis)))
    if (c.graph.type(a.value).dims[a.axis] % f->parts == 0) return f;
  return std::nullopt;
}

/// A random stretch of what runs in parts already, along an axis of what one of them makes; nothing if none does.
inline std::optional<fission_of> random_fission_of_parts(candidate const& c, random_stream& draw) {
  auto const& g = c.graph;
  auto const n = static_cast<std::uint32_t>(c.order.size());
  std::vector<std::uint32_t> parts;
  for (std::uint32_t p = 0; p < n; ++p)
    if (g.record(c.order[p]).part != nothing<part_id>) parts.push_back(p);
  if (parts.empty()) return std::nullopt;
  auto const at = parts[draw.below(static_cast<std::uint32_t>(parts.size()))];
  auto const v = g.outputs(c.order[at]).front();
  if (g.type(v).rank() == 0) return std::nullopt;
  fission_of f;
  f.along = {v, static_cast<std::int32_t>(draw.below(static_cast<std::uint32_t>(g.type(v).rank())))};
  f.first = at - std::min(at, draw.below(12)), f.last = std::min(n - 1, at + draw.below(12));
  f.parts = 2 + draw.below(4), f.again = true;
  if (g.type(v).dims[f.along.axis] % f.parts != 0) return std::nullopt;
  return f;
}

/// Whether any op is a part of a part.
inline bool cut_again(op_graph const& g) {
  for (auto o : g.ops())
    if (auto const p = g.record(o).part; p != nothing<part_id> && g.part(p).of != nothing<part_id>) return true;
  return false;
}

/// What the first of some fissions that can be built makes of a candidate; nothing if none can.
inline std::optional<edited> any_fission(candidate const& c, random_stream& draw) {
  for (int tries = 0; tries < 20; ++tries)
    if (auto const f = random_fission(c, draw))
      if (auto e = f->apply(c)) return e;
  return std::nullopt;
}

/// Parts of parts: what the first of some fissions of what runs in parts makes of it; nothing if none can.
inline std::optional<edited> parts_of_parts(candidate const& c, random_stream& draw) {
  auto const once = any_fission(c, draw);
  if (!once) return std::nullopt;
  candidate const cut{once->graph, once->order, {}};
  for (int tries = 0; tries < 40; ++tries)
    if (auto const f = random_fission_of_parts(cut, draw))
      if (auto e = f->apply(cut); e && cut_again(e->graph)) return e;
  return std::nullopt;
}

/// What any_fission() makes, and in half of the cases one more of what came of it.
inline std::optional<edited> some_fissions(candidate const& c, random_stream& draw) {
  auto e = any_fission(c, draw);
  if (!e || draw.below(2) == 0) return e;
  if (auto more = any_fission({e->graph, e->order, {}}, draw)) return more;
  return e;
}

}  // namespace neap::testing
