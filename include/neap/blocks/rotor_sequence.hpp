// From rk-Rotor's times to a sequence of steps: the choices that gave them, from the whole chain down.
#pragma once

#include <neap/blocks/rotor_chain.hpp>
#include <neap/plan/chain_profile.hpp>
#include <neap/plan/chain_sequence.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// A sequence of the whole chain with m units of memory. known(a, b, m): the time of [a, b], or null where it was left out
/// by a bound; infinite where nothing fits.
template <class Known>
chain_sequence sequence_of(rotor_chain const& chain, slots_t whole, Known const& known) {
  constexpr double nothing = 0;
  chain_sequence out;
  struct stretch {
    std::size_t a, b;
    slots_t m;
    bool backward;  // nothing but block a's backward
  };
  std::vector<stretch> open{{0, chain.size, whole, false}};
  while (!open.empty()) {
    auto const [a, b, m, backward] = open.back();
    open.pop_back();
    auto const first = static_cast<std::uint32_t>(a);
    if (backward) {
      out.push_back({chain_step::backward, first, 0});
      continue;
    }
    if (a == chain.size) {
      out.push_back({chain_step::loss, 0, 0});
      continue;
    }
    double best = HUGE_VAL;
    rotor_chain::option const* now = nullptr;
    std::size_t split = 0;
    for (auto const& o : chain.kind(a).options) {
      if (m < chain.save_limit(a, b, o)) continue;
      auto const* const rest = a == b ? &nothing : known(a + 1, b, m - o.saved);
      if (!rest) continue;  // nothing need be recomputed, and this is not the option that it goes with
      if (double const t = o.extra + *rest; t < best) best = t, now = &o;
    }
    for (std::size_t j = a + 1; j <= chain.last_later(b); ++j) {
      if (m < chain.pass_limit(a, b, j) || m < chain.input[j]) continue;
      auto const* const tail = known(j, b, m - chain.input[j]);
      auto const* const head = known(a, j - 1, m);
      if (!tail || !head) continue;  // left out by a bound
      if (double const t = chain.forward(a, j) + *tail + *head; t < best) best = t, split = j;
    }
    if (split != 0) {
      out.push_back({chain_step::pass_keep, first, 0});
      for (std::size_t i = a + 1; i < split; ++i)
        out.push_back({chain_step::pass_drop, static_cast<std::uint32_t>(i), 0});
      open.push_back({a, split - 1, m, false});
      open.push_back({split, b, m - chain.input[split], false});
    } else {
      out.push_back({chain_step::save, first, now->number});
      open.push_back({a, b, 0, true});
      if (a < b) open.push_back({a + 1, b, m - now->saved, false});
    }
  }
  return out;
}

}}}  // namespace neap::v0::detail
