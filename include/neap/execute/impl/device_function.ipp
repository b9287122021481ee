// The bodies of <neap/execute/device_function.hpp>.
#pragma once

#include <neap/execute/device_function.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC bool calls_on_device::is_refusal(std::exception_ptr const& thrown) {
  if (!thrown) return false;
  try {
    std::rethrow_exception(thrown);
  } catch (error const&) { return true; } catch (...) {
    return false;
  }
}

NEAP_FUNC void calls_on_device::look_up(compiled_call& now, known_calls& calls, bool verifies) {
  std::unique_lock lock(mutex_);
  turn alone(*this, lock, true);
  std::optional<argument_state> begun;
  auto n = walk_all(now, begun.emplace());
  begun->check_overlap();
  if (begun->unusable) refuse_on_device(begun->unusable);
  host_log log;
  known_reads reads;
  std::size_t captures = 0;
  std::string first_why;
  auto const walk_again = [&] { n = walk_all(now, begun.emplace()), reads.clear(); };
  for (;;) {
    auto paths = paths_of(begun->signature);
    bool const is_fresh = !paths;
    std::shared_ptr<compiled_graph> known;
    std::string why;
    bool failed = false;
    if (paths) {
      if (!calls.is_busy) calls.follow(publications_.load(std::memory_order_relaxed));
      known_call passing;
      auto& c = calls.is_busy ? passing : calls.renew(key_of(now));
      find(now, *paths, c);
      if (auto const found = graph_of(c); found != guard_program::none) {
        known = c.paths->graphs[found];
        if (!known->refused.empty()) refuse_on_device(known->refused);
        if (!known->staged && !verifies && finds_sharing(*known, c.arguments)) {
          walk_again();
          continue;
        }
        if (!known->staged && !verifies) {
          alone.end(), lock.unlock();
          return hit(now, calls, c, *known);
        }
        if (known->staged) {
          use(*known);
          auto const before = reads.size();
          log.restart();
          auto const end = run_stages(now, *known->staged, *begun, *paths->published, log, why, &reads);
          if (end == staged_run::outcome::ended) return;
          if (end == staged_run::outcome::shares) {
            elements_share_ = true;
            walk_again();
            continue;
          }
          failed = end == staged_run::outcome::failed;
          if (!failed && captures > 0 && reads.size() <= before) untracked({});
        }
      } else {
        why = other_answer(now, *c.paths, c.arguments.node);
      }
    } else {
      argument_state named(true);
      walk_all(now, named);
      why = other_signature(named);
      paths = fresh_paths(now, *begun);
    }
    if (!failed && !known && !make_room(*paths)) refuse_on_device(limit_reached(why));
    if (!failed && known && known->staged && !verifies && !has_room(*paths)) refuse_on_device(limit_reached(why));
    auto path = recorded(now, capture_mode::again_by_shapes, *begun, n, *paths, log, &reads);
    if (++captures > max_captures) untracked({});
    if (path.growth) {
      path.growth();
      walk_again();
      continue;
    }
    if (failed || path.caught || is_refusal(path.program.thrown) || !path.program.thrown_storages.empty())
      return run_once(now, calls, alone, lock, begun, n, *paths, std::move(path), log, reads);
    if (path.unusable) refuse(path);
    why_ = "";
    (void)keep(std::move(path), paths, is_fresh, known.get());
    if (!why_.empty()) refuse_on_device(why_.get());
    if (first_why.empty()) first_why = std::move(why);
    if (!verifies) why_ = first_why;
    verifies = false;
  }
}

NEAP_FUNC void calls_on_device::refuse(recorded_path const& path) const {
  if (path.program.thrown) std::rethrow_exception(path.program.thrown);
  refuse_on_device(path.unusable);
}

NEAP_FUNC void calls_on_device::run_once(compiled_call& now, known_calls& calls, turn& alone,
                                         std::unique_lock<std::mutex>& lock, std::optional<argument_state>& begun,
                                         sizes n, compiled_paths& like, recorded_path path, host_log& log,
                                         known_reads& reads) {
  log.skip_failed();
  for (std::size_t captures = 0;; ++captures) {
    bool const is_beginning = path.is_beginning;
    if (path.unusable) refuse(path);
    if (path.growth) {
      path.growth();
      n = walk_all(now, begun.emplace()), reads.clear();
      path = recorded(now, capture_mode::again_by_shapes, *begun, n, like, log, &reads);
      continue;
    }
    auto const once = std::make_shared<compiled_paths>();
    once->signature = begun->signature, once->cell_count = begun->cells.size(), once->tape = like.tape;
    path.stages.clear();
    why_ = "";
    (void)keep(std::move(path), once, false, nullptr);
    if (auto const refused = why_.take(); !refused.empty()) refuse_on_device(refused);
    auto& g = *once->graphs.back();
    if (!g.staged) {
      alone.end(), lock.unlock();
      known_calls::busy const others_keep_out(calls);
      known_call c;
      find(now, *once, c);
      (void)graph_of(c);
      return hit(now, calls, c, g);
    }
    std::string why;
    auto const before = reads.size();
    log.restart();
    auto const end = run_stages(now, *g.staged, *begun, *once->published, log, why, &reads);
    if (end == staged_run::outcome::ended) return;
    if (end == staged_run::outcome::missed && (!is_beginning || reads.size() <= before)) untracked({});
    if (captures > max_captures) untracked({});
    path = recorded(now, capture_mode::again_by_shapes, *begun, n, like, log, &reads);
  }
}

}}}  // namespace neap::v0::detail
