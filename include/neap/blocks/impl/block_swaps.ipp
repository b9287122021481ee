// The bodies of <neap/blocks/block_swaps.hpp>.
#pragma once

#include <neap/blocks/block_swaps.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/core/sort.hpp>

#include <algorithm>
#include <cstdint>
#include <utility>

namespace neap { inline namespace v0 {

namespace detail {

/// One answer, and what of its saved values could leave, the first to leave first.
class block_swapper {
 public:
  block_swapper(block_facts const& f, block_problem const& b, remat_answer const& a,
                std::vector<unsigned char> const& movable, bytes_t input)
      : b_(b),
        a_(a) {
    scan();
    auto const& p = b.problem;
    for (std::uint32_t v = 0; v < p.values.size(); ++v)
      if (movable[b.datum_of[v]] && saved_[v] && !p.values[v].outside && p.values[v].bytes > 0 && made_[v] != none &&
          read_again_[v] != none)
        leave_.push_back({v, p.values[v].bytes, made_[v], last_[v], read_again_[v]});
    bool const input_moves = std::all_of(f.inputs.begin(), f.inputs.end(), [&](auto d) { return movable[d]; });
    if (input_moves && input > 0 && input_read_again_ != none)
      leave_.push_back({block_step::input, input, none, none, input_read_again_});
    constexpr bytes_t least_part = 100;  // values below one part of so many are not worth their transfers
    bytes_t all = 0;
    for (auto const& x : leave_) all += x.bytes;
    std::erase_if(leave_, [&](auto const& x) { return x.bytes * least_part < all; });
    auto const when = [](leaving const& x) {
      return std::pair(x.value == block_step::input ? 0 : x.made + 1, x.value);
    };
    sort_list(leave_, [&](auto const& x, auto const& y) { return when(x) < when(y); });
  }
  std::size_t size() const { return leave_.size(); }
  bytes_t bytes(std::size_t k) const { return leave_[k].bytes; }

  /// The answer where the first so many leave.
  std::vector<block_step> steps(std::size_t count) const {
    using action = block_step::action;
    std::vector<std::vector<block_step>> after(a_.steps.size()), before(a_.steps.size());
    for (std::size_t k = 0; k < count; ++k) {
      auto const& x = leave_[k];
      if (x.value == block_step::input) after[input_last_].push_back({action::drop, x.value});
      else after[x.made].push_back({action::store, x.value}), after[x.last].push_back({action::drop, x.value});
      before[x.read_again].push_back({action::load, x.value});
    }
    std::vector<block_step> out;
    if (count > 0 && leave_.front().value == block_step::input) out.push_back({action::store, block_step::input});
    auto const put = [&](std::vector<block_step> const& steps) { out.insert(out.end(), steps.begin(), steps.end()); };
    auto const own = steps_of(a_);
    for (std::size_t s = 0; s < own.size(); ++s) put(before[s]), out.push_back(own[s]), put(after[s]);
    return out;
  }

 private:
  static constexpr std::size_t none = SIZE_MAX;

  struct leaving {
    std::uint32_t value;
    bytes_t bytes;
    std::size_t made, last;  // steps of the forward that make it, and touch it last
    std::size_t read_again;  // the first step behind the pause that reads it
  };

  void scan() {
    auto const& p = b_.problem;
    made_.assign(p.values.size(), none), last_ = read_again_ = made_;
    saved_.assign(p.values.size(), 0);
    bool behind = false, pausing = false;
    for (std::size_t s = 0; s < a_.steps.size(); ++s) {
      auto const& step = a_.steps[s];
      if (step.what == remat_step::action::drop) {
        if (!behind || pausing || read_again_[step.index] == none) saved_[step.index] = 0;
        continue;
      }
      auto const& op = p.ops[step.index];
      pausing = step.index == b_.rest;
      behind = behind || pausing;
      if (pausing) continue;
      for (auto v : op.inputs) {
        if (!behind) last_[v] = s;
        else if (read_again_[v] == none && saved_[v]) read_again_[v] = s;
      }
      for (auto v : op.outputs) {
        if (!behind && !saved_[v]) made_[v] = last_[v] = s, saved_[v] = 1;
        else if (behind && read_again_[v] == none) saved_[v] = 0;
      }
      if (!behind || !b_.reads_input[step.index]) continue;
      if (input_read_again_ == none) input_read_again_ = s;
      input_last_ = s;
    }
  }

  block_problem const& b_;
  remat_answer const& a_;
  std::vector<leaving> leave_;
  std::vector<std::size_t> made_, last_, read_again_;  // by value: steps
  std::vector<unsigned char> saved_;                   // by value: there in the pause
  std::size_t input_read_again_ = none, input_last_ = none;
};

}  // namespace detail

NEAP_FUNC std::vector<std::vector<block_step>> swaps_of(block_facts const& f, block_problem const& b,
                                                        remat_answer const& a,
                                                        std::vector<unsigned char> const& movable, bytes_t input,
                                                        int levels) {
  std::vector<std::vector<block_step>> out;
  detail::block_swapper const swapper(f, b, a, movable, input);
  bytes_t all = 0, taken = 0;
  for (std::size_t k = 0; k < swapper.size(); ++k) all += swapper.bytes(k);
  int level = 1;
  for (std::size_t k = 0; k < swapper.size(); ++k) {
    taken += swapper.bytes(k);
    if (taken * levels < all * level) continue;
    out.push_back(swapper.steps(k + 1));
    level = static_cast<int>(taken * levels / all) + 1;
  }
  return out;
}

}}  // namespace neap::v0
