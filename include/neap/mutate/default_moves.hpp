// The pipelines that the command line, the trainer and the benches search with.
//
//   auto const found = optimize(step, default_moves, memory_limit{2_GiB});
#pragma once

#include <neap/mutate/chain.hpp>
#include <neap/mutate/fission_sweep.hpp>
#include <neap/mutate/later.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>

#include <cstddef>

namespace neap { inline namespace v0 {

/// Recomputation and swapping in turn, for a link of `bytes_per_second` each way: at most 24 recomputations and 8 swaps
/// of each candidate. A link of 0 bytes per second has no swaps. The planned program computes the same bits.
constexpr auto default_moves_at(double bytes_per_second) {
  return zip(rematerialize{} | truncate(24),
             swap{detail::link_rate(bytes_per_second)} | truncate(bytes_per_second > 0 ? 8 : 0));
}

/// The same for a link of 16 GB/s each way, as of PCIe.
inline constexpr auto default_moves = default_moves_at(16e9);

/// Fission behind quicker moves: at most 8 of a candidate, and of those alone that a search returns to, since a sweep
/// over fissions takes as long as hundreds of other moves. Sums change in their last bits.
inline constexpr auto fission_later = fission{} | truncate(8) | later;

/// `default_moves_at`, then at most `fissions` fissions, as in `fission_later`. `neap plan` adds `reorder`.
constexpr auto default_moves_with_fission(double bytes_per_second = 16e9, std::size_t fissions = 8) {
  return chain(default_moves_at(bytes_per_second), fission{} | truncate(fissions) | later);
}

}}  // namespace neap::v0
