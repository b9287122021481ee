// The bodies of <neap/blocks/rotor_table.hpp>.
#pragma once

#include <neap/blocks/rotor_table.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/core/work_meter.hpp>

#include <optional>
#include <utility>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC rotor_table::rotor_table(chain_profile const& chain, slots_t largest, rotor_options options)
    : bounds_(options.bounds),
      rows_(options.max_table_bytes),
      chain_(read(chain, options.limits)),
      classes_(chain_.surrounded_kinds()) {
  if (rows_.charge(classes_.count() * (sizeof(time_row) + sizeof(std::uint32_t)))) throw too_long{};
  cells_.resize(classes_.count());
  find_saturation();
  largest_ = std::min(largest / chain_.unit, cells_[id(0, chain_.size)].saturated);
  // A short table is one chunk.
  if (largest_ < max_row_width) width_ = std::max(static_cast<int>(largest_ + row_run) / row_run, 1) * row_run;
  rows_.start(width_, largest_ / width_ + 1);
  for (auto& c : cells_) {
    c.whole = static_cast<std::int32_t>(std::min<slots_t>((c.saturated + width_ - 1) / width_, INT32_MAX));
    if (c.whole == 0) c.times = rows_.no_times();
  }
  if (largest_ >= 0) demand(0, chain_.size, largest_ / width_, 0);
}

NEAP_FUNC rotor_chain rotor_table::read(chain_profile const& chain, chain_limits limits) {
  auto const n = chain.size();
  if (n > 60'000 || rows_.charge((n + 1) * (n + 2) * 2 + range_sum::bytes(n + 1))) throw too_long{};
  return {chain, limits};
}

NEAP_FUNC void rotor_table::find_saturation() {
  classes_.for_each([&](std::uint32_t which, std::size_t a, std::size_t b) {
    auto& c = cells_[which];
    c.saturated = INT64_MAX;
    for (auto const& o : chain_.kind(a).options)
      if (o.extra == 0)
        c.saturated = std::min(
            c.saturated, std::max(chain_.save_limit(a, b, o), a == b ? 0 : o.saved + cells_[id(a + 1, b)].saturated));
  });
}

NEAP_FUNC void rotor_table::demand(std::size_t a, std::size_t b, slots_t chunk, std::size_t depth) {
  if (rows_.known_to(cells_[id(a, b)], chunk)) return;
  std::size_t j = a;
  while (j < b && !rows_.known_to(cells_[id(j + 1, b)], chunk)) ++j;
  for (;; --j) {
    auto& c = cells_[id(j, b)];
    auto const last = std::min<slots_t>(chunk + 1, c.whole);
    rows_.make_room(c, last);
    while (c.chunks < last) {
      solve(j, b, c, depth);
      ++c.chunks;
    }
    if (j == a) return;
  }
}

NEAP_FUNC row_sum rotor_table::candidate_of(slots_t begin, slots_t limit, slots_t kept, double extra,
                                            time_row const* tail, double const* head) const {
  auto const from = std::clamp<slots_t>(std::max(limit, kept) - begin, 0, width_);
  auto const m = std::max<slots_t>(begin - kept, -width_);
  return {extra, tail != nullptr && m < slots_t{tail->whole} * width_ ? tail->times + m : rows_.zeros(), head,
          static_cast<int>(from)};
}

NEAP_FUNC void rotor_table::solve(std::size_t a, std::size_t b, time_row& c, std::size_t depth) {
  if (works_.size() <= depth) works_.push_back(std::make_unique<work>());
  work_meter::add(300 + 40 * (b - a));
  auto& w = *works_[depth];
  auto const begin = slots_t{c.chunks} * width_;
  auto& u = w.times;
  // Beyond the largest budget u is as low as can be, where nothing need be recomputed it is known.
  auto const end = static_cast<int>(std::clamp<slots_t>(std::min(largest_ + 1, c.saturated) - begin, 0, width_));
  for (int i = 0; i < end; i += row_run) store(u.data() + i, row_vector{} + never);
  for (int i = end; i < width_ + row_run; i += row_run)
    store(u.data() + i, row_vector{} + (begin + end < c.saturated ? -never : 0.0));
  part p{a, b, c, w, depth, c.chunks, begin, end, classes_.that_end(b), a + 1};
  for (auto const& o : chain_.kind(a).options)
    put(p, candidate_of(begin, chain_.save_limit(a, b, o), a == b ? 0 : o.saved, o.extra,
                        a == b ? nullptr : &p.tail(*this, a + 1), rows_.zeros()));
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

NEAP_FUNC void rotor_table::put(part& p, row_sum const& c) {
  if (c.from >= p.end) return;
  if (p.waiting == max_waiting) flush(p);
  p.w.waiting[p.waiting] = c;
  p.w.from[p.waiting++] = 0;  // of no j
}

NEAP_FUNC void rotor_table::flush(part& p) {
  if (p.waiting == 0) return;
  auto const* const first = p.w.waiting.data();
  double const was = p.w.times[static_cast<std::size_t>(p.end - 1)];
  take_minima(p.w.times, first, first + p.waiting, p.end);
  double const now = p.w.times[static_cast<std::size_t>(p.end - 1)];
  for (std::size_t k = 0; now < was && k < p.waiting; ++k)
    if (auto const& c = first[k]; c.extra + c.tail[p.end - 1] + c.head[p.end - 1] == now) p.c.guess = p.w.from[k];
  p.waiting = 0;
}

NEAP_FUNC bool rotor_table::try_later(part& p, std::size_t j, slots_t limit) {
  if (std::max(limit, chain_.input[j]) >= p.begin + p.end) return false;
  if (put_known(p, j, limit)) return true;
  flush(p);
  demand(p.a, j - 1, p.chunk, p.depth + 1);
  return put_known(p, j, limit);
}

NEAP_FUNC bool rotor_table::put_known(part& p, std::size_t j, slots_t limit) {
  auto const& head = cells_[id(p.a, j - 1)];
  bool const row_known = head.chunks > p.chunk;
  if (!row_known && head.whole > p.chunk) return false;
  auto const kept = chain_.input[j], needed = std::max(limit, kept) - p.begin, m = p.begin - kept;
  if (needed >= p.end) return true;
  auto const& tail = p.tail(*this, j);
  if (p.waiting == max_waiting) flush(p);
  p.w.from[p.waiting] = static_cast<std::uint32_t>(j - p.a);
  p.w.waiting[p.waiting++] = {chain_.forward(p.a, j), m < slots_t{tail.whole} * width_ ? tail.times + m : rows_.zeros(),
                              row_known ? head.times + p.begin : rows_.zeros(),
                              static_cast<int>(std::max<slots_t>(needed, 0))};
  return true;
}

NEAP_FUNC void rotor_table::narrow(part& p, std::size_t j, std::size_t last, time_row const& head) const {
  flush(p);
  if (!bounds_) return;
  auto const least = chain_.forward(p.a, j);
  bool const counts = rows_.known_to(head, p.chunk) && chain_.bounds_after[j - 1] &&
                      chain_.gradient[j] <= chain_.least_gradient(j, last + 1);
  auto const* const more = counts ? rows_.row(head, p.begin) : rows_.zeros();
  while (p.end > 0 && p.w.times[static_cast<std::size_t>(p.end - 1)] <= least + more[p.end - 1]) --p.end;
}

NEAP_FUNC void rotor_table::later_in_one_chunk(part& p) {
  flush(p);
  p.w.solved.clear();
  auto const last = chain_.last_later(p.b);
  auto const after = chain_.growth(p.b);
  auto limit = chain_.pass_limit(p.a, p.b, p.a + 1);  // chain_.input[j] is no larger
  bool visited = false;
  for (std::size_t j = p.a + 1; j <= last;) {
    auto const* head_id = classes_.that_end(j - 1) + p.a;  // of [a, j - 1]
    narrow(p, j, last, cells_[*head_id]);
    if (limit >= p.end) return;  // it only grows with j
    if (cells_[*head_id].times == nullptr) {
      // Where blocks are alike a part needs one row, which no bound leaves out.
      bool const judged = std::exchange(visited, true) && bounds_ && p.depth < deepest;
      if (judged && !hopeful(p, j, j + 1, limit)) limit = std::max(limit, after + chain_.passes[j++]);
      else demand(p.a, j - 1, 0, p.depth + 1);
      continue;
    }
    // Those of equal limits are tried together.
    auto const first = j, end = std::min(last + 1, j + max_waiting);
    auto next = limit;
    do {
      next = std::max(next, after + chain_.passes[j]);
      head_id += j++;
    } while (next == limit && j < end && cells_[*head_id].times != nullptr);
    lower_by(p, first, j, static_cast<int>(std::exchange(limit, next)));
  }
}

NEAP_FUNC void rotor_table::lower_by(part& p, std::size_t first, std::size_t last, int from) const {
  std::array<double, max_waiting> passed;  // up to each j
  passed[0] = chain_.forward(p.a, first);
  for (auto j = first + 1; j < last; ++j) passed[j - first] = passed[j - first - 1] + chain_.forwards[j - 1];
  int const begin = from / row_run * row_run;
  auto* const u = p.w.times.data() + begin;
  auto const was = load(u);
  int i = begin;  // the first vector may hold elements before `from`: they stay
  for (; i + 3 * row_run < p.end; i += 4 * row_run) lower_by<4>(p, first, last, passed.data(), i);
  for (; i < p.end; i += row_run) lower_by<1>(p, first, last, passed.data(), i);
  store(u, places() >= from - begin ? load(u) : was);
}

NEAP_FUNC void rotor_table::later_by_all(part& p) {
  auto const a = p.a, last = chain_.last_later(p.b);
  if (a + 1 > last) return;
  auto const begin = p.begin, chunk = p.chunk;
  auto const* const column = p.column;
  auto const* const cells = cells_.data();
  auto const *const inputs = chain_.input.data(), *const passes = chain_.passes.data();
  double passed = chain_.forwards[a];
  auto const after = chain_.growth(p.b);
  auto const* const none = rows_.zeros();
  auto limit = chain_.pass_limit(a, p.b, a + 1);
  auto const* head_id = classes_.that_end(a) + a;  // of [a, j - 1]
  auto* const waiting = p.w.waiting.data();
  auto* const from = p.w.from.data();
  narrow(p, a + 1, last, cells[*head_id]);
  for (std::size_t j = a + 1; j <= last;
       passed += chain_.forwards[j], head_id += j, limit = std::max(limit, after + passes[j]), ++j) {
    auto const& head = cells[*head_id];
    if (p.waiting == max_waiting) narrow(p, j, last, head);
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

NEAP_FUNC bool rotor_table::hopeful(part& p, std::size_t from, std::size_t to, slots_t limit) const {
  flush(p);
  auto const least = chain_.least_input(from, to);
  if (std::max(limit, least) >= p.begin + p.end) return false;
  // The largest j' so far with [a, j'-1] known and y_j' no larger than any y_j from there on.
  note(p, from);
  auto const least_gradient = chain_.least_gradient(from, to);
  double const* head = rows_.zeros();
  for (auto at = p.w.solved.size(); at-- > 0;)
    if (chain_.gradient[p.w.solved[at]] <= least_gradient) {
      head = rows_.row(cells_[id(p.a, p.w.solved[at] - 1)], p.begin);
      break;
    }
  return lowers(p.w.times, candidate_of(p.begin, limit, least, chain_.forward(p.a, from), &p.tail(*this, to - 1), head),
                p.end);
}

NEAP_FUNC void rotor_table::note(part& p, std::size_t end) const {
  auto& solved = p.w.solved;
  for (auto j = std::exchange(p.noted, end); j < end; ++j) {
    if (!chain_.bounds_after[j - 1] || !rows_.known_to(cells_[id(p.a, j - 1)], p.chunk)) continue;
    auto const y = chain_.gradient[j];
    while (!solved.empty() && chain_.gradient[solved.back()] >= y) solved.pop_back();
    solved.push_back(j);
  }
}

NEAP_FUNC void rotor_table::later_by_bounds(part& p) {
  auto const [a, b] = std::pair(p.a, p.b);
  std::size_t const end = chain_.last_later(b) + 1;
  if (a + 1 >= end) return;
  p.w.solved.clear();
  auto guess = p.c.guess;
  if (guess == 0) guess = p.tail(*this, a + 1).guess;
  bool const guessed = guess != 0 && a + guess < end && try_later(p, a + guess, chain_.pass_limit(a, b, a + guess));
  std::size_t const done = guessed ? a + guess : b + 1;
  auto const chunk_end = p.begin + p.end - 1;
  std::size_t step = few, tried = few;
  for (std::size_t j = a + 1; j < end;) {
    auto limit = chain_.pass_limit(a, b, j);
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
    tried = std::min(tried * 2, max_tried);
    for (; j < last; ++j) {
      limit = chain_.next_limit(a, b, j, limit);
      // One whose head is known is tried as quickly as it is judged.
      if (j == done || put_known(p, j, limit)) {
        continue;
      } else if (j >= judged) {
        break;
      } else if (auto const two = std::min(j + 2, judged); two > j + 1 && !hopeful(p, j, two, limit)) {
        while (j + 1 < two) limit = chain_.next_limit(a, b, ++j, limit);  // what is left out runs, too
        p.noted = two;
      } else if (hopeful(p, j, j + 1, limit)) {
        try_later(p, j, limit);
      }
    }
  }
}

}}}  // namespace neap::v0::detail
