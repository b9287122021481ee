// The bodies of <neap/mutate/build_edit.hpp>.
#pragma once

#include <neap/mutate/build_edit.hpp>

#include <neap/core/number_map.hpp>
#include <neap/core/separate_compilation.hpp>
#include <neap/ir/editor.hpp>

#include <algorithm>
#include <cstdint>

namespace neap { inline namespace v0 {

namespace detail {

NEAP_FUNC void drop_ops(schedule& order, std::vector<bool> const& dead) {
  std::vector<std::uint32_t> number(dead.size());
  std::uint32_t n = 0;
  for (std::size_t i = 0; i < number.size(); ++i) number[i] = dead[i] ? no_id : n++;
  std::size_t kept = 0;
  for (auto o : order.order)
    if (!dead[index(o)]) order.order[kept++] = op_id{number[index(o)]};
  order.order.resize(kept);
}

/// Who needs what in a graph that an edit changes. O(what the edit names), and what is looked at.
class edit_needs {
 public:
  edit_needs(op_graph const& g, graph_edit& edit) : g_(g), edit_(edit) {
    for (auto v : edit.reads) add_readers(v, 1);
    for (auto const& r : edit.rereads)
      for (auto v : g.inputs(r.reader))
        if (v == r.from) add_readers(v, -1), add_readers(r.to, 1);
  }
  bool is_dead(op_id o) const { return dead_.contains(index(o)); }
  bool is_needed(op_id o) {
    auto const like = is_new(o) ? edit_.runs[run_of(o)].like : o;
    if (like != nothing<op_id>)
      if (g_.outputs(like).empty() || is_pinned_to_stay(g_, like, [&] { return stays_elsewhere(o, like); }))
        return true;
    if (!is_new(o)) {
      for (auto v : g_.outputs(o))
        if (g_.is_kept(v) || g_.record(v).alias == alias_kind::update || is_read(v)) return true;
      return false;
    }
    find_first_values();
    for (auto v = first_value_[run_of(o)]; v < first_value_[run_of(o) + 1]; ++v)
      if (is_read(value_id{v})) return true;
    return false;
  }
  void remove(op_id o, std::vector<op_id>& stack) {
    dead_.add(index(o), 0);
    if (is_new(o)) {
      ++dead_runs_;
      auto const& r = edit_.runs[run_of(o)];
      for (auto v : r.inputs(g_, edit_)) unread(v, stack);
    } else {
      edit_.left_out.push_back(o);
      for (auto v : g_.inputs(o)) unread(reads_now(o, v), stack);
    }
  }
  /// Runs that are dead go; the others are numbered anew.
  void renumber_runs() {
    if (dead_runs_ == 0) return;
    find_first_values();
    std::vector<std::uint32_t> value(edit_.new_values), number(edit_.runs.size(), no_id);
    auto const now = [&](value_id v) { return is_new(v) ? value_id{value[index(v) - g_.value_count()]} : v; };
    graph_edit kept;
    auto next = static_cast<std::uint32_t>(g_.value_count());
    for (std::size_t k = 0; k < edit_.runs.size(); ++k) {
      if (is_dead(id_at<op_id>(g_.op_count() + k))) continue;
      for (auto v = first_value_[k]; v < first_value_[k + 1]; ++v) value[v - g_.value_count()] = next++;
      number[k] = static_cast<std::uint32_t>(kept.runs.size());
      auto r = edit_.runs[k];
      r.reads = static_cast<std::uint32_t>(kept.reads.size());
      kept.runs.push_back(r);
      for (auto v : edit_.runs[k].inputs(g_, edit_)) kept.reads.push_back(now(v));
    }
    for (auto k : edit_.sequence)
      if (number[k] != no_id) kept.sequence.push_back(number[k]);
    for (auto const& r : edit_.rereads)
      if (!is_dead(r.reader)) kept.rereads.push_back({r.reader, r.from, now(r.to)});
    kept.left_out = std::move(edit_.left_out);
    kept.new_values = next - static_cast<std::uint32_t>(g_.value_count());
    edit_ = std::move(kept);
  }

 private:
  static constexpr std::uint32_t none = 1u << 30;  // readers are counted from a large number, since some are taken away

  bool is_new(op_id o) const { return index(o) >= g_.op_count(); }
  bool is_new(value_id v) const { return index(v) >= g_.value_count(); }
  std::size_t run_of(op_id o) const { return index(o) - g_.op_count(); }
  void find_first_values() {
    if (!first_value_.empty()) return;
    auto n = static_cast<std::uint32_t>(g_.value_count());
    for (auto const& r : edit_.runs) first_value_.push_back(n), n += static_cast<std::uint32_t>(r.output_count(g_));
    first_value_.push_back(n);
  }
  void add_readers(value_id v, int by) {
    auto const more = static_cast<std::uint32_t>(by);
    if (!change_.add(index(v), none + more)) change_.set(index(v), change_.find(index(v)) + more);
  }
  bool is_read(value_id v) const {
    auto const by = change_.find(index(v));
    auto const uses = is_new(v) ? 0 : static_cast<std::int64_t>(g_.uses(v).size());
    return uses + (by == number_map::none ? 0 : std::int64_t{by} - none) > 0;
  }
  value_id reads_now(op_id reader, value_id v) const {
    for (auto const& r : edit_.rereads)
      if (r.reader == reader && r.from == v) return r.to;
    return v;
  }
  void unread(value_id v, std::vector<op_id>& stack) {
    add_readers(v, -1);
    auto maker = nothing<op_id>;
    if (is_new(v)) {
      find_first_values();
      auto const run = std::upper_bound(first_value_.begin(), first_value_.end(), index(v)) - first_value_.begin() - 1;
      maker = id_at<op_id>(g_.op_count() + static_cast<std::size_t>(run));
    } else {
      maker = g_.producer(v);
    }
    if (maker != nothing<op_id>) stack.push_back(maker);
  }
  bool stays_elsewhere(op_id o, op_id like) const {
    auto const origin = g_.origin(like);
    for (std::size_t k = 0; k < edit_.runs.size(); ++k) {
      auto const x = id_at<op_id>(g_.op_count() + k);
      auto const of = edit_.runs[k].like;
      if (of != nothing<op_id> && x != o && g_.origin(of) == origin && !is_dead(x)) return true;
    }
    for (auto x : g_.ops())
      if (x != o && g_.origin(x) == origin && !is_dead(x)) return true;
    return false;
  }

  op_graph const& g_;
  graph_edit& edit_;
  number_map change_;  // of readers, by value
  number_map dead_;
  std::vector<std::uint32_t> first_value_;  // by run; empty before one is looked at
  std::size_t dead_runs_ = 0;
};

}  // namespace detail

NEAP_FUNC void remove_dead(op_graph const& g, graph_edit& edit, std::vector<op_id> maybe_dead) {
  detail::edit_needs needs(g, edit);
  detail::remove_dead_ops(std::move(maybe_dead), needs);
  needs.renumber_runs();
}

namespace detail {

NEAP_FUNC op_graph build_edit(op_graph const& g, schedule const& order, graph_edit const& what,
                              schedule& edited_order) {
  graph_editor edit{g};
  for (auto const& r : what.runs) {
    auto const inputs = r.inputs(g, what);
    switch (r.what) {
      case graph_edit::kind::again: {
        auto const copy = edit.clone(r.like);
        for (std::size_t i = 0; i < inputs.size(); ++i) edit.set_input(copy, i, inputs[i]);
        break;
      }
      case graph_edit::kind::store: (void)edit.add(op::store{}, inputs); break;
      case graph_edit::kind::load: (void)edit.add(op::load{}, inputs); break;
      case graph_edit::kind::wait: (void)edit.add(op::wait{}, inputs); break;
    }
  }
  auto const& rereads = what.rereads;
  for (std::size_t k = 0, end = 0; k < rereads.size(); k = end) {
    auto const o = rereads[k].reader;
    for (end = k; end < rereads.size() && rereads[end].reader == o;) ++end;
    for (std::size_t i = 0, n = g.inputs(o).size(); i < n; ++i)
      for (auto r = k; r < end; ++r)
        if (rereads[r].from == g.inputs(o)[i]) {
          edit.set_input(o, i, rereads[r].to);
          break;
        }
  }
  std::vector<bool> dead(g.op_count() + what.runs.size());
  for (auto o : what.left_out) edit.remove(o), dead[index(o)] = true;
  edited_order.order.clear();
  edited_order.order.reserve(order.size() + what.runs.size());
  std::size_t p = 0;
  auto const up_to = [&](std::size_t end) {
    edited_order.order.insert(edited_order.order.end(), order.begin() + p, order.begin() + end);
    p = end;
  };
  for (std::size_t k = 0; k < what.runs.size(); ++k) {
    auto const run = what.in_order(k);
    up_to(what.runs[run].before);
    edited_order.order.push_back(id_at<op_id>(g.op_count() + run));
  }
  up_to(order.size());
  if (!what.left_out.empty()) drop_ops(edited_order, dead);
  return std::move(edit).finish();
}

}  // namespace detail

}}  // namespace neap::v0
