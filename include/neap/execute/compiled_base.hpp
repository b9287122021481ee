// What of a compiled function does not depend on its type: its graphs, the look-up of a call, captures, and runs of a call
// along the graphs of its path. execute/compile.hpp says what calls do.
#pragma once

#include <neap/capture/host.hpp>
#include <neap/capture/recorder.hpp>
#include <neap/execute/bound_graph.hpp>
#include <neap/execute/compile_options.hpp>
#include <neap/execute/compiled_call.hpp>
#include <neap/execute/compiled_paths.hpp>
#include <neap/execute/executable.hpp>
#include <neap/execute/staged_run.hpp>

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

/// What of a compiled function does not depend on its type.
class compiled_base {
 public:
  /// Whether a call is captured on a copy of what is given by value, before it runs.
  static constexpr bool copies_arguments = false;
  /// Of a graph, the memory in its order of the largest graph of its path (0: it is the only one), and the plan of a graph
  /// that it equals but for lengths (null: none).
  using planner = std::function<plan<graph>(graph const&, bytes_t, planned_before const*)>;

  compiled_base(planner how, compile_options const& options, std::source_location at,
                std::unique_ptr<graph_device> device = nullptr)
      : planner_(std::move(how)),
        options_(options),
        at_(at),
        backend_(device ? 1 : options.threads),
        device_(std::move(device)) {}

  std::size_t graph_count() const { return graphs_; }
  std::string why_missed() const { return why_.get(); }

 protected:
  struct sizes {
    std::size_t tensors, cells, plains, form;
  };

  std::shared_ptr<compiled_paths> paths_of(std::string const& signature);
  /// For a signature without graphs.
  std::shared_ptr<compiled_paths> fresh_paths(compiled_call& now, argument_state const& begin) const;
  /// Keeps what has its first graph.
  void add_paths(std::shared_ptr<compiled_paths> fresh);
  /// Counts the graphs: of several lengths as one.
  void count_graphs();
  /// Forgets a signature, with all of its graphs.
  void drop_paths(std::shared_ptr<compiled_paths> const& p);
  /// Drops the graph that was used least recently, with all paths of its first stage. All of its signature go where most
  /// expressions are those of graphs that were dropped. False: there is none.
  bool drop_oldest();
  /// Whether there is room for another graph of these paths, or it is made.
  bool has_room(compiled_paths const& of) const;
  bool make_room(compiled_paths const& of);
  void use(compiled_graph& g) {
    if (options_.full == when_full::drop_oldest || !options_.lengths.empty())
      g.last_used.store(uses_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// Makes another graph of these paths, or the beginning of one, known to look-ups. Of too many lengths of a graph the one
  /// that was used least recently goes.
  void publish(std::shared_ptr<compiled_paths> const& to, bool is_fresh);
  /// While it lives, no other call is captured: this one runs code of the program, and no lock is held. `waits`: for the
  /// call that is captured now. Throws neap::error where that is this thread's.
  class turn {
   public:
    turn(compiled_base& of, std::unique_lock<std::mutex>& lock, bool waits = false) : of_(&of), lock_(&lock) {
      while (waits && of.is_recording_) {
        if (of.recording_thread_ == std::this_thread::get_id())
          throw_error(of.at_,
                      {"compile: a function of the host, which a call calls, calls the compiled function again"});
        of.turn_ends_.wait(lock);
      }
      of.is_recording_ = true, of.recording_thread_ = std::this_thread::get_id();
      lock.unlock();
    }
    turn(turn const&) = delete;
    turn& operator=(turn const&) = delete;
    ~turn() { end(); }
    void end() {
      if (!of_) return;
      lock_->lock();
      of_->is_recording_ = false;
      std::exchange(of_, nullptr)->turn_ends_.notify_all();
    }

   private:
    compiled_base* of_;
    std::unique_lock<std::mutex>* lock_;
  };
  static constexpr char const* in_host_code =
      "another call of the function is captured, or calls a function of the host";
  /// Why arguments with this signature have no graph yet.
  std::string other_signature(argument_state const& named) const;
  static std::string place_of(std::source_location at) {
    auto text = error::place(at);
    return text.empty() ? std::string("a place that is not known") : text.substr(0, text.size() - 2);
  }

  /// Which question got another answer; guard_trie::none: one that no call has met. `names`: of the arguments' tracked
  /// scalars.
  std::string other_answer(std::source_location asked, expression_tape const& tape, std::uint32_t question,
                           std::vector<std::string> const& names) const;
  std::string limit_reached(std::string const& why) const;
  void describe(recorder& rec, argument_state const& begin, sizes const& of_references, argument_state& end,
                argument_state& result, captured_program& p);
  /// A plan, after one of the same graph with other lengths where there is one. Throws what the planner throws.
  plan<graph> planned(graph const& g, bytes_t original, length_family* family) const;
  /// Where no plan is found, the graph says so in `refused`.
  std::shared_ptr<compiled_graph> planned(captured_program p, length_family* family);
  static std::vector<digest> ops_of(op_graph const& g, std::size_t count = static_cast<std::size_t>(-1));
  /// Whether an operator of a plan may throw after one that updates memory in place: in the order of the plan.
  static bool throws_late(plan<graph> const& p);
  static value_id counterpart(std::span<value_id const> from, std::span<value_id const> to, value_id v);
  /// Room for the scalars among the sources of a graph, 64 bytes each.
  static byte_block scalars_of(std::vector<captured_stage::source> const& sources);
  /// Where sources are, whose values in the plan are `planned`. What is neither a scalar nor a constant is bound in each
  /// run.
  static std::vector<source_binding> bindings_of(std::vector<captured_stage::source> const& sources,
                                                 std::vector<value_id> const& planned,
                                                 std::vector<tensor> const& constants, byte_block const& scalars);
  /// A plan on the device.
  std::unique_ptr<device_graph> placed(plan<graph> p, std::vector<source_binding> const& bindings,
                                       std::vector<captured_stage::source> const& sources,
                                       std::vector<tensor> const& constants);
  static bool same_constants(std::vector<tensor> const& a, std::vector<tensor> const& b);
  /// The graphs of a captured path that have operators.
  static std::vector<graph> graphs_of(captured_program p);

  // Paths of several stages.

  /// The stages of a path that are known: as many as the guards of a call that was recorded lead to.
  static std::vector<planned_stage*> known_stages(compiled_paths const& in, std::vector<captured_stage> const& stages);
  /// Throws neap::error if a call took another path than the one that is kept for its guards.
  void require_same(planned_stage const& kept, captured_stage const& s, bool ends) const;
  /// What is thrown where a graph of several has no plan.
  struct no_plan {
    std::string why;
    bool for_now = false;  // another call is under way
  };
  static std::string refusal(error const& e);
  struct stage_plan {
    captured_stage captured;
    std::optional<plan<graph>> planned;  // none: no operators
    std::vector<digest> ops;
    bytes_t peak = 0;
  };
  /// Throws no_plan.
  stage_plan plan_of(captured_stage s, bytes_t original, length_family* family) const;
  /// A stage, or again one that keeps more. Graphs do not run meanwhile. Throws no_plan.
  void place_stage(planned_stage& to, stage_plan made);
  /// Adds a recorded path, or the beginning of one that has no end yet; `form`: of its result. False: it was known.
  bool add(compiled_paths& to, captured_program p, std::vector<planned_stage*> const& known, bool is_beginning,
           std::shared_ptr<void> form);
  /// Graphs may be placed. Throws no_plan.
  void require_free() const {
    if (is_in_host_code_) throw no_plan{in_host_code, true};
  }

  /// Throws neap::error if a call took another path than the one that is kept for its guards.
  void require_same(compiled_graph const& kept, captured_program const& p) const;
  [[noreturn]] void untracked(std::source_location at) const {
    throw_error(at.line() ? at : at_,
                {"compile: calls with equal arguments and answers took different paths here: the function depends on "
                 "something that is no part of its arguments (a global, a static variable, a clock, a file)"});
  }
  /// The graph for the arguments of a known call; guard_program::none: none.
  static std::uint32_t graph_of(known_call& c) {
    auto& a = c.arguments;
    if (a.graph != guard_program::none)
      for (auto const& w : c.paths->graphs[a.graph]->captured.cells) a.compare(w.cell);
    return a.find(c.paths->guards);
  }
  bool is_next_verified() {
    return options_.verify != 0 && (hits_.fetch_add(1, std::memory_order_relaxed) + 1) % options_.verify == 0;
  }
  /// Runs the graph on these arguments. False if it failed: everything is then as before.
  struct results {
    std::vector<std::shared_ptr<tensor_storage>> made;
    std::vector<container_change> changes;
    bool finds_others = false;  // another call is in a function of the host: the arena is its
  };
  /// To recordings of this thread and of others.
  static void report_uses(known_arguments const& begin, captured_program const& c);
  bool run(compiled_graph& g, known_arguments const& begin, results& r);
  class made_by_graph final : public made_parts {
   public:
    made_by_graph(captured_program const& p, known_arguments const& begin, results const& r)
        : program_(&p),
          arguments_(&begin),
          results_(&r) {}
    tensor tensor_of(std::size_t k) override {
      return tensor_from(*program_, program_->result[k], *arguments_, results_->made);
    }
    std::uint64_t value_of(std::size_t k) override { return arguments_->value(program_->result_cells[k]); }

   private:
    captured_program const* program_;
    known_arguments const* arguments_;
    results const* results_;
  };
  /// Whether an element of a tracked container has memory that the graph updates, which later signatures state.
  bool finds_sharing(compiled_graph const& g, known_arguments const& begin);
  void run_on_device(compiled_graph& g, known_arguments const& begin, results& r);
  /// Where a path cannot run on the device, no call of it runs elsewhere.
  [[noreturn]] void refuse_on_device(std::string const& why) const {
    throw_error(at_, {"compile: the call does not run on the device: ", why});
  }
  /// An argument's tensor, or an element of a tracked container.
  static tensor const& tensor_of(captured_program const& c, known_arguments const& begin, std::uint32_t k);
  static tensor tensor_from(captured_program const& c, tensor_origin const& o, known_arguments const& begin,
                            std::vector<std::shared_ptr<tensor_storage>> const& made);
  static tracked_base& container_of(known_arguments const& begin, std::uint32_t cell);
  /// Makes all that commit() writes, so that it does not fail.
  static void prepare(captured_program const& c, known_arguments const& begin, results& r);
  static void commit(captured_program const& c, known_arguments& begin, results& r);

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
    return !device_ && !needs_whole_.load(std::memory_order_relaxed) &&
           !elements_share_.load(std::memory_order_relaxed);
  }
  sizes walk_all(compiled_call& now, argument_state& to) const;
  static std::uint64_t key_of(compiled_call& now);
  /// Of the arguments' tracked scalars.
  std::vector<std::string> names_of(compiled_call& now) const;
  std::string other_answer(compiled_call& now, published_paths const& paths, std::uint32_t node) const;

  /// What this thread has called with before; null: something else.
  template <class Call>
  known_call* known_call_of(Call& now, known_calls& calls);
  /// Arguments that are met for the first time.
  void find(compiled_call& now, compiled_paths const& paths, known_call& c) const;
  /// Runs the graph of a known call.
  template <class Call>
  void hit(Call& now, known_calls& calls, known_call& c, compiled_graph& g);
  /// The function runs in place of a graph that is refused or has failed.
  void run_instead(compiled_call& now, compiled_graph& g, results const& r);
  [[noreturn]] static void throw_captured(known_call& c, compiled_graph& g, results& r);
  /// The look-up of arguments that are not known, and captures. `verifies`: a hit is to be checked.
  void look_up(compiled_call& now, known_calls& calls, bool verifies);
  /// The call runs eagerly; what the host has done in it already is not repeated.
  static void go_on(compiled_call& now, host_log& log, bool on_copy = false);
  /// Runs a path of several stages. Missed: `why` says where. Throws what the call ends by, after all that comes before.
  staged_run::outcome run_stages(compiled_call& now, planned_stage& first, argument_state& begin,
                                 published_paths const& paths, host_log& log, std::string& why,
                                 known_reads* reads = nullptr);

  /// A path that was captured.
  struct recorded_path {
    captured_program program;
    std::shared_ptr<void> form;          // of the result, without tensors
    std::vector<planned_stage*> stages;  // those that are known
    char const* unusable = nullptr;      // why no graph can stand for the call
    bool is_beginning = false;           // it ends before a read that is not known
    bool caught = false;                 // an exception that only a run of its operators could throw again
    std::string refusal;                 // with data: the call is to run eagerly, from its beginning
    std::function<void()> growth;        // first: the call is to be recorded again after it
  };
  /// How a call is captured.
  enum class capture_mode : std::uint8_t {
    running,          // the call has its result
    by_shapes,        // without data: arguments are left as they were
    again_by_shapes,  // likewise, on a copy of what is given by value: the call is to run after that
  };
  /// Captures a call. `known`: what a device has read in this call.
  recorded_path recorded(compiled_call& now, capture_mode how, argument_state& begin, sizes const& n,
                         compiled_paths& to, host_log& log, known_reads const* known = nullptr);
  /// Whether an exception states this refusal.
  static bool is_of(std::exception_ptr const& thrown, std::string const& refusal);
  [[noreturn]] static void throw_refusal(std::exception_ptr const& thrown, std::string const& refusal);
  /// Plans a path and publishes it; where no plan is found, why_ says so. Whether there is something new.
  bool keep(recorded_path&& recorded, std::shared_ptr<compiled_paths> const& to, bool is_fresh, compiled_graph* known);
  /// Captures a call by running it.
  void record(compiled_call& now, argument_state& begin, sizes const& n, std::shared_ptr<compiled_paths> to,
              bool is_fresh, compiled_graph* known, host_log& log, std::unique_lock<std::mutex>& lock);

  template <class Call>
  void perform(Call& now);
  /// Captures by shapes the path of a call: `keeps` says whether it is planned. The graphs of its operators, else.
  std::vector<graph> by_shapes(compiled_call& now, bool keeps, std::function<void()>& grow);

  planner planner_;
  compile_options options_;
  std::source_location at_;
  host_backend backend_;
  std::unique_ptr<graph_device> device_;  // none: graphs run on the host
  shared_arena arena_;
  // No lock is held while code of the program runs: the function, what the host does for it.
  std::mutex mutex_;
  std::condition_variable turn_ends_;
  bool is_recording_ = false;
  std::thread::id recording_thread_;
  number_map by_signature_;
  std::vector<std::shared_ptr<compiled_paths>> paths_;
  std::shared_ptr<compiled_paths const> last_;
  std::atomic<std::size_t> graphs_ = 0;
  shared_text why_;
  std::atomic<std::size_t> hits_ = 0;
  std::atomic<std::uint64_t> uses_ = 0;
  std::atomic<std::uint64_t> publications_ = 1;
  std::atomic<bool> needs_whole_ = false;     // a call used more of a storage than its arguments see
  std::atomic<bool> elements_share_ = false;  // such a call was met: signatures have which elements share memory
  calls_of_threads calls_;
  mutable std::mutex running_;    // graphs run one at a time; held while the arena or the stages of a path change
  bool is_in_host_code_ = false;  // a path of several stages is, and leaves running_ meanwhile, but not the arena
};

template <class Call>
known_call* compiled_base::known_call_of(Call& now, known_calls& calls) {
  if (calls.is_busy || elements_share_.load(std::memory_order_relaxed)) return nullptr;
  calls.follow(publications_.load(std::memory_order_acquire));
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

template <class Call>
void compiled_base::hit(Call& now, known_calls& calls, known_call& c, compiled_graph& g) {
  if (!calls.is_busy) calls.use(c);
  use(g);
  known_calls::busy const others_keep_out(calls);
  results r;
  if (!g.refused.empty() || !run(g, c.arguments, r)) return run_instead(now, g, r);
  if (g.captured.thrown) throw_captured(c, g, r);
  made_by_graph made(g.captured, c.arguments, r);
  now.fill(g.result.get(), made);
  if (g.captured.has_effects()) commit(g.captured, c.arguments, r);
}

template <class Call>
void compiled_base::perform(Call& now) {
  auto& calls = calls_.here();
  auto* const known = known_call_of(now, calls);
  if (!known) return look_up(now, calls, false);
  auto const found = graph_of(*known);
  bool const is_one = found != guard_program::none && !known->paths->graphs[found]->staged;
  if (is_one && !is_next_verified()) return hit(now, calls, *known, *known->paths->graphs[found]);
  look_up(now, calls, is_one);
}

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/execute/impl/compiled_base.ipp>
#endif
