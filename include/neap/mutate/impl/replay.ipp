// The bodies of <neap/mutate/replay.hpp>.
#pragma once

#include <neap/mutate/replay.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/mutate/gap.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC replay_builder::replay_builder(op_graph const& g, schedule const& order,
                                         plain_vector<bool> const& may_run_again)
    : g_(g),
      order_(order),
      may_run_again_(may_run_again),
      there_(g.value_count(), false),
      has_run_(g.op_count(), false),
      now_(g.value_count()) {
  if (g.has_updates()) written_.assign(g.storage_count(), 0);
  for (auto v : g.values()) {
    now_[v] = v;
    there_[index(v)] = g.producer(v) == nothing<op_id>;
  }
  values_.build(g.storage_count(), [&](auto&& pair) {
    for (auto v : g.values()) pair(g.storage(v), v);
  });
  out_.order.order.reserve(order.size() + order.size() / 2);
}

NEAP_FUNC bool replay_builder::run(op_id wanted) {
  if (failed_) return false;
  open_.push_back(wanted);
  while (!open_.empty() && !failed_) {
    auto const o = open_.back();
    if (has_run_[index(o)] && is_there(o)) {
      open_.pop_back();
      continue;
    }
    auto const depth = open_.size();
    for (auto v : g_.inputs(o))
      if (!there_[index(v)]) {
        failed_ = failed_ || g_.producer(v) == nothing<op_id>;  // a source that was overwritten
        open_.push_back(g_.producer(v));
      }
    if (!has_run_[index(o)])
      for (auto before : g_.order_after(o))
        if (!has_run_[index(before)]) open_.push_back(before);
    if (open_.size() > depth) continue;
    if (has_run_[index(o)]) run_again(o);
    else run_first(o);
    open_.pop_back();
  }
  return !failed_;
}

NEAP_FUNC bool replay_builder::run_with_views(op_id wanted) {
  if (!run(wanted)) return false;
  for (auto v : g_.outputs(wanted))
    for (auto const& u : g_.uses(v))
      if (flow::is_view(g_, u.op) && !has_run_[index(u.op)] && is_ready(u.op) && !run_with_views(u.op)) return false;
  return true;
}

NEAP_FUNC bool replay_builder::is_ready(op_id o) const {
  for (auto before : g_.order_after(o))
    if (!has_run_[index(before)]) return false;
  return true;
}

NEAP_FUNC void replay_builder::store(storage_id s) {
  auto const whole = g_.record(s).first;
  if (failed_ || !there_[index(whole)]) return;
  away_.resize(g_.storage_count(), nothing<value_id>);
  away_[index(s)] = add_transfer(graph_edit::kind::store, whole, now_[whole]);
}

NEAP_FUNC void replay_builder::load(storage_id s) {
  if (failed_ || !is_away(s)) return;
  auto const whole = g_.record(s).first;
  forget(s);
  now_[whole] = add_transfer(graph_edit::kind::load, whole, away_[index(s)]);
  there_[index(whole)] = true;
}

NEAP_FUNC std::optional<replayed> replay_builder::edit() && {
  for (auto o : order_)
    if (!has_run_[index(o)] && !run(o)) return std::nullopt;
  if (failed_) return std::nullopt;
  remove_dead(g_, out_.edit, std::move(maybe_dead_));
  return std::move(out_);
}

NEAP_FUNC bool replay_builder::is_there(op_id o) const {
  for (auto v : g_.outputs(o))
    if (!there_[index(v)]) return false;
  return true;
}

NEAP_FUNC void replay_builder::run_first(op_id o) {
  for (auto v : g_.inputs(o))
    if (now_[v] != v) out_.edit.read_instead(o, v, now_[v]);
  has_run_[index(o)] = true;
  out_.order.order.push_back(o);
  for (auto v : g_.outputs(o)) {
    there_[index(v)] = true;
    if (g_.record(v).alias == alias_kind::update) written_[g_.storage(v)] = g_.record(v).version;
  }
  forget_overwritten(o);
}

NEAP_FUNC void replay_builder::forget_overwritten(op_id o) {
  if (!g_.overwrites_any(o)) return;
  for (auto v : g_.outputs(o))
    if (auto const base = g_.overwrites(v); base != nothing<value_id>) forget(g_.storage(base));
}

NEAP_FUNC void replay_builder::run_again(op_id o) {
  failed_ = !may_run_again_[index(o)];
  if (!written_.empty())
    for (auto v : g_.inputs(o)) failed_ = failed_ || g_.record(v).version < written_[g_.storage(v)];
  if (failed_) return;
  maybe_dead_.push_back(o), maybe_dead_.push_back(next_run());
  auto made = out_.edit.run_again(g_, o, here());
  for (auto v : g_.inputs(o)) out_.edit.reads.push_back(now_[v]);
  for (auto v : g_.outputs(o)) {
    auto const copy = std::exchange(made, id_at<value_id>(index(made) + 1));
    if (there_[index(v)]) continue;  // who reads this one goes on with what is there
    there_[index(v)] = true;
    now_[v] = copy;
  }
  forget_overwritten(o);
}

NEAP_FUNC plain_vector<bool> droppable_storages(op_graph const& g, plain_vector<bool> const& may_run_again) {
  auto const movable = detail::movable_storages(g);
  plain_vector<bool> may(g.storage_count(), false);
  for (auto s : g.storages()) {
    auto const maker = g.producer(g.record(s).first);
    may[index(s)] = movable[index(s)] && maker != nothing<op_id> && may_run_again[index(maker)];
  }
  return may;
}

}}  // namespace neap::v0
