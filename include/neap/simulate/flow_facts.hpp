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

#include <cstdint>
#include <span>
#include <vector>

namespace neap::inline v0 {

namespace detail {

/// Short lists written one row after the other: ask for room, write, say how many.
template <class Item>
class row_list {
 public:
  std::span<Item const> operator[](std::size_t r) const {
    return {items_.data() + begin_[r], items_.data() + begin_[r + 1]};
  }
  void clear(std::size_t rows) {
    begin_.resize(rows + 1);
    begin_[0] = 0;
    row_ = used_ = 0;
  }
  Item* room(std::size_t n) {
    if (used_ + n > items_.size()) items_.resize(2 * items_.size() + n);
    return items_.data() + used_;
  }
  void end_row(Item const* end) {
    used_ = static_cast<std::size_t>(end - items_.data());
    begin_[++row_] = static_cast<std::uint32_t>(used_);
  }

 private:
  std::vector<std::uint32_t> begin_{0};
  std::vector<Item> items_;  // the first used_ count
  std::size_t row_ = 0, used_ = 0;
};

}  // namespace detail

namespace detail {

/// How many items a range has; graph_traits may give ranges of any kind.
template <class Range>
std::size_t count_of(Range const& range) {
  if constexpr (requires { range.size(); }) {
    return range.size();
  } else {
    std::size_t n = 0;
    for ([[maybe_unused]] auto const& x : range) ++n;
    return n;
  }
}

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
  std::size_t op_count() const { return seconds_.size(); }
  std::size_t storage_count() const { return bytes_.size(); }

  seconds_t seconds(op_id o) const { return seconds_[o]; }
  op_stream stream(op_id o) const { return stream_[o]; }
  bytes_t workspace(op_id o) const { return workspace_[o]; }  // rounded up
  bytes_t bytes(storage_id s) const { return bytes_[s]; }     // rounded up
  bool is_resident(storage_id s) const { return kind_[s] == resident; }
  bool is_kept(storage_id s) const { return kind_[s] == kept; }
  /// The op that makes a storage; nothing for those that no op makes.
  op_id maker(storage_id s) const { return maker_[s]; }

  /// Storages, not resident, that an op reads or writes, each once: inputs in order, then outputs.
  std::span<storage_id const> touches(op_id o) const { return touches_[index(o)]; }
  /// Storages, not resident, that an op makes; the last ones of touches(o).
  std::span<storage_id const> makes(op_id o) const { return touches(o).last(made_[o]); }
  /// In the order in which they are tried.
  std::span<takeover_candidate const> takeovers(op_id o) const { return takeovers_[index(o)]; }
  /// Ops that must have ended before an op starts: makers of its inputs, then order_after. Not always distinct.
  std::span<op_id const> after(op_id o) const { return after_[index(o)]; }

  std::span<storage_id const> kept_storages() const { return kept_; }  // none of them resident
  /// Storages that are neither resident nor made by an op: they are there from the first position.
  std::span<storage_id const> given_storages() const { return given_; }
  bytes_t resident_bytes() const { return resident_bytes_; }
  bool has_transfers() const { return has_transfers_; }
  bool has_workspace() const { return has_workspace_; }

 private:
  enum kind : std::uint8_t { plain, resident, kept };
  memory_options options_;
  table<op_id, seconds_t> seconds_;
  table<op_id, op_stream> stream_;
  table<op_id, bytes_t> workspace_;
  table<op_id, std::uint32_t> made_;
  table<storage_id, bytes_t> bytes_;
  table<storage_id, std::uint8_t> kind_;
  table<storage_id, op_id> maker_;
  detail::row_list<storage_id> touches_;
  detail::row_list<takeover_candidate> takeovers_;
  detail::row_list<op_id> after_;
  std::vector<storage_id> kept_, given_;
  bytes_t resident_bytes_ = 0;
  bool has_transfers_ = false, has_workspace_ = false;
  // scratch of assign
  struct last_seen {
    std::uint32_t read_by, written_by;  // ops
  };
  table<storage_id, last_seen> seen_;
  table<value_id, op_id> producer_;
};

template <dataflow_graph G, cost_model_for<G> C>
void flow_facts::assign(G const& g, C const& cost, memory_options options) {
  options_ = options;
  detail::rounding const round(options.alignment);
  auto const ops = flow::op_count(g), storages = flow::storage_count(g);
  seconds_.resize(ops), stream_.resize(ops), workspace_.resize(ops), made_.resize(ops);
  bytes_.resize(storages);
  kind_.assign(storages, plain);
  maker_.assign(storages, nothing<op_id>);
  seen_.assign(storages, {no_id, no_id});
  touches_.clear(ops), takeovers_.clear(ops), after_.clear(ops), kept_.clear(), given_.clear();
  resident_bytes_ = 0;
  has_transfers_ = has_workspace_ = false;

  auto const residents = flow::residents(g);
  for (auto s : id_range<storage_id>(storages)) {
    bytes_[s] = round(flow::bytes(g, s));
    if (residents[index(s)]) {
      kind_[s] = resident;
      resident_bytes_ = checked_add(resident_bytes_, bytes_[s]);
    }
  }
  for (auto v : flow::kept(g))
    if (auto const s = flow::storage(g, v); kind_[s] == plain) {
      kind_[s] = kept;
      kept_.push_back(s);
    }

  producer_.assign(flow::value_count(g), nothing<op_id>);
  for (auto o : id_range<op_id>(ops))
    for (value_id v : flow::outputs(g, o)) producer_[v] = o;

  // Plain pointers: writes to one table cannot make the compiler read the others' addresses again.
  auto* const kinds = kind_.data();
  auto* const seen = seen_.data();
  auto* const makers = maker_.data();
  auto const* const bytes = bytes_.data();
  auto const* const producers = producer_.data();
  bool transfers = false, workspaces = false;
  for (auto o : id_range<op_id>(ops)) {
    auto const me = static_cast<std::uint32_t>(index(o));
    auto&& in = flow::inputs(g, o);
    auto&& outs = flow::outputs(g, o);
    auto&& also_after = flow::order_after(g, o);
    auto const in_count = detail::count_of(in), out_count = detail::count_of(outs);
    auto const stream = flow::stream(g, o);
    auto const workspace = round(flow::workspace(g, o));
    seconds_[o] = cost(g, o);
    stream_[o] = stream;
    workspace_[o] = workspace;
    transfers |= stream != op_stream::compute;
    workspaces |= workspace != 0;

    storage_id* touched = touches_.room(in_count + out_count);
    op_id* before = after_.room(in_count + detail::count_of(also_after));
    for (value_id v : in) {
      if (producers[index(v)] != nothing<op_id>) *before++ = producers[index(v)];
      auto const s = flow::storage(g, v);
      if (kinds[index(s)] == resident || seen[index(s)].read_by == me) continue;
      seen[index(s)].read_by = me;
      *touched++ = s;
    }
    for (op_id b : also_after) *before++ = b;
    std::uint32_t made = 0;
    for (value_id v : outs) {
      auto const s = flow::storage(g, v);
      if (kinds[index(s)] == resident || seen[index(s)].written_by == me) continue;
      seen[index(s)].written_by = me;
      if (seen[index(s)].read_by == me) continue;
      *touched++ = s;
      makers[index(s)] = o;
      ++made;
    }
    made_[o] = made;
    touches_.end_row(touched);
    after_.end_row(before);

    takeover_candidate* candidate = takeovers_.room(in_count * out_count);
    if (options.takeover && made && stream == op_stream::compute) {
      std::size_t j = 0;
      for (value_id out : outs) {
        auto const to = flow::storage(g, out);
        std::size_t i = 0;
        if (makers[index(to)] == o && bytes[index(to)] != 0)
          for (value_id arg : in) {
            auto const from = flow::storage(g, arg);
            if (kinds[index(from)] == plain && bytes[index(from)] == bytes[index(to)] &&
                seen[index(from)].written_by != me && flow::may_take_over(g, o, i, j)) {
              bool all = true;  // another argument may look at the same storage in another way
              std::size_t k = 0;
              for (value_id other : in) {
                if (other != arg && flow::storage(g, other) == from) all &= flow::may_take_over(g, o, k, j);
                ++k;
              }
              if (all) *candidate++ = {from, to};
            }
            ++i;
          }
        ++j;
      }
    }
    takeovers_.end_row(candidate);
  }
  has_transfers_ = transfers, has_workspace_ = workspaces;
  for (auto s : id_range<storage_id>(storages))
    if (kind_[s] != resident && maker_[s] == nothing<op_id>) given_.push_back(s);
}

}  // namespace neap::inline v0
