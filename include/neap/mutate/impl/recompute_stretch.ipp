// The bodies of <neap/mutate/recompute_stretch.hpp>.
#pragma once

#include <neap/mutate/recompute_stretch.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void recompute_facts::list() {
  auto const movable = movable_storages(graph);
  for (std::uint32_t p = 0; p < order.size(); ++p) {
    for (auto v : graph.inputs(order[p]))
      if (auto const k = number[index(graph.storage(v))]; k != no_id) storages[k].last_read = p;
    for (auto v : graph.outputs(order[p])) {
      auto const s = graph.storage(v);
      if (!movable[index(s)] || number[index(s)] != no_id || graph.record(v).alias != alias_kind::fresh) continue;
      number[index(s)] = static_cast<std::uint32_t>(storages.size());
      storages.push_back({s, p, p});
    }
  }
}

NEAP_FUNC recompute_stretch::recompute_stretch(recompute_facts const& f, std::uint32_t begin, std::uint32_t turn,
                                               std::uint32_t end)
    : begin_(begin),
      turn_(turn),
      count_(turn - begin + 1) {
  may_.assign(count_, false);
  for (std::uint32_t p = 0; p < count_; ++p) may_[p] = f.may_run_again[begin + p];
  learn(f, end);
  if (f.graph.has_updates()) leave_overwritten(f.graph, f.order);
}

NEAP_FUNC void recompute_stretch::learn(recompute_facts const& f, std::uint32_t end) {
  number_map row;  // by number in the facts
  std::uint32_t last = turn_;
  for (auto m = std::lower_bound(f.storages.begin(), f.storages.end(), begin_,
                                 [](recompute_facts::made const& x, std::uint32_t p) { return x.maker < p; });
       m != f.storages.end() && m->maker <= turn_; ++m) {
    if (m->last_read >= end) continue;
    auto const r = static_cast<std::uint32_t>(storages_.size());
    row.add(static_cast<std::uint64_t>(m - f.storages.begin()), r);
    bool const waits = m->last_read > turn_;
    if (waits) waiting_.push_back(r), last = std::max(last, m->last_read);
    storages_.push_back({m->id, f.graph.bytes(m->id), m->maker - begin_, 0, waits, false});
  }
  auto const count = static_cast<std::uint32_t>(storages_.size());
  auto const for_each_read = [&](std::uint32_t p, auto&& put) {  // of rows
    for (auto v : f.graph.inputs(f.order[p]))
      if (auto const r = row.find(f.number[index(f.graph.storage(v))]); r != number_map::none) put(r);
  };
  seconds_.assign(count_, 0.0);
  for (std::uint32_t p = 0; p < count_; ++p) seconds_[p] = f.result.end[begin_ + p] - f.result.start[begin_ + p];
  reads_.build(count_, [&](auto&& pair) {
    for (std::uint32_t p = 0; p < count_; ++p)
      for_each_read(begin_ + p, [&](std::uint32_t r) { pair(position{p}, r); });
  });
  first_of_.assign(count_ + 1, count);
  for (std::uint32_t r = count; r-- > 0;) first_of_[storages_[r].maker] = r;
  for (std::uint32_t p = count_; p-- > 0;) first_of_[p] = std::min(first_of_[p], first_of_[p + 1]);

  auto const elsewhere = waiting_elsewhere(f, end);
  auto const bytes_at = [&](std::uint32_t p) { return f.result.bytes_at[p] - elsewhere[p - begin_]; };

  // What is taken behind the turn beside what waits.
  plain_vector<bytes_t> leaves(last - turn_ + 1, 0);
  bytes_t waiting = 0;
  for (auto r : waiting_) {
    auto const& s = storages_[r];
    waiting += s.bytes, leaves[f.storages[f.number[index(s.id)]].last_read - turn_] += s.bytes;
  }
  for (std::uint32_t p = turn_ + 1; p <= last; ++p) {
    auto const beside = bytes_at(p) - waiting;
    for_each_read(p, [&](std::uint32_t r) { storages_[r].beside = std::max(storages_[r].beside, beside); });
    waiting -= leaves[p - turn_];
  }
  for (auto p = begin_; p <= last; ++p) peak_ = std::max(peak_, bytes_at(p));
}

NEAP_FUNC plain_vector<bytes_t> recompute_stretch::waiting_elsewhere(recompute_facts const& f,
                                                                     std::uint32_t end) const {
  plain_vector<bytes_t> bytes(end - begin_ + 1, 0);
  for (auto const& m : f.storages) {
    if (m.last_read < begin_ || m.maker >= end || (m.maker >= begin_ && m.last_read < end)) continue;
    bytes[std::max(m.maker, begin_) - begin_] += f.graph.bytes(m.id);
    bytes[std::min(m.last_read + 1, end) - begin_] -= f.graph.bytes(m.id);
  }
  for (std::size_t p = 1; p < bytes.size(); ++p) bytes[p] += bytes[p - 1];
  return bytes;
}

NEAP_FUNC void recompute_stretch::leave_overwritten(op_graph const& g, schedule const& order) {
  number_map version;  // by storage
  number_map row;      // by storage that may be dropped
  for (std::uint32_t r = 0; r < storages_.size(); ++r) row.add(index(storages_[r].id), r);
  for (auto p = begin_; p <= turn_; ++p)
    for (auto v : g.outputs(order[p]))
      if (g.record(v).alias == alias_kind::update) version.set(index(g.storage(v)), g.record(v).version);
      else if (auto const base = g.overwrites(v); base != nothing<value_id>) {
        auto const s = index(g.storage(base));
        if (auto const r = row.find(s); r != number_map::none) storages_[r].ends = true;
        else version.set(s, std::uint32_t{g.record(base).version} + 1);
      }
  for (auto p = begin_; p <= turn_; ++p)
    for (auto v : g.inputs(order[p]))
      if (auto const now = version.find(index(g.storage(v))); now != number_map::none && g.record(v).version < now)
        may_[p - begin_] = false;
}

NEAP_FUNC void recompute_stretch::cut(recompute_cut& to) const {
  auto& part = to.parts.emplace_back();
  part.again.assign(count_, false);
  part.keeps.assign(storages_.size(), false);
  if (to.price <= 0) {
    for (auto r : waiting_) part.keeps[r] = true, to.bytes += storages_[r].bytes;
    return;
  }
  // Nodes: source, sink, positions, storages. Capacities in parts of all seconds, so that sums stay whole and small.
  double all = 0;
  for (auto t : seconds_) all += t;
  double const unit = all > 0 ? 1e12 / all : 1;
  auto const node = [](std::uint32_t p) { return 2 + p; };
  auto const storage_node = [&](std::uint32_t r) { return 2 + count_ + r; };
  min_cut network(2 + count_ + storages_.size());
  for (std::uint32_t p = 0; p < count_; ++p) {
    // One more than the seconds: an op that costs nothing runs again only if that saves something.
    auto const costs = may_[p] ? static_cast<std::int64_t>(seconds_[p] * unit) + 1 : min_cut::unlimited;
    network.add_edge(node(p), 1, costs);
    for (auto r : reads_[position{p}]) network.add_edge(node(p), storage_node(r), min_cut::unlimited);
  }
  for (std::uint32_t r = 0; r < storages_.size(); ++r) {
    auto const& s = storages_[r];
    double const costs = to.price * static_cast<double>(s.bytes) * unit;
    network.add_edge(storage_node(r), node(s.maker),
                     s.ends         ? min_cut::unlimited
                     : costs < 1e17 ? static_cast<std::int64_t>(costs)
                                    : 100000000000000000);
    if (s.waits) network.add_edge(0, storage_node(r), min_cut::unlimited);
  }
  work_meter::add(40 * storages_.size() + 40 * count_);
  network.cut(0, 1);
  for (std::uint32_t p = 0; p < count_; ++p)
    if (network.has_source(node(p))) part.again[p] = true, to.seconds += seconds_[p];
  for (std::uint32_t r = 0; r < storages_.size(); ++r)
    if (network.has_source(storage_node(r)) && !part.again[storages_[r].maker])
      part.keeps[r] = true, to.bytes += storages_[r].bytes;
}

NEAP_FUNC bool recompute_stretch::choose(recompute_cut::part const& front, recompute_cut::part const& tail,
                                         bytes_t budget, recompute_choice& to) const {
  if (peak_ <= budget) return true;  // nothing need be dropped here
  auto const n = count_;
  work_meter::add(20 * n);
  plain_vector<bool> kept(storages_.size(), false);
  plain_vector<std::uint32_t> last_again(storages_.size(), 0);  // the last position that runs again and reads it
  for (std::uint32_t p = 0; p < n; ++p)
    if (front.again[p])
      for (auto r : reads_[position{p}]) last_again[r] = p;

  // What the tail keeps from each position on.
  plain_vector<bytes_t> tail_bytes(n + 1, 0), tail_beside(n + 1, 0);
  for (std::uint32_t p = n; p-- > 0;) {
    tail_bytes[p] = tail_bytes[p + 1], tail_beside[p] = tail_beside[p + 1];
    for (auto r = first_of_[p]; r < first_of_[p + 1]; ++r)
      if (tail.keeps[r]) {
        tail_bytes[p] += storages_[r].bytes;
        tail_beside[p] = std::max(tail_beside[p], storages_[r].beside);
      }
  }

  // Segments of the front, until the tail fits.
  bytes_t front_bytes = 0;  // kept by the front so far
  std::uint32_t begin = 0, p = 0;
  plain_vector<bytes_t> covered, crossing, kept_here;  // of each position of the segment: before it
  bytes_t beside = 0;
  auto const restart = [&](std::uint32_t at) {
    begin = p = at;
    covered.clear(), crossing.clear(), kept_here.clear();
    covered.push_back(0), crossing.push_back(0), kept_here.push_back(0);
    beside = 0;
  };
  plain_vector<bytes_t> leaves(n + 1, 0);      // bytes whose last reader that runs again stands before
  auto const close = [&](std::uint32_t end) {  // a segment [begin, end): what crosses is kept
    for (auto r = first_of_[begin]; r < first_of_[end]; ++r) {
      auto const& s = storages_[r];
      bool const crosses = last_again[r] >= end && front.again[s.maker];
      kept[r] = front.keeps[r] || crosses;
      if (kept[r]) front_bytes += s.bytes;
    }
  };
  restart(0);
  std::uint32_t tail_begin = n;
  for (;;) {
    bytes_t const here = front_bytes + kept_here[p - begin] + crossing[p - begin];
    if (here + tail_bytes[p] + tail_beside[p] <= budget) {
      close(p);
      tail_begin = p;
      break;
    }
    if (p == n) {  // the last segment is made again right away
      close(n);
      break;
    }
    bytes_t more_covered = 0, more_kept = 0, more_crossing = 0;
    for (auto r = first_of_[p]; r < first_of_[p + 1]; ++r) {
      auto const& s = storages_[r];
      if (s.waits) beside = std::max(beside, s.beside);
      if (front.keeps[r]) more_kept += s.bytes;
      else if (front.again[p]) {
        if (s.waits) more_covered += s.bytes;
        if (last_again[r] > p) more_crossing += s.bytes, leaves[last_again[r]] += s.bytes;
      }
    }
    auto const at = p - begin;
    bytes_t const after = covered[at] + more_covered;
    if (front_bytes + kept_here[at] + more_kept + after + beside > budget) {
      // The end that covers most for what crosses it; not before anything is covered.
      std::uint32_t best = 0;
      double best_ratio = -1;
      for (std::uint32_t k = 1; k <= at; ++k) {
        if (covered[k] + kept_here[k] == 0) continue;
        double const ratio = static_cast<double>(covered[k] + kept_here[k]) / static_cast<double>(crossing[k] + 64);
        if (ratio >= best_ratio) best_ratio = ratio, best = k;
      }
      if (best == 0) return false;  // not even one op fits
      auto const end = begin + best;
      for (auto r = first_of_[begin]; r < first_of_[p + 1]; ++r) leaves[last_again[r]] = 0;
      close(end);
      if (front_bytes + beside > budget) return false;
      restart(end);
      continue;
    }
    covered.push_back(after);
    kept_here.push_back(kept_here[at] + more_kept);
    crossing.push_back(crossing[at] + more_crossing - leaves[p]);
    ++p;
  }
  for (std::uint32_t r = 0; r < storages_.size(); ++r) {
    auto const& s = storages_[r];
    if (s.maker >= tail_begin) kept[r] = !tail.again[s.maker];
    else if (!kept[r] && !front.again[s.maker]) kept[r] = true;
  }
  for (std::uint32_t q = tail_begin; q < n; ++q)  // what the tail computes again must not make the front again
    if (tail.again[q])
      for (auto r : reads_[position{q}])
        if (storages_[r].maker < tail_begin) kept[r] = true;
  for (std::uint32_t r = 0; r < storages_.size(); ++r)
    if (auto& turn = to.dropped[index(storages_[r].id)]; !kept[r]) turn = std::min(turn, turn_);
  for (std::uint32_t q = 0; q < n; ++q)
    if (q < tail_begin ? front.again[q] : tail.again[q]) to.seconds += seconds_[q];
  return true;
}

}}}  // namespace neap::v0::detail
