// The bodies of <neap/blocks/rotor_chain.hpp>.
#pragma once

#include <neap/blocks/rotor_chain.hpp>

#include <neap/core/separate_compilation.hpp>

#include <numeric>
#include <utility>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC rotor_chain::rotor_chain(chain_profile const& chain, chain_limits limits)
    : size(chain.size()),
      exact(limits == chain_limits::exact) {
  auto const room = size + 2;
  input.reserve(room), passes.reserve(room), kind_of.reserve(room);
  std::vector<double> pass_times;
  pass_times.reserve(size + 1);
  // Equal blocks are read once.
  std::vector<chain_block const*> seen;
  for (auto const& b : chain.blocks) {
    std::size_t k = 0;
    while (k < seen.size() && !alike(*seen[k], b)) ++k;
    if (k == seen.size()) seen.push_back(&b);
    kind_of.push_back(static_cast<std::uint32_t>(k));
  }
  slots_t common = chain.output;
  for (auto const& b : chain.blocks) common = std::gcd(std::gcd(common, b.input), b.left);
  for (auto const* b : seen) {
    common = std::gcd(common, b->pass_temporary);
    for (auto const& o : b->options)
      common = std::gcd(std::gcd(common, o.saved), std::gcd(o.forward_temporary, o.backward_temporary));
  }
  unit = std::max<slots_t>(common, 1);
  kinds.reserve(seen.size() + 1);
  for (auto const* b : seen) kinds.push_back(kind_read(*b));
  kinds.push_back({0, 0, {{0, 0, 0, 0, 0}}});  // the loss
  kind_of.push_back(static_cast<std::uint32_t>(seen.size()));
  for (std::size_t i = 0; i < size; ++i) {
    auto const& b = chain.blocks[i];
    input.push_back(b.input / unit);
    passes.push_back((b.input + chain.input(i + 1) + b.pass_temporary) / unit);
    pass_times.push_back(b.pass_time);
    // Rockmate requires x_i + forward of a block alone, x_{i+1} + forward of one that others follow.
    bounds_after.push_back(exact || b.input <= chain.input(i + 1) || kind(i).backward_asks_more);
  }
  input.push_back(chain.output / unit);
  input.push_back(0);
  pass_times.push_back(0);
  forwards = range_sum(std::move(pass_times));
  passes.push_back(input[size]);
  gradient = input;
  slots_t left = 0;
  for (std::size_t i = size; i-- > 0;) gradient[i] += left += chain.blocks[i].left / unit;
  least_input = range_best<slots_t, best_is::least>(input);
  least_gradient = range_best<slots_t, best_is::least>(gradient);
  max_pass = range_best<slots_t, best_is::most>(passes);
}

NEAP_FUNC slots_t rotor_chain::save_limit(std::size_t a, std::size_t b, option const& o) const {
  if (exact) return std::max(gradient[b + 1] + o.forward, input[a] + gradient[a + 1] + o.backward);
  if (a == b) return input[a] + std::max(o.forward, o.backward);
  return std::max({peer_limit(a, b), o.saved, input[a + 1] + o.forward, input[a] + o.backward});
}

NEAP_FUNC std::vector<std::uint32_t> rotor_chain::surrounded_kinds() const {
  std::vector<std::uint32_t> number(size + 1), first;
  for (std::uint32_t i = 0; i <= size; ++i) {
    std::uint32_t k = 0;
    for (; k < first.size(); ++k)
      if (auto const f = first[k]; kind_of[f] == kind_of[i] && input[f] == input[i] && input[f + 1] == input[i + 1] &&
                                   gradient[f + 1] == gradient[i + 1])
        break;
    if (k == first.size()) first.push_back(i);
    number[i] = k;
  }
  return number;
}

NEAP_FUNC rotor_chain::block_kind rotor_chain::kind_read(chain_block const& b) const {
  double fastest = HUGE_VAL;
  for (auto const& o : b.options) fastest = std::min(fastest, o.forward_time + o.backward_time);
  block_kind read{b.pass_time, b.pass_temporary / unit, {}};
  for (std::size_t k = 0; k < b.options.size(); ++k) {
    auto const& o = b.options[k];
    option const one{o.forward_time + o.backward_time - fastest, o.saved / unit, (o.saved + o.forward_temporary) / unit,
                     (o.saved + o.backward_temporary) / unit, static_cast<std::uint32_t>(k)};
    auto const as_good = [](option const& x, option const& y) {
      return x.extra <= y.extra && x.saved <= y.saved && x.forward <= y.forward && x.backward <= y.backward;
    };
    if (std::ranges::any_of(read.options, [&](auto const& x) { return as_good(x, one); })) continue;
    std::erase_if(read.options, [&](auto const& x) { return as_good(one, x); });
    read.options.push_back(one);
  }
  read.backward_asks_more = std::ranges::all_of(read.options, [](auto const& o) { return o.forward <= o.backward; });
  return read;
}

}}}  // namespace neap::v0::detail
