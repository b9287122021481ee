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

/// Short lists appended one row after the other.
template <class Item>
class row_list {
 public:
  std::span<Item const> operator[](std::size_t r) const { return {items_.data() + begin_[r], items_.data() + begin_[r + 1]}; }
  std::size_t row_count() const { return begin_.empty() ? 0 : begin_.size() - 1; }
  std::size_t item_count() const { return items_.size(); }
  void clear() {
    begin_.assign(1, 0);
    items_.clear();
  }
  void add(Item x) { items_.push_back(x); }
  void end_row() { begin_.push_back(static_cast<std::uint32_t>(items_.size())); }

 private:
  std::vector<std::uint32_t> begin_{0};
  std::vector<Item> items_;
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
  table<storage_id, std::uint32_t> read_by_, written_by_;
  table<value_id, op_id> producer_;
};

template <dataflow_graph G, cost_model_for<G> C>
void flow_facts::assign(G const& g, C const& cost, memory_options options) {
  options_ = options;
  auto const ops = flow::op_count(g), storages = flow::storage_count(g);
  seconds_.resize(ops), stream_.resize(ops), workspace_.resize(ops), made_.resize(ops);
  bytes_.resize(storages);
  kind_.assign(storages, plain);
  maker_.assign(storages, nothing<op_id>);
  read_by_.assign(storages, no_id), written_by_.assign(storages, no_id);
  touches_.clear(), takeovers_.clear(), after_.clear(), kept_.clear(), given_.clear();
  resident_bytes_ = 0;
  has_transfers_ = has_workspace_ = false;

  auto const residents = flow::residents(g);
  for (auto s : id_range<storage_id>(storages)) {
    bytes_[s] = align_up(flow::bytes(g, s), options.alignment);
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

  for (auto o : id_range<op_id>(ops)) {
    seconds_[o] = cost(g, o);
    stream_[o] = flow::stream(g, o);
    workspace_[o] = align_up(flow::workspace(g, o), options.alignment);
    has_transfers_ |= stream_[o] != op_stream::compute;
    has_workspace_ |= workspace_[o] != 0;
    auto const me = static_cast<std::uint32_t>(index(o));

    for (value_id v : flow::inputs(g, o)) {
      if (producer_[v] != nothing<op_id>) after_.add(producer_[v]);
      auto const s = flow::storage(g, v);
      if (kind_[s] == resident || read_by_[s] == me) continue;
      read_by_[s] = me;
      touches_.add(s);
    }
    for (op_id before : flow::order_after(g, o)) after_.add(before);
    std::uint32_t made = 0;
    for (value_id v : flow::outputs(g, o)) {
      auto const s = flow::storage(g, v);
      if (kind_[s] == resident || written_by_[s] == me) continue;
      written_by_[s] = me;
      if (read_by_[s] == me) continue;
      touches_.add(s);
      maker_[s] = o;
      ++made;
    }
    made_[o] = made;
    touches_.end_row();
    after_.end_row();

    if (options.takeover && made && stream_[o] == op_stream::compute) {
      std::size_t j = 0;
      for (value_id out : flow::outputs(g, o)) {
        auto const to = flow::storage(g, out);
        if (maker_[to] == o && bytes_[to] != 0) {
          std::size_t i = 0;
          for (value_id in : flow::inputs(g, o)) {
            auto const from = flow::storage(g, in);
            if (kind_[from] == plain && bytes_[from] == bytes_[to] && written_by_[from] != me &&
                flow::may_take_over(g, o, i, j)) {
              bool all = true;  // another argument may look at the same storage in another way
              std::size_t k = 0;
              for (value_id other : flow::inputs(g, o)) {
                if (other != in && flow::storage(g, other) == from) all &= flow::may_take_over(g, o, k, j);
                ++k;
              }
              if (all) takeovers_.add({from, to});
            }
            ++i;
          }
        }
        ++j;
      }
    }
    takeovers_.end_row();
  }
  for (auto s : id_range<storage_id>(storages))
    if (kind_[s] != resident && maker_[s] == nothing<op_id>) given_.push_back(s);
}

}  // namespace neap::inline v0
