// The bodies of <neap/model/functions/random.hpp>.
#pragma once

#include <neap/model/functions/random.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

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

}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC tensor step_of_draws(std::source_location at) {
  auto* clock = static_cast<step_clock*>(context_access::clock());
  return clock ? clock->draws() : make_copy(std::vector<std::int64_t>{0}, {}, at);
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

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

namespace detail {
/// A number below n, each as likely as the others.
inline std::uint64_t number_below(random_stream& r, std::uint64_t n) {
  for (std::uint64_t const left_over = (0 - n) % n;;) {  // of 2^64
    std::uint64_t const high = r(), x = high << 32 | r();
    if (x >= left_over) return x % n;
  }
}
}  // namespace detail

NEAP_FUNC tensor randint(std::int64_t low, std::int64_t high, shape const& dims, std::uint64_t seed, dtype element,
                         std::source_location at) {
  place_scope const here(at, "randint");
  if (low >= high || is_floating(element))
    throw_error(context_access::place(at), {"randint: whole numbers from low up to, without, high, got ", low, ", ",
                                            high, " of ", name_of(element)});
  auto const [least, most] = element == dtype::i64   ? std::pair(low, high)
                             : element == dtype::i32 ? std::pair<std::int64_t, std::int64_t>(INT32_MIN, INT32_MAX)
                             : element == dtype::u8  ? std::pair<std::int64_t, std::int64_t>(0, 255)
                                                     : std::pair<std::int64_t, std::int64_t>(0, 1);
  if (low < least || high - 1 > most)
    throw_error(context_access::place(at), {"randint: not all numbers from ", low, " up to, without, ", high,
                                            " are of ", name_of(element), ": it has ", least, " to ", most});
  random_stream r(seed);
  std::vector<std::int64_t> all(static_cast<std::size_t>(tensor_type{element, dims}.count()));
  auto const range = static_cast<std::uint64_t>(high) - static_cast<std::uint64_t>(low);
  for (auto& x : all) x = static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + detail::number_below(r, range));
  tensor const made = detail::make_copy(all, dims, at);
  return element == dtype::i64 ? made : cast(made, element);
}

NEAP_FUNC tensor randperm(std::int64_t n, std::uint64_t seed, std::source_location at) {
  place_scope const here(at, "randperm");
  if (n < 0) throw_error(context_access::place(at), {"randperm: a number of at least 0, got ", n});
  random_stream r(seed);
  std::vector<std::int64_t> all(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto const k = static_cast<std::size_t>(detail::number_below(r, i + 1));
    all[i] = all[k], all[k] = static_cast<std::int64_t>(i);
  }
  return detail::make_copy(all, {n}, at);
}

}}  // namespace neap::v0
