// A graph of blocks as a solver of recomputation sees it: blocks that may hand data to any later block, each with options
// for what its forward leaves to its backward (chain_profile.hpp is the same for chains, where data go to the next block
// alone). Plain numbers; bytes and seconds, or whatever units the caller has.
//
//   phase        0    1    2    3    4    5
//   main part    f0   f1   f2   b2   b1   b0        three blocks; a phase may run forwards again before its main part
//   data         +=========>    made by 0, read by f2 and b2: held between, or dropped and made again, or moved out and
//                               loaded
//
// Who makes data again runs the block's forward a second time: without saving anything (pass), so that its backward can
// follow (save), or from what it has saved still (again). HiRemate (ICML 2025) has this for its clusters.
#pragma once

#include <neap/core/error.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace neap { inline namespace v0 {

/// One way to run a block so that its backward can follow.
struct graph_block_option {
  double forward_time = 0, backward_time = 0;
  std::int64_t saved = 0;          ///< what stays of the block from its forward to its backward, besides data
  std::int64_t forward_peak = 0;   ///< while its forward runs: what is saved, and the block's data, included
  std::int64_t backward_peak = 0;  ///< while its backward runs: the same, and the gradients that it reads and makes
  double again_time = 0;           ///< the block's data made again, while what was saved is there
  std::int64_t again_peak = 0;     ///< beside what is saved, the data included
  std::vector<std::uint32_t> again_reads{}, backward_reads{};  ///< data; ascending
  friend bool operator==(graph_block_option const&, graph_block_option const&) = default;
};

struct graph_block {
  std::vector<std::uint32_t> reads{}, makes{};  ///< data, ascending
  double pass_time = 0;                         ///< of the forward that saves nothing
  std::int64_t pass_peak = 0;
  double once_time = 0;  ///< of what no second forward runs
  std::vector<graph_block_option> options{};
  friend bool operator==(graph_block const&, graph_block const&) = default;
};

/// Data are numbered in the order in which blocks make them. Of n blocks there are 2 n phases: the forwards in order, the
/// backwards in reverse.
struct block_graph {
  std::vector<graph_block> blocks{};
  std::vector<std::int64_t> bytes{};  ///< of data
  std::vector<double> move_time{};  ///< of data: to store them and load them again; negative: they stay. Empty: all do
  std::vector<std::int64_t> before,
      during;  ///< by phase: what is there whatever is done, in front of the main part and while it runs
  friend bool operator==(block_graph const&, block_graph const&) = default;
};

struct block_graph_step {
  enum class action : std::uint8_t { pass, save, again, backward, drop, load };
  action what = action::pass;
  std::uint32_t index = 0;   ///< of the block; of the datum that is dropped or loaded
  std::uint32_t option = 0;  ///< of save, again and backward
  friend bool operator==(block_graph_step const&, block_graph_step const&) = default;
};

struct block_graph_answer {
  double time = 0;
  std::int64_t peak = 0;
  std::vector<block_graph_step> steps{};
  friend bool operator==(block_graph_answer const&, block_graph_answer const&) = default;
};

/// One line that says what is wrong with a graph of blocks and where, or success.
inline status check(block_graph const& g) {
  auto const at = [](std::size_t k) { return "block " + std::to_string(k) + ": "; };
  auto const number = [](double t) { return t >= 0 && t <= 1e30; };  // false for NaN
  auto const size = [](std::int64_t s) { return s >= 0 && s <= std::int64_t{1} << 50; };
  if (g.blocks.empty()) return failure{"the graph has no blocks"};
  if (g.before.size() != 2 * g.blocks.size() || g.during.size() != g.before.size())
    return failure{"there must be two phases a block"};
  for (auto const* list : {&g.bytes, &g.before, &g.during})
    if (!std::all_of(list->begin(), list->end(), size)) return failure{"sizes must be from 0 to 2^50"};
  std::uint32_t made = 0;
  for (std::size_t k = 0; k < g.blocks.size(); ++k) {
    auto const& b = g.blocks[k];
    auto const first = made;
    for (auto d : b.makes)
      if (d != made++) return failure{at(k) + "data must be numbered in the order in which blocks make them"};
    if (made > g.bytes.size()) return failure{at(k) + "it makes data that have no size"};
    auto const known = [&](std::vector<std::uint32_t> const& list, std::uint32_t count) {
      return std::is_sorted(list.begin(), list.end()) && (list.empty() || list.back() < count);
    };
    if (!known(b.reads, first)) return failure{at(k) + "it reads data that no earlier block makes"};
    if (!number(b.pass_time) || !number(b.once_time)) return failure{at(k) + "times must be from 0 to 1e30"};
    if (!size(b.pass_peak)) return failure{at(k) + "sizes must be from 0 to 2^50"};
    if (b.options.empty()) return failure{at(k) + "has no options"};
    for (auto const& o : b.options) {
      if (!known(o.again_reads, first) || !known(o.backward_reads, made))
        return failure{at(k) + "an option reads data that are not there"};
      if (!number(o.forward_time) || !number(o.backward_time) || !number(o.again_time))
        return failure{at(k) + "times must be from 0 to 1e30"};
      if (!size(o.saved) || !size(o.forward_peak) || !size(o.backward_peak) || !size(o.again_peak))
        return failure{at(k) + "sizes must be from 0 to 2^50"};
    }
  }
  if (made != g.bytes.size()) return failure{"there are data that no block makes"};
  if (!g.move_time.empty() && g.move_time.size() != g.bytes.size())
    return failure{"there must be a time to move for each of the data, or for none"};
  if (!std::all_of(g.move_time.begin(), g.move_time.end(), [&](double t) { return t < 0 || number(t); }))
    return failure{"times must be from 0 to 1e30"};
  return {};
}

}}  // namespace neap::v0
