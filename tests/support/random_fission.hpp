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

/// What the first of some fissions that can be built makes of a candidate; nothing if none can.
inline std::optional<edited<graph>> any_fission(candidate<graph> const& c, random_stream& draw) {
  for (int tries = 0; tries < 20; ++tries)
    if (auto const f = random_fission(c, draw))
      if (auto e = f->apply(c)) return e;
  return std::nullopt;
}

}  // namespace neap::testing
