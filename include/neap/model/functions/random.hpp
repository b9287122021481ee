// Dropout, sampling by weights, and the step counter that makes them draw anew in every step of a traced program.
#pragma once

#include <neap/ir/operators/dropout.hpp>
#include <neap/ir/operators/multinomial.hpp>
#include <neap/model/functions/elementwise.hpp>
#include <neap/model/functions/movement.hpp>

namespace neap::inline v0 {

/// The number of the running step, as a tensor that the program increments before it is first read: training counts
/// from 1.
class step_clock {
 public:
  /// `counter` is an i64 scalar that lives as long as the training. `seed`, if given, is another one: what it holds in
  /// a step is added to the number that dropout draws by.
  explicit step_clock(tensor counter, tensor seed = {}) : counter_(std::move(counter)), seed_(std::move(seed)) {}
  tensor const& now(std::source_location at = std::source_location::current()) {
    if (!ticked_) apply(op::increment{}, {counter_}, at);
    ticked_ = true;
    return counter_;
  }
  /// What random operators of this step depend on.
  tensor const& draws(std::source_location at = std::source_location::current()) {
    if (seed_.is_empty()) return now(at);
    if (draws_.is_empty()) draws_ = apply(op::add{}, {now(at), seed_}, at);
    return draws_;
  }
  bool is_used() const { return ticked_; }
  /// The same clock for a program that is traced by itself.
  step_clock apart() const {
    step_clock c = *this;
    c.draws_ = {};
    return c;
  }
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
  random_scope(std::uint64_t seed, step_clock& clock)
      : context_(eager_context::current()),
        before_(context_access::enter(context_, {seed, 0, 1, &clock})) {}
  random_scope(random_scope const&) = delete;
  random_scope& operator=(random_scope const&) = delete;
  ~random_scope() { context_access::enter(context_, before_); }

 private:
  eager_context& context_;
  context_access::randomness before_;
};

namespace detail {
/// What random operators depend on: the running step's number, a constant outside of steps.
inline tensor step_of_draws(std::source_location at) {
  auto* clock = static_cast<step_clock*>(context_access::clock());
  return clock ? clock->draws() : make_copy(std::vector<std::int64_t>{0}, {}, at);
}
}  // namespace detail

/// In training each element is zero with probability p, the others are divided by 1 - p. Under neap::evaluation, x.
inline tensor dropout(tensor const& x, double p, std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  if (p == 0 || !context_access::is_training()) return x;
  auto const key = static_cast<std::int64_t>(eager_context::current().draw());
  return apply(op::dropout{p, key}, {x, detail::step_of_draws(at)});
}

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
inline tensor multinomial(tensor const& weights, std::int64_t count = 1, multinomial_form const& how = {},
                          std::source_location at = std::source_location::current()) {
  place_scope const here(at);
  op::multinomial o;
  o.count = count, o.replacement = how.replacement;
  o.key = static_cast<std::int64_t>(eager_context::current().draw());
  return apply(o, {contiguous(weights), how.step.is_empty() ? detail::step_of_draws(at) : how.step});
}

}  // namespace neap::inline v0
