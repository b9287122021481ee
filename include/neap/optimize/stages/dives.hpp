// A stage of the search: dives. A dive starts at a candidate, evaluates the first `width` mutations its pipeline yields, and
// goes on with the one that brings memory towards the target at the lowest price in time; the others wait in the queue.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/core/sort.hpp>
#include <neap/optimize/expansion.hpp>
#include <neap/optimize/objective.hpp>
#include <neap/optimize/open_list.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

class dives {
  using node = search_state::node;

  auto estimate() const {
    return [this](node const& n) { return estimated_cost(n.state.result.latency, price_, n.excess); };
  }

 public:
  using node_ptr = search_state::node_ptr;

  dives(search_state& state, any_mutator const& moves) : state_(state), moves_(moves), numbers_(state.policy.dives) {}

  void begin_epoch() { roots_.clear(), price_ = 0; }
  /// Where dives began in this epoch; a few.
  std::vector<node_ptr>& roots() { return roots_; }
  /// From now on prices are disturbed by random factors, and roots stay as they are; until null.
  void perturb_by(random_stream* draw) { perturbation_ = draw; }

  void dive(node_ptr n) { dive(std::move(n), state_.part); }
  /// With a part of the budget; what it has come to then waits. It ends at the target, or where no mutation brings memory
  /// nearer to it.
  void dive(node_ptr n, double part) {
    if (!numbers_.on) return void(n->expanded = true);
    if (!state_.build(n)) return;
    if (!perturbation_ && roots_.size() < state_.max_waiting()) roots_.push_back(n);
    while (n && !state_.hopeless(*n)) {
      if (state_.out_of_time(part)) {
        if (part < state_.part) state_.queue.push_back(std::move(n));
        return;
      }
      if (n->excess <= 0) {
        if (state_.goal.limits_memory || n->state.result.peak_bytes > state_.target) return;
        state_.lower_target(n->state.result.peak_bytes);
        n->excess = excess_bytes(n->state.result.bytes_at, state_.target);
      }
      n = expand(n);
    }
  }
  /// A dive; where the peak is to fall as far as it goes and the start is not far above the best, one step at a time: what
  /// is cheapest on the long way is not what leads on from each peak to the next.
  void descend(node_ptr const& n, double part) {
    auto const peak = n->state.result.peak_bytes;
    if (state_.goal.limits_memory || ratio_of(1 / numbers_.far, peak) > state_.best->state.result.peak_bytes)
      return dive(n, part);
    state_.lower_target(peak);
    n->excess = excess_bytes(n->state.result.bytes_at, state_.target);
    dive(n, part);
    state_.lower_target(state_.best->state.result.peak_bytes);
  }
  /// Dives from whatever waits and promises most, with a part of the budget.
  void search(double part) {
    while (!state_.out_of_time(part * state_.part) && !state_.is_free()) {
      auto next = take_from_open_list(
          state_.queue, [&](node_ptr const& n) { return n->expanded || state_.hopeless(*n); }, estimate());
      if (!next) return;
      dive(next);
    }
  }
  /// From where segments have led to: down from the best; or from those that nearly fit, first those that may spend the
  /// most on each byte that is still too much, the smallest if nothing fits yet.
  void search_from_seeds(double part) {
    while (!state_.goal.limits_memory && !state_.best->expanded && !state_.hopeless(*state_.best) &&
           !state_.out_of_time(part))
      dive(state_.best, state_.goal.spends_latency() ? part : state_.part);
    auto nodes = state_.queue;
    std::erase_if(nodes, [](node_ptr const& n) { return n->is_external_seed; });
    bool const fits =
        std::any_of(nodes.begin(), nodes.end(), [&](node_ptr const& n) { return state_.goal.fits(n->state.result); });
    search_by_promise(std::move(nodes), fits, part);
  }
  /// The same from external seeds. Run last, so that an expensive feasible seed does not hide cheaper ones that nearly fit.
  void search_from_external() {
    auto nodes = state_.queue;
    std::erase_if(nodes, [](node_ptr const& n) { return !n->is_external_seed; });
    search_by_promise(std::move(nodes), state_.goal.fits(state_.best->state.result), 1);
  }

 private:
  void search_by_promise(std::vector<node_ptr> nodes, bool fits, double part) {
    auto const promise = [&](node_ptr const& n) {
      if (n->expanded || n->excess <= 0) return 0.0;
      return fits ? (state_.best->state.result.latency - n->state.result.latency) / n->excess : 1 / n->excess;
    };
    sort_list(nodes, [&](node_ptr const& a, node_ptr const& b) { return promise(a) > promise(b); });
    for (auto const& n : nodes)
      if (promise(n) > 0 && !state_.out_of_time(part)) dive(n);
  }
  /// A mutation's excess bytes for a second, and its seconds for a byte.
  struct priced_child {
    node_ptr child;
    double ratio, price;
  };
  /// Judges the candidate's mutations; the one that buys memory most cheaply, if any buys some.
  node_ptr expand(node_ptr const& n) {
    auto const latency = n->state.result.latency;
    auto const room = state_.max_waiting();
    std::vector<node_ptr> children;
    std::vector<priced_child> priced;
    expand_candidate(state_, moves_, n, [&](node_ptr child) {
      double const gained = n->excess - child->excess;
      if (gained <= 0 || state_.hopeless(*child)) return;
      double const paid = std::max(0.0, child->state.result.latency - latency);
      double const perturbation =
          perturbation_ ? std::exp2(numbers_.perturbation_octaves * (perturbation_->uniform() - 0.5)) : 1;
      // Rounded once, as estimates are.
      double const cost = std::fma(numbers_.least_price, state_.out.original.latency, paid);
      priced.push_back({child, perturbation * gained / cost, paid / gained});
      children.push_back(std::move(child));
      if (children.size() >= 2 * room) trim_open_list(children, room, estimate());
    });
    auto cheapest = take_cheapest(priced);
    for (auto& c : children)
      if (c != cheapest && !c->expanded) state_.queue.push_back(std::move(c));
    if (state_.queue.size() > 2 * room) trim_open_list(state_.queue, room, estimate());
    return cheapest;
  }
  /// The cheapest that was not met before, built.
  node_ptr take_cheapest(std::vector<priced_child>& priced) {
    while (!priced.empty()) {
      auto const best = std::max_element(
          priced.begin(), priced.end(), [](priced_child const& a, priced_child const& b) { return a.ratio < b.ratio; });
      if (!best->child->expanded && state_.build(best->child)) {
        price_ = std::max(price_, best->price);
        return best->child;
      }
      priced.erase(best);
    }
    return nullptr;
  }
  search_state& state_;
  any_mutator const& moves_;
  search_policy::dive_numbers const& numbers_;
  std::vector<node_ptr> roots_;
  random_stream* perturbation_ = nullptr;
  double price_ = 0;  // seconds a byte-position above the target, the highest paid so far
};

}}}  // namespace neap::v0::detail
