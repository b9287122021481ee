// A stage of the search: fissions of the orders to start from (fission_seeds.hpp), and of what recomputation by segments
// makes of them (partition_bases.hpp). Longer than other stages: chains, single stretches and those nearer to the best
// share the sweeps over bases.
#pragma once

#include <neap/core/sort.hpp>
#include <neap/optimize/fission_seeds.hpp>
#include <neap/optimize/stages/fission_chains.hpp>
#include <neap/optimize/stages/partition_bases.hpp>
#include <neap/optimize/stages/segments.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <deque>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

class partitions {
 public:
  using node_ptr = search_state::node_ptr;

  explicit partitions(search_state& state) : state_(state), numbers_(state.policy.parts) {}

  void begin_epoch() {
    bases_.clear();
    fissions_.reset();
  }
  /// What fissions are of, once they are prepared.
  std::vector<node_ptr> const& bases() const { return bases_; }
  /// What a sweep over fissions needs of the device; nothing before they are prepared.
  fission_sweep_options const* prices() const { return fissions_ ? &priced_ : nullptr; }

  bool is_prepared() const { return fissions_ != nullptr; }
  /// Sweeps over the orders to start from and what they are recomputed by segments. Where latency alone is limited, those of
  /// epochs before are taken over. Bases without one come last.
  void prepare(std::vector<node_ptr> const& starts, segments& recomputed) {
    bases_ = starts;
    for (auto const& [n, seeds] : recomputed.prepare(starts)) {
      auto const found = recomputed_bases(state_, n, seeds.ground());
      bases_.insert(bases_.end(), found.begin(), found.end());
    }
    priced_ = priced_for(state_.graph, state_.evaluator().cost());
    fissions_ = std::make_unique<fission_seeds>(state_.goal, numbers_);
    // Under a limit of memory an epoch that begins with parts meets it sooner, by slower answers than recomputation gives.
    if (state_.goal.limits_memory) swept_.clear();
    std::vector<node_ptr> unswept;
    for (auto const& n : std::exchange(bases_, {}))
      if (auto const* const s = swept_once(n)) bases_.push_back(s->of), fissions_->add(s->sweep, s->front);
      else unswept.push_back(n);
    bases_.insert(bases_.end(), unswept.begin(), unswept.end());
  }
  /// The best fissions become orders to start from; those that leave room for other mutations come last, and `recomputed`
  /// deals with them last.
  void add_seeds(std::vector<node_ptr>& starts, segments& recomputed) {
    if (!fissions_) return;
    auto const first = initial_cuts();
    add_chains(starts);
    auto const found = build_best(numbers_.share + state_.external_overrun());
    for (std::size_t k = 0; k < found.size() && k < numbers_.max_starts; ++k) starts.push_back(found[k]);
    if (!state_.goal.limits_memory) add_larger(found, starts);
    // Those that are quicker and still too large: other mutations may do the rest for less.
    if (!state_.goal.limits_memory && !state_.goal.limits_latency) return;
    recomputed.leave_room_from(starts.size());
    starts.insert(starts.end(), first.begin(), first.end());
    auto const quicker = state_.goal.limits_memory
                             ? fissions_->quicker(state_.target, state_.best->state.result.latency)
                             : fissions_->quicker(0, state_.goal.latency);
    for (auto const& o : quicker) {
      if (is_late(numbers_.quicker_share)) return;
      if (o.tried) continue;
      if (auto n = build(o)) starts.push_back(n);
    }
  }
  /// When all that was waiting has been tried: the fissions that are next in line, then those nearer to the best ones.
  /// Whether there are any.
  bool refine() {
    while (fissions_ && !state_.out_of_time() && !state_.is_free())
      if (!build_best(1).empty()) return true;
      else if (!fissions_->refine(state_.target)) return false;
    return false;
  }

 private:
  struct swept {
    digest identity;
    node_ptr of;
    std::shared_ptr<fission_sweep> sweep;
    plain_vector<estimated_fission> front;
  };
  /// The sweep over a candidate, or over one that equals it in an epoch before; nothing where there is no time for one.
  swept const* swept_once(node_ptr const& n) {
    auto const identity = state_.evaluator().digest_of(n->state.graph, n->state.order);
    if (!identity) return nullptr;
    for (auto const& s : swept_)
      if (s.identity == *identity) return &s;
    if (is_late(numbers_.preparing)) return nullptr;
    auto const& c = n->state;
    auto sweep = std::make_shared<fission_sweep>(c.graph, c.order, c.result, priced_);
    auto front = sweep->front();
    return &swept_.emplace_back(swept{*identity, n, std::move(sweep), std::move(front)});
  }
  /// Whether a share of the epoch is used up, which ends later where external seeds overran theirs.
  bool is_late(double share) { return state_.out_of_time(share + state_.external_overrun()); }
  /// Of candidates within the limit of latency, beside the first two, those that are smaller than all that are as quick: what
  /// they leave of that limit may do more elsewhere.
  void add_larger(std::vector<node_ptr> found, std::vector<node_ptr>& starts) const {
    sort_list(found, is_quicker<node_ptr>);
    auto smallest = std::numeric_limits<bytes_t>::max();
    for (auto const& n : found)
      if (auto const peak = n->state.result.peak_bytes;
          peak < smallest && n->state.result.latency <= state_.goal.latency) {
        smallest = peak;
        if (std::find(starts.begin(), starts.end(), n) == starts.end()) starts.push_back(n);
      }
  }
  /// Chains of fissions. Of a limit of memory, the quickest; otherwise the smallest, by halving between what is reached and
  /// what is not.
  void add_chains(std::vector<node_ptr>& starts) {
    if (state_.goal.limits_memory) {
      for (auto const& c : chains_to(state_.target, numbers_.max_chains)) starts.push_back(c);
      return;
    }
    auto reached = static_cast<double>(state_.best->state.result.peak_bytes);
    auto missed = static_cast<double>(std::max<bytes_t>(state_.out.lower_bound_bytes, 1));
    node_ptr smallest;
    for (int tries = 0;
         tries < numbers_.chain_tries && reached > numbers_.chain_close * missed && !is_late(numbers_.chains_share);
         ++tries) {
      auto const target = std::sqrt(reached * std::max(missed, numbers_.chain_fall * reached));
      auto const found = chains_to(static_cast<bytes_t>(target), 1);
      if (found.empty()) missed = target;
      else smallest = found[0], reached = static_cast<double>(smallest->state.result.peak_bytes);
    }
    if (smallest) starts.push_back(smallest);
  }
  /// Chains that bring a base's peak down to a target, the quickest first: at most so many.
  std::vector<node_ptr> chains_to(bytes_t target, std::size_t most) {
    std::vector<std::size_t> by_latency(fissions_->bases());
    std::iota(by_latency.begin(), by_latency.end(), std::size_t{0});
    auto const latency = [](node_ptr const& n) { return n->state.result.latency; };
    sort_list(by_latency, [&](std::size_t a, std::size_t b) { return is_quicker(bases_[a], bases_[b]); });
    std::vector<node_ptr> found;
    for (auto const b : by_latency) {
      if (is_late(numbers_.chains_share)) break;
      if (found.size() == most && latency(bases_[b]) >= latency(found.back())) break;
      auto const limit = found.size() == most ? latency(found.back()) : state_.goal.latency;
      auto n = chain(b, target, limit, numbers_.chains_share);
      if (n == bases_[b] || n->state.result.peak_bytes > target) continue;
      found.push_back(n);
      sort_list(found, is_quicker<node_ptr>);
      if (found.size() > most) found.pop_back();
    }
    for (auto const& n : found) state_.queue.push_back(n);
    return found;
  }
  node_ptr chain(std::size_t base, bytes_t target, seconds_t latency, double share) {
    return chain_of_fissions(state_, bases_[base], target, latency, share + state_.external_overrun(), priced_,
                             &fissions_->sweep(base));
  }
  /// The program with its peaks cut down as far as a little time goes, for recomputation to go on from: what makes the
  /// loss often needs parts, whatever else is done.
  std::vector<node_ptr> initial_cuts() {
    std::vector<node_ptr> found;
    if (fissions_->bases() == 0) return found;
    for (double const more : numbers_.initial_cuts) {
      auto const latency = std::min((1 + more) * bases_[0]->state.result.latency, state_.goal.latency);
      auto n = chain(0, 0, latency, numbers_.initial_cuts_share);
      auto const same = [&](node_ptr const& x) { return x->state.result.peak_bytes == n->state.result.peak_bytes; };
      if (n == bases_[0] || std::any_of(found.begin(), found.end(), same)) continue;
      found.push_back(n);
      state_.queue.push_back(n);
    }
    return found;
  }
  /// Builds and evaluates a fission; nothing if it cannot be built or was met before.
  node_ptr build(fission_seeds::option const& o) {
    auto const& from = bases_[o.base];
    if (!has_time_for(state_, o.what.what, from)) return nullptr;
    fissions_->note_tried(o);
    auto e = fissions_->build(o, from->state);
    auto n = e ? state_.evaluate_edit(from, o.what.what, std::move(*e)) : nullptr;
    if (n) state_.queue.push_back(n);
    return n;
  }
  /// The most promising ones, some dozens at most.
  std::vector<node_ptr> build_best(double part) {
    std::vector<node_ptr> found;
    for (auto const& o : fissions_->ranked(state_.target)) {
      if (found.size() == numbers_.max_built || state_.out_of_time(part)) break;
      if (promises_less(o.what)) continue;
      if (auto n = build(o)) found.push_back(std::move(n));
    }
    return found;
  }
  /// Nothing is to be gained by what is no better than the best, even if the estimate is somewhat wrong.
  bool promises_less(estimated_fission const& f) const {
    auto const& best = state_.best->state.result;
    if (!state_.goal.fits(best)) return false;
    if (state_.goal.limits_memory) return f.latency > numbers_.slower * best.latency;
    // Where enough of the limit is left, other mutations may do the rest.
    auto const before = state_.out.original.latency;
    bool const has_room = f.latency < before + numbers_.room * (state_.goal.latency - before);
    return static_cast<double>(f.peak) >
           (has_room ? numbers_.larger_with_room : numbers_.larger) * static_cast<double>(best.peak_bytes);
  }

  search_state& state_;
  search_policy::part_numbers const& numbers_;
  std::vector<node_ptr> bases_;
  fission_sweep_options priced_;
  std::unique_ptr<fission_seeds> fissions_;
  std::deque<swept> swept_;  // of all epochs
};

}}}  // namespace neap::v0::detail
