// The bound of blocks/remat_facts.hpp for one state, with prices found for it.
//
// Prices that are best at the start of a block are not best for every state: one that has dropped much needs other
// bytes. Polyak's steps from the block's prices find better ones, and stop when they prove enough. One more thing is
// known of a state: what is missing and is read by something missing too must be there when that is made, and is then
// held up to its own next use, or made once more.
//
//   missing             v reads u: v is due in phase 7, u in phase 9
//   u made again        by phase 7; across 7 and 8 it takes room, or its op runs twice
#pragma once

#include <neap/blocks/remat_facts.hpp>
#include <neap/blocks/solver_policy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

template <std::size_t Words>
class remat_prices {
 public:
  using set = value_set<Words>;
  using facts = remat_facts<Words>;

  /// Asks for facts that are not hopeless. Their prices are read here; they may change afterwards.
  explicit remat_prices(facts const& f)
      : first_(f.price),
        price_(f.ops + 1),
        best_(f.ops + 1),
        sum_(f.ops + 1),
        slack_(f.ops + 1),
        load_(f.ops + 1),
        until_(f.values),
        next_(f.values) {
    for (double t : f.time) total_ += t;
  }

  /// Proved: from phase t on, with these values alive, no less time than this. Stops when that is `enough`, or when up to
  /// `rounds` steps seem not to get there. O(rounds * gaps from t on).
  double raise(facts const& f, std::size_t t, set const& alive, double enough, int rounds) {
    double const sure = collect(f, t, alive);
    if (!(sure < f.never)) return sure;
    price_ = best_ = first_;
    double most = -f.never, begun = 0, step = 1;
    double const stride = solver_policy::aim_state * total_;  // no step aims further above what is proved
    int dull = 0;
    for (int round = 0; round < rounds; ++round) {
      double const value = sure + evaluate(f, t);
      if (round == 0) begun = value;
      if (value > most) most = value, best_ = price_, dull = 0;
      else if (++dull > solver_policy::patience_state) step *= solver_policy::shrink, dull = 0;
      if (most >= enough) break;
      // Half way there in half of the rounds, or not at all.
      if (round == rounds / 2 && most - begun < (enough - begun) * solver_policy::half_way) break;
      double norm = 0;
      for (std::size_t k = t; k <= f.ops; ++k) {
        if (slack_[k] < 0 && price_[k] <= 0) slack_[k] = 0;
        norm += slack_[k] * slack_[k];
      }
      if (norm <= 0) break;
      double const size = step * (std::min(enough, most + stride) - value) / norm;
      for (std::size_t k = t; k <= f.ops; ++k) price_[k] = std::max(0.0, price_[k] + size * slack_[k]);
    }
    return most;
  }

 private:
  struct item {
    double bytes, paused, cost;  ///< paused: bytes that it holds in the pause
    std::uint32_t begins, to;
  };

  /// What can be held or made again from here on; gives the time that is sure.
  double collect(facts const& f, std::size_t t, set const& alive) {
    items_.clear();
    double sure = 0;
    for (std::size_t k = t; k < f.ops; ++k) sure += f.time[k];
    auto const lack = f.lack_of(t, alive);
    if (!(lack.time < f.never)) return f.never;
    auto const add = [&](std::size_t v, std::size_t begins, std::size_t to, bool paused) {
      if (begins < to || paused)
        items_.push_back({static_cast<double>(f.bytes[v]), paused ? static_cast<double>(f.saved[v]) : 0, f.cost[v],
                          static_cast<std::uint32_t>(begins), static_cast<std::uint32_t>(to)});
    };
    lack.missing.for_each([&](std::size_t v) {
      until_[v] = next_[v] = static_cast<std::uint32_t>(f.ops);
      sure += f.cost[v];
    });
    for (std::size_t k = f.first_gap[t]; k < f.gaps.size(); ++k) {
      auto const& g = f.gaps[k];
      bool const now = g.begins <= t;
      if (now && lack.missing.test(g.value)) until_[g.value] = next_[g.value] = static_cast<std::uint32_t>(g.to);
      else add(g.value, now ? t : g.begins, g.to, g.paused && (!now || t <= f.paused));
    }
    // From the last made to the first: by when each missing value must be there, and from when on it waits.
    for (set open = lack.missing; !open.empty();) {
      auto const v = open.highest();
      open.reset(v);
      if (f.due[t].test(v) && until_[v] < next_[v])
        add(v, until_[v], next_[v], f.pausing && until_[v] <= f.paused && f.paused < next_[v]);
      (f.inputs[static_cast<std::size_t>(f.maker[v])] & open).for_each([&](std::size_t u) {
        until_[u] = std::min(until_[u], until_[v]);
      });
    }
    return sure;
  }

  /// The rest of the bound at these prices, and by how much the choices that it makes pass the room.
  double evaluate(facts const& f, std::size_t t) {
    std::fill(load_.begin() + static_cast<std::ptrdiff_t>(t), load_.end(), 0.0);
    for (std::size_t k = t; k < f.ops; ++k) sum_[k + 1] = sum_[k] + price_[k];
    double value = 0, in_pause = 0;
    for (auto const& i : items_) {
      double const h = i.bytes * (sum_[i.to] - sum_[i.begins]) + i.paused * price_[f.ops];
      if (h > i.cost) {
        value += i.cost;
        continue;
      }
      value += h;
      load_[i.begins] += i.bytes;
      load_[i.to] -= i.bytes;
      in_pause += i.paused;
    }
    double held = 0;
    for (std::size_t k = t; k < f.ops; ++k) {
      held += load_[k];
      slack_[k] = held - f.spare[k];
      value -= price_[k] * f.spare[k];
    }
    slack_[f.ops] = 0;
    if (f.pausing && t <= f.paused) {
      slack_[f.ops] = in_pause - f.spare[f.ops];
      value -= price_[f.ops] * f.spare[f.ops];
    }
    return value;
  }

  std::vector<double> first_, price_, best_, sum_, slack_, load_;
  std::vector<std::uint32_t> until_, next_;  ///< of missing values: by when they must be there; when they are due
  std::vector<item> items_;
  double total_ = 0;
};

}}}  // namespace neap::v0::detail
