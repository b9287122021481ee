// Fissions to try on a candidate.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/mutate/fission.hpp>

#include <optional>

namespace neap::testing {

/// A random stretch, axis and number of parts; nothing where they do not go together.
inline std::optional<fission_of> random_fission(candidate<graph> const& c, random_stream& draw) {
  auto const& g = c.graph;
  auto const n = static_cast<std::uint32_t>(c.order.size());
  fission_of f;
  f.first = draw.below(n), f.last = f.first + draw.below(n - f.first);
  auto const v = id_at<value_id>(draw.below(static_cast<std::uint32_t>(g.value_count())));
  if (g.type(v).rank() == 0) return std::nullopt;
  f.along = {v, static_cast<std::int32_t>(draw.below(static_cast<std::uint32_t>(g.type(v).rank())))};
  f.parts = 2 + draw.below(3);
  if (g.type(v).dims[f.along.axis] % f.parts != 0) return std::nullopt;
  return f;
}

/// The same with any number of parts up to eight that divides some axis which goes with the one drawn.
inline std::optional<fission_of> random_fission_of_some(candidate<graph> const& c, dimension_graph const& dims,
                                                        random_stream& draw) {
  auto f = random_fission(c, draw);
  if (!f) return f;
  f->parts = 2 + draw.below(7);
  for (auto const& a : dims.axes(dims.component(f->along.value, f->along.axis)))
    if (c.graph.type(a.value).dims[a.axis] % f->parts == 0) return f;
  return std::nullopt;
}

/// What the first of some fissions that can be built makes of a candidate; nothing if none can.
inline std::optional<edited<graph>> any_fission(candidate<graph> const& c, random_stream& draw) {
  for (int tries = 0; tries < 20; ++tries)
    if (auto const f = random_fission(c, draw))
      if (auto e = f->apply(c)) return e;
  return std::nullopt;
}

/// The same, and in half of the cases one more of what came of it.
inline std::optional<edited<graph>> some_fissions(candidate<graph> const& c, random_stream& draw) {
  auto e = any_fission(c, draw);
  if (!e || draw.below(2) == 0) return e;
  if (auto more = any_fission({e->graph, e->order, {}}, draw)) return more;
  return e;
}

}  // namespace neap::testing
