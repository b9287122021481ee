// The bodies of <neap/execute/path_planner.hpp>.
#pragma once

#include <neap/execute/path_planner.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/execute/plan_like.hpp>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

namespace neap { inline namespace v0 { namespace detail {

inline std::vector<digest> ops_of(op_graph const& g, std::size_t count) {
  std::vector<digest> all;
  for (auto o : g.ops())
    if (all.size() < count) all.push_back(g.digest(o));
  return all;
}
/// Whether an operator of a plan may throw after one that updates memory in place: in the order of the plan.
inline bool throws_late(plan const& p) {
  auto const& g = p.graph;
  bool updates = false;
  for (auto const& s : p.steps) {
    for (auto v : g.outputs(s.op)) updates = updates || g.record(v).alias == alias_kind::update;
    if (updates && g.facets(s.op).checks_numbers) return true;
  }
  return false;
}
/// The value of a plan that is a value of its graph.
inline value_id counterpart(std::span<value_id const> from, std::span<value_id const> to, value_id v) {
  for (std::size_t i = 0; i < from.size() && i < to.size(); ++i)
    if (from[i] == v) return to[i];
  throw_error({"compile: the plan is not one of the graph"});
}
inline bool same_constants(std::vector<tensor> const& a, std::vector<tensor> const& b) {
  return std::ranges::equal(a, b, [](tensor const& s, tensor const& t) {
    auto &x = *s.storage(), &y = *t.storage();
    return x.type() == y.type() && std::memcmp(x.data(), y.data(), static_cast<std::size_t>(x.bytes())) == 0;
  });
}
inline bool same_calls(std::vector<captured_stage::host_call> const& a,
                       std::vector<captured_stage::host_call> const& b) {
  return std::ranges::equal(a, b, [](auto const& p, auto const& q) {
    return p.function->is_like(*q.function) && p.storages == q.storages && p.types == q.types &&
           p.scalars == q.scalars && p.result == q.result && p.gives_tensor == q.gives_tensor && p.storage == q.storage;
  });
}
inline std::string refusal_of(error const& e) {
  std::string_view why = e.what(), own = "compile: ";
  if (auto const at = why.find(own); at != why.npos) why.remove_prefix(at + own.size());
  return "no plan runs it: " + std::string(why);
}

NEAP_FUNC void path_planner::untracked(std::source_location at) const {
  throw_error(at.line() ? at : on_.at,
              {"compile: calls with equal arguments and answers took different paths here: the function depends on "
               "something that is no part of its arguments (a global, a static variable, a clock, a file)"});
}

NEAP_FUNC known_stages path_planner::known(compiled_paths const& in, std::vector<captured_stage> const& stages) {
  known_stages known;
  auto k = in.guards.known(stages.front().path);
  if (k == guard_trie::none) return known;
  known.path = in.paths[k];
  known.stages.push_back(&known.path->first);
  for (std::size_t i = 1; i < stages.size(); ++i) {
    k = known.stages.back()->guards.known(stages[i].path);
    if (k == guard_trie::none) break;
    known.stages.push_back(known.stages.back()->next[k].get());
  }
  return known;
}

NEAP_FUNC void path_planner::require_same(planned_stage const& kept, captured_stage const& s, bool ends) const {
  auto const& a = kept.captured;
  auto const ops = ops_of(s.program, s.op_count);
  for (std::size_t k = 0; k < std::min(ops.size(), kept.ops.size()); ++k)
    if (ops[k] != kept.ops[k]) untracked(s.places[k]);
  bool const same =
      ops.size() == kept.ops.size() && a.path.size() == s.path.size() && a.computes == s.computes &&
      ends == kept.end.has_value() && a.reads == s.reads && a.elements == s.elements &&
      std::ranges::equal(a.sources, s.sources,
                         [](auto const& x, auto const& y) { return x.what == y.what && x.number == y.number; }) &&
      same_calls(a.effects, s.effects) && same_calls(a.external, s.external) &&
      same_constants(a.constants, s.constants);
  if (!same) untracked({});
}

NEAP_FUNC plan path_planner::planned(graph const& g, bytes_t original, length_family* family) const {
  if (!family) return planner_(g, original, nullptr);
  for (auto const& before : family->plans)
    if (is_like(before.program, g)) return planner_(g, original, &before);
  auto made = planner_(g, original, nullptr);
  if (family->plans.size() < options_.graphs) family->plans.push_back({g, made});
  return made;
}

NEAP_FUNC path_planner::stage_plan path_planner::plan_of(captured_stage s, bytes_t original,
                                                         length_family* family) const {
  stage_plan made;
  graph const g(s.computes ? std::move(s.program) : op_graph(table_of<standard_operators>()));
  made.ops = ops_of(g, s.op_count);
  if (g.op_count() > 0) try {
      made.planned = planned(g, original, family);
      for (auto& from : s.sources) from.value = counterpart(g.sources(), made.planned->graph.sources(), from.value);
      for (auto& v : s.kept) v.value = counterpart(g.kept(), made.planned->graph.kept(), v.value);
    } catch (error const& e) { throw no_plan{refusal_of(e)}; }
  made.captured = std::move(s);
  return made;
}

NEAP_FUNC std::vector<std::optional<path_planner::stage_plan>> path_planner::plans_of(
    std::vector<captured_stage>& stages, known_stages const& known, bool is_simple, length_family* family) const {
  bytes_t original = 0;
  for (auto const& s : stages)
    if (!is_simple && s.computes && s.program.op_count() > 0)
      original = std::max(original, plan_in_order(graph(op_graph(s.program))).arena_bytes);
  std::vector<std::optional<stage_plan>> plans(stages.size());
  for (std::size_t i = 0; i < stages.size(); ++i)
    if (i >= known.stages.size() || known.stages[i]->captured.kept.size() < stages[i].kept.size())
      plans[i] = plan_of(std::move(stages[i]), original, family);
  return plans;
}

NEAP_FUNC std::unique_ptr<device_graph> path_planner::on_device(plan p, std::vector<source_binding> const& bindings,
                                                                captured_stage const& s) const {
  using kind = captured_stage::source::kind;
  std::vector<std::size_t> carried;
  for (std::size_t i = 0; i < s.sources.size(); ++i)
    if (s.sources[i].what == kind::storage) carried.push_back(i);
  auto made = on_.device->place(std::move(p), bindings, carried);
  for (std::size_t i = 0; i < s.sources.size(); ++i)
    if (s.sources[i].what == kind::constant) made->bind(i, s.constants[s.sources[i].number].storage());
  return made;
}

NEAP_FUNC void path_planner::place(planned_stage& to, stage_plan from) {
  using kind = captured_stage::source::kind;
  auto& s = from.captured;
  auto const scalars = std::ranges::count(s.sources, kind::scalar, &captured_stage::source::what);
  byte_block room(64 * std::max<std::size_t>(static_cast<std::size_t>(scalars), 1), 64);
  std::vector<source_binding> bindings;  // of what is neither a scalar nor a constant in each run
  std::vector<value_id> sources, kept;
  std::size_t k = 0;
  for (auto const& source : s.sources) {
    void* at = room.data();
    if (source.what == kind::scalar) at = room.data() + 64 * k++;
    if (source.what == kind::constant) at = s.constants[source.number].storage()->data();
    bindings.push_back({source.value, at});
    sources.push_back(source.value);
  }
  for (auto const& v : s.kept) kept.push_back(v.value);
  std::unique_ptr<bound_graph> run;
  std::unique_ptr<device_graph> on_device;
  bool const may_throw_late = from.planned && throws_late(*from.planned);
  if (from.planned) try {
      if (on_.device) on_device = this->on_device(std::move(*from.planned), bindings, s);
      else
        run = std::make_unique<bound_graph>(std::move(*from.planned), std::move(bindings), backend_, options_.run,
                                            on_.memory);
    } catch (error const& e) { throw no_plan{refusal_of(e)}; }
  to.kept_bytes = 0;
  for (auto const& v : s.kept)
    if (!on_.device || on_.device->carries(v.type)) to.kept_bytes += align_up(v.type.bytes(), 64);
  to.captured = std::move(s), to.run = std::move(run), to.on_device = std::move(on_device);
  to.sources = std::move(sources), to.kept = std::move(kept), to.ops = std::move(from.ops);
  to.scalars = std::move(room), to.throws_late = may_throw_late;
}

NEAP_FUNC bool path_planner::add(compiled_paths& to, captured_path p, known_stages const& known, bool is_beginning,
                                 std::shared_ptr<void> form, std::string const& full) {
  auto& stages = p.stages;
  auto const n = stages.size(), begin = known.stages.size();
  auto* const last = begin == 0 ? nullptr : known.stages.back();
  for (std::size_t i = 0; i < begin; ++i) require_same(*known.stages[i], stages[i], i + 1 == n && !is_beginning);
  if (begin == n) {
    if (!is_beginning && !(*last->end == p.end)) untracked({});
    return false;
  }
  // Guards first: a path that contradicts those that are known changes nothing.
  auto guards = last ? last->guards : to.guards;
  auto const path = stages[begin].path;
  auto const number = static_cast<std::uint32_t>(last ? last->next.size() : to.paths.size());
  if (auto const k = guards.add(path, number); k <= path.size())
    untracked(k < path.size() ? path[k].at : std::source_location{});
  if (last && !full.empty()) throw no_plan{full, true};
  bool const is_simple = n == 1 && !is_beginning && !stages.front().needs_host();
  auto plans = plans_of(stages, known, is_simple, to.family.get());

  std::scoped_lock const alone(on_.running);
  if (on_.is_in_host_code) throw no_plan{in_host_code, true};
  auto const in = last ? known.path : std::make_shared<planned_path>();
  auto branch = last ? std::make_unique<planned_stage>() : nullptr;
  auto* s = last ? branch.get() : &in->first;
  for (auto i = begin;; ++i) {
    place(*s, std::move(*plans[i]));
    if (i + 1 == n) break;
    s->guards.add(plans[i + 1]->captured.path, 0);
    s = s->next.emplace_back(std::make_unique<planned_stage>()).get();
  }
  for (std::size_t i = 0; i < begin; ++i)
    if (plans[i]) place(*known.stages[i], std::move(*plans[i]));
  s->result = std::move(form);
  if (!is_beginning) {
    auto const& kept = s->captured.kept;
    for (auto const& m : p.end.made) {
      auto const at = std::ranges::find(kept, m.storage, &captured_stage::kept_storage::storage);
      s->made.push_back(at == kept.end() ? planned_stage::made_before : static_cast<std::uint32_t>(at - kept.begin()));
    }
    s->end = std::move(p.end);
    ++in->count;
  }
  if (last) last->guards = std::move(guards), last->next.push_back(std::move(branch));
  else to.guards = std::move(guards), in->is_simple = is_simple, to.paths.push_back(in);
  in->arena_bytes = in->first.needed();
  if (!is_simple) in->tape = std::make_shared<expression_tape const>(to.tape);
  return true;
}

}}}  // namespace neap::v0::detail
