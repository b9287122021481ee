// Dropout, sampling by weights, and the step counter that makes them draw anew in every step of a traced program.
#pragma once

#include <neap/ir/operators/dropout.hpp>
#include <neap/ir/operators/multinomial.hpp>
#include <neap/model/functions/elementwise.hpp>
#include <neap/model/functions/movement.hpp>

namespace neap { inline namespace v0 {

/// The number of the running step, as a tensor that the program increments before it is first read: training counts
/// from 1.
class step_clock {
 public:
  /// `counter` is an i64 scalar that lives as long as the training. `seed`, if given, is another one: what it holds in
  /// a step is added to the number that dropout draws by.
  explicit step_clock(tensor counter, tensor seed = {}) : counter_(std::move(counter)), seed_(std::move(seed)) {}
  tensor const& now(std::source_location at = std::source_location::current());
  /// What random operators of this step depend on.
  tensor const& draws(std::source_location at = std::source_location::current());
  bool is_used() const { return ticked_; }
  /// The same clock for a program that is traced by itself.
  step_clock apart() const;
  /// Another program has incremented the counter for this step.
  void note_increment() { ticked_ = true; }

 private:
  tensor counter_, seed_, draws_;
  bool ticked_ = false;
};

/// While it lives, random operators draw their keys from a sequence that starts anew, and also depend on a clock: the
/// same keys in every step, other numbers. What makes an eager step and a traced one draw alike.
class random_scope {
 public:
  random_scope(std::uint64_t seed, step_clock& clock);
  random_scope(random_scope const&) = delete;
  random_scope& operator=(random_scope const&) = delete;
  ~random_scope() { context_access::enter(context_, before_); }

 private:
  eager_context& context_;
  context_access::randomness before_;
};

namespace detail {
/// What random operators depend on: the running step's number, a constant outside of steps.
tensor step_of_draws(std::source_location at);
}  // namespace detail

/// In training each element is zero with probability p, the others are divided by 1 - p. Under neap::evaluation, x.
tensor dropout(tensor const& x, double p, std::source_location at = std::source_location::current());

/// Whole numbers of [low, high), each as likely as the others; and the numbers below n in an order by chance. From a seed:
/// the same in every step.
tensor randint(std::int64_t low, std::int64_t high, shape const& dims, std::uint64_t seed, dtype element = dtype::i64,
               std::source_location at = std::source_location::current());
tensor randperm(std::int64_t n, std::uint64_t seed, std::source_location at = std::source_location::current());

struct multinomial_form {
  bool replacement = false;  // a place may be drawn again
  tensor step{};             // an i64 scalar; the draws are others where it is another number
};
/// `count` places along the last axis of weights (..., k), which are at least 0 and need no sum of 1, each drawn with a
/// chance in proportion to its weight: (..., count) of i64. Without replacement the places of a row differ, in the order
/// in which they were drawn. Each call draws anew from the eager_context's seed, in every training step; a program traced
/// for evaluation draws the same in each run, unless `step` is an input of its own. No gradient goes through it.
/// Throws neap::error when it runs if a weight is negative or not finite, or a row has fewer weights above 0 than are drawn
/// without replacement (at least one is needed).
tensor multinomial(tensor const& weights, std::int64_t count = 1, multinomial_form const& how = {},
                   std::source_location at = std::source_location::current());

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/functions/impl/random.ipp>
#endif
