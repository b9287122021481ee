// What the answers to a block's problem are worth to a chain of blocks: the options among which rk-Rotor chooses.
#pragma once

#include <neap/blocks/block_problem.hpp>
#include <neap/blocks/block_swaps.hpp>
#include <neap/blocks/block_walk.hpp>
#include <neap/blocks/remat_solver.hpp>
#include <neap/plan/chain_profile.hpp>

#include <algorithm>
#include <concepts>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// What solves blocks: for several limits at once, an answer each, in their order.
template <class S>
concept front_solver = requires(S const& s, remat_problem const& p, std::span<remat_limits const> limits) {
  { s(p, limits) } -> std::same_as<std::vector<remat_answer>>;
};

namespace detail {
/// Checked where a user's solver of blocks enters.
template <class S>
constexpr bool check_front_solver() {
  static_assert(front_solver<S>,
                "neap: this solves no blocks: it lacks  std::vector<neap::remat_answer> operator()(neap::remat_problem "
                "const&, std::span<neap::remat_limits const>) const");
  return true;
}
}  // namespace detail

/// How many limits a block is solved for: between what its plain answers save, and between their peaks and the least peak,
/// with one more in the lowest step where what is saved is limited, too. And how many parts of what an answer saves may
/// leave memory, where a link is given.
struct option_levels {
  int saved = 6, peak = 6, swapped = 3;
};

/// No answer has a lower peak: what one op needs at once.
bytes_t least_peak(remat_problem const& p);

/// The answers worth having, the quickest first: both plain ones, and what the solver finds within limits. Throws
/// neap::error if an answer of the solver's is wrong.
template <class S>
std::vector<remat_answer> options_of(block_problem const& b, S const& solver, option_levels const& levels) {
  static_assert(detail::check_front_solver<S>());
  auto all = save_everything(b), none = save_input(b);
  std::vector<remat_limits> limits;
  auto const between = [&](bytes_t low, bytes_t high, int count, auto&& put) {
    for (int k = 1; k <= count && low < high; ++k) put(low + (high - low) * (count - k) / count);
  };
  auto const least = std::min(all.saved_bytes, none.saved_bytes);
  between(least, all.saved_bytes, levels.saved, [&](bytes_t s) { limits.push_back({.saved_bytes = s}); });
  std::vector<bytes_t> saved{remat_limits::none};
  if (levels.saved > 0 && least < all.saved_bytes)
    saved = {all.saved_bytes, least + (all.saved_bytes - least) / 2, least};
  auto const low = least_peak(b.problem), high = std::max(all.peak_bytes, none.peak_bytes);
  for (auto s : saved) {
    auto const put = [&](bytes_t m) { limits.push_back({.peak_bytes = m, .saved_bytes = s}); };
    between(low, high, levels.peak, put);
    // The least peak is mostly out of reach: what comes next to it decides whether a plan fits.
    if (levels.saved > 0 && levels.peak > 0 && low < high) put(low + (high - low) / levels.peak / 2);
  }
  std::vector<remat_answer> answers;
  if (!limits.empty()) answers = solver(b.problem, limits);
  if (answers.size() > limits.size())
    throw_error({"options_of: the solver gave ", answers.size(), " answers to ", limits.size(), " limits"});
  for (std::size_t k = 0; k < answers.size(); ++k)
    require_right(b.problem, limits[k], answers[k], "options_of: the solver");
  answers.push_back(std::move(all)), answers.push_back(std::move(none));
  return pareto(std::move(answers));
}

/// What a chain pays for a block, in bytes and seconds.
struct block_price {
  block_option option;
  bytes_t moved = 0;                          // stored and loaded
  std::vector<block_step> forward, backward;  // the answer up to the pause, and behind it
};

/// `input`: what the block before hands on, which that block counts as saved. `gives_back`: that block does not need it
/// itself, so that it is counted as given back where this block's backward does not need it either, or has stored it.
block_price price_of(block_problem const& b, std::vector<block_step> const& steps, bytes_t input, bool gives_back);

namespace detail {

/// Prices of answers, and behind them, where there are `levels`, of some of them with values away: those that no other
/// beats. `price_of_steps(steps)`, `beats(a, b)`.
template <class Make, class Beats>
auto prices_with_swaps(block_facts const& f, block_problem const& b, std::vector<remat_answer> const& answers,
                       std::vector<unsigned char> const& movable, bytes_t input, int levels, Make const& price_of_steps,
                       Beats const& beats) {
  static constexpr std::size_t max_swapped = 6;  // answers, from the quickest to the slowest
  std::vector<decltype(price_of_steps(steps_of(answers.front())))> prices;
  for (auto const& a : answers) prices.push_back(price_of_steps(steps_of(a)));
  auto const n = answers.size(), some = levels > 0 ? std::min(n, max_swapped) : 0;
  for (std::size_t k = 0; k < some; ++k) {
    auto const& a = answers[some > 1 ? k * (n - 1) / (some - 1) : 0];
    for (auto const& steps : swaps_of(f, b, a, movable, input, levels)) {
      auto x = price_of_steps(steps);
      if (std::any_of(prices.begin(), prices.end(), [&](auto const& y) { return beats(y, x); })) continue;
      std::erase_if(prices, [&](auto const& y) { return y.moved > 0 && beats(x, y); });
      prices.push_back(std::move(x));
    }
  }
  return prices;
}

}  // namespace detail

/// What a chain chooses among: the answers, and behind them some with values away.
std::vector<block_price> prices_of(block_facts const& f, block_problem const& b,
                                   std::vector<remat_answer> const& answers, std::vector<unsigned char> const& movable,
                                   bytes_t input, bool gives_back, int levels);

/// What the link costs blocks: of a transfer's seconds so much counts as not hidden behind what is computed. All blocks
/// share the link, and only a simulator finds what is hidden: it is the price at which they take it. At 0 everything
/// leaves that is worth a byte, at 1 what is cheaper to move than to compute.
struct link_price {
  static constexpr double stay = -1;  // nothing leaves
  double part = stay;
  double link = 0;  // bytes a second
  bool lets_move() const { return part != stay; }
  double seconds(bytes_t moved) const { return part * static_cast<double>(moved) / link; }
};

namespace detail {

/// Of prices, whose options are option(k), those that may be chosen at a price of the link: all of them, or only those
/// that move nothing, which come first.
template <class Price, class Option>
auto options_at(std::vector<Price> const& prices, link_price const& at, Option&& option) {
  std::vector<std::remove_cvref_t<decltype(option(std::size_t{}))>> out;
  for (std::size_t k = 0; k < prices.size() && (at.lets_move() || prices[k].moved == 0); ++k) {
    out.push_back(option(k));
    if (prices[k].moved > 0) out.back().forward_time += at.seconds(prices[k].moved);
  }
  return out;
}

}  // namespace detail

/// The forward that saves nothing: what it takes beside input and output, its time, and when each value is forgotten.
struct block_pass {
  double time = 0;
  bytes_t temporary = 0;
  std::vector<block_step> steps;
};
block_pass pass_of(block_problem const& b);

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/blocks/impl/block_options.ipp>
#endif
