// The bodies of <neap/execute/compiled_base.hpp>.
#pragma once

#include <neap/execute/compiled_base.hpp>

#include <neap/core/separate_compilation.hpp>

#include <algorithm>
#include <functional>
#include <new>
#include <string_view>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void compiled_base::wait_for_turn(std::unique_lock<std::mutex>& lock) {
  for (; is_recording_; turn_ends_.wait(lock))
    if (recording_thread_ == std::this_thread::get_id())
      throw_error(arena_.at,
                  {"compile: a function of the host, which a call calls, calls the compiled function again"});
}

// Calls.

NEAP_FUNC compiled_base::sizes compiled_base::walk_all(compiled_call& now, argument_state& to) const {
  to.put(now.type_number());
  to.put(mode());
  now.walk(true, to);
  sizes const n{to.tensors.size(), to.scalars.size(), to.plains.size(), to.form.size()};
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

NEAP_FUNC std::shared_ptr<compiled_paths> compiled_base::fresh_paths(compiled_call& now,
                                                                     argument_state const& begin) const {
  argument_state without(false, &options_.lengths);
  if (!options_.lengths.empty()) walk_all(now, without);
  return store_.fresh(begin, std::move(without.signature));
}

NEAP_FUNC void compiled_base::meet(compiled_call& now, compiled_paths const& paths, known_call& c) const {
  c.paths = paths.published;
  c.arguments.begin_first(mode(), takes_parts_of_storages());
  now.walk_known(c.arguments);
  c.arguments.end_first();
}

NEAP_FUNC void compiled_base::miss(compiled_call& now, known_calls& calls, host_log& log, missed_call missed) {
  if (missed.how == path_run::outcome::missed) return look_up(now, calls, false, std::move(log), std::move(missed.why));
  if (arena_.device) return look_up(now, calls, false);
  run_instead(now, log, std::move(missed.why));
}

NEAP_FUNC compiled_base::missed_call compiled_base::missed_by(compiled_call& now, path_run const& running,
                                                              path_run::outcome how) {
  using outcome = path_run::outcome;
  missed_call missed{how, "the graph failed", running.reads()};
  if (how == outcome::busy) missed.why = path_planner::in_host_code;
  if (how == outcome::shares) missed.why = shared_element, elements_share_ = true;
  if (how == outcome::missed)
    missed.why = other_answer(now, running.missed_at(), running.tape(), running.missed_expr());
  if (arena_.device && how == outcome::busy) refuse_on_device(missed.why);
  return missed;
}

NEAP_FUNC void compiled_base::run_instead(compiled_call& now, host_log& log, std::string why) {
  if (arena_.device) refuse_on_device(why);
  why_ = std::move(why);
  go_on(now, log);
}

NEAP_FUNC void compiled_base::go_on(compiled_call& now, host_log& log, bool on_copy) {
  log.restart();
  log_scope const goes_on(log.is_empty() ? nullptr : &log);
  if (on_copy) now.run_kept();
  else now.run();
}

NEAP_FUNC compiled_base::call_path compiled_base::find(compiled_call& now, argument_state const& begin,
                                                       known_calls& calls) {
  call_path to;
  to.paths = store_.find(begin.signature);
  if (!to.paths) {
    argument_state named(true);
    walk_all(now, named);
    to.why = store_.other_signature(named), to.is_fresh = true, to.paths = fresh_paths(now, begin);
    return to;
  }
  if (!calls.is_busy) calls.follow(store_.publications());
  else to.passing = std::make_unique<known_call>();
  auto& c = *(to.call = calls.is_busy ? to.passing.get() : &calls.renew(key_of(now)));
  meet(now, *to.paths, c);
  auto const found = path_of(c);
  auto const& guards = c.paths->guards;
  if (found != guard_program::none) to.known = c.paths->paths[found];
  else to.why = other_answer(now, guards.place(c.arguments.node), c.paths->tape, guards.expr(c.arguments.node));
  return to;
}

NEAP_FUNC bool compiled_base::make_room(call_path const& to) {
  if (!store_.make_room(*to.paths)) return false;
  return !to.known || (store_.find(to.paths->signature) == to.paths &&
                       std::ranges::find(to.paths->paths, to.known) != to.paths->paths.end());
}

NEAP_FUNC void compiled_base::look_up(compiled_call& now, known_calls& calls, bool verifies, host_log log,
                                      std::string missed) {
  using outcome = path_run::outcome;
  bool const on_host = !arena_.device;
  std::unique_lock lock(mutex_, std::defer_lock);
  std::optional<turn> alone;  // on a device, for the whole call
  if (!on_host) lock.lock(), wait_for_turn(lock), alone.emplace(*this, lock);
  auto const instead = [&](std::string why) {
    if (on_host && lock.owns_lock()) lock.unlock();
    run_instead(now, log, std::move(why));
  };
  known_reads reads;
  std::string first_why;
  for (std::size_t captures = 0;;) {
    argument_state begin;
    auto const n = walk_all(now, begin);
    begin.check_overlap();
    if (begin.unusable) return instead(begin.unusable);
    if (on_host) lock.lock();
    auto to = find(now, begin, calls);
    if (!to.is_fresh) store_.set_last(to.paths);
    bool failed = false, is_missed = !missed.empty();
    if (to.known && !is_missed && on_host && !verifies) verifies = is_next_verified();
    if (to.known && !is_missed && !verifies) {
      if (on_host) lock.unlock();
      auto const before = reads.size();
      auto missed_here = run(now, calls, *to.call, *to.known, log);
      if (!missed_here) return;
      auto const how = missed_here->how;
      to.why = std::move(missed_here->why), reads = std::move(missed_here->reads);
      if (how != outcome::missed && on_host) return instead(to.why);
      if (how == outcome::shares) {
        reads.clear();
        continue;
      }
      failed = how == outcome::failed, is_missed = !failed;
      if (is_missed && captures > 0 && reads.size() <= before) planner_.untracked({});
      if (on_host) lock.lock();
    } else if (is_missed) {
      to.why = std::move(missed);
    } else if (to.known) {
      if (!to.known->refused.empty()) return instead(to.known->refused);
      to.why = "the path is verified";
    }
    if (on_host && is_recording_) return instead(path_planner::in_host_code);
    if ((is_missed || (!to.known && !failed)) && !make_room(to)) return instead(limit_reached(to.why));
    if (on_host) {
      why_ = to.why;
      return record(now, begin, n, to, log, lock);
    }
    if (record_for_device(now, begin, n, to, failed, log, reads)) return;
    if (++captures > max_captures) planner_.untracked({});
    if (first_why.empty()) first_why = std::move(to.why);
    if (!verifies) why_ = first_why;
    verifies = false;
  }
}

// Captures.

/// After a capture with data: `others` are the owners of inputs beside arguments, as they were before.
inline void refuse_what_is_kept(recorder& rec, compiled_call& now, argument_state const& begin,
                                argument_state const& end, argument_state const& result,
                                std::vector<long> const& others) {
  argument_state by_value;
  now.walk(false, by_value);
  by_value.handles.clear();
  if (rec.state().was_used())
    rec.set_unusable("another thread, or a function of the host, has used tensors or states meanwhile");
  owner_counts const owners(owners_in({&end, &result, &by_value}));
  auto const now_others = other_owners(begin, owners);
  bool const keeps_argument = !std::ranges::equal(now_others, others, std::less_equal<>());
  if ((keeps_argument && rec.state().containers_begun.empty()) || rec.is_kept_outside(owners))
    rec.set_unusable(
        "the function keeps a tensor, one that it has computed or one of the arguments, outside of its arguments and "
        "result, which graphs would not: keep it in a part of an argument, or return it");
  if (rec.keeps_tracked({&end, &result, &by_value}))
    rec.set_unusable(
        "the function keeps a tracked scalar or container that it has made outside of its arguments and result, which "
        "graphs would not find: keep it in a part of an argument");
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
  bool lacks_memory = false;  // which says nothing of the path
  auto const others = with_data ? other_owners(begin, owner_counts(owners_in({&begin}))) : std::vector<long>();
  log.restart();
  recorder rec(begin, to.tape, log, with_data, known);
  auto const take_back = [&](argument_state const& end) {
    for (auto const& c : end.scalars)
      if (c.symbol) *c.symbol = {};
    auto const form = std::string_view(begin.form).substr(0, n.form);
    if (with_data && rec.state().refusal.empty()) return true;
    return rec.take_back(end, n.tensors, n.scalars, n.plains, form);
  };
  auto const require_taken_back = [&](argument_state const& end) {
    if (!take_back(end))
      throw_error(arena_.at,
                  {"capture by shapes: the function changed the structure of an argument (the length of a container, "
                   "what a pointer or an optional holds), which stays changed: keep what grows in a "
                   "neap::tracked_vector or neap::tracked_map"});
  };
  {
    caller_scope const here(arena_.at);
    try {
      if (how == capture_mode::again_by_shapes) now.run_on_copy();
      else now.run();
    } catch (std::bad_alloc const&) { thrown = std::current_exception(), lacks_memory = true; } catch (...) {
      if (!rec.state().is_beginning() && !rec.state().grow) thrown = std::current_exception();
    }
    if (!rec.state().refusal.empty() && (with_data || !is_of(thrown, rec.state().refusal))) {
      rec.stop();
      now.drop_result();
      argument_state left;
      now.walk(true, left);
      bool const can_go_on = take_back(left) && with_data && !is_of(thrown, rec.state().refusal);
      if (!can_go_on) throw_refusal(thrown, rec.state().refusal);
      path.refusal = rec.state().refusal;
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
  path.is_beginning = rec.state().is_beginning(), path.growth = rec.state().grow;
  argument_state end, parts;
  now.walk(true, end);
  if (!path.is_beginning && !path.growth) {
    if (now.has_result()) now.walk_result(parts);
    describe(rec, begin, n, end, parts, path.captured.end);
    path.captured.end.thrown = thrown;
  }
  rec.stop();
  if (rec.state().finds_sharing) elements_share_ = true;
  if (rec.state().needs_whole) needs_whole_ = true;
  for (auto const& c : parts.scalars)
    if (c.symbol) *c.symbol = {};
  require_taken_back(end);
  end.handles.clear();
  if (thrown && !rec.state().unusable) rec.keep_thrown(path.captured.end);
  if (path.growth) return path;
  path.caught = rec.state().has_failed && !thrown;
  if (with_data) {
    parts.handles.clear();
    if (path.caught) rec.set_unusable("the function catches an exception of an operator or of a function of the host");
    refuse_what_is_kept(rec, now, begin, end, parts, others);
  }
  if (!rec.state().unusable) {
    std::vector<std::uint32_t> also_kept;
    path.known = path_planner::known(to, rec.stages());
    for (auto const* s : path.known.stages)
      for (auto const& k : s->captured.kept) also_kept.push_back(k.storage);
    rec.finish(path.captured, also_kept);
  }
  path.unusable = rec.state().unusable;
  if (path.unusable || path.is_beginning || !now.has_result()) return path;
  path.form = now.form();
  argument_state form_parts;
  now.walk_form(path.form.get(), form_parts);
  for (auto* t : form_parts.tensors) *t = tensor();
  if (with_data) return path;
  now.drop_result(), parts.handles.clear(), form_parts.handles.clear();
  if (auto const* type = rec.kept_outside())
    throw_error(arena_.at,
                {"compile: the function keeps a tensor that it has computed, ", *type,
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

NEAP_FUNC bool compiled_base::keep(recorded_path&& path, call_path const& to) {
  auto& known = path.known;
  if (path.unusable) {
    why_ = path.unusable;
    if (to.known && to.known->is_simple && !path.caught) planner_.untracked({});  // others branch off behind a value
    return false;
  }
  if (to.known && known.stages.empty()) known = {to.known, {&to.known->first}};
  auto const guards = path.captured.stages.front().path;
  bool const is_new = known.stages.empty();
  try {
    auto const full = is_new || store_.has_room(*to.paths) ? "" : limit_reached("it takes a path that is not known");
    if (!planner_.add(*to.paths, std::move(path.captured), known, path.is_beginning, std::move(path.form), full))
      return false;
  } catch (path_planner::no_plan const& refused) {
    why_ = refused.why;
    auto& all = to.paths->paths;
    if (refused.for_now || !is_new ||
        to.paths->guards.add(guards, static_cast<std::uint32_t>(all.size())) <= guards.size())
      return false;
    auto const& made = all.emplace_back(std::make_shared<planned_path>());
    made->refused = refused.why, made->first.captured.path = guards, made->count = 1;
  }
  if (is_new) store_.use(*to.paths->paths.back());
  store_.publish(to.paths, to.is_fresh);
  return true;
}

NEAP_FUNC void compiled_base::record(compiled_call& now, argument_state& begin, sizes const& n, call_path const& to,
                                     host_log& log, std::unique_lock<std::mutex>& lock) {
  now.keep_copy();  // for a call that is refused
  struct trimmed {  // what no graph needs goes
    expression_tape& tape;
    std::size_t size;
    bool keeps = false;
    ~trimmed() {
      if (!keeps && tape.size() > size) tape.truncate(size);
    }
  } tape{to.paths->tape, to.paths->tape.size()};
  recorded_path path;
  {
    turn const alone(*this, lock);
    path = recorded(now, capture_mode::running, begin, n, *to.paths, log);
  }
  if (!path.refusal.empty()) {
    why_ = path.refusal;
    lock.unlock();
    if (!now.copies()) throw_error({path.refusal});
    return go_on(now, log, true);
  }
  tape.keeps = keep(std::move(path), to);
}

NEAP_FUNC bool compiled_base::record_for_device(compiled_call& now, argument_state& begin, sizes const& n,
                                                call_path const& to, bool failed, host_log& log, known_reads& reads) {
  auto path = recorded(now, capture_mode::again_by_shapes, begin, n, *to.paths, log, &reads);
  if (path.growth) {
    path.growth();
    reads.clear();
    return false;
  }
  auto const& end = path.captured.end;
  if (failed || path.caught || is_refusal(end.thrown) || !end.thrown_storages.empty()) {
    run_once(now, std::move(path), to, log, reads);
    return true;
  }
  if (path.unusable) refuse(path);
  why_ = "";
  (void)keep(std::move(path), to);
  if (!why_.empty()) refuse_on_device(why_.get());
  return false;
}

NEAP_FUNC void compiled_base::run_once(compiled_call& now, recorded_path path, call_path const& like, host_log& log,
                                       known_reads& reads) {
  log.skip_failed();
  for (std::size_t captures = 0;; ++captures) {
    if (path.unusable) refuse(path);
    if (path.growth) {
      path.growth();
      reads.clear();
    } else {
      call_path once;
      once.paths = std::make_shared<compiled_paths>();
      once.paths->scalar_count = like.paths->scalar_count, once.paths->tape = like.paths->tape;
      bool const is_beginning = path.is_beginning;
      path.known = {};
      why_ = "";
      (void)keep(std::move(path), once);
      if (auto const refused = why_.take(); !refused.empty()) refuse_on_device(refused);
      known_call c;
      meet(now, *once.paths, c);
      (void)path_of(c);
      auto const before = reads.size();
      auto missed = run(now, calls_.here(), c, *once.paths->paths.back(), log);
      if (!missed) return;
      reads = std::move(missed->reads);
      bool const is_next = missed->how != path_run::outcome::missed || (is_beginning && reads.size() > before);
      if (!is_next || captures > max_captures) planner_.untracked({});
    }
    argument_state begin;
    auto const n = walk_all(now, begin);
    path = recorded(now, capture_mode::again_by_shapes, begin, n, *like.paths, log, &reads);
  }
}

NEAP_FUNC std::vector<graph> compiled_base::by_shapes(compiled_call& now, bool keeps, std::function<void()>& grow) {
  std::unique_lock lock(mutex_);
  wait_for_turn(lock);
  argument_state begin;
  auto const n = walk_all(now, begin);
  if (begin.unusable) throw_error(arena_.at, {"capture by shapes: ", begin.unusable});
  host_log log;
  call_path to;
  if (keeps) to = find(now, begin, calls_.here());
  else to.paths = fresh_paths(now, begin);
  if (to.known && !to.known->refused.empty()) throw_error(arena_.at, {"compile: ", to.known->refused});
  if (to.known && to.known->is_simple) return {};
  if (keeps && !to.known && !make_room(to))
    throw_error(arena_.at, {"compile: ", limit_reached("another path is to be kept")});
  recorded_path path;
  {
    turn const alone(*this, lock);
    auto const how = now.copies() ? capture_mode::again_by_shapes : capture_mode::by_shapes;
    path = recorded(now, how, begin, n, *to.paths, log);
  }
  if (path.growth) {
    if (!now.copies())
      throw_error(arena_.at, {"capture by shapes: the function makes the states of an optimizer, and takes an argument "
                              "by value that cannot be copied: take it by reference"});
    grow = path.growth;
    return {};
  }
  if (path.unusable) throw_error(arena_.at, {"capture by shapes: no graph stands for the call: ", path.unusable});
  if (!keeps) return graphs_of(std::move(path.captured));
  why_ = "";
  (void)keep(std::move(path), to);
  if (!why_.empty()) throw_error(arena_.at, {"compile: ", why_.get()});
  return {};
}

NEAP_FUNC void compiled_base::describe(recorder& rec, argument_state const& begin, sizes const& n, argument_state& end,
                                       argument_state& result, captured_end& to) {
  if (end.form != begin.form.substr(0, n.form) || end.tensors.size() != n.tensors || end.scalars.size() != n.scalars ||
      end.plains.size() != n.plains)
    return rec.set_unusable("it changed the structure of an argument");
  for (std::size_t k = 0; k < begin.handles.size(); ++k)
    if (auto const& h = begin.handles[k]; !h.is_empty())
      if (argument_state::memory_of(h) != begin.memory[k])
        return rec.set_unusable("it froze or freed a weight of an argument, or gave it other memory");
  for (std::uint32_t k = 0; k < n.scalars; ++k)
    if (!end.scalars[k].symbol && end.scalars[k].address != begin.scalars[k].address)
      return rec.set_unusable("it moved a neap::state of an argument to another address");
  for (std::uint32_t k = 0; k < n.tensors; ++k)
    if (!are_alike(begin.handles[k], end.handles[k])) to.tensors.push_back({k, rec.leave(*end.tensors[k])});
  for (std::uint32_t k = 0; k < n.scalars; ++k)
    if (auto const e = rec.at_end(end.scalars[k]); e != rec.at_begin(k)) to.scalars.push_back({k, e});
  for (std::uint32_t k = 0; k < n.plains; ++k) {
    auto const &a = begin.plains[k], &b = end.plains[k];
    auto const after = end.plain_bytes.substr(b.at, b.bytes);
    if (begin.plain_bytes.compare(a.at, a.bytes, after) != 0) to.plains.push_back({k, after});
  }
  rec.leave_containers(to);
  for (auto* t : result.tensors) to.result.push_back(rec.leave(*t));
  for (auto const& c : result.scalars) {
    auto const e = rec.of_result(c);
    if (e == number_map::none) rec.set_unusable("its result has a neap::state: give a neap::sym");
    to.result_scalars.push_back(e);
  }
  to.result_bytes = result.plain_bytes + result.form;
}

NEAP_FUNC std::vector<graph> compiled_base::graphs_of(captured_path p) {
  std::vector<graph> all;
  bool const is_one = p.stages.size() == 1 && !p.stages.front().needs_host();
  for (auto& s : p.stages)
    if (is_one || (s.computes && s.program.op_count() > 0)) all.emplace_back(std::move(s.program));
  return all;
}

NEAP_FUNC bool compiled_base::is_refusal(std::exception_ptr const& thrown) {
  if (!thrown) return false;
  try {
    std::rethrow_exception(thrown);
  } catch (error const&) { return true; } catch (...) {
    return false;
  }
}

NEAP_FUNC void compiled_base::refuse(recorded_path const& path) const {
  if (path.captured.end.thrown) std::rethrow_exception(path.captured.end.thrown);
  refuse_on_device(path.unusable);
}

// Texts.

NEAP_FUNC std::string compiled_base::other_answer(compiled_call& now, std::source_location guard,
                                                  expression_tape const& tape, std::uint32_t expr) const {
  argument_state named(true);
  walk_all(now, named);
  auto const& names = named.scalar_names;
  std::string text = "the question";
  bool const knows_place =
      guard.line() != 0 && (guard.line() != arena_.at.line() || place_of(guard) != place_of(arena_.at));
  if (knows_place) text += " at " + place_of(guard);
  std::vector<std::string> of;
  std::vector<std::uint32_t> open;
  if (expr != guard_trie::none) open.push_back(expr);
  std::vector<bool> met(tape.size());
  while (!open.empty()) {
    auto const k = open.back();
    open.pop_back();
    if (met[k]) continue;
    met[k] = true;
    auto const& e = tape[k];
    if (e.what == expression::kind::call) open.push_back(e.b), open.push_back(e.a);
    if (e.what != expression::kind::scalar) continue;
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

}}}  // namespace neap::v0::detail
