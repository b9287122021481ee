// The open list of a search: candidates that wait to be expanded. They are whole or outlines; of large graphs few fit into
// memory.
#pragma once

#include <neap/optimize/objective.hpp>
#include <neap/optimize/search_policy.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// So many candidates of graphs of so many ops may wait.
inline std::size_t open_list_room(search_policy::open_list_numbers const& numbers, std::size_t ops) {
  return std::clamp(numbers.max_ops / (ops + 1), numbers.least, numbers.most);
}

/// What a candidate may come to cost: its latency, and a price, in seconds a byte-position, of its bytes above the target.
/// Rounded once: whether a compiler contracts products and sums does not change which of two candidates is the first.
inline seconds_t estimated_cost(seconds_t latency, double price, double excess) {
  return std::fma(price, excess, latency);
}

/// A seed waits, as a whole candidate of a graph of so many ops; where there is no room, the farthest from the target goes.
template <class NodePtr>
void add_seed(std::vector<NodePtr>& open, NodePtr seed, search_policy::open_list_numbers const& numbers,
              std::size_t ops) {
  open.push_back(std::move(seed));
  if (open.size() * (ops + 1) <= numbers.max_seed_ops || open.size() <= numbers.few_seeds) return;
  open.erase(std::max_element(open.begin(), open.end(),
                              [](NodePtr const& a, NodePtr const& b) { return a->excess < b->excess; }));
}

/// The excess bytes of all are those above a target from now on: exactly of whole candidates; of outlines by what they gain
/// of their parent's.
template <class NodePtr>
void aim_open_list(std::vector<NodePtr> const& open, bytes_t target) {
  NodePtr const* last = nullptr;  // siblings stand together
  double of_last = 0;
  for (auto const& q : open) {
    auto const& known = q->how ? q->from : q;
    if (!last || *last != known) of_last = excess_bytes(known->state.result.bytes_at, target), last = &known;
    q->excess = q->how ? std::max(of_last - q->gained, q->state.result.peak_bytes > target ? 1.0 : 0.0) : of_last;
  }
}

/// The candidate of least `estimate(n)`, which leaves the list; nothing if none is left that is not `dead(n)`.
template <class NodePtr, class Dead, class Estimate>
NodePtr take_from_open_list(std::vector<NodePtr>& open, Dead&& dead, Estimate&& estimate) {
  std::erase_if(open, dead);
  if (open.empty()) return nullptr;
  auto const at = std::min_element(open.begin(), open.end(),
                                   [&](NodePtr const& a, NodePtr const& b) { return estimate(*a) < estimate(*b); });
  auto n = std::move(*at);
  open.erase(at);
  return n;
}

/// Only those of least estimate stay, so many.
template <class NodePtr, class Estimate>
void trim_open_list(std::vector<NodePtr>& open, std::size_t room, Estimate&& estimate) {
  std::nth_element(open.begin(), open.begin() + static_cast<std::ptrdiff_t>(room), open.end(),
                   [&](NodePtr const& a, NodePtr const& b) { return estimate(*a) < estimate(*b); });
  open.resize(room);
}

}}}  // namespace neap::v0::detail
