// The bodies of <neap/mutate/recompute_ground.hpp>.
#pragma once

#include <neap/mutate/recompute_ground.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

/// The position that the most bytes, by how long they wait, wait across is a turn; what is read last before it, or made
/// behind it, has turns of its own.
NEAP_FUNC void recompute_ground::find_stretches(recompute_facts const& f) {
  struct wait {  // across the positions [begin, end), of what is made and last read there
    std::uint32_t begin, end, maker, last_read;
    double weight;
  };
  plain_vector<wait> all;
  plain_vector<std::uint32_t> touched(f.storages.size(), no_id);
  auto const n = static_cast<std::uint32_t>(f.order.size());
  for (std::uint32_t p = 0; p < n; ++p) {
    auto const touch = [&](value_id v) {
      auto const k = f.number[index(f.graph.storage(v))];
      if (k == no_id) return;
      auto const before = std::exchange(touched[k], p);
      if (before == no_id || p <= before + 1) return;
      auto const& s = f.storages[k];
      all.push_back({before, p, s.maker, s.last_read, static_cast<double>(f.graph.bytes(s.id)) * (p - before)});
    };
    for (auto v : f.graph.outputs(f.order[p])) touch(v);
    for (auto v : f.graph.inputs(f.order[p])) touch(v);
  }
  struct part {
    std::uint32_t begin, end;
    plain_vector<wait> waits;
  };
  std::vector<part> open;
  open.push_back({0, n, std::move(all)});
  double largest = 0;
  while (!open.empty()) {
    auto const now = std::move(open.back());
    open.pop_back();
    plain_vector<double> weight(now.end - now.begin + 1, 0.0);
    for (auto const& w : now.waits) weight[w.begin - now.begin] += w.weight, weight[w.end - now.begin] -= w.weight;
    double sum = 0, most = 0;
    for (auto& w : weight) w = sum += w, most = std::max(most, sum);
    largest = std::max(largest, most);
    constexpr double smallest = 1.0 / 64;  // an eighth of the bytes for an eighth of the time
    if (most <= smallest * largest) continue;
    // Of several as heavy, as equal batches have them, the one in the middle: then parts soon are small.
    auto const is_heaviest = [&](std::uint32_t p) { return weight[p - now.begin] >= most * (1 - 1e-9); };
    std::vector<std::uint32_t> equal;
    for (auto p = now.begin; p < now.end; ++p)
      if (is_heaviest(p) && (p == now.begin || !is_heaviest(p - 1))) equal.push_back(p);
    auto const turn = equal[equal.size() / 2];
    stretches_.emplace_back(f, now.begin, turn, now.end);
    part early{now.begin, turn + 1, {}}, late{turn + 1, now.end, {}};
    for (auto const& w : now.waits)
      if (w.last_read <= turn) early.waits.push_back(w);
      else if (w.maker > turn) late.waits.push_back(w);
    for (auto* p : {&early, &late})
      if (!p->waits.empty()) open.push_back(std::move(*p));
  }
  if (stretches_.empty()) return;
  auto const heaviest = stretches_.front().turn();
  detail::sort_list(stretches_,
                    [](recompute_stretch const& a, recompute_stretch const& b) { return a.turn() < b.turn(); });
  while (stretches_[heaviest_].turn() != heaviest) ++heaviest_;
}

}}}  // namespace neap::v0::detail
