// swap: a value that waits in memory for late readers is stored outside the device after its producer and loaded again
// for the late ones, just early enough to hide the transfer behind the ops between, where memory allows. Its views are
// made again on the loaded copy. A value that is stored already is not stored twice; a loaded value is loaded again.
#pragma once

#include <neap/mutate/rematerialize.hpp>

#include <string>
#include <vector>

namespace neap::inline v0 {

/// Store a storage's first value after its producer and load it for the readers from position `resume` on.
struct swap_out {
  storage_id storage = nothing<storage_id>;
  std::uint32_t left = 0;          // the last early position that touches it
  std::uint32_t resume = 0;        // the first late position
  double bytes_per_second = 16e9;  // of the link: how early the load is issued

  friend bool operator==(swap_out const&, swap_out const&) = default;

  template <class G>
  std::optional<edited<G>> apply(candidate<G> const& c) const;
  /// What apply() would do; false where it does nothing. `facts` are the candidate's.
  template <class G>
  bool outline(candidate<G> const& c, replay_facts const& facts, edit_outline& out) const;
  template <class G>
  std::string describe(candidate<G> const& c) const;

 private:
  /// A load gives back a dense tensor, not what else its storage held.
  template <class G>
  bool can_leave(G const& g) const {
    if (!flow::is_swappable(g, storage)) return false;
    value_id const whole = g.record(storage).first;
    return g.layout(whole) == tensor_layout::dense(g.type(whole)) && g.bytes(storage) == g.type(whole).bytes();
  }
  /// What the storage can be loaded from already; nothing if it is nowhere.
  template <class G>
  value_id stored_before(G const& g, replay_facts const& facts) const {
    value_id const whole = g.record(storage).first;
    op_id const producer = g.producer(whole);
    if (g.template as<op::load>(producer)) return g.inputs(producer)[0];
    value_id handle = nothing<value_id>;
    for (auto const& u : g.uses(whole))
      if (g.template as<op::store>(u.op) && facts.at[u.op] < resume) handle = g.output(u.op);
    return handle;
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
};

template <class G>
std::optional<edited<G>> swap_out::apply(candidate<G> const& c) const {
  auto const& g = c.graph;
  if (!can_leave(g)) return std::nullopt;
  value_id const whole = g.record(storage).first;
  op_id const producer = g.producer(whole);
  replay_facts const facts(g, c.order);
  detail::late_readers late(g, facts, c.result, 64, 0);
  late.begin(storage, resume).provide(whole);
  if (!late.plan()) return std::nullopt;

  graph_editor edit{g};
  op_id store = nothing<op_id>;
  value_id handle = stored_before(g, facts);
  if (handle == nothing<value_id>) {
    handle = edit.add(op::store{}, {whole})[0];
    store = edit.graph().producer(handle);
  }
  value_id const loaded = edit.add(op::load{}, {handle})[0];
  op_id const load = edit.graph().producer(loaded);
  std::vector<op_id> copies;
  late.apply(edit, copies, loaded);

  std::uint32_t const issue = load_position(c);
  std::uint32_t const stored = facts.at[producer];
  schedule order;
  order.order.reserve(c.order.size() + copies.size() + 2);
  for (std::uint32_t i = 0; i < c.order.size(); ++i) {
    if (i == issue) order.order.push_back(load);
    if (i == resume) order.order.insert(order.order.end(), copies.begin(), copies.end());
    order.order.push_back(c.order[i]);
    if (i == stored && store != nothing<op_id>) order.order.push_back(store);
  }
  std::vector<op_id> maybe_dead(late.copied().begin(), late.copied().end());
  maybe_dead.push_back(producer);
  return detail::finish_edit<G>(std::move(edit), std::move(order), span_of(maybe_dead));
}

template <class G>
bool swap_out::outline(candidate<G> const& c, replay_facts const& facts, edit_outline& out) const {
  auto const& g = c.graph;
  if (!can_leave(g)) return false;
  value_id const whole = g.record(storage).first;
  op_id const producer = g.producer(whole);
  detail::late_readers late(g, facts, c.result, 64, 0);
  late.begin(storage, resume).provide(whole);
  if (!late.plan()) return false;
  out.clear();
  auto next = static_cast<std::uint32_t>(g.value_count());
  value_id handle = stored_before(g, facts);
  if (handle == nothing<value_id>) {
    out.runs.push_back({edit_outline::kind::store, nothing<op_id>, whole, facts.at[producer] + 1, 0});
    out.reads.push_back(whole);
    handle = value_id{next++};
  }
  out.runs.push_back({edit_outline::kind::load, nothing<op_id>, whole, load_position(c),
                      static_cast<std::uint32_t>(out.reads.size())});
  out.reads.push_back(handle);
  op_id const maybe_dead[] = {producer};
  late.outline(out, value_id{next}, maybe_dead);
  return true;
}

template <class G>
std::string swap_out::describe(candidate<G> const& c) const {
  auto const o = c.graph.producer(c.graph.record(storage).first);
  return "swap " + std::string(c.graph.facets(o).name) + " #" + std::to_string(index(c.graph.origin(o))) + " (" +
         std::to_string(c.graph.bytes(storage)) + " bytes), back before position " + std::to_string(resume);
}

namespace detail {
/// A swap for each gap at the peak, worth its bytes times its idle seconds.
struct find_swaps {
  double bytes_per_second;

  template <class G>
  plain_vector<scored<swap_out>> operator()(candidate<G> const& c) const;
};
template <class G>
plain_vector<scored<swap_out>> find_swaps::operator()(candidate<G> const& c) const {
  plain_vector<scored<swap_out>> found;
  for (auto const& g : gaps_at(c.graph, c.order, c.result, c.result.peak_position)) {
    if (!flow::is_swappable(c.graph, g.storage)) continue;
    auto const idle = c.result.start[g.resume] - c.result.end[g.left];
    if (double const score = static_cast<double>(c.graph.bytes(g.storage)) * idle; score > 0)
      found.push_back({score, {g.storage, g.left, g.resume, bytes_per_second}});
  }
  return found;
}
}  // namespace detail

/// The mutator: `swap_out` for every gap at the peak, the most bytes times idle seconds first.
struct swap {
  double bytes_per_second = 16e9;  // of the link

  template <class G>
    requires std::derived_from<G, op_graph>
  auto operator()(candidate<G> const& c) const {
    using find = detail::find_swaps;
    return detail::ranked_stream<swap_out, G, find>(c, find{bytes_per_second});
  }
};

}  // namespace neap::inline v0
