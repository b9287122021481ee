// An op of an external graph, in neap's image of that graph (ir/external_graph.hpp): all that its graph_traits say of it,
// as attributes, so that copies carry it along. Its outputs are given when it is added.
#pragma once

#include <neap/ir/operator.hpp>

#include <array>

namespace neap { inline namespace v0 { namespace op {

struct external {
  static constexpr std::string_view name = "op";

  enum reason : std::int64_t { not_allowed, followed };  // by its traits; by an op that must run after it
  std::int64_t id = 0;                                   // of the op, in the external graph
  std::int64_t inputs = 0;           // how many of the arguments are the external graph's; neap has added the others
  std::int64_t outputs = 0;          // the same of the outputs
  std::int64_t stream = 0;           // op_stream
  std::int64_t workspace_bytes = 0;  // not rounded
  std::int64_t takes_over = 0;       // bit pair(input, output): the output may be put where the input dies
  std::int64_t stays = 0;            // bit j: the storage of output j may not be swapped
  double seconds = 0;                // by the cost model of the external graph
  std::int64_t once = not_allowed;   // where it may not run again: why
  bool recomputable = false;         // may run again
  bool view = false;                 // computes nothing

  static constexpr auto attributes() {
    return std::array{field<&external::id>("id"),
                      field<&external::inputs>("inputs"),
                      field<&external::outputs>("outputs"),
                      field<&external::stream>("stream"),
                      field<&external::workspace_bytes>("workspace_bytes"),
                      field<&external::takes_over>("takes_over"),
                      field<&external::stays>("stays"),
                      field<&external::seconds>("seconds"),
                      field<&external::once>("once"),
                      field<&external::recomputable>("recomputable"),
                      field<&external::view>("view")};
  }
  void infer(shape_context& c) const { c.require(false, "an external op's outputs must be given"); }
  void relate(dim_context&) const {}
  work cost(work_context const&) const { return {}; }
  bytes_t workspace(work_context const&) const { return workspace_bytes; }

  /// What is said of few inputs and outputs fits into the bits; of others it is "no".
  static constexpr std::size_t bits = 63;
  std::size_t pair(std::size_t input, std::size_t output) const {
    return input * static_cast<std::size_t>(outputs) + output;
  }
  bool may_take_over(std::size_t input, std::size_t output) const {
    return input < static_cast<std::size_t>(inputs) && output < static_cast<std::size_t>(outputs) &&
           pair(input, output) < bits && (takes_over >> pair(input, output) & 1) != 0;
  }
  bool may_leave(std::size_t output) const { return output < bits && (stays >> output & 1) == 0; }
};

}}}  // namespace neap::v0::op
