// What a program does with a block, step by step, and the bytes that takes.
#pragma once

#include <neap/optimize/block_problem.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace neap::inline v0 {

/// A step of a block: computes an op, or drops, stores or loads a value.
struct block_step {
  enum class action : std::uint8_t { compute, drop, store, load };
  static constexpr std::uint32_t input = no_id;  // as a value: what the block before hands on
  action what = action::compute;
  std::uint32_t index = 0;
  friend bool operator==(block_step const&, block_step const&) = default;
};

/// The steps of an answer, which computes and drops.
inline std::vector<block_step> steps_of(remat_answer const& a) {
  using action = block_step::action;
  std::vector<block_step> steps;
  steps.reserve(a.steps.size());
  for (auto const& s : a.steps)
    steps.push_back({s.what == remat_step::action::drop ? action::drop : action::compute, s.index});
  return steps;
}

/// Plays steps of a block: seconds of its ops, bytes moved, bytes there, and the most so far. What the block before hands
/// on counts from its load to its drop; without a load it is that block's.
class block_meter {
 public:
  block_meter(block_problem const& b, bytes_t input_bytes)
      : b_(b),
        input_bytes_(input_bytes),
        there_(b.problem.values.size() + 1, 0) {}

  void play(block_step const& s) {
    using action = block_step::action;
    switch (s.what) {
      case action::compute: {
        auto const& op = b_.problem.ops[s.index];
        for (auto v : op.outputs) make(v);
        peak_ = std::max(peak_, now_ + op.workspace_bytes);
        seconds_ += op.time;
        break;
      }
      case action::drop:
        if (auto const v = at(s.index); there_[v]) there_[v] = 0, now_ -= bytes(v);
        break;
      case action::store: moved_ += bytes(at(s.index)); break;
      case action::load: moved_ += bytes(at(s.index)), make(at(s.index)); break;
    }
  }
  /// Seconds, moved bytes and the peak begin at zero; what is there stays.
  void begin_anew() { seconds_ = 0, moved_ = 0, peak_ = 0; }
  double seconds() const { return seconds_; }
  bytes_t moved() const { return moved_; }
  /// While an op ran.
  bytes_t peak() const { return peak_; }
  bool is_there(std::uint32_t value) const { return there_[at(value)]; }

 private:
  std::size_t at(std::uint32_t value) const { return value == block_step::input ? there_.size() - 1 : value; }
  bytes_t bytes(std::size_t v) const { return v + 1 < there_.size() ? b_.problem.values[v].bytes : input_bytes_; }
  void make(std::size_t v) {
    if (!there_[v]) there_[v] = 1, now_ += bytes(v);
  }

  block_problem const& b_;
  bytes_t input_bytes_;
  std::vector<unsigned char> there_;  // by value; the last is the input
  double seconds_ = 0;
  bytes_t moved_ = 0, now_ = 0, peak_ = 0;
};

}  // namespace neap::inline v0
