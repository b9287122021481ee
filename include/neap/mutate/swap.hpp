// swap: a value that waits in memory for late readers is stored outside the device after its producer and loaded again
// for the late ones, just early enough to hide the transfer behind the ops between, where memory allows. Its views are
// made again on the loaded copy. A value that is stored already is not stored twice; a loaded value is loaded again.
//
// A store that is still under way at the peak has not made room there: computations wait for it before the peak (`wait`),
// for a time that the simulator counts. `stall` lets them wait for a store that an earlier swap has put there.
#pragma once

#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/zip.hpp>
#include <neap/plan/schedule.hpp>

#include <string>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {
/// Throws neap::error with a number that is no link's rate.
constexpr double link_rate(double bytes_per_second) {
  if (!(bytes_per_second >= 0))
    throw_error({"a link of ", bytes_per_second, " bytes per second: it is a number of at least 0; 0 never swaps"});
  return bytes_per_second;
}
}  // namespace detail

/// Store what a storage holds once it is there and load it for the readers from position `resume` on.
struct swap_out {
  storage_id storage = nothing<storage_id>;
  std::uint32_t left = 0;          // the last early position that touches it
  std::uint32_t resume = 0;        // the first late position
  double bytes_per_second = 16e9;  // of the link: how early the load is issued
  std::uint32_t pause = 0;         // the computations from this position on wait for the store; 0: none does

  friend bool operator==(swap_out const&, swap_out const&) = default;

  template <class G>
  bool edit(candidate<G> const& c, replay_facts const& facts, graph_edit& out) const;
  template <class G>
  std::string describe(candidate<G> const& c) const;

  /// What the storage can be loaded from already, before position `resume`; nothing if it is nowhere.
  template <class G>
  value_id stored_before(G const& g, replay_facts const& facts) const {
    value_id const whole = value_that_leaves(g, storage);
    if (is_loaded(g, whole)) return g.inputs(g.producer(whole))[0];
    value_id handle = nothing<value_id>;
    for (auto const& u : g.uses(whole))
      if (g.template as<op::store>(u.op) && facts.at[u.op] < resume) handle = g.output(u.op);
    return handle;
  }

 private:
  template <class G>
  static bool is_loaded(G const& g, value_id whole) {
    auto const o = g.producer(whole);
    return o != nothing<op_id> && g.template as<op::load>(o);
  }
  /// The latest position that hides the transfer, not moved past the peak or to where memory is as scarce as there.
  template <class G>
  std::uint32_t load_position(candidate<G> const& c) const {
    auto const bytes = c.graph.bytes(storage);
    double const transfer = static_cast<double>(bytes) / bytes_per_second;
    std::uint32_t i = resume;
    while (i > left + 1 && i > c.result.peak_position + 1 && c.result.start[resume] - c.result.start[i] < transfer &&
           c.result.bytes_at[i - 1] + bytes < c.result.peak_bytes)
      --i;
    return i;
  }
  /// The wait stands behind the store and before the load; a loaded value, which is stored long since, needs none.
  template <class G>
  bool pauses(candidate<G> const& c) const {
    return pause > left && pause <= load_position(c) && !is_loaded(c.graph, value_that_leaves(c.graph, storage));
  }
};

namespace detail {
/// What made a storage, in words.
template <class G>
std::string maker_of(G const& g, storage_id s) {
  auto const first = g.record(s).first;
  auto const o = g.producer(first);
  if (o == nothing<op_id>) return text_of({"the donated input ", g.name(first)});
  return text_of({g.facets(o).name, " #", index(g.origin(o))});
}
}  // namespace detail

/// The computations from a position on wait until a store has ended; where later ones do already, these do instead.
struct stall {
  op_id store = nothing<op_id>;
  std::uint32_t before = 0;  // the position, behind the store

  friend bool operator==(stall const&, stall const&) = default;

  template <class G>
  bool edit(candidate<G> const& c, replay_facts const& facts, graph_edit& out) const;
  template <class G>
  std::string describe(candidate<G> const& c) const {
    auto const s = c.graph.storage(c.graph.inputs(store)[0]);
    return detail::text_of(
        {"wait for ", c.graph.bytes(s), " bytes of ", detail::maker_of(c.graph, s), " at position ", before});
  }
};

template <class G>
bool swap_out::edit(candidate<G> const& c, replay_facts const& facts, graph_edit& out) const {
  auto const& g = c.graph;
  value_id const whole = value_that_leaves(g, storage);
  if (whole == nothing<value_id>) return false;
  auto const from = detail::stored_from(g, facts.at, whole);
  if (from > left + 1) return false;  // a view of the whole that is made later alone
  detail::late_readers late(g, facts, c.result, 64, 0);
  late.begin(storage, resume).provide(whole);
  if (!late.plan()) return false;
  out.clear();
  using kind = graph_edit::kind;
  value_id handle = stored_before(g, facts);
  if (handle == nothing<value_id>) handle = out.transfer(g, kind::store, whole, whole, from);
  if (pauses(c)) handle = out.transfer(g, kind::wait, whole, handle, pause);
  late.edit(out, out.transfer(g, kind::load, whole, handle, load_position(c)));
  std::vector<op_id> maybe_dead(late.copied().begin(), late.copied().end());
  if (auto const producer = g.producer(whole); producer != nothing<op_id>) maybe_dead.push_back(producer);
  remove_dead(g, out, std::move(maybe_dead));
  return true;
}

template <class G>
bool stall::edit(candidate<G> const& c, replay_facts const& facts, graph_edit& out) const {
  auto const& g = c.graph;
  if (before <= facts.at[store] || before >= c.order.size()) return false;
  out.clear();
  auto const handle = g.output(store);
  auto const waited = out.transfer(g, graph_edit::kind::wait, g.inputs(store)[0], handle, before);
  std::vector<op_id> gone;
  auto const give = [&](value_id from) {
    for (auto const& u : g.uses(from))
      if (facts.at[u.op] >= before && !g.template as<op::wait>(u.op)) out.rereads.push_back({u.op, from, waited});
  };
  give(handle);
  for (auto const& u : g.uses(handle))
    if (facts.at[u.op] >= before && g.template as<op::wait>(u.op)) give(g.output(u.op)), gone.push_back(u.op);
  if (out.rereads.empty()) return false;
  remove_dead(g, out, std::move(gone));
  return true;
}

template <class G>
std::string swap_out::describe(candidate<G> const& c) const {
  return detail::text_of({"swap ", detail::maker_of(c.graph, storage), " (", c.graph.bytes(storage),
                          " bytes), back before position ", resume,
                          (pause ? ", waited for at position " + std::to_string(pause) : std::string())});
}

namespace detail {
/// A swap for each gap at the peak, worth its bytes times its idle seconds; with a wait where its store would end too late.
struct find_swaps {
  double bytes_per_second;

  template <class G>
  plain_vector<scored<swap_out>> operator()(candidate<G> const& c) const;
};
template <class G>
plain_vector<scored<swap_out>> find_swaps::operator()(candidate<G> const& c) const {
  plain_vector<scored<swap_out>> found;
  auto const peak = c.result.peak_position;
  auto const gaps = gaps_at(c.graph, c.order, c.result, peak, movable_kind::made_or_donated);
  if (gaps.empty()) return found;
  auto const at = positions(c.order);
  plain_vector<seconds_t> link(peak + 1);  // when the link out is free, by position
  for (std::uint32_t p = 0; p < peak; ++p)
    link[p + 1] = c.graph.template as<op::store>(c.order[p]) ? c.result.end[p] : link[p];
  for (auto const& g : gaps) {
    auto const whole = value_that_leaves(c.graph, g.storage);
    if (whole == nothing<value_id>) continue;
    auto const bytes = static_cast<double>(c.graph.bytes(g.storage));
    auto const idle = c.result.start[g.resume] - c.result.end[g.left];
    double const score = bytes * idle;
    if (!(score > 0)) continue;
    auto const from = stored_from(c.graph, at, whole);
    auto const made = from == 0 ? 0 : c.result.end[from - 1];
    auto const outside = std::max(link[std::min(from, peak)], made) + bytes / bytes_per_second;
    found.push_back(
        {score, {g.storage, g.left, g.resume, bytes_per_second, outside > c.result.start[peak] ? peak : 0}});
  }
  return found;
}

/// A stall for each store that is still under way at the peak, worth its bytes.
struct find_stalls {
  template <class G>
  plain_vector<scored<stall>> operator()(candidate<G> const& c) const {
    plain_vector<scored<stall>> found;
    auto const peak = c.result.peak_position;
    for (std::uint32_t p = 0; p < peak; ++p) {
      auto const o = c.order[p];
      if (!c.graph.template as<op::store>(o) || c.result.end[p] <= c.result.start[peak]) continue;
      auto const s = c.graph.storage(c.graph.inputs(o)[0]);
      if (!c.graph.is_resident(s) && c.result.live[s].last >= peak)
        found.push_back({static_cast<double>(c.graph.bytes(s)), {o, peak}});
    }
    return found;
  }
};

struct swap_values {
  double bytes_per_second;
  template <class G>
  auto operator()(candidate<G> const& c) const {
    return ranked_stream<swap_out, G, find_swaps>(c, find_swaps{bytes_per_second});
  }
};
struct stall_for_stores {
  template <class G>
  auto operator()(candidate<G> const& c) const {
    return ranked_stream<stall, G, find_stalls>(c, {});
  }
};
}  // namespace detail

/// The mutator: `swap_out` for every gap at the peak, the most bytes times idle seconds first, and in turn with it `stall`
/// for every store that is under way there, the most bytes first.
struct swap {
  double bytes_per_second = 16e9;  // of the link

  constexpr permissions allows() const { return {.swap = detail::link_rate(bytes_per_second)}; }
  template <class G>
    requires std::derived_from<G, op_graph>
  auto operator()(candidate<G> const& c) const {
    using detail::stall_for_stores, detail::swap_values;
    return detail::zip_stream<G, swap_values, stall_for_stores>({swap_values{bytes_per_second}, stall_for_stores{}}, c);
  }
};

}}  // namespace neap::v0
