// What of a compiled function does not depend on its type: the look-up of a call, captures, and runs of a call along
// its path. execute/compile.hpp says what calls do.
//
// Threads. Any number may call one object; code of the program (the function, functions of the host) runs without a lock.
//
//   mutex_                  guards store_, what captures add to (compiled_paths), is_recording_ and recording_thread_.
//                           Held by the look-up of a call that its thread has not met, and while a path is planned and
//                           published.
//   turn (is_recording_)    stands for mutex_ while a call is captured. Another call that needs a capture then runs
//                           eagerly; on a device, and in prepare(), it waits. A call on a device has it to its end.
//   arena_.running          guards the arena, the device and planned stages: held while a path runs and while stages are
//                           placed. Taken after mutex_, never before.
//   arena_.is_in_host_code  written under `running` by a path that calls a function of the host and leaves `running`
//                           meanwhile: no other path runs then, and none is placed.
//   published_paths         never change, nor does the stage of a simple path: read without a lock.
//   calls_                  each thread writes its own known_calls, and drops them where publications() has changed.
//   hits_, needs_whole_, elements_share_, planned_path::last_used   atomic, written by any call; why_ has its own lock.
//
// Locks of recording_watch and of a device's list of graphs are taken last.
#pragma once

#include <neap/capture/host.hpp>
#include <neap/capture/recorder.hpp>
#include <neap/execute/compile_options.hpp>
#include <neap/execute/compiled_call.hpp>
#include <neap/execute/compiled_paths.hpp>
#include <neap/execute/known_calls.hpp>
#include <neap/execute/path_planner.hpp>
#include <neap/execute/path_run.hpp>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

class compiled_base {
 public:
  /// Whether a call is captured on a copy of what is passed by value, before it runs.
  static constexpr bool copies_arguments = false;
  using planner = path_planner::planner;

  compiled_base(planner how, compile_options const& options, std::source_location at,
                std::unique_ptr<graph_device> device = nullptr)
      : options_(options),
        arena_{at, std::move(device), options.run.step_seconds},
        planner_(std::move(how), options_, arena_),
        store_(options_) {}

  std::size_t graph_count() const { return store_.count(); }
  std::string why_missed() const { return why_.get(); }

 protected:
  static constexpr std::size_t max_captures = 100000;  // of one call
  struct sizes {
    std::size_t tensors, scalars, plains, form;
  };
  /// What a call has been found to be, or not to be.
  struct call_path {
    std::shared_ptr<compiled_paths> paths;
    bool is_fresh = false;                // no call had this signature before
    std::shared_ptr<planned_path> known;  // null: none has these guards
    std::string why;                      // then
    known_call* call = nullptr;           // null where it is fresh
    std::unique_ptr<known_call> passing;  // that one, if the thread does not keep it
  };
  /// Why a path that a look-up has found has not run to its end.
  struct missed_call {
    path_run::outcome how;
    std::string why;
    known_reads reads;
  };
  /// A path that was captured.
  struct recorded_path {
    captured_path captured;
    std::shared_ptr<void> form;  // of the result, without tensors
    known_stages known;
    char const* unusable = nullptr;  // why no graph can stand for the call
    bool is_beginning = false;       // it ends before a read that is not known
    bool caught = false;             // an exception that only a run of its operators could throw again
    std::string refusal;             // with data: the call is to run eagerly, from its beginning
    std::function<void()> growth;    // first: the call is to be recorded again after it
  };
  /// How a call is captured.
  enum class capture_mode : std::uint8_t {
    running,          // the call has its result
    by_shapes,        // without data: arguments are left as they were
    again_by_shapes,  // likewise, on a copy of what is passed by value: the call is to run after that
  };
  /// Until no call is captured. Throws neap::error where this thread captures one.
  void wait_for_turn(std::unique_lock<std::mutex>& lock);
  /// While it lives, no other call is captured: this one runs code of the program, and no lock is held.
  class turn {
   public:
    turn(compiled_base& of, std::unique_lock<std::mutex>& lock) : of_(&of), lock_(&lock) {
      of.is_recording_ = true, of.recording_thread_ = std::this_thread::get_id();
      lock.unlock();
    }
    turn(turn const&) = delete;
    turn& operator=(turn const&) = delete;
    ~turn() {
      lock_->lock();
      of_->is_recording_ = false;
      of_->turn_ends_.notify_all();
    }

   private:
    compiled_base* of_;
    std::unique_lock<std::mutex>* lock_;
  };

  // Calls. Hits are compiled for the function's own call_of, whose functions can be inlined; what is rarer, once.

  static std::uint64_t mode() {
    return std::uint64_t{context_access::is_recording()} | std::uint64_t{context_access::is_training()} << 1 |
           std::uint64_t{context_access::clock() != nullptr} << 2 |
           (precision_scope::current() ? std::uint64_t{1} + static_cast<std::uint64_t>(*precision_scope::current()) : 0)
               << 3;
  }
  /// Whether graphs take the parts of storages that arguments see, wherever these are: not where elements of tracked
  /// containers may share them, nor on a device, to which storages are copied whole.
  bool takes_parts_of_storages() const {
    return !arena_.device && !needs_whole_.load(std::memory_order_relaxed) &&
           !elements_share_.load(std::memory_order_relaxed);
  }
  sizes walk_all(compiled_call& now, argument_state& to) const;
  static std::uint64_t key_of(compiled_call& now);
  bool is_next_verified() {
    return options_.verify != 0 && (hits_.fetch_add(1, std::memory_order_relaxed) + 1) % options_.verify == 0;
  }
  /// What this thread has called with before; null: something else.
  template <class Call>
  known_call* known_call_of(Call& now, known_calls& calls);
  /// The path for the arguments of a known call; guard_program::none: none.
  static std::uint32_t path_of(known_call& c) {
    auto& a = c.arguments;
    if (a.graph != guard_program::none)
      if (auto const& p = *c.paths->paths[a.graph]; p.is_simple && p.first.end)
        for (auto const& w : p.first.end->scalars) a.compare(w.scalar);
    return a.find(c.paths->guards);
  }
  template <class Call>
  void perform(Call& now);
  /// Runs the path of a known call. Else nothing has changed.
  std::optional<missed_call> run(compiled_call& now, known_calls& calls, known_call& c, planned_path& p, host_log& log);
  missed_call missed_by(compiled_call& now, path_run const& running, path_run::outcome how);
  /// The call goes on without that path.
  void miss(compiled_call& now, known_calls& calls, host_log& log, missed_call missed);
  /// A call with no path that can run: eagerly on the host, what the host has done in it already is not repeated; on a
  /// device it is refused.
  void run_instead(compiled_call& now, host_log& log, std::string why);
  static void go_on(compiled_call& now, host_log& log, bool on_copy = false);

  /// The look-up of arguments that are not known, and captures. `verifies`: a hit is to be checked. `missed`: why the
  /// known path is not that of the call, which `log` has begun; empty: it may be.
  void look_up(compiled_call& now, known_calls& calls, bool verifies, host_log log = {}, std::string missed = {});
  call_path find(compiled_call& now, argument_state const& begin, known_calls& calls);
  /// Arguments that are met for the first time.
  void meet(compiled_call& now, compiled_paths const& paths, known_call& c) const;
  /// Whether there is room for the path of a call that missed, or is made; `to` is kept then.
  bool make_room(call_path const& to);
  std::shared_ptr<compiled_paths> fresh_paths(compiled_call& now, argument_state const& begin) const;

  // Captures.

  /// Captures a call by running it.
  void record(compiled_call& now, argument_state& begin, sizes const& n, call_path const& to, host_log& log,
              std::unique_lock<std::mutex>& lock);
  /// Captures a call by shapes, for a device. False: the call is to be looked up again. `failed`: its path is not kept.
  bool record_for_device(compiled_call& now, argument_state& begin, sizes const& n, call_path const& to, bool failed,
                         host_log& log, known_reads& reads);
  /// Runs a path that is not kept, on a device: a function of the host has thrown an exception, or the call is refused
  /// at its end.
  void run_once(compiled_call& now, recorded_path path, call_path const& like, host_log& log, known_reads& reads);
  /// Captures by shapes the path of a call: `keeps` says whether it is planned. The graphs of its operators, else.
  std::vector<graph> by_shapes(compiled_call& now, bool keeps, std::function<void()>& grow);

  /// `known`: what a device has read in this call.
  recorded_path recorded(compiled_call& now, capture_mode how, argument_state& begin, sizes const& n,
                         compiled_paths& to, host_log& log, known_reads const* known = nullptr);
  /// What the call leaves behind, beside what it began with.
  void describe(recorder& rec, argument_state const& begin, sizes const& of_references, argument_state& end,
                argument_state& result, captured_end& to);
  /// Plans a path and publishes it; where no plan is found, why_ says so. Whether there is something new.
  bool keep(recorded_path&& path, call_path const& to);
  /// The graphs of a captured path that have operators.
  static std::vector<graph> graphs_of(captured_path p);
  /// Whether an exception states this refusal.
  static bool is_of(std::exception_ptr const& thrown, std::string const& refusal);
  [[noreturn]] static void throw_refusal(std::exception_ptr const& thrown, std::string const& refusal);
  /// Whether the library has refused something: later calls are to state it anew.
  static bool is_refusal(std::exception_ptr const& thrown);
  /// No graph stands for the path of a call on a device.
  [[noreturn]] void refuse(recorded_path const& path) const;
  /// Where a path cannot run on the device, no call of it runs elsewhere.
  [[noreturn]] void refuse_on_device(std::string const& why) const {
    throw_error(arena_.at, {"compile: the call does not run on the device: ", why});
  }

  // Texts.

  static std::string place_of(std::source_location at) {
    auto text = error::place(at);
    return text.empty() ? std::string("a place that is not known") : text.substr(0, text.size() - 2);
  }
  /// Which guard has another value; guard_trie::none: one that no call has met.
  std::string other_answer(compiled_call& now, std::source_location guard, expression_tape const& tape,
                           std::uint32_t expr) const;
  std::string limit_reached(std::string const& why) const;

  compile_options options_;
  path_arena arena_;
  path_planner planner_;
  std::mutex mutex_;
  std::condition_variable turn_ends_;
  bool is_recording_ = false;
  std::thread::id recording_thread_;
  path_store store_;
  shared_text why_;
  std::atomic<std::size_t> hits_ = 0;
  std::atomic<bool> needs_whole_ = false;     // a call used more of a storage than its arguments see
  std::atomic<bool> elements_share_ = false;  // such a call was met: signatures have which elements share memory
  calls_of_threads calls_;
};

template <class Call>
known_call* compiled_base::known_call_of(Call& now, known_calls& calls) {
  if (calls.is_busy || elements_share_.load(std::memory_order_relaxed)) return nullptr;
  calls.follow(store_.publications());
  auto const is_known = [&](known_call& c) {
    if (!c.arguments.begin_comparison(mode())) return false;
    now.walk_known(c.arguments);
    return c.arguments.end_comparison();
  };
  auto* known = calls.last;
  if (!known || !is_known(*known)) {
    known = known ? calls.find(key_of(now)) : nullptr;
    if (known && (known == calls.last || !is_known(*known))) known = nullptr;
  }
  return known;
}

inline std::optional<compiled_base::missed_call> compiled_base::run(compiled_call& now, known_calls& calls,
                                                                    known_call& c, planned_path& p, host_log& log) {
  if (!calls.is_busy) calls.use(c);
  store_.use(p);
  known_calls::busy const others_keep_out(calls);
  if (!p.refused.empty()) {
    if (arena_.device) refuse_on_device(p.refused);
    return missed_call{path_run::outcome::failed, p.refused, {}};
  }
  log.restart();
  path_run running(arena_, p, c.arguments, log);
  auto how = path_run::outcome::failed;
  with_place(arena_.at, [&] { how = running(now); });
  if (how != path_run::outcome::ended) return missed_by(now, running, how);
  if (running.thrown()) std::rethrow_exception(running.thrown());
  return std::nullopt;
}

template <class Call>
void compiled_base::perform(Call& now) {
  auto& calls = calls_.here();
  auto* const known = known_call_of(now, calls);
  auto const found = known ? path_of(*known) : guard_program::none;
  if (found == guard_program::none) return look_up(now, calls, false);
  auto& path = *known->paths->paths[found];
  if (arena_.device && !path.is_simple) return look_up(now, calls, false);  // in the function's turn
  if (is_next_verified()) return look_up(now, calls, true);
  host_log log;
  if (auto missed = run(now, calls, *known, path, log)) miss(now, calls, log, std::move(*missed));
}

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/execute/impl/compiled_base.ipp>
#endif
