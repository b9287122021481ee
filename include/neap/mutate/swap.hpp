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

  bool edit(candidate const& c, replay_facts const& facts, graph_edit& out) const;
  std::string describe(candidate const& c) const;

  /// What the storage can be loaded from already, before position `resume`; nothing if it is nowhere.
  value_id stored_before(op_graph const& g, replay_facts const& facts) const {
    value_id const whole = value_that_leaves(g, storage);
    if (is_loaded(g, whole)) return g.inputs(g.producer(whole))[0];
    value_id handle = nothing<value_id>;
    for (auto const& u : g.uses(whole))
      if (g.as<op::store>(u.op) && facts.at[u.op] < resume) handle = g.output(u.op);
    return handle;
  }

 private:
  static bool is_loaded(op_graph const& g, value_id whole) {
    auto const o = g.producer(whole);
    return o != nothing<op_id> && g.as<op::load>(o);
  }
  /// The latest position that hides the transfer, not moved past the peak or to where memory is as scarce as there.
  std::uint32_t load_position(candidate const& c) const {
    auto const bytes = c.graph.bytes(storage);
    double const transfer = static_cast<double>(bytes) / bytes_per_second;
    std::uint32_t i = resume;
    while (i > left + 1 && i > c.result.peak_position + 1 && c.result.start[resume] - c.result.start[i] < transfer &&
           c.result.bytes_at[i - 1] + bytes < c.result.peak_bytes)
      --i;
    return i;
  }
  /// The wait stands behind the store and before the load; a loaded value, which is stored long since, needs none.
  bool pauses(candidate const& c) const {
    return pause > left && pause <= load_position(c) && !is_loaded(c.graph, value_that_leaves(c.graph, storage));
  }
};

namespace detail {
/// What made a storage, in words.
std::string maker_of(op_graph const& g, storage_id s);
}  // namespace detail

/// The computations from a position on wait until a store has ended; where later ones do already, these do instead.
struct stall {
  op_id store = nothing<op_id>;
  std::uint32_t before = 0;  // the position, behind the store

  friend bool operator==(stall const&, stall const&) = default;

  bool edit(candidate const& c, replay_facts const& facts, graph_edit& out) const;
  std::string describe(candidate const& c) const {
    auto const s = c.graph.storage(c.graph.inputs(store)[0]);
    return detail::text_of(
        {"wait for ", c.graph.bytes(s), " bytes of ", detail::maker_of(c.graph, s), " at position ", before});
  }
};

namespace detail {
/// A swap for each gap at the peak, worth its bytes times its idle seconds; with a wait where its store would end too late.
struct find_swaps {
  double bytes_per_second;

  plain_vector<scored<swap_out>> operator()(candidate const& c) const;
};

/// A stall for each store that is still under way at the peak, worth its bytes.
struct find_stalls {
  plain_vector<scored<stall>> operator()(candidate const& c) const {
    plain_vector<scored<stall>> found;
    auto const peak = c.result.peak_position;
    for (std::uint32_t p = 0; p < peak; ++p) {
      auto const o = c.order[p];
      if (!c.graph.as<op::store>(o) || c.result.end[p] <= c.result.start[peak]) continue;
      auto const s = c.graph.storage(c.graph.inputs(o)[0]);
      if (!c.graph.is_resident(s) && c.result.live[s].last >= peak)
        found.push_back({static_cast<double>(c.graph.bytes(s)), {o, peak}});
    }
    return found;
  }
};

struct swap_values {
  double bytes_per_second;
  auto operator()(candidate const& c) const {
    return ranked_stream<swap_out, find_swaps>(c, find_swaps{bytes_per_second});
  }
};
struct stall_for_stores {
  auto operator()(candidate const& c) const { return ranked_stream<stall, find_stalls>(c, {}); }
};
}  // namespace detail

/// The mutator: `swap_out` for every gap at the peak, the most bytes times idle seconds first, and in turn with it `stall`
/// for every store that is under way there, the most bytes first.
struct swap {
  double bytes_per_second = 16e9;  // of the link

  constexpr permissions allows() const { return {.swap = detail::link_rate(bytes_per_second)}; }
  auto operator()(candidate const& c) const {
    using detail::stall_for_stores, detail::swap_values;
    return detail::zip_stream<swap_values, stall_for_stores>({swap_values{bytes_per_second}, stall_for_stores{}}, c);
  }
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/mutate/impl/swap.ipp>
#endif
