// A picture of memory over time, for a person who knows nothing of the program: the step without a plan behind, the
// planned one in front, the limit as a line, one sentence that says what is to be seen. What a level means is written at
// its height beside the plot, so that no label ever lies on a curve.
//
// Curves that know their graph tell more: beneath the plot, which part of the step runs when, what is recomputed, moved
// out and brought in, and when, and when computations wait for that; under it, tables of the tensors that make the peak and
// of the largest of these events, waits left out.
// Everything drawn has its name as a title, which viewers show under the pointer. Events that would be narrower than
// two pixels are drawn as one, so that the file stays below 200 KB whatever the plan.
#pragma once

#include <neap/plan/simulation.hpp>
#include <neap/report/memory_notes.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace neap { inline namespace v0 {

struct memory_curve {
  std::string label;  // "without a plan"
  std::vector<bytes_t> bytes_at;
  std::vector<seconds_t> start, end;  // of each position
  bytes_t resident_bytes = 0;
  memory_notes notes{};  // empty: the curve is drawn alone

  bytes_t peak_bytes() const { return bytes_at.empty() ? 0 : *std::max_element(bytes_at.begin(), bytes_at.end()); }
  seconds_t latency() const { return end.empty() ? 0 : *std::max_element(end.begin(), end.end()); }
};

memory_curve curve_of(std::string label, simulation const& s);
/// With what makes the peak, and what is recomputed and moved. `s` is what a simulator says of the schedule under
/// `options`.
memory_curve curve_of(std::string label, op_graph const& g, schedule const& order, simulation const& s,
                      memory_options options = {});

namespace detail {

/// "relu_2 (aten.relu.default): 1.00 MiB, 1.2 ms to 1.25 ms, position 93".
std::string event_text(memory_event const& e);

}  // namespace detail

/// The picture. The first curve is drawn behind (the original), the others in front of it; the text beneath the plot
/// is of the last. `limit` < 0: none; one that is more than twice what is drawn is named, not drawn. O(n log n).
std::string memory_svg(std::string const& title, std::vector<memory_curve> const& curves, bytes_t limit = -1);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/report/impl/memory_svg.ipp>
#endif
