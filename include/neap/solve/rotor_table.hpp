// The table of rk-Rotor: O(a, b, m), the least time to train blocks a to b with m slots beyond that of their fastest
// options. x_a is kept outside m; y_{b+1} and what the backwards of blocks b + 1 and on have left are inside. It is the
// smaller of
//
//   now    save block a with option k, train [a+1, b], then block a's backward:
//            extra(k) + O(a+1, b, m - saved(k))
//   later  run blocks a to j-1 without saving, keep x_j, train [j, b], then train [a, j-1]:
//            forward(a..j-1) + O(j, b, m - x_j) + O(a, j-1, m)
//
// How it is fast:
// - One cell for each class of equal sub-chains, sizes in the largest unit that divides them all.
// - A cell is a row of times by m, up to where nothing need be recomputed, worked on in chunks of vectors. Chunks are
//   worked out when they are first needed, by several candidates at once: a time is read and written once for all.
// - A j, or a range of them, is left out where a bound shows for each m of the chunk that it is no better than what is
//   known. So most of [a, j-1] is never needed. Both bounds follow by induction over the length, candidate by
//   candidate; what is required of b' makes the limits of [a, b'] no stricter than those of [a, b]:
//     O(a, b, m) >= O(a+1, b, m)
//     O(a, b, m) >= O(a, b', m)  for b' < b, if y_{b'+1}, with what is left by then, is no larger than any of those from
//                                b' + 2 to b + 1; under the peer's limits only if they ask no more of block b' alone
//                                than of block b' and others
#pragma once

#include <neap/core/work_meter.hpp>
#include <neap/plan/chain_profile.hpp>
#include <neap/plan/chain_sequence.hpp>
#include <neap/solve/chain_classes.hpp>
#include <neap/solve/range_best.hpp>
#include <neap/solve/range_sum.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

namespace neap::inline v0 {

/// Which plans a solver takes to fit. `exact`: those that do. `peer`: those that Rockmate's solver takes to fit, which
/// forgets the gradient of a block's output in its backward, so that plans go over their budget by up to 10 %, and asks
/// elsewhere for more than is needed. For comparison only.
enum class chain_limits : std::uint8_t { exact, peer };

struct rotor_options {
  chain_limits limits = chain_limits::exact;
  std::int64_t most_table_bytes = std::int64_t{4} << 30;  ///< no table larger than this
  bool bounds = true;  ///< false: every j is tried for every m, to see what bounds are worth
};

namespace detail {

class rotor_table {
 public:
  static constexpr int most_width = 128;  // of a chunk, in slots
#if defined(__AVX512F__)
  static constexpr int run = 8;  // what loops go in: a vector of the machine
#elif defined(__AVX__)
  static constexpr int run = 4;
#else
  static constexpr int run = 2;
#endif
  static constexpr double never = HUGE_VAL;
  // Bounds leave out sub-chains, which then are needed by others inside others. From so deep on nothing is left out:
  // in ascending order all that a sub-chain needs is known before, or needs nothing that is not.
  static constexpr std::size_t deepest = 64;
  struct too_large {};
  struct too_long {};  // too large whatever the limit

  rotor_table(chain_profile const& chain, slots_t largest, rotor_options options)
      : n_(chain.size()),
        exact_(options.limits == chain_limits::exact),
        bounds_(options.bounds),
        most_bytes_(options.most_table_bytes) {
    if (n_ > 60'000 || charge((n_ + 1) * (n_ + 2) * 2 + range_sum::bytes(n_ + 1))) throw too_long{};
    read(chain);
    classes_.emplace(surrounded_kinds());
    if (charge(classes_->count() * (sizeof(cell) + sizeof(std::uint32_t)))) throw too_long{};
    cells_.resize(classes_->count());
    find_saturation();
    largest_ = std::min(largest / unit_, cells_[id(0, n_)].saturated);
    // A short table is one chunk.
    if (largest_ < most_width) width_ = std::max(static_cast<int>(largest_ + run) / run, 1) * run;
    zeros_.assign(2 * static_cast<std::size_t>(width_) + run, 0.0);
    for (auto& c : cells_) {
      c.whole = static_cast<std::int32_t>(std::min<slots_t>((c.saturated + width_ - 1) / width_, INT32_MAX));
      if (c.whole == 0) c.times = zeros_.data() + width_;
    }
    if (largest_ >= 0) demand(0, n_, largest_ / width_, 0);
  }

  /// The least time beyond that of the fastest options; `never` where no plan fits.
  double overhead(slots_t budget) const {
    return budget < 0 ? never : *known(0, n_, std::min(budget / unit_, cells_[id(0, n_)].saturated));
  }

  slots_t unit() const { return unit_; }
  slots_t largest() const { return largest_; }

  chain_sequence sequence(slots_t budget) const {
    chain_sequence out;
    struct stretch {
      std::size_t a, b;
      slots_t m;
      bool backward;  // nothing but block a's backward
    };
    std::vector<stretch> open{{0, n_, std::min(budget / unit_, cells_[id(0, n_)].saturated), false}};
    while (!open.empty()) {
      auto const [a, b, m, backward] = open.back();
      open.pop_back();
      auto const first = static_cast<std::uint32_t>(a);
      if (backward) {
        out.push_back({chain_step::backward, first, 0});
        continue;
      }
      if (a == n_) {
        out.push_back({chain_step::loss, 0, 0});
        continue;
      }
      double best = never;
      option const* now = nullptr;
      std::size_t split = 0;
      for (auto const& o : kind(a).options) {
        if (m < save_limit(a, b, o)) continue;
        auto const* const rest = a == b ? zeros() : known(a + 1, b, m - o.saved);
        if (!rest) continue;  // nothing need be recomputed, and this is not the option that it goes with
        if (double const t = o.extra + *rest; t < best) best = t, now = &o;
      }
      for (std::size_t j = a + 1; j <= last_later(b); ++j) {
        if (m < pass_limit(a, b, j) || m < input_[j]) continue;
        auto const* const tail = known(j, b, m - input_[j]);
        auto const* const head = known(a, j - 1, m);
        if (!tail || !head) continue;  // left out by a bound
        if (double const t = forward(a, j) + *tail + *head; t < best) best = t, split = j;
      }
      if (split != 0) {
        out.push_back({chain_step::pass_keep, first, 0});
        for (std::size_t i = a + 1; i < split; ++i)
          out.push_back({chain_step::pass_drop, static_cast<std::uint32_t>(i), 0});
        open.push_back({a, split - 1, m, false});
        open.push_back({split, b, m - input_[split], false});
      } else {
        out.push_back({chain_step::save, first, now->number});
        open.push_back({a, b, 0, true});
        if (a < b) open.push_back({a + 1, b, m - now->saved, false});
      }
    }
    return out;
  }

 private:
  struct option {
    double extra;  // time beyond the fastest option's
    slots_t saved, forward, backward;
    std::uint32_t number;
    friend bool operator==(option const&, option const&) = default;
  };
  struct block_kind {
    double pass_time = 0;
    slots_t pass_temporary = 0;
    std::vector<option> options{};   // none that another one is at least as good as in everything
    bool backward_asks_more = true;  // than the forward, whatever the option
  };
  /// The times of a class of sub-chains for m in [0, chunks * width_), and 0 from `saturated` on.
  struct cell {
    double* times = nullptr;
    slots_t saturated = 0;
    std::int32_t chunks = 0, room = 0;
    std::int32_t whole = 0;   // chunks that hold all that is not 0
    std::uint32_t guess = 0;  // the j, from a, that was best last
  };

  /// True if so many bytes more are too many.
  bool charge(std::size_t bytes) {
    used_bytes_ += static_cast<std::int64_t>(bytes);
    return used_bytes_ > most_bytes_;
  }

  // --- the chain, with the loss as its last block, sizes in the largest unit that divides them all ---

  void read(chain_profile const& chain) {
    auto const room = n_ + 2;
    input_.reserve(room), passes_.reserve(room), kind_of_.reserve(room);
    std::vector<double> pass_times;
    pass_times.reserve(n_ + 1);
    // Equal blocks are read once.
    std::vector<chain_block const*> seen;
    for (auto const& b : chain.blocks) {
      std::size_t k = 0;
      while (k < seen.size() && !alike(*seen[k], b)) ++k;
      if (k == seen.size()) seen.push_back(&b);
      kind_of_.push_back(static_cast<std::uint32_t>(k));
    }
    slots_t unit = chain.output;
    for (auto const& b : chain.blocks) unit = std::gcd(std::gcd(unit, b.input), b.left);
    for (auto const* b : seen) {
      unit = std::gcd(unit, b->pass_temporary);
      for (auto const& o : b->options)
        unit = std::gcd(std::gcd(unit, o.saved), std::gcd(o.forward_temporary, o.backward_temporary));
    }
    unit_ = std::max<slots_t>(unit, 1);
    kinds_.reserve(seen.size() + 1);
    for (auto const* b : seen) kinds_.push_back(kind_read(*b));
    kinds_.push_back({0, 0, {{0, 0, 0, 0, 0}}});  // the loss
    kind_of_.push_back(static_cast<std::uint32_t>(seen.size()));
    for (std::size_t i = 0; i < n_; ++i) {
      auto const& b = chain.blocks[i];
      input_.push_back(b.input / unit_);
      passes_.push_back((b.input + chain.input(i + 1) + b.pass_temporary) / unit_);
      pass_times.push_back(b.pass_time);
      // Rockmate requires x_i + forward of a block alone, x_{i+1} + forward of one that others follow.
      bounds_after_.push_back(exact_ || b.input <= chain.input(i + 1) || kind(i).backward_asks_more);
    }
    input_.push_back(chain.output / unit_);
    input_.push_back(0);
    pass_times.push_back(0);
    forwards_ = range_sum(std::move(pass_times));
    passes_.push_back(input_[n_]);
    gradient_ = input_;
    slots_t left = 0;
    for (std::size_t i = n_; i-- > 0;) gradient_[i] += left += chain.blocks[i].left / unit_;
    least_input_ = range_best<slots_t, best_is::least>(input_);
    least_gradient_ = range_best<slots_t, best_is::least>(gradient_);
    most_pass_ = range_best<slots_t, best_is::most>(passes_);
  }

  /// Whether blocks are equal by themselves, whatever is before and after them.
  static bool alike(chain_block const& a, chain_block const& b) {
    return a.pass_time == b.pass_time && a.pass_temporary == b.pass_temporary && a.options == b.options;
  }

  block_kind kind_read(chain_block const& b) const {
    double fastest = never;
    for (auto const& o : b.options) fastest = std::min(fastest, o.forward_time + o.backward_time);
    block_kind read{b.pass_time, b.pass_temporary / unit_, {}};
    for (std::size_t k = 0; k < b.options.size(); ++k) {
      auto const& o = b.options[k];
      option const one{o.forward_time + o.backward_time - fastest, o.saved / unit_,
                       (o.saved + o.forward_temporary) / unit_, (o.saved + o.backward_temporary) / unit_,
                       static_cast<std::uint32_t>(k)};
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

  block_kind const& kind(std::size_t i) const { return kinds_[kind_of_[i]]; }

  /// Blocks with equal numbers are equal, the sizes before and after them included.
  std::vector<std::uint32_t> surrounded_kinds() const {
    std::vector<std::uint32_t> number(n_ + 1), first;
    for (std::uint32_t i = 0; i <= n_; ++i) {
      std::uint32_t k = 0;
      for (; k < first.size(); ++k)
        if (auto const f = first[k]; kind_of_[f] == kind_of_[i] && input_[f] == input_[i] &&
                                     input_[f + 1] == input_[i + 1] && gradient_[f + 1] == gradient_[i + 1])
          break;
      if (k == first.size()) first.push_back(i);
      number[i] = k;
    }
    return number;
  }

  std::uint32_t id(std::size_t a, std::size_t b) const { return (*classes_)(a, b); }
  double forward(std::size_t a, std::size_t j) const { return forwards_(a, j); }

  // --- limits ---

  /// The least memory for saving block a with an option, at the beginning of [a, b].
  slots_t save_limit(std::size_t a, std::size_t b, option const& o) const {
    if (exact_) return std::max(gradient_[b + 1] + o.forward, input_[a] + gradient_[a + 1] + o.backward);
    if (a == b) return input_[a] + std::max(o.forward, o.backward);
    return std::max({peer_limit(a, b), o.saved, input_[a + 1] + o.forward, input_[a] + o.backward});
  }
  /// The least memory for running blocks a to j-1 of [a, b] without saving.
  slots_t pass_limit(std::size_t a, std::size_t b, std::size_t j) const {
    return exact_ ? passing(a, b, j) : peer_limit(a, b);
  }
  slots_t passing(std::size_t a, std::size_t b, std::size_t j) const {
    slots_t const first = input_[a + 1] + kind(a).pass_temporary;
    return gradient_[b + 1] + (a + 1 < j ? std::max(first, most_pass_(a + 1, j)) : first);
  }
  /// Rockmate requires of every sub-chain that all of it can be run without saving.
  slots_t peer_limit(std::size_t a, std::size_t b) const { return passing(a, b, b); }
  /// The largest j of [a, b]. To run all blocks without saving before the loss is never faster: that the last block
  /// saves costs no more than that it runs again.
  std::size_t last_later(std::size_t b) const { return exact_ && b == n_ ? n_ - 1 : b; }

  /// From how much memory on nothing need be recomputed, of each class.
  void find_saturation() {
    classes_->for_each([&](std::uint32_t which, std::size_t a, std::size_t b) {
      auto& c = cells_[which];
      c.saturated = INT64_MAX;
      for (auto const& o : kind(a).options)
        if (o.extra == 0)
          c.saturated = std::min(c.saturated,
                                 std::max(save_limit(a, b, o), a == b ? 0 : o.saved + cells_[id(a + 1, b)].saturated));
    });
  }

  // --- cells ---

  /// A row in which nothing need be recomputed.
  double const* zeros() const { return zeros_.data() + width_; }

  /// `width` times from m >= 0 on; known ones, all of them. `run` more may be read, and mean nothing.
  double const* row(cell const& c, slots_t m) const { return m >= slots_t{c.whole} * width_ ? zeros() : c.times + m; }
  /// The time of [a, b] with m, or null where it was never needed.
  double const* known(std::size_t a, std::size_t b, slots_t m) const {
    auto const& c = cells_[id(a, b)];
    if (m < 0) return &infinite_;
    if (m >= c.saturated) return zeros();
    return m < slots_t{c.chunks} * width_ ? c.times + m : nullptr;
  }

  void make_room(cell& c, slots_t chunks) {
    if (chunks <= c.room) return;
    slots_t const all = c.whole;
    auto const most = largest_ / width_ + 1;
    auto room = std::max<slots_t>(chunks, std::min<slots_t>(c.room + c.room / 2 + 1, most));
    if (room >= all) room = all + 1;  // and zeros to read beyond
    double* const times = take(static_cast<std::size_t>(room));
    auto* const rest = std::copy(c.times, c.times + slots_t{c.chunks} * width_, times);
    std::fill(rest, times + room * width_ + run, 0.0);  // what lies beyond all that is not 0, too
    if (c.room > 0) free_[static_cast<std::size_t>(c.room)].push_back(c.times);
    c.times = times;
    c.room = static_cast<std::int32_t>(room);
  }
  double* take(std::size_t chunks) {
    if (chunks >= INT32_MAX ||
        chunks > static_cast<std::size_t>(most_bytes_) / (static_cast<std::size_t>(width_) * sizeof(double)))
      throw too_large{};
    if (free_.size() <= chunks) free_.resize(chunks + 1);
    if (auto& f = free_[chunks]; !f.empty()) {
      auto* const times = f.back();
      f.pop_back();
      return times;
    }
    auto const width = static_cast<std::size_t>(width_);
    std::size_t const count = chunks * width + run;
    if (slab_left_ < count) {
      std::size_t const slab =
          std::max<std::size_t>(count + width + run, std::size_t{1} << std::min<std::size_t>(12 + slabs_.size(), 15));
      if (charge(slab * sizeof(double))) throw too_large{};
      slabs_.push_back(std::unique_ptr<double[]>(new double[slab]));
      slab_at_ = slabs_.back().get() + width;  // rows may be pointed to from before their first element
      while (reinterpret_cast<std::uintptr_t>(slab_at_) % (run * sizeof(double)) != 0) ++slab_at_;
      slab_left_ = slab - width - run;
    }
    auto* const times = slab_at_;
    slab_at_ += count;
    slab_left_ -= count;
    return times;
  }

  static bool known_to(cell const& c, slots_t chunk) { return c.chunks > chunk || c.chunks >= c.whole; }

  /// Chunks 0 to `chunk` of [a, b] are known afterwards, and of all [j, b] with j > a.
  void demand(std::size_t a, std::size_t b, slots_t chunk, std::size_t depth) {
    if (known_to(cells_[id(a, b)], chunk)) return;
    std::size_t j = a;
    while (j < b && !known_to(cells_[id(j + 1, b)], chunk)) ++j;
    for (;; --j) {
      auto& c = cells_[id(j, b)];
      auto const last = std::min<slots_t>(chunk + 1, c.whole);
      make_room(c, last);
      while (c.chunks < last) {
        solve(j, b, c, depth);
        ++c.chunks;
      }
      if (j == a) return;
    }
  }

  using chunk_times = std::array<double, most_width + 2 * run>;
  typedef double vec __attribute__((vector_size(run * sizeof(double)), aligned(sizeof(double)), may_alias));
  typedef std::int64_t flags __attribute__((vector_size(run * sizeof(double))));

  /// What a chunk's elements may come from: extra + tail[i] + head[i], from element `from` on.
  struct candidate {
    double extra;
    double const *tail, *head;
    int from;
    vec at(int i) const { return extra + load(tail + i) + load(head + i); }
    /// `never` before `from`.
    vec at_most_at(int i) const { return places() >= from - i ? at(i) : vec{} + never; }
  };
  static vec load(double const* from) { return *reinterpret_cast<vec const*>(from); }
  static void store(double* to, vec v) { *reinterpret_cast<vec*>(to) = v; }
  static flags places() {
    flags at{};
    for (int i = 0; i < run; ++i) at[i] = i;
    return at;
  }
  /// `limit`: what it needs; `kept`: what it leaves to the row `tail`, which may begin after the chunk does.
  candidate candidate_of(slots_t begin, slots_t limit, slots_t kept, double extra, cell const* tail,
                         double const* head) const {
    auto const from = std::clamp<slots_t>(std::max(limit, kept) - begin, 0, width_);
    auto const m = std::max<slots_t>(begin - kept, -width_);
    return {extra, tail != nullptr && m < slots_t{tail->whole} * width_ ? tail->times + m : zeros(), head,
            static_cast<int>(from)};
  }

  // The loops that all the time goes to: each element is read and written once for all candidates. Up to `run` elements
  // before the first and behind the last one are looked at; there u is as low as can be.
  /// u = min(u, candidates), up to element `to`.
  static void lower(chunk_times& times, candidate const* first, candidate const* last, int to) {
    int some = to, all = 0;
    for (auto* c = first; c != last; ++c) some = std::min(some, c->from), all = std::max(all, c->from);
    auto* const u = times.data();
    auto const one = [&](int i, auto const& of) {
      auto least = load(u + i);
      for (auto* c = first; c != last; ++c) {
        auto const t = of(*c, i);
        least = t < least ? t : least;
      }
      store(u + i, least);
    };
    int i = some / run * run;
    for (; i < std::min(all, to); i += run) one(i, [](candidate const& c, int at) { return c.at_most_at(at); });
    // Four vectors at once: what is read of a candidate serves them all.
    for (; i + 3 * run < to; i += 4 * run) {
      auto u0 = load(u + i), u1 = load(u + i + run), u2 = load(u + i + 2 * run), u3 = load(u + i + 3 * run);
      for (auto* c = first; c != last; ++c) {
        auto const t0 = c->at(i), t1 = c->at(i + run), t2 = c->at(i + 2 * run), t3 = c->at(i + 3 * run);
        u0 = t0 < u0 ? t0 : u0;
        u1 = t1 < u1 ? t1 : u1;
        u2 = t2 < u2 ? t2 : u2;
        u3 = t3 < u3 ? t3 : u3;
      }
      store(u + i, u0), store(u + i + run, u1), store(u + i + 2 * run, u2), store(u + i + 3 * run, u3);
    }
    for (; i < to; i += run) one(i, [](candidate const& c, int at) { return c.at(at); });
  }
  /// Whether a candidate would lower anything.
  static bool lowers(chunk_times const& times, candidate const& c, int to) {
    constexpr int batch = 32;  // testing a vector for any true element costs more than comparing two
    for (int i = c.from; i < to;) {
      flags lower{};
      for (int const end = std::min(i + batch, to); i < end; i += run) lower |= c.at(i) < load(times.data() + i);
      std::int64_t some = 0;
      for (int k = 0; k < run; ++k) some |= lower[k];
      if (some != 0) return true;
    }
    return false;
  }

  /// Works out the next chunk of [a, b]; all of [j, b], j > a, is known as far.
  void solve(std::size_t a, std::size_t b, cell& c, std::size_t depth) {
    if (works_.size() <= depth) works_.push_back(std::make_unique<work>());
    work_meter::add(300 + 40 * (b - a));
    auto& w = *works_[depth];
    auto const begin = slots_t{c.chunks} * width_;
    auto& u = w.times;
    // Beyond the largest budget u is as low as can be, where nothing need be recomputed it is known.
    auto const end = static_cast<int>(std::clamp<slots_t>(std::min(largest_ + 1, c.saturated) - begin, 0, width_));
    for (int i = 0; i < end; i += run) store(u.data() + i, vec{} + never);
    for (int i = end; i < width_ + run; i += run)
      store(u.data() + i, vec{} + (begin + end < c.saturated ? -never : 0.0));
    part p{a, b, c, w, depth, c.chunks, begin, end, classes_->that_end(b), a + 1};
    for (auto const& o : kind(a).options)
      put(p, candidate_of(begin, save_limit(a, b, o), a == b ? 0 : o.saved, o.extra,
                          a == b ? nullptr : &p.tail(*this, a + 1), zeros()));
    flush(p);
    if (a < b) {
      // Of a row that is one chunk little is left out that is worth the asking.
      bool const single = largest_ < width_;
      if (single) later_in_one_chunk(p);
      else if (bounds_ && depth < deepest) later_by_bounds(p);
      else later_by_all(p);
      flush(p);
    }
    std::copy_n(u.begin(), width_, c.times + begin);
  }

  static constexpr std::size_t few = 4;          // j that are judged together
  static constexpr std::size_t most_tried = 64;  // j that are tried before others are judged
  static constexpr std::size_t most_waiting = 16;
  struct alignas(64) work {
    chunk_times times;
    std::array<candidate, most_waiting> waiting;
    std::array<std::uint32_t, most_waiting> from;  // the j, from a, of those that are of one
    std::vector<std::size_t> solved;  // j of which [a, j-1] is known, each with a smaller y_j than those after it
  };

  /// The chunk at work: of [a, b], from `begin` on, `end` elements.
  struct part {
    std::size_t a, b;
    cell& c;
    work& w;
    std::size_t depth;
    slots_t chunk, begin;
    int end;
    std::uint32_t const* column;  // classes of [j, b]
    std::size_t noted;            // up to which j `solved` is about
    std::size_t waiting = 0;
    cell const& tail(rotor_table const& t, std::size_t j) const { return t.cells_[column[j]]; }
  };

  /// Candidates wait for others and are tried together.
  static void put(part& p, candidate const& c) {
    if (c.from >= p.end) return;
    if (p.waiting == most_waiting) flush(p);
    p.w.waiting[p.waiting] = c;
    p.w.from[p.waiting++] = 0;  // of no j
  }
  static void flush(part& p) {
    if (p.waiting == 0) return;
    auto const* const first = p.w.waiting.data();
    double const was = p.w.times[static_cast<std::size_t>(p.end - 1)];
    lower(p.w.times, first, first + p.waiting, p.end);
    double const now = p.w.times[static_cast<std::size_t>(p.end - 1)];
    for (std::size_t k = 0; now < was && k < p.waiting; ++k)
      if (auto const& c = first[k]; c.extra + c.tail[p.end - 1] + c.head[p.end - 1] == now) p.c.guess = p.w.from[k];
    p.waiting = 0;
  }

  /// Tries j, whose limit is met in the chunk's elements from `limit` on, before long. Afterwards [a, j-1] is known, if it
  /// was needed.
  bool try_later(part& p, std::size_t j, slots_t limit) {
    if (std::max(limit, input_[j]) >= p.begin + p.end) return false;
    if (put_known(p, j, limit)) return true;
    flush(p);
    demand(p.a, j - 1, p.chunk, p.depth + 1);
    return put_known(p, j, limit);
  }

  /// pass_limit of j, from that of j - 1. The input of the part's first block is outside.
  slots_t next_limit(part const& p, std::size_t j, slots_t limit) const {
    return exact_ && j > p.a + 1 ? std::max(limit, gradient_[p.b + 1] + passes_[j - 1]) : limit;
  }

  /// Puts j, if [a, j-1] is known as far; false if it is not.
  bool put_known(part& p, std::size_t j, slots_t limit) {
    auto const& head = cells_[id(p.a, j - 1)];
    bool const row_known = head.chunks > p.chunk;
    if (!row_known && head.whole > p.chunk) return false;
    auto const kept = input_[j], needed = std::max(limit, kept) - p.begin, m = p.begin - kept;
    if (needed >= p.end) return true;
    auto const& tail = p.tail(*this, j);
    if (p.waiting == most_waiting) flush(p);
    p.w.from[p.waiting] = static_cast<std::uint32_t>(j - p.a);
    p.w.waiting[p.waiting++] = {forward(p.a, j), m < slots_t{tail.whole} * width_ ? tail.times + m : zeros(),
                                row_known ? head.times + p.begin : zeros(),
                                static_cast<int>(std::max<slots_t>(needed, 0))};
    return true;
  }

  /// What waits is tried. From j on nothing is better than to run up to j and to train what is run with all there is: behind
  /// the elements that are larger than that, which are the first ones, those j are done with. `head`: the class of [a, j-1];
  /// it counts if it is known, and no more is required of a shorter one.
  void narrow(part& p, std::size_t j, std::size_t last, cell const& head) const {
    flush(p);
    if (!bounds_) return;
    auto const least = forward(p.a, j);
    bool const counts = known_to(head, p.chunk) && bounds_after_[j - 1] && gradient_[j] <= least_gradient_(j, last + 1);
    auto const* const more = counts ? row(head, p.begin) : zeros();
    while (p.end > 0 && p.w.times[static_cast<std::size_t>(p.end - 1)] <= least + more[p.end - 1]) --p.end;
  }

  /// Tries every j, where each row is one chunk: it is there as soon as it is known, and may be read from before its first
  /// element. To find the rows takes as long as to read them, and a row that is left out is worth more than either.
  void later_in_one_chunk(part& p) {
    flush(p);
    p.w.solved.clear();
    auto const last = last_later(p.b);
    auto const after = exact_ ? gradient_[p.b + 1] : INT64_MIN / 2;  // the peer's limit does not grow with j
    auto limit = pass_limit(p.a, p.b, p.a + 1);                      // input_[j] is no larger
    bool visited = false;
    for (std::size_t j = p.a + 1; j <= last;) {
      auto const* head_id = classes_->that_end(j - 1) + p.a;  // of [a, j - 1]
      narrow(p, j, last, cells_[*head_id]);
      if (limit >= p.end) return;  // it only grows with j
      if (cells_[*head_id].times == nullptr) {
        // Where blocks are alike a part needs one row, which no bound leaves out.
        bool const judged = std::exchange(visited, true) && bounds_ && p.depth < deepest;
        if (judged && !hopeful(p, j, j + 1, limit)) limit = std::max(limit, after + passes_[j++]);
        else demand(p.a, j - 1, 0, p.depth + 1);
        continue;
      }
      // Those of equal limits are tried together.
      auto const first = j, end = std::min(last + 1, j + most_waiting);
      auto next = limit;
      do {
        next = std::max(next, after + passes_[j]);
        head_id += j++;
      } while (next == limit && j < end && cells_[*head_id].times != nullptr);
      lower_by(p, first, j, static_cast<int>(std::exchange(limit, next)));
    }
  }
  /// u = min(u, j) for each j of [first, last), from element `from` on.
  void lower_by(part& p, std::size_t first, std::size_t last, int from) const {
    std::array<double, most_waiting> passed;  // up to each j
    passed[0] = forward(p.a, first);
    for (auto j = first + 1; j < last; ++j) passed[j - first] = passed[j - first - 1] + forwards_[j - 1];
    int const begin = from / run * run;
    auto* const u = p.w.times.data() + begin;
    auto const was = load(u);
    int i = begin;  // the first vector may hold elements before `from`: they stay
    for (; i + 3 * run < p.end; i += 4 * run) lower_by<4>(p, first, last, passed.data(), i);
    for (; i < p.end; i += run) lower_by<1>(p, first, last, passed.data(), i);
    store(u, places() >= from - begin ? load(u) : was);
  }
  /// In so many vectors from element `at` on: what is read of a j serves them all.
  template <int Vectors>
  void lower_by(part& p, std::size_t first, std::size_t last, double const* passed, int at) const {
    auto* const u = p.w.times.data() + at;
    auto const* const column = p.column;
    auto const* const cells = cells_.data();
    auto const* const inputs = input_.data();
    auto const* head_id = classes_->that_end(first - 1) + p.a;
    vec least[Vectors];
    for (int k = 0; k < Vectors; ++k) least[k] = load(u + k * run);
    for (auto j = first; j < last; head_id += j, ++j, ++passed) {
      candidate const c{*passed, cells[column[j]].times + at - inputs[j], cells[*head_id].times + at, 0};
      for (int k = 0; k < Vectors; ++k) {
        auto const t = c.at(k * run);
        least[k] = t < least[k] ? t : least[k];
      }
    }
    for (int k = 0; k < Vectors; ++k) store(u + k * run, least[k]);
  }

  /// Tries every j. What the loop reads stays in registers: on short rows it takes as long as the rows themselves.
  void later_by_all(part& p) {
    auto const a = p.a, last = last_later(p.b);
    if (a + 1 > last) return;
    auto const begin = p.begin, chunk = p.chunk;
    auto const* const column = p.column;
    auto const* const cells = cells_.data();
    auto const *const inputs = input_.data(), *const passes = passes_.data();
    double passed = forwards_[a];
    auto const after = exact_ ? gradient_[p.b + 1] : INT64_MIN / 2;  // the peer's limit does not grow with j
    auto const* const none = zeros();
    auto limit = pass_limit(a, p.b, a + 1);
    auto const* head_id = classes_->that_end(a) + a;  // of [a, j - 1]
    auto* const waiting = p.w.waiting.data();
    auto* const from = p.w.from.data();
    narrow(p, a + 1, last, cells[*head_id]);
    for (std::size_t j = a + 1; j <= last;
         passed += forwards_[j], head_id += j, limit = std::max(limit, after + passes[j]), ++j) {
      auto const& head = cells[*head_id];
      if (p.waiting == most_waiting) narrow(p, j, last, head);
      if (p.end == 0 || limit >= begin + p.end) return;  // it only grows with j
      bool const row_known = head.chunks > chunk;
      if (!row_known && head.whole > chunk) {
        try_later(p, j, limit);
        continue;
      }
      auto const kept = inputs[j], needed = std::max(limit, kept) - begin;
      if (needed >= p.end) continue;
      auto const& tail = cells[column[j]];
      auto const k = p.waiting++;
      auto const m = begin - kept;
      from[k] = static_cast<std::uint32_t>(j - a);
      waiting[k] = {passed, m < slots_t{tail.whole} * width_ ? tail.times + m : none,
                    row_known ? head.times + begin : none, static_cast<int>(std::max<slots_t>(needed, 0))};
    }
  }

  /// Whether some j of [from, to) could be better at some m; `limit` is that of `from`.
  bool hopeful(part& p, std::size_t from, std::size_t to, slots_t limit) const {
    flush(p);
    auto const least = least_input_(from, to);
    if (std::max(limit, least) >= p.begin + p.end) return false;
    // The largest j' so far with [a, j'-1] known and y_j' no larger than any y_j from there on.
    note(p, from);
    auto const least_gradient = least_gradient_(from, to);
    double const* head = zeros();
    for (auto at = p.w.solved.size(); at-- > 0;)
      if (gradient_[p.w.solved[at]] <= least_gradient) {
        head = row(cells_[id(p.a, p.w.solved[at] - 1)], p.begin);
        break;
      }
    return lowers(p.w.times, candidate_of(p.begin, limit, least, forward(p.a, from), &p.tail(*this, to - 1), head),
                  p.end);
  }

  /// Notes of which j before `end` [a, j-1] is known.
  void note(part& p, std::size_t end) const {
    auto& solved = p.w.solved;
    for (auto j = std::exchange(p.noted, end); j < end; ++j) {
      if (!bounds_after_[j - 1] || !known_to(cells_[id(p.a, j - 1)], p.chunk)) continue;
      auto const y = gradient_[j];
      while (!solved.empty() && gradient_[solved.back()] >= y) solved.pop_back();
      solved.push_back(j);
    }
  }

  void later_by_bounds(part& p) {
    auto const [a, b] = std::pair(p.a, p.b);
    std::size_t const end = last_later(b) + 1;
    if (a + 1 >= end) return;
    p.w.solved.clear();
    auto guess = p.c.guess;
    if (guess == 0) guess = p.tail(*this, a + 1).guess;
    bool const guessed = guess != 0 && a + guess < end && try_later(p, a + guess, pass_limit(a, b, a + guess));
    std::size_t const done = guessed ? a + guess : b + 1;
    auto const chunk_end = p.begin + p.end - 1;
    std::size_t step = few, tried = few;
    for (std::size_t j = a + 1; j < end;) {
      auto limit = pass_limit(a, b, j);
      if (limit > chunk_end) return;  // it only grows with j
      std::size_t const to = std::min(j + step, end);
      if (!hopeful(p, j, to, limit)) {
        j = p.noted = to;
        tried = few;
        step = std::min<std::size_t>(step * 2, 64);
        continue;
      }
      if (step > few) {
        step = few;
        continue;
      }
      // Where some are worth trying mostly more are: before the next are judged, twice as many are tried.
      std::size_t const judged = to, last = std::min(j + tried, end);
      tried = std::min(tried * 2, most_tried);
      for (; j < last; ++j) {
        limit = next_limit(p, j, limit);
        // One whose head is known is tried as quickly as it is judged.
        if (j == done || put_known(p, j, limit)) {
          continue;
        } else if (j >= judged) {
          break;
        } else if (auto const two = std::min(j + 2, judged); two > j + 1 && !hopeful(p, j, two, limit)) {
          while (j + 1 < two) limit = next_limit(p, ++j, limit);  // what is left out runs, too
          p.noted = two;
        } else if (hopeful(p, j, j + 1, limit)) {
          try_later(p, j, limit);
        }
      }
    }
  }

  std::size_t n_;
  bool exact_, bounds_;
  std::int64_t most_bytes_, used_bytes_ = 0;
  slots_t unit_ = 1, largest_ = -1;
  int width_ = 64;                      // of a chunk
  std::vector<block_kind> kinds_;       // of blocks by themselves; the last one is the loss
  std::vector<std::uint32_t> kind_of_;  // n + 1
  std::vector<slots_t> input_;          // n + 2: nothing comes after the loss
  std::vector<slots_t> gradient_;       // y_i and what blocks i and on have left
  std::vector<char> bounds_after_;      // O(a, b', m) bounds O(a, b, m) for this b'
  std::vector<slots_t> passes_;         // memory of block i's forward amid others: input, output, temporary
  range_sum forwards_;                  // times of plain forwards
  range_best<slots_t, best_is::least> least_input_, least_gradient_;
  range_best<slots_t, best_is::most> most_pass_;
  std::optional<chain_classes> classes_;
  std::vector<cell> cells_;
  std::vector<std::unique_ptr<double[]>> slabs_;
  double* slab_at_ = nullptr;
  std::size_t slab_left_ = 0;
  std::vector<std::vector<double*>> free_;  // by chunks
  std::vector<double> zeros_;
  double infinite_ = never;
  std::vector<std::unique_ptr<work>> works_;  // by depth
};

}  // namespace detail

}  // namespace neap::inline v0
