// The bodies of <neap/execute/compiled_base.hpp>.
#pragma once

#include <neap/execute/compiled_base.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/execute/plan_like.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>
#include <string_view>
#include <unordered_map>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC std::shared_ptr<compiled_paths> compiled_base::paths_of(std::string const& signature) {
  for (auto key = std::hash<std::string>{}(signature);; ++key) {
    auto const row = by_signature_.find(key);
    if (row == number_map::none) return nullptr;
    if (paths_[row]->signature == signature) return paths_[row];
  }
}

NEAP_FUNC void compiled_base::add_paths(std::shared_ptr<compiled_paths> fresh) {
  auto key = std::hash<std::string>{}(fresh->signature);
  while (by_signature_.contains(key)) ++key;
  by_signature_.add(key, static_cast<std::uint32_t>(paths_.size()));
  last_ = fresh;
  paths_.push_back(std::move(fresh));
}

NEAP_FUNC std::shared_ptr<compiled_paths> compiled_base::fresh_paths(compiled_call& now,
                                                                     argument_state const& begin) const {
  auto made = std::make_shared<compiled_paths>();
  made->signature = begin.signature;
  made->cell_count = begin.cells.size();
  if (options_.lengths.empty()) return made;
  argument_state without(false, &options_.lengths);
  walk_all(now, without);
  for (auto const& p : paths_)
    if (p->family && p->family->signature == without.signature) made->family = p->family;
  if (!made->family) {
    made->family = std::make_shared<length_family>();
    made->family->signature = std::move(without.signature);
  }
  return made;
}

NEAP_FUNC void compiled_base::count_graphs() {
  std::size_t n = 0;
  std::unordered_map<length_family const*, std::size_t> most;
  for (auto const& p : paths_) {
    auto const count = p->path_count();
    auto* before = p->family ? &most[p->family.get()] : nullptr;
    if (!before) n += count;
    else if (count > *before) n += count - std::exchange(*before, count);
  }
  graphs_ = n;
}

NEAP_FUNC void compiled_base::drop_paths(std::shared_ptr<compiled_paths> const& p) {
  auto others = std::exchange(paths_, {});
  by_signature_.clear();
  for (auto& other : others)
    if (other != p) add_paths(std::move(other));
  count_graphs();
}

NEAP_FUNC bool compiled_base::drop_oldest() {
  std::shared_ptr<compiled_paths> in;
  std::size_t at = 0;
  for (auto& p : paths_)
    for (std::size_t k = 0; k < p->graphs.size(); ++k)
      if (!in || p->graphs[k]->last_used < in->graphs[at]->last_used) in = p, at = k;
  if (!in) return false;
  publications_.fetch_add(1, std::memory_order_release);
  if (in->graphs.size() == 1 || ++in->dropped > 4 * options_.graphs + 64) return drop_paths(in), true;
  in->graphs.erase(in->graphs.begin() + static_cast<std::ptrdiff_t>(at));
  in->guards = guard_trie();
  for (std::uint32_t k = 0; k < in->graphs.size(); ++k) in->guards.add(in->graphs[k]->captured.path, k);
  in->publish();
  count_graphs();
  return true;
}

NEAP_FUNC bool compiled_base::has_room(compiled_paths const& of) const {
  if (graphs_ < options_.graphs) return true;
  if (!of.family || options_.graphs == 0) return false;
  std::size_t most = 0;  // that this graph has with another length
  for (auto const& p : paths_)
    if (p->family == of.family) most = std::max(most, p->path_count());
  return of.path_count() < most;
}

NEAP_FUNC bool compiled_base::make_room(compiled_paths const& of) {
  while (!has_room(of) && options_.full == when_full::drop_oldest && drop_oldest()) {}
  return has_room(of);
}

NEAP_FUNC void compiled_base::publish(std::shared_ptr<compiled_paths> const& to, bool is_fresh) {
  to->publish();
  publications_.fetch_add(1, std::memory_order_release);
  if (is_fresh && to->family) {
    std::size_t lengths = 0;
    std::shared_ptr<compiled_paths> oldest;
    for (auto const& p : paths_)
      if (p->family == to->family && (++lengths, !oldest || p->last_used() < oldest->last_used())) oldest = p;
    if (lengths >= std::max<std::size_t>(options_.max_lengths, 1)) drop_paths(oldest);
  }
  if (is_fresh) add_paths(to);
  count_graphs();
}

NEAP_FUNC std::string compiled_base::other_signature(argument_state const& named) const {
  if (paths_.empty()) return "it is the first call";
  auto const& before = last_ ? last_->signature : paths_.back()->signature;
  auto const n = std::min(before.size(), named.signature.size());
  std::size_t k = 0;
  while (k < n && before[k] == named.signature[k]) ++k;
  return named.name_at(k) + " differs from earlier calls";
}

NEAP_FUNC std::string compiled_base::other_answer(std::source_location asked, expression_tape const& tape,
                                                  std::uint32_t question, std::vector<std::string> const& names) const {
  std::string text = "the question";
  bool const knows_place = asked.line() != 0 && (asked.line() != at_.line() || place_of(asked) != place_of(at_));
  if (knows_place) text += " at " + place_of(asked);
  std::vector<std::string> of;
  std::vector<std::uint32_t> open;
  if (question != guard_trie::none) open.push_back(question);
  std::vector<bool> met(tape.size());
  while (!open.empty()) {
    auto const k = open.back();
    open.pop_back();
    if (met[k]) continue;
    met[k] = true;
    auto const& e = tape[k];
    if (e.what == expression::kind::call) open.push_back(e.b), open.push_back(e.a);
    if (e.what != expression::kind::cell) continue;
    auto name = e.a < names.size() ? names[e.a] : std::string("an element of a tensor or a function of the host");
    if (std::ranges::find(of, name) == of.end()) of.push_back(std::move(name));
  }
  for (std::size_t k = 0; k < of.size() && k < 3; ++k) text += (k == 0 ? " about " : ", ") + of[k];
  if (of.size() > 3) text += " and others";
  return text + " got another answer";
}

NEAP_FUNC std::string compiled_base::limit_reached(std::string const& why) const {
  return "the limit of " + std::to_string(options_.graphs) + " graphs is reached, and " + why +
         ": give what changes from call to call as neap::sym or neap::state, and read tensors by neap::item";
}

NEAP_FUNC std::vector<digest> compiled_base::ops_of(op_graph const& g, std::size_t count) {
  std::vector<digest> all;
  for (auto o : g.ops())
    if (all.size() < count) all.push_back(g.digest(o));
  return all;
}

NEAP_FUNC bool compiled_base::throws_late(plan<graph> const& p) {
  auto const& g = p.graph;
  bool updates = false;
  for (auto const& s : p.steps) {
    for (auto v : g.outputs(s.op)) updates = updates || g.record(v).alias == alias_kind::update;
    if (updates && g.facets(s.op).checks_numbers) return true;
  }
  return false;
}

NEAP_FUNC value_id compiled_base::counterpart(std::span<value_id const> from, std::span<value_id const> to,
                                              value_id v) {
  for (std::size_t i = 0; i < from.size() && i < to.size(); ++i)
    if (from[i] == v) return to[i];
  throw_error({"compile: the plan is not one of the graph"});
}

NEAP_FUNC byte_block compiled_base::scalars_of(std::vector<captured_stage::source> const& sources) {
  auto const n = std::ranges::count(sources, captured_stage::source::kind::scalar, &captured_stage::source::what);
  return byte_block(64 * std::max<std::size_t>(static_cast<std::size_t>(n), 1), 64);
}

NEAP_FUNC std::vector<source_binding> compiled_base::bindings_of(std::vector<captured_stage::source> const& sources,
                                                                 std::vector<value_id> const& planned,
                                                                 std::vector<tensor> const& constants,
                                                                 byte_block const& scalars) {
  using kind = captured_stage::source::kind;
  std::vector<source_binding> bindings;
  std::size_t k = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    auto const& from = sources[i];
    void* at = scalars.data();
    if (from.what == kind::scalar) at = scalars.data() + 64 * k++;
    if (from.what == kind::constant) at = constants[from.number].storage()->data();
    bindings.push_back({planned[i], at});
  }
  return bindings;
}

NEAP_FUNC std::unique_ptr<device_graph> compiled_base::placed(plan<graph> p,
                                                              std::vector<source_binding> const& bindings,
                                                              std::vector<captured_stage::source> const& sources,
                                                              std::vector<tensor> const& constants) {
  std::vector<std::size_t> carried;
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (sources[i].what == captured_stage::source::kind::row) carried.push_back(i);
  auto made = device_->place(std::move(p), bindings, carried);
  for (std::size_t i = 0; i < sources.size(); ++i)
    if (sources[i].what == captured_stage::source::kind::constant)
      made->bind(i, constants[sources[i].number].storage());
  return made;
}

NEAP_FUNC std::vector<graph> compiled_base::graphs_of(captured_program p) {
  std::vector<graph> all;
  if (p.stages.empty()) all.emplace_back(std::move(p.program));
  for (auto& s : p.stages)
    if (s.computes && s.program.op_count() > 0) all.emplace_back(std::move(s.program));
  return all;
}

NEAP_FUNC std::string compiled_base::refusal(error const& e) {
  std::string_view why = e.what(), own = "compile: ";
  if (auto const at = why.find(own); at != why.npos) why.remove_prefix(at + own.size());
  return "no plan runs it: " + std::string(why);
}

NEAP_FUNC bool compiled_base::finds_sharing(compiled_graph const& g, known_arguments const& begin) {
  auto const& c = g.captured;
  auto const storage = [&](std::uint32_t k) -> tensor_storage& { return *tensor_of(c, begin, k).storage(); };
  bool const shares = !c.elements.empty() && is_shared_element(c.sources, c.updated, storage);
  if (shares) elements_share_ = true;
  return shares;
}

NEAP_FUNC void compiled_base::describe(recorder& rec, argument_state const& begin, sizes const& n, argument_state& end,
                                       argument_state& result, captured_program& p) {
  if (end.form != begin.form.substr(0, n.form) || end.tensors.size() != n.tensors || end.cells.size() != n.cells ||
      end.plains.size() != n.plains)
    return rec.set_unusable("it changed the structure of an argument");
  for (std::size_t k = 0; k < begin.handles.size(); ++k)
    if (auto const& h = begin.handles[k]; !h.is_empty())
      if (argument_state::memory_of(h) != begin.memory[k])
        return rec.set_unusable("it froze or freed a weight of an argument, or gave it other memory");
  for (std::uint32_t k = 0; k < n.cells; ++k)
    if (!end.cells[k].mark && end.cells[k].address != begin.cells[k].address)
      return rec.set_unusable("it moved a neap::state of an argument to another address");
  for (std::uint32_t k = 0; k < n.tensors; ++k)
    if (!are_alike(begin.handles[k], end.handles[k])) p.tensors.push_back({k, rec.leave(*end.tensors[k])});
  for (std::uint32_t k = 0; k < n.cells; ++k)
    if (auto const e = rec.written(end.cells[k]); e != rec.begun(k)) p.cells.push_back({k, e});
  for (std::uint32_t k = 0; k < n.plains; ++k) {
    auto const &a = begin.plains[k], &b = end.plains[k];
    auto const after = end.plain_bytes.substr(b.at, b.bytes);
    if (begin.plain_bytes.compare(a.at, a.bytes, after) != 0) p.plains.push_back({k, after});
  }
  rec.leave_containers(p);
  for (auto* t : result.tensors) p.result.push_back(rec.leave(*t));
  for (auto const& c : result.cells) {
    auto const e = rec.left(c);
    if (e == number_map::none) rec.set_unusable("its result has a neap::state: give a neap::sym");
    p.result_cells.push_back(e);
  }
  p.result_bytes = result.plain_bytes + result.form;
}

NEAP_FUNC plan<graph> compiled_base::planned(graph const& g, bytes_t original, length_family* family) const {
  if (!family) return planner_(g, original, nullptr);
  for (auto const& before : family->plans)
    if (is_like(before.program, g)) return planner_(g, original, &before);
  auto made = planner_(g, original, nullptr);
  if (family->plans.size() < options_.graphs) family->plans.push_back({g, made});
  return made;
}

NEAP_FUNC std::shared_ptr<compiled_graph> compiled_base::planned(captured_program p, length_family* family) {
  auto made = std::make_shared<compiled_graph>();
  graph const g(std::move(p.program));
  made->ops = ops_of(g);
  made->scalars = scalars_of(p.sources);
  if (g.op_count() > 0) try {
      auto planned = this->planned(g, 0, family);
      for (auto const& s : p.sources)
        made->sources.push_back(counterpart(g.sources(), planned.graph.sources(), s.value));
      auto bindings = bindings_of(p.sources, made->sources, p.constants, made->scalars);
      made->throws_late = throws_late(planned);
      for (auto v : p.made) made->made.push_back(counterpart(g.kept(), planned.graph.kept(), v));
      std::scoped_lock const alone(running_);
      require_free();
      if (device_) made->on_device = placed(std::move(planned), bindings, p.sources, p.constants);
      else
        made->run =
            std::make_unique<bound_graph>(std::move(planned), std::move(bindings), backend_, options_.run, arena_);
    } catch (error const& e) { made->refused = refusal(e); }
  made->captured = std::move(p);
  return made;
}

NEAP_FUNC void compiled_base::require_same(compiled_graph const& kept, captured_program const& p) const {
  auto const& a = kept.captured;
  auto const ops = ops_of(p.program);
  for (std::size_t k = 0; k < std::min(ops.size(), kept.ops.size()); ++k)
    if (ops[k] != kept.ops[k]) untracked(p.places[k]);
  bool same = ops.size() == kept.ops.size() && a.path.size() == p.path.size() && a.tensors == p.tensors &&
              a.cells == p.cells && a.plains == p.plains && a.result == p.result && a.result_cells == p.result_cells &&
              a.result_bytes == p.result_bytes && a.containers == p.containers && a.elements == p.elements &&
              a.made == p.made && a.made_rows == p.made_rows && !a.thrown == !p.thrown &&
              a.sources.size() == p.sources.size() && a.constants.size() == p.constants.size();
  for (std::size_t k = 0; same && k < a.sources.size(); ++k)
    same = a.sources[k].what == p.sources[k].what && a.sources[k].number == p.sources[k].number;
  same = same && same_constants(a.constants, p.constants);
  if (!same) untracked({});
}

NEAP_FUNC bool compiled_base::same_constants(std::vector<tensor> const& a, std::vector<tensor> const& b) {
  for (std::size_t k = 0; k < a.size() && k < b.size(); ++k) {
    auto &x = *a[k].storage(), &y = *b[k].storage();
    if (x.type() != y.type() || std::memcmp(x.data(), y.data(), static_cast<std::size_t>(x.bytes())) != 0) return false;
  }
  return a.size() == b.size();
}

NEAP_FUNC std::vector<planned_stage*> compiled_base::known_stages(compiled_paths const& in,
                                                                  std::vector<captured_stage> const& stages) {
  std::vector<planned_stage*> known;
  auto k = in.guards.known(stages.front().path);
  if (k == guard_trie::none || !in.graphs[k]->staged) return known;
  known.push_back(in.graphs[k]->staged.get());
  for (std::size_t i = 1; i < stages.size(); ++i) {
    k = known.back()->guards.known(stages[i].path);
    if (k == guard_trie::none) break;
    known.push_back(known.back()->next[k].get());
  }
  return known;
}

NEAP_FUNC void compiled_base::require_same(planned_stage const& kept, captured_stage const& s, bool ends) const {
  auto const& a = kept.captured;
  auto const ops = ops_of(s.program, s.op_count);
  for (std::size_t k = 0; k < std::min(ops.size(), kept.ops.size()); ++k)
    if (ops[k] != kept.ops[k]) untracked(s.places[k]);
  auto const calls_alike = [](std::vector<captured_stage::host_call> const& x,
                              std::vector<captured_stage::host_call> const& y) {
    return std::ranges::equal(x, y, [](auto const& p, auto const& q) {
      return p.function->is_like(*q.function) && p.rows == q.rows && p.types == q.types && p.scalars == q.scalars &&
             p.cell == q.cell && p.gives_tensor == q.gives_tensor && p.row == q.row;
    });
  };
  bool const same =
      ops.size() == kept.ops.size() && a.computes == s.computes && ends == (kept.end != nullptr) &&
      a.reads == s.reads && a.elements == s.elements &&
      std::ranges::equal(a.sources, s.sources,
                         [](auto const& x, auto const& y) { return x.what == y.what && x.number == y.number; }) &&
      calls_alike(a.effects, s.effects) && calls_alike(a.external, s.external) &&
      same_constants(a.constants, s.constants);
  if (!same) untracked({});
}

NEAP_FUNC compiled_base::stage_plan compiled_base::plan_of(captured_stage s, bytes_t original,
                                                           length_family* family) const {
  stage_plan made;
  graph const g(s.computes ? std::move(s.program) : op_graph(table_of<standard_operators>()));
  made.ops = ops_of(g, s.op_count);
  if (g.op_count() > 0) try {
      made.peak = plan_in_order(g).arena_bytes;
      made.planned = planned(g, std::max(original, made.peak), family);
      for (auto& from : s.sources) from.value = counterpart(g.sources(), made.planned->graph.sources(), from.value);
      for (auto& v : s.kept) v.value = counterpart(g.kept(), made.planned->graph.kept(), v.value);
    } catch (error const& e) { throw no_plan{refusal(e)}; }
  made.captured = std::move(s);
  return made;
}

NEAP_FUNC void compiled_base::place_stage(planned_stage& to, stage_plan from) {
  auto& s = from.captured;
  planned_stage made;
  made.scalars = scalars_of(s.sources);
  if (from.planned) try {
      for (auto const& source : s.sources) made.sources.push_back(source.value);
      for (auto const& k : s.kept) made.kept.push_back(k.value);
      auto bindings = bindings_of(s.sources, made.sources, s.constants, made.scalars);
      made.throws_late = throws_late(*from.planned);
      if (device_) made.on_device = placed(std::move(*from.planned), bindings, s.sources, s.constants);
      else
        made.run = std::make_unique<bound_graph>(std::move(*from.planned), std::move(bindings), backend_, options_.run,
                                                 arena_);
    } catch (error const& e) { throw no_plan{refusal(e)}; }
  to.kept_bytes = 0;
  for (auto const& k : s.kept)
    if (!device_ || device_->carries(k.type)) to.kept_bytes += align_up(k.type.bytes(), 64);
  to.captured = std::move(s), to.run = std::move(made.run), to.on_device = std::move(made.on_device);
  to.sources = std::move(made.sources);
  to.kept = std::move(made.kept), to.ops = std::move(from.ops), to.scalars = std::move(made.scalars);
  to.peak = from.peak, to.throws_late = made.throws_late;
}

NEAP_FUNC bool compiled_base::add(compiled_paths& to, captured_program p, std::vector<planned_stage*> const& known,
                                  bool is_beginning, std::shared_ptr<void> form) {
  auto stages = std::move(p.stages);
  auto const n = stages.size();
  for (std::size_t i = 0; i < known.size(); ++i) require_same(*known[i], stages[i], i + 1 == n && !is_beginning);
  if (known.size() == n && is_beginning) return false;
  if (known.size() == n) {
    auto const& end = *known.back()->end;
    bool const same = end.tensors == p.tensors && end.cells == p.cells && end.plains == p.plains &&
                      end.containers == p.containers && end.result == p.result && end.result_cells == p.result_cells &&
                      end.result_bytes == p.result_bytes && end.made_rows == p.made_rows && !end.thrown == !p.thrown;
    if (!same) untracked({});
    return false;
  }
  // Guards first: a path that contradicts those that are known changes nothing.
  auto& trie = known.empty() ? to.guards : known.back()->guards;
  auto const path = stages[known.size()].path;
  auto const number = static_cast<std::uint32_t>(known.empty() ? to.graphs.size() : known.back()->next.size());
  auto trial = trie;
  if (auto const k = trial.add(path, number); k <= path.size())
    untracked(k < path.size() ? path[k].at : std::source_location{});
  if (!known.empty() && !has_room(to)) throw no_plan{limit_reached("it takes a path that is not known"), true};
  bytes_t original = 0;
  for (std::size_t i = 0; i < n; ++i)
    if (stages[i].computes) {
      graph const g(op_graph(stages[i].program));
      if (g.op_count() > 0) original = std::max(original, plan_in_order(g).arena_bytes);
    }
  // What is known and keeps more now is planned again: earlier paths find what they need.
  std::vector<std::optional<stage_plan>> plans(n);
  for (std::size_t i = 0; i < n; ++i)
    if (i >= known.size() || known[i]->captured.kept.size() < stages[i].kept.size())
      plans[i] = plan_of(std::move(stages[i]), original, to.family.get());
  std::scoped_lock const alone(running_);
  require_free();
  std::unique_ptr<planned_stage> first;
  planned_stage* last = nullptr;
  for (std::size_t i = known.size(); i < n; ++i) {
    auto fresh = std::make_unique<planned_stage>();
    auto* const now = fresh.get();
    auto const guards = plans[i]->captured.path;
    place_stage(*now, std::move(*plans[i]));
    if (!first) {
      first = std::move(fresh);
    } else {
      last->guards.add(guards, 0);
      last->next.push_back(std::move(fresh));
    }
    last = now;
  }
  for (std::size_t i = 0; i < known.size(); ++i)
    if (plans[i]) place_stage(*known[i], std::move(*plans[i]));
  last->result = std::move(form);
  if (!is_beginning) last->end = std::make_unique<captured_program>(std::move(p));
  trie = std::move(trial);
  planned_stage* const root = known.empty() ? first.get() : known.front();
  if (known.empty()) {
    auto made = std::make_shared<compiled_graph>();
    made->captured.path = path;
    made->staged = std::move(first);
    to.graphs.push_back(std::move(made));
  } else {
    known.back()->next.push_back(std::move(first));
  }
  root->arena_bytes = root->needed();
  return true;
}

NEAP_FUNC void compiled_base::report_uses(known_arguments const& begin, captured_program const& c) {
  for (auto const& t : begin.tensors())
    if (!t.is_empty && may_be_window(*t.now->storage())) recording_watch::uses(*t.now->storage());
  for (auto const u : c.updated) recording_watch::uses(*tensor_of(c, begin, u).storage());
  for (auto const& p : begin.places()) recording_watch::uses(p.value);
  for (auto const& w : c.cells) recording_watch::writes(begin.place(w.cell).value);
}

NEAP_FUNC bool compiled_base::run(compiled_graph& g, known_arguments const& begin, results& r) {
  auto& made = r.made;
  using kind = captured_program::source::kind;
  auto const& c = g.captured;
  auto const storage = [&](std::uint32_t k) -> tensor_storage& { return *tensor_of(c, begin, k).storage(); };
  made.reserve(c.made_rows.size());
  for (auto const& m : c.made_rows) made.push_back(unwritten_storage(m.type, m.as));
  if (!c.containers.empty()) prepare(c, begin, r);
  if (!g.run) {
    if (g.on_device) run_on_device(g, begin, r);
    return true;
  }
  if (finds_sharing(g, begin)) return false;
  if (recording_watch::is_under_way()) report_uses(begin, c);
  std::scoped_lock const alone(running_);
  if (is_in_host_code_) {
    r.finds_others = true;
    return false;
  }
  std::size_t k = 0;
  for (std::size_t i = 0; i < c.sources.size(); ++i) {
    auto const& s = c.sources[i];
    if (s.what == kind::argument) (*g.run)->bind(g.sources[i], memory_of(s, tensor_of(c, begin, s.number)));
    if (s.what == kind::scalar) {
      auto const bits = begin.value(s.number);
      std::memcpy(g.scalars.data() + 64 * k++, &bits, sizeof bits);
    }
  }
  std::vector<byte_block> before;
  bool const saves = g.throws_late || (*g.run)->spill() != nullptr;
  for (auto const u : c.updated) {
    auto& s = storage(u);
    s.keep_for_readers();
    if (!saves) continue;
    before.emplace_back(static_cast<std::size_t>(std::max<bytes_t>(s.bytes(), 1)), 64);
    std::memcpy(before.back().data(), s.data(), static_cast<std::size_t>(s.bytes()));
  }
  // Without copies, it is an operator before all updates that has thrown; lack of memory may meet any operator.
  bool const unchanged = saves || c.updated.empty();
  auto const restore = [&] {
    for (std::size_t u = 0; u < before.size(); ++u) {
      auto& s = storage(c.updated[u]);
      std::memcpy(s.data(), before[u].data(), static_cast<std::size_t>(s.bytes()));
    }
    return false;
  };
  try {
    (**g.run)();
  } catch (std::bad_alloc const&) {
    if (!unchanged) throw;
    return restore();
  } catch (...) {
    if (!unchanged && !c.may_throw) throw;
    return restore();
  }
  for (auto const u : c.updated) storage(u).written();
  for (std::size_t i = 0; i < made.size(); ++i) {
    auto const from = (*g.run)->value(g.made[i]);
    auto& s = *made[i];
    if (s.bytes() > 0) std::memcpy(s.data(), from.data, static_cast<std::size_t>(s.bytes()));
  }
  return true;
}

NEAP_FUNC void compiled_base::run_on_device(compiled_graph& g, known_arguments const& begin, results& r) {
  using kind = captured_program::source::kind;
  auto const& c = g.captured;
  auto const storage = [&](std::uint32_t k) -> auto const& { return tensor_of(c, begin, k).storage(); };
  std::scoped_lock const alone(running_);
  if (is_in_host_code_) refuse_on_device(in_host_code);
  std::size_t k = 0;
  for (std::size_t i = 0; i < c.sources.size(); ++i) {
    auto const& s = c.sources[i];
    if (s.what == kind::argument) g.on_device->bind(i, storage(s.number));
    if (s.what == kind::scalar) {
      auto const bits = begin.value(s.number);
      std::memcpy(g.scalars.data() + 64 * k++, &bits, sizeof bits);
    }
  }
  for (auto const u : c.updated) storage(u)->keep_for_readers();
  with_place(at_, [&] { (*g.on_device)(); });
  for (auto const u : c.updated) storage(u)->written();
  for (std::size_t i = 0; i < r.made.size(); ++i) {
    auto const from = g.on_device->value(g.made[i]);
    auto& to = *r.made[i];
    if (to.bytes() > 0) std::memcpy(to.data(), from.data, static_cast<std::size_t>(to.bytes()));
  }
}

NEAP_FUNC tracked_base& compiled_base::container_of(known_arguments const& begin, std::uint32_t cell) {
  return **static_cast<tracked_base**>(begin.place(cell).value);
}

NEAP_FUNC tensor const& compiled_base::tensor_of(captured_program const& c, known_arguments const& begin,
                                                 std::uint32_t k) {
  auto const n = begin.tensors().size();
  if (k < n) return *begin.tensors()[k].now;
  auto const& e = c.elements[k - n];
  return *detail::container_of(begin.value(e.container)).tensor_at(begin.value(e.place));
}

NEAP_FUNC tensor compiled_base::tensor_from(captured_program const& c, tensor_origin const& o,
                                            known_arguments const& begin,
                                            std::vector<std::shared_ptr<tensor_storage>> const& made) {
  return tensor_of_origin(
      o, [&](std::uint32_t k) -> tensor const& { return tensor_of(c, begin, k); }, made);
}

NEAP_FUNC void compiled_base::prepare(captured_program const& c, known_arguments const& begin, results& r) {
  for (auto const& w : c.containers) {
    r.changes.push_back(change_of(
        w, [&](tensor_origin const& o) { return tensor_from(c, o, begin, r.made); },
        [&](std::uint32_t e) { return begin.value(e); }));
    container_of(begin, w.cell).prepare(r.changes.back());
  }
}

NEAP_FUNC void compiled_base::commit(captured_program const& c, known_arguments& begin, results& r) {
  std::vector<tensor> tensors;
  tensors.reserve(c.tensors.size());
  for (auto const& w : c.tensors) tensors.push_back(tensor_from(c, w.from, begin, r.made));
  for (std::size_t k = 0; k < r.changes.size(); ++k) container_of(begin, c.containers[k].cell).commit(r.changes[k]);
  for (auto const& w : c.plains) write_plain(begin.plain(w.to), w.bytes);
  for (auto const& w : c.cells) {
    auto const& to = begin.place(w.cell);
    auto const bits = begin.value(w.expression);
    std::memcpy(to.value, &bits, to.bytes);
  }
  if (!c.cells.empty()) begin.has_written();
  for (std::size_t k = 0; k < tensors.size(); ++k) *begin.tensors()[c.tensors[k].to].now = std::move(tensors[k]);
}

// Calls.

NEAP_FUNC compiled_base::sizes compiled_base::walk_all(compiled_call& now, argument_state& to) const {
  to.put(now.type_number());
  to.put(mode());
  now.walk(true, to);
  sizes const n{to.tensors.size(), to.cells.size(), to.plains.size(), to.form.size()};
  now.walk(false, to);
  to.ask_places(takes_parts_of_storages());
  if (elements_share_.load(std::memory_order_relaxed)) to.ask_sharing();
  return n;
}

NEAP_FUNC std::uint64_t compiled_base::key_of(compiled_call& now) {
  argument_key key(now.type_number() + mode());
  now.put(key);
  return key.value();
}

NEAP_FUNC std::vector<std::string> compiled_base::names_of(compiled_call& now) const {
  argument_state named(true);
  walk_all(now, named);
  return std::move(named.cell_names);
}

NEAP_FUNC std::string compiled_base::other_answer(compiled_call& now, published_paths const& paths,
                                                  std::uint32_t node) const {
  return other_answer(paths.guards.place(node), paths.tape, paths.guards.question(node), names_of(now));
}

NEAP_FUNC void compiled_base::find(compiled_call& now, compiled_paths const& paths, known_call& c) const {
  c.paths = paths.published;
  c.arguments.begin_first(mode(), takes_parts_of_storages());
  now.walk_known(c.arguments);
  c.arguments.end_first();
}

NEAP_FUNC void compiled_base::run_instead(compiled_call& now, compiled_graph& g, results const& r) {
  why_ = r.finds_others ? in_host_code : g.refused.empty() ? "the graph failed" : g.refused;
  if (device_) refuse_on_device(g.refused);
  now.run();
}

NEAP_FUNC void compiled_base::throw_captured(known_call& c, compiled_graph& g, results& r) {
  fill_thrown(g.captured, r.made);
  commit(g.captured, c.arguments, r);
  std::rethrow_exception(g.captured.thrown);
}

NEAP_FUNC void compiled_base::look_up(compiled_call& now, known_calls& calls, bool verifies) {
  argument_state begin;
  auto const n = walk_all(now, begin);
  begin.check_overlap();
  host_log log;
  std::unique_lock lock(mutex_);
  auto const eagerly = [&](std::string reason) {
    if (lock.owns_lock()) lock.unlock();
    why_ = std::move(reason);
    go_on(now, log);
  };
  if (begin.unusable) return eagerly(begin.unusable);
  auto paths = paths_of(begin.signature);
  bool const is_fresh = !paths;
  std::shared_ptr<compiled_graph> known;
  std::string why;
  if (paths) {
    if (!calls.is_busy) calls.follow(publications_.load(std::memory_order_relaxed));
    known_call passing;
    auto& c = calls.is_busy ? passing : calls.renew(key_of(now));
    find(now, *paths, c);
    auto const found = graph_of(c);
    if (found != guard_program::none) {
      known = c.paths->graphs[found];
      if (!verifies && !is_next_verified()) {
        last_ = paths;
        if (!known->staged) {
          lock.unlock();
          return hit(now, calls, c, *known);
        }
        use(*known);
        auto const published = c.paths;
        lock.unlock();
        switch (run_stages(now, *known->staged, begin, *published, log, why)) {
          case staged_run::outcome::ended: return;
          case staged_run::outcome::failed: return eagerly("the graph failed");
          case staged_run::outcome::busy: return eagerly(in_host_code);
          case staged_run::outcome::shares: elements_share_ = true; return eagerly(shared_element);
          case staged_run::outcome::missed: break;
        }
        lock.lock();
        if (!make_room(*paths)) return eagerly(limit_reached(why));
        if (paths_of(begin.signature) != paths || std::ranges::find(paths->graphs, known) == paths->graphs.end())
          return eagerly(why);
      } else {
        if (!known->refused.empty()) return eagerly(known->refused);
        why = "the path is verified";
      }
    } else {
      why = other_answer(now, *c.paths, c.arguments.node);
    }
  } else {
    argument_state named(true);
    walk_all(now, named);
    why = other_signature(named);
    paths = fresh_paths(now, begin);
  }
  if (is_recording_) return eagerly(in_host_code);
  if (!known && !make_room(*paths)) return eagerly(limit_reached(why));
  why_ = std::move(why);
  if (!is_fresh) last_ = paths;
  record(now, begin, n, paths, is_fresh, known.get(), log, lock);
}

NEAP_FUNC void compiled_base::go_on(compiled_call& now, host_log& log, bool on_copy) {
  log.restart();
  log_scope const goes_on(log.is_empty() ? nullptr : &log);
  if (on_copy) now.run_kept();
  else now.run();
}

NEAP_FUNC staged_run::outcome compiled_base::run_stages(compiled_call& now, planned_stage& first, argument_state& begin,
                                                        published_paths const& paths, host_log& log, std::string& why,
                                                        known_reads* reads) {
  std::vector<std::uint64_t> cells;
  for (auto const& c : begin.cells) std::memcpy(&cells.emplace_back(0), c.value, c.bytes);
  if (recording_watch::is_under_way()) {
    for (auto const& c : begin.cells) recording_watch::uses(c.address);
    for (auto const& h : begin.handles)
      if (!h.is_empty() && may_be_window(*h.storage())) recording_watch::uses(*h.storage());
  }
  std::unique_lock alone(running_);
  if (is_in_host_code_) return staged_run::outcome::busy;
  if (!device_) arena_.grow(first.arena_bytes);
  else with_place(at_, [&] { device_->reserve_carried(static_cast<bytes_t>(first.arena_bytes)); });
  staged_run running(begin, paths.tape, cells, log, arena_.memory(), device_.get(), {&alone, &is_in_host_code_},
                     options_.run.step_seconds);
  auto outcome = staged_run::outcome::failed;
  std::exception_ptr thrown;
  struct parts final : made_parts {
    parts(staged_run& from, captured_program const& p) : run(from), program(p) {}
    tensor tensor_of(std::size_t k) override { return run.tensor_from(program.result[k]); }
    std::uint64_t value_of(std::size_t k) override { return run.value(program.result_cells[k]); }
    staged_run& run;
    captured_program const& program;
  };
  auto const build = [&](planned_stage& last) {
    thrown = last.end->thrown;
    fill_thrown(*last.end, running.made());
    if (thrown) return;
    parts made(running, *last.end);
    now.fill(last.result.get(), made);
  };
  with_place(at_, [&] { outcome = running(first, build); });
  if (thrown && outcome == staged_run::outcome::ended) std::rethrow_exception(thrown);
  if (outcome == staged_run::outcome::missed)
    why = other_answer(running.missed_at(), paths.tape, running.missed_question(), names_of(now));
  if (reads) *reads = running.reads();
  return outcome;
}

NEAP_FUNC compiled_base::recorded_path compiled_base::recorded(compiled_call& now, capture_mode how,
                                                               argument_state& begin, sizes const& n,
                                                               compiled_paths& to, host_log& log,
                                                               known_reads const* known) {
  bool const with_data = how == capture_mode::running;
  recorded_path path;
  now.drop_result();     // of stages that have failed
  struct result_scope {  // without data, the result ends after the recorder
    compiled_call* of;
    ~result_scope() {
      if (of) of->drop_result();
    }
  } const result{with_data ? nullptr : &now};
  std::exception_ptr thrown;
  bool lacks_memory = false;  // which is no answer of the path
  auto const others = with_data ? other_owners(begin, owner_counts(owners_in({&begin}))) : std::vector<long>();
  log.restart();
  recorder rec(begin, to.tape, log, with_data, known);
  auto const take_back = [&](argument_state const& end) {
    for (auto const& c : end.cells)
      if (c.mark) *c.mark = {};
    auto const form = std::string_view(begin.form).substr(0, n.form);
    if (with_data && rec.refusal().empty()) return true;
    return rec.take_back(end, n.tensors, n.cells, n.plains, form);
  };
  auto const require_taken_back = [&](argument_state const& end) {
    if (!take_back(end))
      throw_error(at_,
                  {"capture by shapes: the function changed the structure of an argument (the length of a container, "
                   "what a pointer or an optional holds), which stays changed: keep what grows in a "
                   "neap::tracked_vector or neap::tracked_map"});
  };
  {
    caller_scope const here(at_);
    try {
      if (how == capture_mode::again_by_shapes) now.run_on_copy();
      else now.run();
    } catch (std::bad_alloc const&) { thrown = std::current_exception(), lacks_memory = true; } catch (...) {
      if (!rec.is_beginning() && !rec.growth()) thrown = std::current_exception();
    }
    if (!rec.refusal().empty() && (with_data || !is_of(thrown, rec.refusal()))) {
      rec.stop();
      now.drop_result();
      argument_state left;
      now.walk(true, left);
      bool const can_go_on = take_back(left) && with_data && !is_of(thrown, rec.refusal());
      if (!can_go_on) throw_refusal(thrown, rec.refusal());
      path.refusal = rec.refusal();
      return path;
    }
    if (thrown && (!known || lacks_memory)) {
      rec.stop();
      argument_state left;
      now.walk(true, left);
      require_taken_back(left);
      std::rethrow_exception(thrown);
    }
  }
  path.is_beginning = rec.is_beginning(), path.growth = rec.growth();
  argument_state end, parts;
  now.walk(true, end);
  if (!path.is_beginning && !path.growth) {
    if (now.has_result()) now.walk_result(parts);
    describe(rec, begin, n, end, parts, path.program);
    path.program.thrown = thrown;
  }
  rec.stop();
  if (rec.finds_sharing()) elements_share_ = true;
  if (rec.needs_whole()) needs_whole_ = true;
  for (auto const& c : parts.cells)
    if (c.mark) *c.mark = {};
  require_taken_back(end);
  end.handles.clear();
  if (thrown && !rec.unusable()) rec.keep_thrown(path.program);
  if (path.growth) return path;
  path.caught = rec.has_failed() && !thrown;
  if (with_data) {
    parts.handles.clear();
    argument_state given;
    now.walk(false, given);
    given.handles.clear();
    if (path.caught) rec.set_unusable("the function catches an exception of an operator or of a function of the host");
    if (rec.was_used_elsewhere())
      rec.set_unusable("another thread, or a function of the host, has used tensors or states meanwhile");
    owner_counts const owners(owners_in({&end, &parts, &given}));
    auto const now_others = other_owners(begin, owners);
    bool const keeps_argument = !std::ranges::equal(now_others, others, std::less_equal<>());
    if ((keeps_argument && !rec.has_containers()) || rec.is_kept_outside(owners))
      rec.set_unusable(
          "the function keeps a tensor, one that it has computed or one of the arguments, outside of its arguments and "
          "result, which graphs would not: keep it in a part of an argument, or return it");
    if (rec.keeps_tracked({&end, &parts, &given}))
      rec.set_unusable(
          "the function keeps a tracked scalar or container that it has made outside of its arguments and result, which "
          "graphs would not find: keep it in a part of an argument");
  }
  if (!rec.unusable()) {
    std::vector<std::uint32_t> also_kept;
    if (rec.is_staged()) path.stages = known_stages(to, rec.stages());
    for (auto const* s : path.stages)
      for (auto const& k : s->captured.kept) also_kept.push_back(k.row);
    rec.finish(path.program, also_kept);
  }
  path.unusable = rec.unusable();
  if (path.unusable || path.is_beginning || !now.has_result()) return path;
  path.form = now.form();
  argument_state form_parts;
  now.walk_form(path.form.get(), form_parts);
  for (auto* t : form_parts.tensors) *t = tensor();
  if (with_data) return path;
  now.drop_result(), parts.handles.clear(), form_parts.handles.clear();
  if (auto const* type = rec.kept_outside())
    throw_error(at_, {"compile: the function keeps a tensor that it has computed, ", *type,
                      ", outside of its arguments and result, where it has no data: keep it in a part of an argument, "
                      "or return it"});
  return path;
}

NEAP_FUNC bool compiled_base::is_of(std::exception_ptr const& thrown, std::string const& refusal) {
  if (!thrown) return false;
  try {
    std::rethrow_exception(thrown);
  } catch (std::exception const& e) {
    return std::string_view(e.what()).find(refusal) != std::string_view::npos;
  } catch (...) { return false; }
}

NEAP_FUNC void compiled_base::throw_refusal(std::exception_ptr const& thrown, std::string const& refusal) {
  if (is_of(thrown, refusal)) std::rethrow_exception(thrown);
  throw_error({refusal});
}

NEAP_FUNC bool compiled_base::keep(recorded_path&& recorded, std::shared_ptr<compiled_paths> const& to, bool is_fresh,
                                   compiled_graph* known) {
  auto& p = recorded.program;
  if (recorded.unusable) {
    why_ = recorded.unusable;
    if (known && !known->staged && !recorded.caught) untracked({});  // a staged path may branch off behind a value
    return false;
  }
  if (p.stages.empty() && known) {
    if (known->staged) untracked({});
    require_same(*known, p);
    return false;
  }
  if (known && !known->staged) untracked({});
  auto const path = p.stages.empty() ? p.path : p.stages.front().path;
  auto const number = static_cast<std::uint32_t>(to->graphs.size());
  try {
    if (!p.stages.empty()) {
      bool const is_path = !recorded.is_beginning;
      if (!add(*to, std::move(p), recorded.stages, recorded.is_beginning, std::move(recorded.form))) return false;
      if (known) known->path_count += is_path;
      else use(*to->graphs.back()), to->graphs.back()->path_count = is_path;
      publish(to, is_fresh);
      return true;
    }
    auto made = planned(std::move(p), to->family.get());
    if (!made->refused.empty()) why_ = made->refused;
    made->result = std::move(recorded.form);
    use(*made);
    if (auto const k = to->guards.add(path, number); k <= path.size())
      untracked(k < path.size() ? path[k].at : std::source_location{});
    to->graphs.push_back(std::move(made));
    publish(to, is_fresh);
    return true;
  } catch (no_plan const& refused) {
    why_ = refused.why;
    if (refused.for_now || !recorded.stages.empty()) return false;
    auto made = std::make_shared<compiled_graph>();
    made->refused = refused.why, made->captured.path = path;
    if (to->guards.add(path, number) <= path.size()) return false;
    to->graphs.push_back(std::move(made));
    publish(to, is_fresh);
    return true;
  }
}

NEAP_FUNC void compiled_base::record(compiled_call& now, argument_state& begin, sizes const& n,
                                     std::shared_ptr<compiled_paths> to, bool is_fresh, compiled_graph* known,
                                     host_log& log, std::unique_lock<std::mutex>& lock) {
  now.keep_copy();  // for a call that is refused
  auto const expressions = to->tape.size();
  struct trimmed {  // what no graph needs goes
    expression_tape& tape;
    std::size_t size;
    bool keeps = false;
    ~trimmed() {
      if (!keeps && tape.size() > size) tape.truncate(size);
    }
  } tape{to->tape, expressions};
  recorded_path path;
  {
    turn const alone(*this, lock);
    path = recorded(now, capture_mode::running, begin, n, *to, log);
  }
  if (!path.refusal.empty()) {
    why_ = path.refusal;
    lock.unlock();
    if (!now.copies()) throw_error({path.refusal});
    return go_on(now, log, true);
  }
  tape.keeps = keep(std::move(path), to, is_fresh, known);
}

NEAP_FUNC std::vector<graph> compiled_base::by_shapes(compiled_call& now, bool keeps, std::function<void()>& grow) {
  std::unique_lock lock(mutex_);
  turn const alone(*this, lock, true);
  argument_state begin;
  auto const n = walk_all(now, begin);
  if (begin.unusable) throw_error(at_, {"capture by shapes: ", begin.unusable});
  host_log log;
  auto paths = keeps ? paths_of(begin.signature) : nullptr;
  bool const is_fresh = !paths;
  compiled_graph* known = nullptr;
  if (paths) {
    known_call c;
    find(now, *paths, c);
    if (auto const found = graph_of(c); found != guard_program::none) known = c.paths->graphs[found].get();
  } else {
    paths = fresh_paths(now, begin);
  }
  if (known && !known->refused.empty()) throw_error(at_, {"compile: ", known->refused});
  if (known && !known->staged) return {};
  if (keeps && !known && !make_room(*paths))
    throw_error(at_, {"compile: ", limit_reached("another path is to be kept")});
  auto const how = now.copies() ? capture_mode::again_by_shapes : capture_mode::by_shapes;
  auto path = recorded(now, how, begin, n, *paths, log);
  if (path.growth) {
    if (!now.copies())
      throw_error(at_, {"capture by shapes: the function makes the states of an optimizer, and takes an argument by "
                        "value that cannot be copied: take it by reference"});
    grow = path.growth;
    return {};
  }
  if (path.unusable) throw_error(at_, {"capture by shapes: no graph stands for the call: ", path.unusable});
  if (!keeps) return graphs_of(std::move(path.program));
  why_ = "";
  (void)keep(std::move(path), paths, is_fresh, known);
  if (!why_.empty()) throw_error(at_, {"compile: ", why_.get()});
  return {};
}

}}}  // namespace neap::v0::detail
