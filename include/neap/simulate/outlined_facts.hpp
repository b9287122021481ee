// The facts of a candidate that is edited as an outline says (plan/graph_edit.hpp), without building it: a few rows are
// added behind those of the candidate, and taken away again. A simulator reads them like any others, so that what it says
// of the outline is what it would say of the graph, to the byte and to the last bit.
//
//   outlined_facts facts(candidate.graph, cost);
//   facts.apply(candidate.order, outline);
//   auto const would_be = simulator.judge(facts, facts.order());
//   facts.take_back();
//
// An op that reads something else gets a new row, and its old one stands in no order, as those of ops that are left out.
// Copies take as long as what they are copies of: a cost model that distinguishes them reads the graph itself.
#pragma once

#include <neap/plan/graph_edit.hpp>
#include <neap/plan/schedule.hpp>
#include <neap/simulate/flow_facts.hpp>

#include <algorithm>
#include <cstdint>

namespace neap { inline namespace v0 {

/// G is a graph of neap's.
class outlined_facts : public flow_facts {
 public:
  outlined_facts() = default;
  template <class C>
  outlined_facts(op_graph const& g, C const& cost, memory_options options = {}) {
    assign(g, cost, options);
  }
  /// Reads a graph, which must outlive these facts. O(ops + edges).
  template <class C>
  void assign(op_graph const& g, C const& cost, memory_options options = {}) {
    flow_facts::assign(g, cost, options);
    g_ = &g;
    base_ops_ = op_count_, base_storages_ = storages_.size(), base_takeovers_ = takeovers_.size();
    absent_ = 0, base_has_transfers_ = has_transfers_;
    row_of_.assign(op_count_, no_id);
    takeover_begin_.assign(op_count_ + 1, 0);
    for (auto const& c : takeovers_) ++takeover_begin_[index(maker(c.to)) + 1];
    for (std::size_t o = 0; o < op_count_; ++o) takeover_begin_[o + 1] += takeover_begin_[o];
    waits_.clear(), disabled_.clear(), changed_.clear();
  }

  /// The facts become those of the graph as edited; the outline is of it and `order`. Once, until take_back(). O(ops), and
  /// what the outline names with its inputs and outputs.
  void apply(schedule const& order, graph_edit const& outline) {
    add_rows(outline);
    put_in_order(order, outline);
  }
  /// The same without order(). O(what the outline names).
  void add_rows(graph_edit const& outline) {
    made_.clear();
    touch_end_ = ops_[base_ops_].touches, after_end_ = after_begin_[base_ops_];
    nobodys_ = add_storage(0, nothing<op_id>);
    for (auto o : outline.left_out) row_of_[o] = gone, changed_.push_back(o), disable_takeovers(o);
    for (auto const& r : outline.runs)
      if (r.what == graph_edit::kind::again) add_copy(outline, r);
      else add_transfer(outline, r);
    for (std::size_t k = 0; k < outline.rereads.size();) {
      auto const o = outline.rereads[k].reader;
      auto end = k + 1;
      while (end < outline.rereads.size() && outline.rereads[end].reader == o) ++end;
      if (row_of_[o] != gone) add_reader(o, span_of(outline.rereads.data() + k, end - k));
      k = end;
    }
    if (has_transfers_) tell_followers();
  }
  /// The edited graph's ops in their order.
  schedule const& order() const { return order_; }

  std::size_t base_op_count() const { return base_ops_; }
  std::size_t base_storage_count() const { return base_storages_; }
  /// Ops of the graph that have another row, or none.
  std::span<op_id const> changed() const { return span_of(changed_); }
  /// The row that stands for an op of the graph; nothing if it is left out.
  op_id row_of(op_id o) const {
    auto const r = row_of_[o];
    return r == gone ? nothing<op_id> : r == no_id ? o : op_id{r};
  }
  /// What an op of the graph, which is as it was, may take over.
  std::span<takeover_candidate const> base_takeovers(op_id o) const {
    auto const begin = takeover_begin_[index(o)];
    return span_of(takeovers_.data() + begin, takeover_begin_[index(o) + 1] - begin);
  }
  /// What the new rows may take over.
  std::span<takeover_candidate const> new_takeovers() const {
    return span_of(takeovers_.data() + base_takeovers_, takeovers_.size() - base_takeovers_);
  }
  void take_back() {
    for (auto const& w : waits_) after_[w.at] = w.was;
    waits_.clear();
    for (auto const& t : disabled_) takeovers_[t.at] = t.was;
    disabled_.clear();
    takeovers_.resize(base_takeovers_);
    for (auto o : changed_) row_of_[o] = no_id;
    changed_.clear();
    op_count_ = base_ops_, absent_ = 0, has_transfers_ = base_has_transfers_;
    ops_.resize(base_ops_ + 1), after_begin_.resize(base_ops_ + 1);
    if (has_workspace_) workspace_.resize(base_ops_);
    bytes_.resize(base_storages_), storages_.resize(base_storages_), kinds_.resize(base_storages_);
  }

 private:
  static constexpr std::uint32_t gone = no_id - 1;  // as a row

  /// The storage of a value of the graph or of a copy.
  storage_id storage_of(value_id v) const {
    auto const n = g_->value_count();
    return index(v) < n ? g_->storage(v) : made_[index(v) - n].storage;
  }
  op_id producer_of(value_id v) const {
    auto const n = g_->value_count();
    if (index(v) >= n) return made_[index(v) - n].by;
    return g_->producer(v);
  }

  storage_id add_storage(bytes_t bytes, op_id maker) {
    bytes_.push_back(bytes);
    kinds_.push_back(kind::plain);
    return storages_.push_back({maker, 0});
  }
  /// A new row after the others.
  op_id begin_row(seconds_t seconds, op_stream stream, bytes_t workspace) {
    ops_.back() = {seconds, static_cast<std::uint32_t>(touch_end_),
                   std::uint32_t{static_cast<std::uint8_t>(stream)} << 24};
    ops_.push_back({});
    if (has_workspace_) workspace_.push_back(workspace);
    return id_at<op_id>(op_count_++);
  }
  op_id begin_row(op_id like) { return begin_row(seconds(like), stream(like), workspace(like)); }
  void touch(std::size_t row_begin, storage_id s) {
    if (is_resident(s)) return;
    for (auto k = row_begin; k < touch_end_; ++k)
      if (touches_[k] == s) return;
    if (touch_end_ == touches_.size()) touches_.push_back(s);
    touches_[touch_end_++] = s;
  }
  void wait_for(op_id o) {
    if (o == nothing<op_id>) return;
    if (after_end_ == after_.size()) after_.push_back(o);
    after_[after_end_++] = o;
  }
  void end_row(op_id o, std::size_t made) {
    auto& row = ops_[index(o)];
    row.made_and_stream = static_cast<std::uint32_t>(made) | (row.made_and_stream & 0xff000000u);
    ops_[index(o) + 1].touches = static_cast<std::uint32_t>(touch_end_);
    after_begin_.push_back(static_cast<std::uint32_t>(after_end_));
  }

  void add_copy(graph_edit const& outline, graph_edit::run const& c) {
    auto const o = begin_row(c.like);
    auto const begin = touch_end_, first = made_.size();
    auto const reads = c.inputs(*g_, outline);
    for (auto v : reads) wait_for(producer_of(v)), touch(begin, storage_of(v));
    auto const made = touch_end_;
    auto const outputs = g_->outputs(c.like);
    for (std::size_t j = 0; j < outputs.size(); ++j) {
      auto const& r = g_->record(outputs[j]);
      storage_id s;
      if (r.alias == alias_kind::fresh) {
        s = add_storage(bytes_[r.storage], o);
        touch(begin, s);
      } else {
        s = r.of >= 0 ? storage_of(reads[static_cast<std::size_t>(r.of)])
                      : made_[first + static_cast<std::size_t>(-2 - r.of)].storage;
      }
      made_.push_back({s, o});
    }
    end_row(o, touch_end_ - made);
    add_takeovers(c.like, o, reads, [&](std::size_t j) { return made_[first + j].storage; });
  }

  void add_transfer(graph_edit const& outline, graph_edit::run const& t) {
    auto const read = outline.reads[t.reads];
    if (t.what == graph_edit::kind::wait) {  // looks at the handle that it waits for
      auto const o = begin_row(0, op_stream::compute, 0);
      auto const begin = touch_end_;
      wait_for(producer_of(read)), touch(begin, storage_of(read));
      made_.push_back({storage_of(read), o});
      end_row(o, 0);
      return;
    }
    bool const stores = t.what == graph_edit::kind::store;
    has_transfers_ = true;
    auto const o = begin_row(t.seconds, stores ? op_stream::to_host : op_stream::to_device, 0);
    auto const begin = touch_end_;
    wait_for(producer_of(read)), touch(begin, storage_of(read));
    auto const s = add_storage(stores ? 0 : bytes_[g_->storage(t.moved)], o);
    touch(begin, s);
    made_.push_back({s, o});
    end_row(o, 1);
  }

  void add_reader(op_id reader, std::span<graph_edit::reread const> changes) {
    reads_.clear();
    for (auto v : g_->inputs(reader)) {
      for (auto const& c : changes)
        if (c.from == v) {
          v = c.to;
          break;
        }
      reads_.push_back(v);
    }
    auto const made = makes(reader).size();
    auto const o = begin_row(reader);
    auto const begin = touch_end_;
    for (auto v : reads_) wait_for(producer_of(v)), touch(begin, storage_of(v));
    for (auto before : g_->order_after(reader)) wait_for(before);
    outputs_.clear();
    for (auto v : g_->outputs(reader)) {
      auto const& r = g_->record(v);
      auto const in = static_cast<std::size_t>(r.of), out = static_cast<std::size_t>(-2 - r.of);
      outputs_.push_back(r.alias == alias_kind::fresh ? r.storage : r.of >= 0 ? storage_of(reads_[in]) : outputs_[out]);
      touch(begin, outputs_.back());
    }
    end_row(o, made);
    row_of_[reader] = static_cast<std::uint32_t>(index(o));
    changed_.push_back(reader);
    disable_takeovers(reader);
    add_takeovers(reader, reader, span_of(reads_), [&](std::size_t j) { return outputs_[j]; });
  }

  template <class StorageOfOutput>
  void add_takeovers(op_id like, op_id made_by, std::span<value_id const> reads, StorageOfOutput&& storage_of_output) {
    if (g_->outputs(like).empty()) return;
    auto const first = index(g_->outputs(like).front());
    find_takeovers(
        *g_, like, made_by, reads, [&](value_id v) { return storage_of(v); },
        [&](value_id v) { return storage_of_output(index(v) - first); });
  }
  /// What is no candidate any more gets an unused storage.
  void disable_takeovers(op_id o) {
    for (auto at = takeover_begin_[index(o)]; at < takeover_begin_[index(o) + 1]; ++at) {
      disabled_.push_back({at, takeovers_[at]});
      takeovers_[at] = {nobodys_, nobodys_};
    }
  }

  /// Waits for an op that has another row now are for that row.
  void tell_followers() {
    for (auto k = after_begin_[base_ops_]; k < after_end_; ++k) after_[k] = now(after_[k]);
    for (auto o : changed_) {
      if (now(o) == o) continue;
      for (auto v : g_->outputs(o))
        for (auto const& u : g_->uses(v))
          for (auto k = after_begin_[index(u.op)]; k < after_begin_[index(u.op) + 1]; ++k)
            if (after_[k] == o) waits_.push_back({k, o}), after_[k] = now(o);
    }
  }
  /// The row that stands for an op.
  op_id now(op_id o) const { return index(o) < base_ops_ && row_of_[o] < gone ? op_id{row_of_[o]} : o; }

  void put_in_order(schedule const& order, graph_edit const& outline) {
    order_.order.clear();
    order_.order.reserve(order.size() + outline.runs.size());
    std::uint32_t p = 0;
    auto const up_to = [&](std::uint32_t end) {
      for (; p < end; ++p) {
        auto const row = row_of_[order[p]];
        if (row != gone) order_.order.push_back(row == no_id ? order[p] : op_id{row});
      }
    };
    for (std::size_t k = 0; k < outline.runs.size(); ++k) {
      auto const run = outline.in_order(k);
      up_to(outline.runs[run].before), order_.order.push_back(id_at<op_id>(base_ops_ + run));
    }
    up_to(static_cast<std::uint32_t>(order.size()));
    absent_ = op_count_ - order_.size();
  }

  op_graph const* g_ = nullptr;
  std::size_t base_ops_ = 0, base_storages_ = 0, base_takeovers_ = 0;
  bool base_has_transfers_ = false;
  std::size_t touch_end_ = 0, after_end_ = 0;   // of the rows in use
  table<op_id, std::uint32_t> row_of_;          // the row in place of an op's own; gone; no_id: its own
  plain_vector<std::uint32_t> takeover_begin_;  // by op: where its candidates begin
  plain_vector<op_id> changed_;                 // those that have another one
  struct made_value {
    storage_id storage;
    op_id by;
  };
  plain_vector<made_value> made_;  // values of copies, by number
  plain_vector<value_id> reads_;   // scratch
  plain_vector<storage_id> outputs_;
  struct old_wait {
    std::size_t at;
    op_id was;
  };
  plain_vector<old_wait> waits_;
  struct old_takeover {
    std::size_t at;
    takeover_candidate was;
  };
  plain_vector<old_takeover> disabled_;
  storage_id nobodys_ = nothing<storage_id>;
  schedule order_;
};

}}  // namespace neap::v0
