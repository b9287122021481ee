// What a program does with a block, step by step.
#pragma once

#include <neap/blocks/block_problem.hpp>

#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 {

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

namespace detail {

/// Plays steps of a block: which values are there, what is saved and moved, and which steps are the forward's, which the
/// backward's. What the block before hands on counts from its load to its drop; without a load it is that block's.
class block_walk {
 public:
  block_walk(block_problem const& b, bytes_t input_bytes)
      : b_(b),
        input_bytes_(input_bytes),
        there_(b.problem.values.size() + 1, 0),
        saved_(b.problem.values.size(), 0) {}

  void play(block_step const& s) {
    using action = block_step::action;
    auto const& values = b_.problem.values;
    if (s.what == action::drop) {
      // What is dropped in the pause goes before the rest of the chain runs, but for what that reads or brings.
      bool const late = behind_ && (!pausing_ || values[s.index].outside);
      if (auto const v = at(s.index); there_[v]) there_[v] = 0, now_ -= bytes(v);
      if (!late && s.index != block_step::input) saved_[s.index] = 0;
      return (late ? backward : forward).push_back(s);
    }
    pausing_ = s.what == action::compute && s.index == b_.rest;
    if (pausing_) {
      behind_ = true;
      for (std::uint32_t v = 0; v < values.size(); ++v) saved_[v] = there_[v] && !values[v].outside;
    } else {
      (behind_ ? backward : forward).push_back(s);
    }
    twice_ = 0;
    if (s.what == action::compute)
      for (auto v : b_.problem.ops[s.index].outputs) make(v);
    else moved_ += bytes(at(s.index));
    if (s.what == action::load) make(at(s.index));
  }

  /// Whether the rest of the chain has run.
  bool is_behind() const { return behind_; }
  bytes_t bytes_now() const { return now_; }
  /// Of what the last step made, the bytes that were there before.
  bytes_t bytes_twice() const { return twice_; }
  bytes_t bytes_moved() const { return moved_; }
  /// Whether a value is there in the pause, and not paid for outside.
  bool is_saved(std::uint32_t value) const { return saved_[value]; }
  bytes_t bytes_saved() const {
    bytes_t sum = 0;
    for (std::size_t v = 0; v < saved_.size(); ++v)
      if (saved_[v]) sum += bytes(v);
    return sum;
  }

  std::vector<block_step> forward, backward;  // what was played up to the pause, and behind it; without the rest

 private:
  std::size_t at(std::uint32_t value) const { return value == block_step::input ? saved_.size() : value; }
  bytes_t bytes(std::size_t v) const { return v < saved_.size() ? b_.problem.values[v].bytes : input_bytes_; }
  void make(std::size_t v) {
    if (there_[v]) twice_ += bytes(v);
    else there_[v] = 1, now_ += bytes(v);
  }

  block_problem const& b_;
  bytes_t input_bytes_;
  std::vector<unsigned char> there_;  // by value; the last is the input
  std::vector<unsigned char> saved_;  // by value
  bool behind_ = false, pausing_ = false;
  bytes_t now_ = 0, twice_ = 0, moved_ = 0;
};

}  // namespace detail

}}  // namespace neap::v0
