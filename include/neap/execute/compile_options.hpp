// Options of neap::compile.
#pragma once

#include <neap/capture/any_length.hpp>
#include <neap/execute/executable.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 {

/// What a call does that needs another graph where as many are kept as may be.
enum class when_full : std::uint8_t {
  run_eagerly,  // and why_missed() says so
  drop_oldest,  // the graph that was used least recently goes, with its plan, and the call is captured
};

struct compile_options {
  std::size_t graphs = 64;  // at most
  when_full full = when_full::run_eagerly;
  std::size_t verify = 0;             // each such hit runs eagerly and must take the path that was kept; 0: none
  int threads = 0;                    // of the backend that runs the graphs; 0: one for each core
  execution_options run{};            // of each graph; step_seconds are those of all graphs of a call, in their order
  std::vector<any_length> lengths{};  // axes whose lengths make no other graph
  std::size_t max_lengths = 256;      // of one graph; the one that was used least recently goes
};

}}  // namespace neap::v0
