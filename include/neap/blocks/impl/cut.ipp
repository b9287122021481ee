// The bodies of <neap/blocks/cut.hpp>.
#pragma once

#include <neap/blocks/cut.hpp>

#include <neap/core/digest.hpp>
#include <neap/core/separate_compilation.hpp>
#include <neap/core/sort_once.hpp>

#include <algorithm>
#include <cmath>
#include <queue>

namespace neap { inline namespace v0 {

NEAP_FUNC std::vector<std::uint32_t> separators(simplified_program const& p) {
  auto const n = static_cast<std::uint32_t>(p.nodes.size());
  std::vector<std::uint32_t> last(n), found;
  for (auto const& e : p.edges)
    if (!e.values.empty() && p.nodes[e.from].weighted) last[e.from] = std::max(last[e.from], e.to);
  std::uint32_t open = 0;  // the last reader of an earlier node
  for (std::uint32_t i = 0; i < n; ++i) {
    if (i + 1 == n || (p.nodes[i].trained && open <= i && last[i] > i)) found.push_back(i);
    open = std::max(open, last[i]);
  }
  return found;
}

NEAP_FUNC block_ends cut_at_separators(simplified_program const& p) {
  block_ends ends;
  for (auto n : separators(p)) ends.push_back(n + 1);
  return ends;
}

namespace detail {

/// The bytes of weighted values that cross each end (in front of node i; rounded to storages), for i from 0 to n.
NEAP_FUNC std::vector<bytes_t> crossing_bytes(op_graph const& g, simplified_program const& p) {
  auto const n = p.nodes.size();
  table<storage_id, std::uint32_t> first(g.storage_count(), no_id), last(g.storage_count(), 0);
  for (auto const& e : p.edges) {
    if (!p.nodes[e.from].weighted) continue;
    for (auto v : e.values) {
      auto const s = g.storage(v);
      first[s] = std::min(first[s], e.from), last[s] = std::max(last[s], e.to);
    }
  }
  std::vector<bytes_t> change(n + 2), at(n + 1);
  for (auto s : g.storages())
    if (first[s] != no_id) change[first[s] + 1] += g.bytes(s), change[last[s] + 1] -= g.bytes(s);
  bytes_t now = 0;
  for (std::size_t i = 0; i <= n; ++i) at[i] = now += change[i];
  return at;
}

/// Equal for nodes that look alike: operators, attributes but keys of draws, types, distances to what they read. Only
/// to propose cuts with: classes decide what is really equal.
NEAP_FUNC std::vector<std::uint64_t> signatures(op_graph const& g, simplified_program const& p) {
  std::vector<std::uint64_t> all;
  std::size_t edge = 0;
  for (std::uint32_t n = 0; n < p.nodes.size(); ++n) {
    digest d;
    for (auto o : p.nodes[n].ops) {
      if (auto const* x = g.as<op::opaque>(o)) d = d.mix(x->text_low).mix(x->text_high);
      else d = d.mix(operator_text(g, o));
      if (!g.as<op::opaque>(o))
        for (auto const& f : g.facets(o).attributes)
          if (!(g.facets(o).random && f.name == "key")) d = d.mix(attribute_text(f.get(g.attributes(o))));
      for (auto v : g.inputs(o)) d = d.mix(to_string(g.type(v)));
      for (auto v : g.outputs(o)) d = d.mix(to_string(g.type(v)));
    }
    for (; edge < p.edges.size() && p.edges[edge].to == n; ++edge)
      d = d.mix(std::min<std::uint64_t>(n - p.edges[edge].from, 256));
    all.push_back(d.low);
  }
  return all;
}

class program_cutter {
 public:
  program_cutter(op_graph const& g, simplified_program const& p, cut_options const& o) : p_(p), o_(o), g_(g) {}

  /// Ends within [from, to), `to` among them.
  void repeats(std::uint32_t from, std::uint32_t to, block_ends& ends) {
    prepare();
    find_repeats(from, to, ends);
    ends.push_back(to);
    detail::sort_once(ends);
  }
  /// At most `most` blocks, if that can be done without joining more than `size` nodes.
  void bottom_up(std::uint32_t from, std::uint32_t to, std::uint32_t most, std::uint32_t size, block_ends& ends) {
    prepare();
    // Neighbours are joined; what is cut off last costs least, for its size.
    std::vector<std::uint32_t> left(to - from), right(to - from);  // bounds of the cluster around each end
    std::vector<unsigned char> gone(to - from);
    struct join {
      double worth;
      std::uint32_t end, left, right;
      bool operator<(join const& b) const { return worth != b.worth ? worth < b.worth : end > b.end; }
    };
    std::priority_queue<join> queue;
    auto const offer = [&](std::uint32_t e) {
      auto const i = e - from;
      if (right[i] - left[i] > size) return;
      queue.push({static_cast<double>(crossing_[e] + 1) / std::sqrt(static_cast<double>(right[i] - left[i])), e,
                  left[i], right[i]});
    };
    for (auto e = from + 1; e < to; ++e) left[e - from] = e - 1, right[e - from] = e + 1, offer(e);
    std::uint32_t blocks = to - from;
    while (blocks > std::max(most, 1u) && !queue.empty()) {
      auto const j = queue.top();
      queue.pop();
      auto const i = j.end - from;
      if (gone[i] || j.left != left[i] || j.right != right[i]) continue;
      gone[i] = 1, --blocks;
      if (left[i] > from) right[left[i] - from] = right[i], offer(left[i]);
      if (right[i] < to) left[right[i] - from] = left[i], offer(right[i]);
    }
    for (auto e = from + 1; e < to; ++e)
      if (!gone[e - from]) ends.push_back(e);
    ends.push_back(to);
    detail::sort_once(ends);
  }
  block_ends automatic() {
    block_ends out;
    std::uint32_t from = 0;
    for (auto to : cut_at_separators(p_)) {
      block_ends inner;
      if (to - from > o_.max_nodes) repeats(from, to, inner);
      else inner.push_back(to);
      for (auto end : inner) {
        if (end - from > o_.max_nodes) bottom_up(from, end, (2 * (end - from)) / o_.max_nodes, o_.max_nodes, out);
        else out.push_back(end);
        from = end;
      }
    }
    return out;
  }

 private:
  void prepare() {
    if (crossing_.empty()) crossing_ = crossing_bytes(g_, p_), signature_ = signatures(g_, p_);
  }
  void find_repeats(std::uint32_t from, std::uint32_t to, block_ends& ends) {
    if (to - from < 4) return;
    std::uint32_t best = 0, best_period = 0, best_start = 0;
    for (std::uint32_t period = 1; period <= std::min(o_.max_period, (to - from) / 2); ++period) {
      std::uint32_t run = 0;
      for (auto i = from; i + period <= to; ++i) {
        bool const same = i + period < to && signature_[i] == signature_[i + period];
        if (same) {
          ++run;
          continue;
        }
        if (run >= period && run + period > best) best = run + period, best_period = period, best_start = i - run;
        run = 0;
      }
    }
    // A pattern of one node or two is no layer, unless it makes up all there is.
    if (best < 4 || (best_period < 3 && 2 * best < to - from)) return;
    // The phase in which the fewest bytes cross; of equal ones, the first.
    std::uint32_t phase = 0;
    double least = 0;
    for (std::uint32_t f = 0; f < best_period; ++f) {
      double bytes = 0, count = 0;
      for (auto e = best_start + f; e <= best_start + best; e += best_period)
        bytes += static_cast<double>(crossing_[e]), ++count;
      if (f == 0 || bytes / count < least) least = bytes / count, phase = f;
    }
    std::uint32_t const first = best_start + phase;
    std::uint32_t last = first;
    for (auto e = first; e <= best_start + best; e += best_period) {
      if (e > from && e < to) ends.push_back(e);
      last = e;
    }
    find_repeats(from, first, ends);
    find_repeats(last, to, ends);
  }

  simplified_program const& p_;
  cut_options const& o_;
  op_graph const& g_;
  std::vector<bytes_t> crossing_;
  std::vector<std::uint64_t> signature_;
};

}  // namespace detail

NEAP_FUNC block_ends cut_at_repeats(op_graph const& g, simplified_program const& p, cut_options const& options) {
  block_ends ends;
  auto const n = static_cast<std::uint32_t>(p.nodes.size());
  if (n > 0) detail::program_cutter(g, p, options).repeats(0, n, ends);
  return ends;
}

NEAP_FUNC block_ends cut_bottom_up(op_graph const& g, simplified_program const& p, cut_options const& options) {
  block_ends ends;
  auto const n = static_cast<std::uint32_t>(p.nodes.size());
  if (n > 0) detail::program_cutter(g, p, options).bottom_up(0, n, options.max_blocks, n, ends);
  return ends;
}

NEAP_FUNC block_ends cut_blocks(op_graph const& g, simplified_program const& p, cut_options const& options) {
  return detail::program_cutter(g, p, options).automatic();
}

}}  // namespace neap::v0
