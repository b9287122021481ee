// What a simulator and a scheduler need of a graph, read from its traits once and laid out flat: several orders
// of one graph are then judged without another read. Bytes are rounded up to the alignment, seconds come from a cost
// model, resident storages are left out of the lists because they never change the count.
//
//   flow_facts facts(graph, cost, {.alignment = 64});      // O(ops + edges)
//   simulator sim;
//   for (auto const& order : orders) sim(facts, order);
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/dataflow.hpp>
#include <neap/plan/simulation.hpp>
#include <neap/simulate/cost_model.hpp>

#include <algorithm>
#include <cstdint>
#include <span>

namespace neap { inline namespace v0 {

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

/// Whether a new buffer may be put into the place of another one, as far as sizes go (in bytes, rounded up): whole buffers
/// of equally many bytes, whatever the tensors in them take. The simulator and the lower bound ask this.
constexpr bool fits_in_place(bytes_t of, bytes_t what) { return of == what && what != 0; }

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

  /// Learns another graph; keeps the memory of the tables. Throws neap::error for an alignment that is none. O(ops + edges).
  template <dataflow_graph G, cost_model_for<G> C>
  void assign(G const& g, C const& cost, memory_options options = {});

  memory_options options() const { return options_; }
  std::size_t op_count() const { return op_count_; }
  /// Of these, how many stand in no order: those that an outlined edit replaces or leaves out (outlined_facts.hpp).
  std::size_t absent_ops() const { return absent_; }
  std::size_t storage_count() const { return bytes_.size(); }

  seconds_t seconds(op_id o) const { return ops_[index(o)].seconds; }
  op_stream stream(op_id o) const { return op_stream{static_cast<std::uint8_t>(ops_[index(o)].made_and_stream >> 24)}; }
  bytes_t workspace(op_id o) const { return has_workspace_ ? workspace_[o] : 0; }  // rounded up
  bytes_t bytes(storage_id s) const { return bytes_[s]; }                          // rounded up
  bool is_resident(storage_id s) const { return kinds_[s] == kind::resident; }
  bool is_kept(storage_id s) const { return kinds_[s] == kind::kept; }
  /// The op that makes a storage; nothing for those that no op makes.
  op_id maker(storage_id s) const { return storages_[s].maker; }

  /// Storages, not resident, that an op reads or writes, each once: inputs in order, then outputs.
  std::span<storage_id const> touches(op_id o) const {
    auto const begin = ops_[index(o)].touches;
    return span_of(touches_.data() + begin, ops_[index(o) + 1].touches - begin);
  }
  /// Storages, not resident, that an op makes; the last ones of touches(o).
  std::span<storage_id const> makes(op_id o) const {
    auto const made = ops_[index(o)].made_and_stream & 0xffffff;
    return span_of(touches_.data() + ops_[index(o) + 1].touches - made, made);
  }
  /// Of all ops, by op: a storage is made by one op, so `to` says whose a candidate is. An op's are in the order in which
  /// they are tried.
  std::span<takeover_candidate const> takeovers() const { return span_of(takeovers_); }
  /// Those of one op. O(log candidates).
  std::span<takeover_candidate const> takeovers(op_id o) const {
    auto const below = [&](op_id end) {
      auto const* const first = takeovers_.data();
      return std::partition_point(first, first + takeovers_.size(),
                                  [&](takeover_candidate c) { return maker(c.to) < end; });
    };
    auto const* const first = below(o);
    return span_of(first, static_cast<std::size_t>(below(id_at<op_id>(index(o) + 1)) - first));
  }
  /// Ops that must have ended before an op starts: makers of its inputs, then order_after. Not always distinct.
  std::span<op_id const> after(op_id o) const {
    auto const begin = after_begin_[index(o)];
    return span_of(after_.data() + begin, after_begin_[index(o) + 1] - begin);
  }
  /// The lengths of all ops' lists in `after` together.
  std::size_t after_count() const { return after_begin_.empty() ? 0 : after_begin_[op_count_]; }

  std::span<storage_id const> kept_storages() const { return span_of(kept_); }  // none of them resident
  /// Storages that are neither resident nor made by an op: they are there from the first position.
  std::span<storage_id const> given_storages() const { return span_of(given_); }
  bytes_t resident_bytes() const { return resident_bytes_; }
  bool has_transfers() const { return has_transfers_; }
  bool has_workspace() const { return has_workspace_; }

 protected:
  enum class kind : std::uint8_t { plain, resident, kept };
  // What is read together lies together, and apart from the rest: large graphs do not fit into the caches.
  struct op_row {
    seconds_t seconds = 0;
    std::uint32_t touches = 0;          // where the op's row begins; it ends where the next op's begins
    std::uint32_t made_and_stream = 0;  // 24 bits, 8 bits
  };
  struct storage_row {
    op_id maker;
    std::uint32_t touched_by;  // scratch of assign: one more than the last op that touched it; no_id: resident
  };
  template <class G>
  void assign_storages(G const& g);
  template <class G>
  static constexpr bool knows_producers = requires(G const& g, value_id v) { detail::traits_of<G>::producer(g, v); };
  /// The op that makes a value; where the graph does not tell, begin_ops() has found out.
  template <class G>
  op_id producer(G const& g, value_id v) const {
    if constexpr (knows_producers<G>) return detail::traits_of<G>::producer(g, v);
    else return producer_[v];
  }
  template <class G>
  table<storage_id, unsigned char> begin_ops(G const& g);
  void set_workspace(op_id o, bytes_t bytes) {
    if (workspace_.empty()) workspace_.assign(op_count_, 0);
    workspace_[o] = detail::rounding(options_.alignment)(bytes);
  }
  template <class G, class C>
  std::size_t assign_ops(G const& g, C const& cost);
  template <class G>
  void find_takeovers(G const& g, op_id o);
  template <class G, class In, class StorageIn, class StorageOut>
  void find_takeovers(G const& g, op_id like, op_id made_by, In&& in, StorageIn&& storage_in, StorageOut&& storage_out);

  memory_options options_;
  std::size_t op_count_ = 0, absent_ = 0;
  plain_vector<op_row> ops_;                 // and one more, where the last op's row ends
  plain_vector<std::uint32_t> after_begin_;  // the same for after_
  table<op_id, bytes_t> workspace_;          // empty if no op has any
  table<storage_id, bytes_t> bytes_;
  table<storage_id, storage_row> storages_;
  table<storage_id, kind> kinds_;
  plain_vector<storage_id> touches_;  // may be longer than needed, as after_
  plain_vector<op_id> after_;
  plain_vector<takeover_candidate> takeovers_;
  plain_vector<storage_id> kept_, given_;
  bytes_t resident_bytes_ = 0;
  std::size_t resident_count_ = 0;
  bool has_transfers_ = false, has_workspace_ = false;
  table<value_id, op_id> producer_;  // scratch of assign
};

template <class G>
void flow_facts::assign_storages(G const& g) {
  detail::rounding const round(options_.alignment);
  auto const n = flow::storage_count(g);
  bytes_.resize(n), storages_.resize(n), kinds_.resize(n), kept_.clear();
  resident_bytes_ = 0, resident_count_ = 0;
  auto const set = [&](storage_id s, bool is_resident) {
    auto const bytes = round(flow::bytes(g, s));
    bytes_[s] = bytes;
    storages_[s] = {nothing<op_id>, is_resident ? no_id : 0};
    kinds_[s] = is_resident ? kind::resident : kind::plain;
    if (is_resident) resident_bytes_ = checked_add(resident_bytes_, bytes), ++resident_count_;
  };
  if constexpr (requires(storage_id s) { detail::traits_of<G>::is_resident(g, s); }) {
    for (auto s : id_range<storage_id>(n)) set(s, detail::traits_of<G>::is_resident(g, s));
  } else {
    auto const residents = flow::residents(g);
    for (auto s : id_range<storage_id>(n)) set(s, residents[index(s)]);
  }
  for (auto v : flow::kept(g))
    if (auto const s = flow::storage(g, v); kinds_[s] == kind::plain) {
      kinds_[s] = kind::kept;
      kept_.push_back(s);
    }
}

/// After the op's outputs have their maker.
template <class G>
void flow_facts::find_takeovers(G const& g, op_id o) {
  auto const storage = [&](value_id v) { return flow::storage(g, v); };
  find_takeovers(g, o, o, flow::inputs(g, o), storage, storage);
}
/// Of an op that has `like`'s outputs, in storages made by `made_by`, and reads `in` where that reads its inputs.
template <class G, class In, class StorageIn, class StorageOut>
void flow_facts::find_takeovers(G const& g, op_id like, op_id made_by, In&& in, StorageIn&& storage_in,
                                StorageOut&& storage_out) {
  auto&& outs = flow::outputs(g, like);
  // Of an output, with all others on its storage; of neap's graphs, the one that makes the storage speaks for them.
  auto const allows = [&](std::size_t k, std::size_t j, [[maybe_unused]] storage_id to) {
    bool all = flow::may_take_over(g, like, k, j);
    if constexpr (!std::derived_from<G, op_graph>) {
      std::size_t l = 0;
      for (value_id other : outs) {
        if (l != j && storage_out(other) == to) all = all && flow::may_take_over(g, like, k, l);
        ++l;
      }
    }
    return all;
  };
  // What an op overwrites is always taken over, and comes first.
  auto const first = takeovers_.size();
  if constexpr (std::derived_from<G, op_graph>)
    if (g.has_updates())
      for (value_id out : outs)
        if (auto const& r = g.record(out); r.alias == alias_kind::fresh && r.of >= 0) {
          std::int16_t k = 0;
          for (value_id arg : in)
            if (k++ == r.of && bytes_[storage_out(out)] != 0) takeovers_.push_back({storage_in(arg), storage_out(out)});
        }
  auto const forced = takeovers_.size();
  auto const is_forced = [&](storage_id from, storage_id to) {
    for (auto k = first; k < forced; ++k)
      if (takeovers_[k].from == from || takeovers_[k].to == to) return true;
    return false;
  };
  if (!options_.takeover || !flow::takes_over(g, like)) return;
  std::size_t j = 0;
  for (value_id out : outs) {
    storage_id const to = storage_out(out);
    auto const bytes = bytes_[to];
    if (maker(to) == made_by && bytes != 0)
      for (value_id arg : in) {
        storage_id const from = storage_in(arg);
        if (fits_in_place(bytes_[from], bytes) && kinds_[from] == kind::plain && !is_forced(from, to)) {
          bool all = true;
          std::size_t k = 0;
          for (value_id other : in) {  // another argument may look at the same storage in another way
            if (storage_in(other) == from) all = all && allows(k, j, to);
            ++k;
          }
          for (value_id other : outs) all = all && storage_out(other) != from;  // not one that is written in place
          if (all) takeovers_.push_back({from, to});
        }
      }
    ++j;
  }
}

/// Who makes each value, and room for the rows of ops. Gives the storages, not resident, that a value lies in which no
/// op makes; empty if there are none.
template <class G>
table<storage_id, unsigned char> flow_facts::begin_ops(G const& g) {
  if constexpr (!knows_producers<G>) {
    producer_.assign(flow::value_count(g), nothing<op_id>);
    for (auto o : id_range<op_id>(op_count_))
      for (value_id v : flow::outputs(g, o)) producer_[v] = o;
  }
  table<storage_id, unsigned char> sourced;
  if constexpr (!std::derived_from<G, op_graph>)  // whose ops read what they overwrite
    for (auto v : id_range<value_id>(flow::value_count(g)))
      if (auto const s = flow::storage(g, v); !is_resident(s) && producer(g, v) == nothing<op_id>) {
        if (sourced.empty()) sourced.assign(storages_.size(), 0);
        sourced[s] = 1;
      }
  auto const edges = flow::edge_count(g);
  if (edges > no_id || op_count_ >= 1u << 30) throw_error({"simulate: more than 2^30 ops or 2^32 edges"});
  if (edges > touches_.size()) touches_.resize_for_overwrite(edges), after_.resize_for_overwrite(edges);
  ops_.resize(op_count_ + 1), after_begin_.resize(op_count_ + 1);
  workspace_.clear(), takeovers_.clear();
  return sourced;
}

/// All about each op, in one pass over the graph: time, stream, workspace, what it waits for, which storages it touches
/// and may take over. How many storages are made.
template <class G, class C>
std::size_t flow_facts::assign_ops(G const& g, C const& cost) {
  [[maybe_unused]] auto const sourced = begin_ops(g);
  // Plain pointers: writes to one table cannot make the compiler read the others' addresses again.
  auto* const storages = storages_.data();
  auto* const rows = ops_.data();
  auto* const after_begin = after_begin_.data();
  auto* const touches = touches_.data();
  auto* const after = after_.data();
  bool const takeover = options_.takeover;
  bool overwrites = false;
  if constexpr (std::derived_from<G, op_graph>) overwrites = g.has_updates();
  bool transfers = false;
  std::size_t touched = 0, waits = 0, all_made = 0;
  for (auto o : id_range<op_id>(op_count_)) {
    auto const me = static_cast<std::uint32_t>(index(o)) + 1;
    bool is_wait = false;  // takes no time, whatever the model makes of what is no transfer
    if constexpr (std::derived_from<G, op_graph>) is_wait = g.template as<op::wait>(o);
    seconds_t const seconds = is_wait ? 0 : detail::as_time(cost(g, o), o, "simulate");
    auto const stream = flow::stream(g, o);
    bool const takes_over = stream == op_stream::compute && (overwrites || (takeover && flow::takes_over(g, o)));
    auto const first = touched;
    after_begin[index(o)] = static_cast<std::uint32_t>(waits);
    for (value_id v : flow::inputs(g, o)) {
      auto const p = producer(g, v);
      after[waits] = p;  // no branches: what cannot be foretold costs more than a write
      waits += p < nothing<op_id>;
      auto const s = flow::storage(g, v);
      auto& by = storages[index(s)].touched_by;
      touches[touched] = s;
      touched += by < me;
      by = std::max(by, me);
    }
    for (op_id b : flow::order_after(g, o)) after[waits++] = b;
    if constexpr (!std::derived_from<G, op_graph>)
      if (!sourced.empty())
        for (value_id v : flow::outputs(g, o))  // what is there and overwritten unread is not made
          if (auto const s = flow::storage(g, v); sourced[s] && storages[index(s)].touched_by < me)
            storages[index(s)].touched_by = me, touches[touched++] = s;
    auto const made = touched;
    for (value_id v : flow::outputs(g, o)) {
      auto const s = flow::storage(g, v);
      auto& row = storages[index(s)];
      if (row.touched_by >= me) continue;
      row = {o, me};
      touches[touched++] = s;
    }
    rows[index(o)] = {
        seconds, static_cast<std::uint32_t>(first),
        static_cast<std::uint32_t>(touched - made) | std::uint32_t{static_cast<std::uint8_t>(stream)} << 24};
    transfers |= stream != op_stream::compute;
    all_made += touched - made;
    if (takes_over) find_takeovers(g, o);
    if (auto const n = flow::workspace(g, o); n != 0) set_workspace(o, n);
  }
  rows[op_count_].touches = static_cast<std::uint32_t>(touched);
  after_begin[op_count_] = static_cast<std::uint32_t>(waits);
  has_transfers_ = transfers, has_workspace_ = !workspace_.empty();
  return all_made;
}

template <dataflow_graph G, cost_model_for<G> C>
void flow_facts::assign(G const& g, C const& cost, memory_options options) {
  check_options(options);
  options_ = options;
  op_count_ = flow::op_count(g);
  assign_storages(g);
  auto const made = assign_ops(g, cost);
  given_.clear();
  if (resident_count_ + made < storages_.size())  // few graphs have storages that are neither resident nor made
    for (auto s : id_range<storage_id>(storages_.size()))
      if (!is_resident(s) && maker(s) == nothing<op_id>) given_.push_back(s);
}

}}  // namespace neap::v0
