// The bodies of <neap/model/functions/random.hpp>.
#pragma once

#include <neap/model/functions/random.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0 {

NEAP_FUNC tensor const& step_clock::now(std::source_location at) {
  if (!ticked_) apply(op::increment{}, {counter_}, at);
  ticked_ = true;
  return counter_;
}

NEAP_FUNC tensor const& step_clock::draws(std::source_location at) {
  if (seed_.is_empty()) return now(at);
  if (draws_.is_empty()) draws_ = apply(op::add{}, {now(at), seed_}, at);
  return draws_;
}

NEAP_FUNC step_clock step_clock::apart() const {
  step_clock c = *this;
  c.draws_ = {};
  return c;
}

NEAP_FUNC random_scope::random_scope(std::uint64_t seed, step_clock& clock)
    : context_(eager_context::current()),
      before_(context_access::enter(context_, {seed, 0, 1, &clock})) {}

}  // namespace neap::inline v0

namespace neap::inline v0 {
namespace detail {

NEAP_FUNC tensor step_of_draws(std::source_location at) {
  auto* clock = static_cast<step_clock*>(context_access::clock());
  return clock ? clock->draws() : make_copy(std::vector<std::int64_t>{0}, {}, at);
}

}  // namespace detail
}  // namespace neap::inline v0

namespace neap::inline v0 {

NEAP_FUNC tensor dropout(tensor const& x, double p, std::source_location at) {
  place_scope const here(at, "dropout");
  if (p == 0 || !context_access::is_training()) return x;
  auto const key = static_cast<std::int64_t>(eager_context::current().draw());
  return apply(op::dropout{p, key}, {x, detail::step_of_draws(at)});
}

NEAP_FUNC tensor multinomial(tensor const& weights, std::int64_t count, multinomial_form const& how,
                             std::source_location at) {
  place_scope const here(at, "multinomial");
  op::multinomial o;
  o.count = count, o.replacement = how.replacement;
  o.key = static_cast<std::int64_t>(eager_context::current().draw());
  return apply(o, {contiguous(weights), how.step.is_empty() ? detail::step_of_draws(at) : how.step});
}

}  // namespace neap::inline v0
