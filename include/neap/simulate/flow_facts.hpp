// What a simulator and a scheduler need to know of a graph, asked from its traits once and laid out flat: several orders
// of one graph are then judged without asking again. Bytes are rounded up to the alignment, seconds come from a cost
// model, resident storages are left out of the lists because they never change the count.
//
//   flow_facts facts(graph, cost, {.alignment = 64});      // O(ops + edges)
//   simulator sim;
//   for (auto const& order : orders) sim(facts, order);
#pragma once

#include <neap/ir/dataflow.hpp>
#include <neap/plan/simulation.hpp>
#include <neap/simulate/cost_model.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace neap::inline v0 {

namespace detail {

/// align_up without a division where the alignment is a power of two, as it is nearly always.
class rounding {
 public:
  explicit rounding(bytes_t alignment)
      : alignment_(alignment),
        mask_((alignment & (alignment - 1)) == 0 ? alignment - 1 : -1) {}
  bytes_t operator()(bytes_t n) const {
    if (mask_ >= 0 && n <= INT64_MAX - mask_) return (n + mask_) & ~mask_;
    return align_up(n, alignment_);
  }

 private:
  bytes_t alignment_, mask_;
};

}  // namespace detail

/// The input storage whose buffer an op may write its output storage to, if it dies there.
struct takeover_candidate {
  storage_id from, to;
};

class flow_facts {
 public:
  flow_facts() = default;
  template <dataflow_graph G, cost_model_for<G> C>
  flow_facts(G const& g, C const& cost, memory_options options = {}) {
    assign(g, cost, options);
  }

  /// Learns another graph; keeps the memory of the tables. O(ops + edges).
  template <dataflow_graph G, cost_model_for<G> C>
  void assign(G const& g, C const& cost, memory_options options = {});

  memory_options options() const { return options_; }
  std::size_t op_count() const { return op_count_; }
  std::size_t storage_count() const { return storages_.size(); }

  seconds_t seconds(op_id o) const { return ops_[index(o)].seconds; }
  op_stream stream(op_id o) const { return ops_[index(o)].stream; }
  bytes_t workspace(op_id o) const { return has_workspace_ ? workspace_[o] : 0; }  // rounded up
  bytes_t bytes(storage_id s) const { return storages_[s].bytes; }                 // rounded up
  bool is_resident(storage_id s) const { return storages_[s].kind == resident; }
  bool is_kept(storage_id s) const { return storages_[s].kind == kept; }
  /// The op that makes a storage; nothing for those that no op makes.
  op_id maker(storage_id s) const { return storages_[s].maker; }

  /// Storages, not resident, that an op reads or writes, each once: inputs in order, then outputs.
  std::span<storage_id const> touches(op_id o) const {
    return {touches_.data() + ops_[index(o)].touches, touches_.data() + ops_[index(o) + 1].touches};
  }
  /// Storages, not resident, that an op makes; the last ones of touches(o).
  std::span<storage_id const> makes(op_id o) const {
    auto const* end = touches_.data() + ops_[index(o) + 1].touches;
    return {end - ops_[index(o)].made, end};
  }
  /// In the order in which they are tried.
  std::span<takeover_candidate const> takeovers(op_id o) const {
    return {takeovers_.data() + ops_[index(o)].takeovers, takeovers_.data() + ops_[index(o) + 1].takeovers};
  }
  /// Ops that must have ended before an op starts: makers of its inputs, then order_after. Not always distinct.
  std::span<op_id const> after(op_id o) const {
    return {after_.data() + ops_[index(o)].after, after_.data() + ops_[index(o) + 1].after};
  }

  std::span<storage_id const> kept_storages() const { return kept_; }  // none of them resident
  /// Storages that are neither resident nor made by an op: they are there from the first position.
  std::span<storage_id const> given_storages() const { return given_; }
  bytes_t resident_bytes() const { return resident_bytes_; }
  bool has_transfers() const { return has_transfers_; }
  bool has_workspace() const { return has_workspace_; }

 private:
  enum kind : std::uint32_t { plain, resident, kept };
  // What is read together lies together: large graphs do not fit into the caches.
  struct op_row {
    seconds_t seconds = 0;
    std::uint32_t touches = 0, takeovers = 0,
                  after = 0;  // where the op's rows begin; they end where the next op's begin
    std::uint32_t made : 23 = 0, takes_over : 1 = 0;
    op_stream stream = op_stream::compute;
  };
  struct storage_row {
    bytes_t bytes;
    op_id maker;
    std::uint32_t kind : 2, touched_by : 30;  // the last op that touched it, while edges are laid out
  };
  static constexpr std::uint32_t nobody = (1u << 30) - 1;
  template <class G>
  void assign_storages(G const& g);
  template <class G, class C>
  void assign_ops(G const& g, C const& cost);
  template <class G>
  void assign_edges(G const& g);
  template <class G>
  void find_takeovers(G const& g, op_id o);

  memory_options options_;
  std::size_t op_count_ = 0;
  std::vector<op_row> ops_;          // and one more, where the last op's rows end
  table<op_id, bytes_t> workspace_;  // empty if no op has any
  table<storage_id, storage_row> storages_;
  std::vector<storage_id> touches_;  // may be longer than needed, as after_
  std::vector<op_id> after_;
  std::vector<takeover_candidate> takeovers_;
  std::vector<storage_id> kept_, given_;
  bytes_t resident_bytes_ = 0;
  std::size_t resident_count_ = 0;
  bool has_transfers_ = false, has_workspace_ = false;
  table<value_id, op_id> producer_;  // scratch of assign
};

template <class G>
void flow_facts::assign_storages(G const& g) {
  detail::rounding const round(options_.alignment);
  auto const n = flow::storage_count(g);
  storages_.resize(n), kept_.clear();
  resident_bytes_ = 0, resident_count_ = 0;
  auto const set = [&](storage_id s, bool is_resident) {
    auto const bytes = round(flow::bytes(g, s));
    storages_[s] = {bytes, nothing<op_id>, is_resident ? resident : plain, nobody};
    if (is_resident) resident_bytes_ = checked_add(resident_bytes_, bytes), ++resident_count_;
  };
  if constexpr (requires(storage_id s) { detail::traits_of<G>::is_resident(g, s); }) {
    for (auto s : id_range<storage_id>(n)) set(s, detail::traits_of<G>::is_resident(g, s));
  } else {
    auto const residents = flow::residents(g);
    for (auto s : id_range<storage_id>(n)) set(s, residents[index(s)]);
  }
  for (auto v : flow::kept(g))
    if (auto const s = flow::storage(g, v); storages_[s].kind == plain) {
      storages_[s].kind = kept;
      kept_.push_back(s);
    }
}

/// After the op's outputs have their maker.
template <class G>
void flow_facts::find_takeovers(G const& g, op_id o) {
  auto&& in = flow::inputs(g, o);
  auto&& outs = flow::outputs(g, o);
  std::size_t j = 0;
  for (value_id out : outs) {
    auto const to = flow::storage(g, out);
    auto const bytes = storages_[to].bytes;
    std::size_t i = 0;
    if (storages_[to].maker == o && bytes != 0)
      for (value_id arg : in) {
        auto const from = flow::storage(g, arg);
        if (storages_[from].bytes == bytes && storages_[from].kind == plain && flow::may_take_over(g, o, i, j)) {
          bool all = true;  // another argument may look at the same storage in another way
          std::size_t k = 0;
          for (value_id other : in) {
            if (other != arg && flow::storage(g, other) == from) all &= flow::may_take_over(g, o, k, j);
            ++k;
          }
          for (value_id other : outs) all &= flow::storage(g, other) != from;  // not one that is written in place
          if (all) takeovers_.push_back({from, to});
        }
        ++i;
      }
    ++j;
  }
}

/// Time, stream, workspace of each op.
template <class G, class C>
void flow_facts::assign_ops(G const& g, C const& cost) {
  detail::rounding const round(options_.alignment);
  workspace_.clear();
  bool transfers = false;
  for (auto o : id_range<op_id>(op_count_)) {
    auto& row = ops_[index(o)];
    row.seconds = cost(g, o);
    row.stream = flow::stream(g, o);
    transfers |= row.stream != op_stream::compute;
    row.takes_over = options_.takeover && row.stream == op_stream::compute && flow::takes_over(g, o);
    if (bytes_t const n = round(flow::workspace(g, o)); n != 0) {
      if (workspace_.empty()) workspace_.assign(op_count_, 0);
      workspace_[o] = n;
    }
  }
  has_transfers_ = transfers, has_workspace_ = !workspace_.empty();
}

/// What each op waits for and which storages it touches.
template <class G>
void flow_facts::assign_edges(G const& g) {
  constexpr bool knows_producers = requires(value_id v) { detail::traits_of<G>::producer(g, v); };
  if constexpr (!knows_producers) {
    producer_.assign(flow::value_count(g), nothing<op_id>);
    for (auto o : id_range<op_id>(op_count_))
      for (value_id v : flow::outputs(g, o)) producer_[v] = o;
  }
  auto const producer = [&](value_id v) {
    if constexpr (knows_producers) return detail::traits_of<G>::producer(g, v);
    else return producer_[v];
  };
  auto const edges = flow::edge_count(g);
  if (edges > no_id || op_count_ >= nobody) throw error("simulate: more than 2^30 ops or 2^32 edges");
  if (edges > touches_.size()) touches_.resize(edges), after_.resize(edges);
  // Plain pointers: writes to one table cannot make the compiler read the others' addresses again.
  auto* const storages = storages_.data();
  auto* const rows = ops_.data();
  auto* touched = touches_.data();
  auto* before = after_.data();
  auto const place = [&](std::size_t row) {
    rows[row].touches = static_cast<std::uint32_t>(touched - touches_.data());
    rows[row].after = static_cast<std::uint32_t>(before - after_.data());
  };
  for (auto o : id_range<op_id>(op_count_)) {
    auto const me = static_cast<std::uint32_t>(index(o));
    place(me);
    for (value_id v : flow::inputs(g, o)) {
      *before = producer(v);
      before += *before != nothing<op_id>;
      auto const s = flow::storage(g, v);
      auto& row = storages[index(s)];
      if (row.kind == resident || row.touched_by == me) continue;
      row.touched_by = me;
      *touched++ = s;
    }
    for (op_id b : flow::order_after(g, o)) *before++ = b;
    std::uint32_t made = 0;
    for (value_id v : flow::outputs(g, o)) {
      auto const s = flow::storage(g, v);
      auto& row = storages[index(s)];
      if (row.kind == resident || row.touched_by == me) continue;
      row.touched_by = me;
      row.maker = o;
      *touched++ = s;
      ++made;
    }
    rows[me].made = made;
  }
  place(op_count_);
}

template <dataflow_graph G, cost_model_for<G> C>
void flow_facts::assign(G const& g, C const& cost, memory_options options) {
  options_ = options;
  op_count_ = flow::op_count(g);
  ops_.resize(op_count_ + 1);
  assign_storages(g);
  assign_ops(g, cost);
  assign_edges(g);

  takeovers_.clear();
  std::size_t made = 0;
  for (auto o : id_range<op_id>(op_count_)) {
    auto& row = ops_[index(o)];
    row.takeovers = static_cast<std::uint32_t>(takeovers_.size());
    made += row.made;
    if (row.takes_over && row.made != 0) find_takeovers(g, o);
  }
  ops_[op_count_].takeovers = static_cast<std::uint32_t>(takeovers_.size());

  given_.clear();
  if (resident_count_ + made < storages_.size())  // few graphs have storages that are neither resident nor made
    for (auto s : id_range<storage_id>(storages_.size()))
      if (storages_[s].kind != resident && storages_[s].maker == nothing<op_id>) given_.push_back(s);
}

}  // namespace neap::inline v0
