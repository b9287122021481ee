// compile: a function in eager style becomes planned graphs, one for each path that its calls take.
//
//   auto step = neap::compile([](net& m, neap::tensor const& x, neap::sym<double> rate) {
//     neap::tensor const loss = mean(m(x));
//     auto const weights = neap::parameters(m);
//     auto const g = neap::grad(loss, weights);
//     for (std::size_t i = 0; i < g.size(); ++i) neap::assign(weights[i], weights[i] - rate * g[i]);
//     if (++m.steps % 100 == 0) m.saved = loss;   // steps is a neap::state<int>
//     return loss;
//   });
//   tensor l = step(m, x, 0.1);
//
// A call whose path is new runs eagerly, and its operators are recorded as a graph, the tracked values that decide as
// guards, and what it leaves in its arguments as effects. A later call with equal guards runs the planned graph and then
// writes the effects; where the graph fails, nothing has changed, and the call runs eagerly. Guards are: types and aliasing
// of the arguments' tensors, plain values and lengths in the arguments, and questions about neap::state and neap::sym.
// Outputs and state are those of the eager function, bit by bit.
//
// A path is kept for any objects: guards and effects are in terms of the arguments' parts. Of a class with neap_fields the
// bytes of members that it does not list are guards, too, and padding among them where it cannot be told from members:
// objects of such classes share graphs where these bytes are equal. What neap_parts does not list is not seen, unless it
// lists the whole object (parts::whole).
//
// An element that the function reads decides: the operators so far are a graph of their own, which runs first, and what
// follows is one for each answer (capture/host.hpp). Printing, clocks and generators are there too.
//
// Refused, with the place: a tensor or a state that neither an argument contains nor the function makes, addresses of
// elements, a gradient through operators that ran before the call, draws from the thread's generator. Arguments are then as
// before the call, but for changes of their structure. Where the function catches the refusal, the call runs eagerly.
//
// Run eagerly and not kept: a call that changes the length of a container, what an optional or a pointer holds, which
// weights are frozen, or the memory of a weight; one in which the function catches an exception of an operator or of a
// function of the host; one of which another thread uses tensors or states, or calls functions of the host; and one that
// keeps a tensor outside of its arguments and result. why_missed() says which.
//
// Globals, clocks and files that decide cannot be seen: a later capture or compile_options::verify finds them. Output to a
// stream is written by eager calls alone. Results have no history: neap::grad refuses a gradient through them to weights;
// take it in the function. All graphs share one arena; a call that captures needs the memory of an eager one, and copies of
// the arguments' memory that it writes.
//
// Several threads may call one object. Its graphs run one after another. No lock is held while code of the program runs:
// the function, functions of the host. Meanwhile a call that needs another graph, or a graph of its own while a function of
// the host is called between two graphs, runs eagerly.
#pragma once

#include <neap/capture/argument_key.hpp>
#include <neap/capture/cond.hpp>
#include <neap/capture/host.hpp>
#include <neap/capture/recorder.hpp>
#include <neap/capture/sym_functions.hpp>
#include <neap/capture/tracked_map.hpp>
#include <neap/capture/tracked_sequence.hpp>
#include <neap/core/is_instance.hpp>
#include <neap/execute/bound_graph.hpp>
#include <neap/execute/compiled_paths.hpp>
#include <neap/execute/executable.hpp>
#include <neap/execute/plan_like.hpp>
#include <neap/execute/staged_run.hpp>
#include <neap/optimize/optimize.hpp>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap::inline v0 {

/// What a call does that needs another graph where as many are kept as may be.
enum class when_full : std::uint8_t {
  run_eagerly,  // and why_missed() says so
  drop_oldest,  // the graph that was used least recently goes, with its plan, and the call is captured
};

struct compile_options {
  std::size_t graphs = 64;  // at most
  when_full full = when_full::run_eagerly;
  std::size_t verify = 0;   // each such hit runs eagerly and must take the path that was kept; 0: none
  int threads = 0;          // of the backend that runs the graphs; 0: one for each core
  execution_options run{};  // of each graph; step_seconds are those of all graphs of a call, in their order
};

namespace detail {
/// A limit of one stage of a path: a ratio is of the largest of them.
template <class Option>
Option of_path(Option const& o, bytes_t) {
  return o;
}
inline memory_limit of_path(memory_limit const& o, bytes_t original) {
  return o.ratio >= 0 && original > 0 ? memory_limit(o.resolve(original)) : o;
}
inline search_options of_path(search_options o, bytes_t original) {
  o.memory_at_most = of_path(o.memory_at_most, original);
  return o;
}
}  // namespace detail

/// Plans each captured graph by a search: compile(f, plan_with(moves, memory_limit::of_original(0.5))). A path of several
/// graphs is under one limit: a ratio is of the memory of the largest of them. Calls of a path for which no plan fits run
/// eagerly, and why_missed() says so.
template <class Moves, class... Option>
auto plan_with(Moves const& moves, Option const&... options) {
  return [=](graph const& g, bytes_t original = 0) -> plan<graph> {
    auto found = optimize(g, moves, detail::of_path(options, original)...);
    if (!found.fits) throw_error({"compile: ", found.why_not()});
    return std::move(found.placed);
  };
}

namespace detail {

template <class F>
struct parameters_of : std::type_identity<void> {};
#define NEAP_PARAMETERS(...)                           \
  template <class R, class... P>                       \
  struct parameters_of<__VA_ARGS__> {                  \
    using type = std::tuple<std::type_identity<P>...>; \
  };                                                   \
  static_assert(true)
NEAP_PARAMETERS(R (*)(P...));
NEAP_PARAMETERS(R (*)(P...) noexcept);
#undef NEAP_PARAMETERS
#define NEAP_PARAMETERS(...)                           \
  template <class C, class R, class... P>              \
  struct parameters_of<__VA_ARGS__> {                  \
    using type = std::tuple<std::type_identity<P>...>; \
  };                                                   \
  static_assert(true)
NEAP_PARAMETERS(R (C::*)(P...));
NEAP_PARAMETERS(R (C::*)(P...) const);
NEAP_PARAMETERS(R (C::*)(P...) noexcept);
NEAP_PARAMETERS(R (C::*)(P...) const noexcept);
#undef NEAP_PARAMETERS
template <class F>
auto parameter_list() {
  if constexpr (std::is_pointer_v<F>) return std::type_identity<typename parameters_of<F>::type>{};
  else if constexpr (requires { &F::operator(); })
    return std::type_identity<typename parameters_of<decltype(&F::operator())>::type>{};
  else return std::type_identity<void>{};
}

/// How argument number I is held during a call: by reference where the function takes it so, else by value. An object of
/// a derived class stays whole where the function takes a reference to its base.
template <class List, std::size_t I, class A>
struct held_argument {
  using P = typename std::tuple_element_t<I, List>::type;
  using plain = std::remove_cvref_t<P>;
  using given = std::remove_cvref_t<A>;
  static constexpr bool is_one = std::is_same_v<given, plain> || (std::is_class_v<given> && std::is_class_v<plain> &&
                                                                  std::is_convertible_v<given*, plain*>);
  static constexpr bool refers = std::is_lvalue_reference_v<P> && is_one &&
                                 (std::is_lvalue_reference_v<A> || std::is_const_v<std::remove_reference_t<P>>);
  using type = std::conditional_t<refers, P, std::conditional_t<is_one && std::is_reference_v<P>, given, plain>>;
};
template <std::size_t I, class A>
struct held_argument<void, I, A> {
  using type = std::conditional_t<std::is_lvalue_reference_v<A>, A, std::remove_cvref_t<A>>;
};

/// What of a compiled function does not depend on its type.
class compiled_base {
 public:
  /// Of a graph, and the memory in its order of the largest graph of its path; 0: it is the only one.
  using planner = std::function<plan<graph>(graph const&, bytes_t)>;

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

  std::shared_ptr<compiled_paths> paths_of(std::string const& signature) {
    for (auto key = std::hash<std::string>{}(signature);; ++key) {
      auto const row = by_signature_.find(key);
      if (row == number_map::none) return nullptr;
      if (paths_[row]->signature == signature) return paths_[row];
    }
  }
  /// Keeps what has its first graph.
  void add_paths(std::shared_ptr<compiled_paths> fresh) {
    auto key = std::hash<std::string>{}(fresh->signature);
    while (by_signature_.contains(key)) ++key;
    by_signature_.add(key, static_cast<std::uint32_t>(paths_.size()));
    last_ = fresh;
    paths_.push_back(std::move(fresh));
  }
  /// Forgets a signature, with all of its graphs.
  void drop_paths(std::shared_ptr<compiled_paths> const& p) {
    for (auto const& g : p->graphs) graphs_ -= g->path_count;
    auto others = std::exchange(paths_, {});
    by_signature_.clear();
    for (auto& other : others)
      if (other != p) add_paths(std::move(other));
  }
  /// Drops the graph that was used least recently, with all paths of its first stage. All of its signature go where most
  /// expressions are those of graphs that were dropped.
  void drop_oldest() {
    std::shared_ptr<compiled_paths> in;
    std::size_t at = 0;
    for (auto& p : paths_)
      for (std::size_t k = 0; k < p->graphs.size(); ++k)
        if (!in || p->graphs[k]->last_used < in->graphs[at]->last_used) in = p, at = k;
    if (!in) return;
    publications_.fetch_add(1, std::memory_order_release);
    if (in->graphs.size() == 1 || ++in->dropped > 4 * options_.graphs + 64) return drop_paths(in);
    graphs_ -= in->graphs[at]->path_count;
    in->graphs.erase(in->graphs.begin() + static_cast<std::ptrdiff_t>(at));
    in->guards = guard_trie();
    for (std::uint32_t k = 0; k < in->graphs.size(); ++k) in->guards.add(in->graphs[k]->captured.path, k);
    in->publish();
  }
  /// Whether there is room for another graph.
  bool make_room() {
    while (graphs_ >= std::max<std::size_t>(options_.graphs, 1) && options_.full == when_full::drop_oldest) {
      std::size_t const before = graphs_;
      drop_oldest();
      if (graphs_ == before) break;
    }
    return graphs_ < options_.graphs;
  }
  void use(compiled_graph& g) {
    if (options_.full == when_full::drop_oldest)
      g.last_used.store(uses_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// Makes another graph of these paths, or the beginning of one, known to look-ups.
  void publish(std::shared_ptr<compiled_paths> const& to, bool is_fresh, bool is_path = true) {
    graphs_ += is_path;
    to->publish();
    publications_.fetch_add(1, std::memory_order_release);
    if (is_fresh) add_paths(to);
  }
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
  std::string other_signature(argument_state const& named) const {
    if (paths_.empty()) return "it is the first call";
    auto const& before = last_ ? last_->signature : paths_.back()->signature;
    auto const n = std::min(before.size(), named.signature.size());
    std::size_t k = 0;
    while (k < n && before[k] == named.signature[k]) ++k;
    return named.name_at(k) + " differs from earlier calls";
  }
  static std::string place_of(std::source_location at) {
    auto text = error::place(at);
    return text.empty() ? std::string("a place that is not known") : text.substr(0, text.size() - 2);
  }

  /// Which question got another answer; guard_trie::none: one that no call has met. `names`: of the arguments' tracked
  /// scalars.
  std::string other_answer(std::source_location asked, expression_tape const& tape, std::uint32_t question,
                           std::vector<std::string> const& names) const {
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
  std::string limit_reached(std::string const& why) const {
    return "the limit of " + std::to_string(options_.graphs) + " graphs is reached, and " + why +
           ": give what changes from call to call as neap::sym or neap::state, and read tensors by neap::item";
  }
  void describe(recorder& rec, argument_state const& begin, sizes const& of_references, argument_state& end,
                argument_state& result, captured_program& p);
  /// Where no plan is found, the graph says so in `refused`.
  std::shared_ptr<compiled_graph> planned(captured_program p);
  static std::vector<digest> ops_of(op_graph const& g, std::size_t count = static_cast<std::size_t>(-1)) {
    std::vector<digest> all;
    for (auto o : g.ops())
      if (all.size() < count) all.push_back(g.digest(o));
    return all;
  }
  /// Whether an operator of a plan may throw after one that updates memory in place: in the order of the plan.
  static bool throws_late(plan<graph> const& p) {
    auto const& g = p.graph;
    bool updates = false;
    for (auto const& s : p.steps) {
      for (auto v : g.outputs(s.op)) updates = updates || g.record(v).alias == alias_kind::update;
      if (updates && g.facets(s.op).checks_numbers) return true;
    }
    return false;
  }
  static value_id counterpart(std::span<value_id const> from, std::span<value_id const> to, value_id v) {
    for (std::size_t i = 0; i < from.size() && i < to.size(); ++i)
      if (from[i] == v) return to[i];
    throw_error({"compile: the plan is not one of the graph"});
  }
  /// Room for the scalars among the sources of a graph, 64 bytes each.
  static byte_block scalars_of(std::vector<captured_stage::source> const& sources) {
    auto const n = std::ranges::count(sources, captured_stage::source::kind::scalar, &captured_stage::source::what);
    return byte_block(64 * std::max<std::size_t>(static_cast<std::size_t>(n), 1), 64);
  }
  /// Where sources are, whose values in the plan are `planned`. What is neither a scalar nor a constant is bound in each
  /// run.
  static std::vector<source_binding> bindings_of(std::vector<captured_stage::source> const& sources,
                                                 std::vector<value_id> const& planned,
                                                 std::vector<tensor> const& constants, byte_block const& scalars) {
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
  /// A plan on the device.
  std::unique_ptr<device_graph> placed(plan<graph> p, std::vector<source_binding> const& bindings,
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
  static bool same_constants(std::vector<tensor> const& a, std::vector<tensor> const& b);
  /// The graphs of a captured path that have operators.
  static std::vector<graph> graphs_of(captured_program p) {
    std::vector<graph> all;
    if (p.stages.empty()) all.emplace_back(std::move(p.program));
    for (auto& s : p.stages)
      if (s.computes && s.program.op_count() > 0) all.emplace_back(std::move(s.program));
    return all;
  }

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
  static std::string refusal(error const& e) {
    std::string_view why = e.what(), own = "compile: ";
    if (auto const at = why.find(own); at != why.npos) why.remove_prefix(at + own.size());
    return "no plan runs it: " + std::string(why);
  }
  struct stage_plan {
    captured_stage captured;
    std::optional<plan<graph>> planned;  // none: no operators
    std::vector<digest> ops;
    bytes_t peak = 0;
  };
  /// Throws no_plan.
  stage_plan plan_of(captured_stage s, bytes_t original) const;
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
  bool run(compiled_graph& g, known_arguments const& begin, results& r);
  /// Whether an element of a tracked container has memory that the graph updates, which later signatures state.
  bool finds_sharing(compiled_graph const& g, known_arguments const& begin) {
    auto const& c = g.captured;
    auto const storage = [&](std::uint32_t k) -> tensor_storage& { return *tensor_of(c, begin, k).storage(); };
    bool const shares = !c.elements.empty() && is_shared_element(c.sources, c.updated, storage);
    if (shares) elements_share_ = true;
    return shares;
  }
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

inline void compiled_base::describe(recorder& rec, argument_state const& begin, sizes const& n, argument_state& end,
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

inline std::shared_ptr<compiled_graph> compiled_base::planned(captured_program p) {
  auto made = std::make_shared<compiled_graph>();
  graph const g(std::move(p.program));
  made->ops = ops_of(g);
  made->scalars = scalars_of(p.sources);
  if (g.op_count() > 0) try {
      auto planned = planner_(g, 0);
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

inline void compiled_base::require_same(compiled_graph const& kept, captured_program const& p) const {
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

inline bool compiled_base::same_constants(std::vector<tensor> const& a, std::vector<tensor> const& b) {
  for (std::size_t k = 0; k < a.size() && k < b.size(); ++k) {
    auto &x = *a[k].storage(), &y = *b[k].storage();
    if (x.type() != y.type() || std::memcmp(x.data(), y.data(), static_cast<std::size_t>(x.bytes())) != 0) return false;
  }
  return a.size() == b.size();
}

inline std::vector<planned_stage*> compiled_base::known_stages(compiled_paths const& in,
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

inline void compiled_base::require_same(planned_stage const& kept, captured_stage const& s, bool ends) const {
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

inline compiled_base::stage_plan compiled_base::plan_of(captured_stage s, bytes_t original) const {
  stage_plan made;
  graph const g(s.computes ? std::move(s.program) : op_graph(table_of<standard_operators>()));
  made.ops = ops_of(g, s.op_count);
  if (g.op_count() > 0) try {
      made.peak = plan_in_order(g).arena_bytes;
      made.planned = planner_(g, std::max(original, made.peak));
      for (auto& from : s.sources) from.value = counterpart(g.sources(), made.planned->graph.sources(), from.value);
      for (auto& v : s.kept) v.value = counterpart(g.kept(), made.planned->graph.kept(), v.value);
    } catch (error const& e) { throw no_plan{refusal(e)}; }
  made.captured = std::move(s);
  return made;
}

inline void compiled_base::place_stage(planned_stage& to, stage_plan from) {
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

inline bool compiled_base::add(compiled_paths& to, captured_program p, std::vector<planned_stage*> const& known,
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
  if (!known.empty() && graphs_ >= options_.graphs)
    throw no_plan{limit_reached("it takes a path that is not known"), true};
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
      plans[i] = plan_of(std::move(stages[i]), original);
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

inline bool compiled_base::run(compiled_graph& g, known_arguments const& begin, results& r) {
  auto& made = r.made;
  using kind = captured_program::source::kind;
  auto const& c = g.captured;
  auto const storage = [&](std::uint32_t k) -> tensor_storage& { return *tensor_of(c, begin, k).storage(); };
  made.reserve(c.made_rows.size());
  for (auto const& m : c.made_rows) made.push_back(unwritten_storage(m.type, m.as));
  prepare(c, begin, r);
  if (!g.run) {
    if (g.on_device) run_on_device(g, begin, r);
    return true;
  }
  if (finds_sharing(g, begin)) return false;
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

inline void compiled_base::run_on_device(compiled_graph& g, known_arguments const& begin, results& r) {
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

inline tracked_base& compiled_base::container_of(known_arguments const& begin, std::uint32_t cell) {
  return **static_cast<tracked_base**>(begin.place(cell).value);
}

inline tensor const& compiled_base::tensor_of(captured_program const& c, known_arguments const& begin,
                                              std::uint32_t k) {
  auto const n = begin.tensors().size();
  if (k < n) return *begin.tensors()[k].now;
  auto const& e = c.elements[k - n];
  return *detail::container_of(begin.value(e.container)).tensor_at(begin.value(e.place));
}

inline tensor compiled_base::tensor_from(captured_program const& c, tensor_origin const& o,
                                         known_arguments const& begin,
                                         std::vector<std::shared_ptr<tensor_storage>> const& made) {
  return tensor_of_origin(
      o, [&](std::uint32_t k) -> tensor const& { return tensor_of(c, begin, k); }, made);
}

inline void compiled_base::prepare(captured_program const& c, known_arguments const& begin, results& r) {
  for (auto const& w : c.containers) {
    r.changes.push_back(change_of(
        w, [&](tensor_origin const& o) { return tensor_from(c, o, begin, r.made); },
        [&](std::uint32_t e) { return begin.value(e); }));
    container_of(begin, w.cell).prepare(r.changes.back());
  }
}

inline void compiled_base::commit(captured_program const& c, known_arguments& begin, results& r) {
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

/// Gives the parts of a result what a graph has made: a class for walk_parts().
template <class TensorOf, class ValueOf>
struct result_filler {
  TensorOf const& tensor_of;
  ValueOf const& value_of;
  std::size_t tensors = 0, cells = 0;
  void visit(tensor& x) { x = tensor_of(tensors++); }
  void cell(void*, void* value, std::size_t bytes, symbol_mark*) {
    std::uint64_t const bits = value_of(cells++);
    std::memcpy(value, &bits, bytes);
  }
  void plain(void*, std::size_t) {}
  void text(std::string&) {}
  void structure(std::uint64_t) {}
  void structure(std::string_view) {}
  void unlisted(unsigned char const*, std::size_t) {}
  void enter(std::string_view, std::size_t) {}
  void leave() {}
  void tracked(tracked_base&) {}  // results have none
};

/// The calls of a function that compile() was given.
template <class F>
class function_calls : public compiled_base {
 protected:
  template <std::size_t I, class A>
  using held = typename detail::held_argument<typename decltype(detail::parameter_list<F>())::type, I, A>::type;

 public:
  function_calls(F f, planner how, compile_options const& options, std::source_location at,
                 std::unique_ptr<detail::graph_device> device = nullptr)
      : compiled_base(std::move(how), options, at, std::move(device)),
        f_(std::move(f)) {}

  template <class... A>
  auto operator()(A&&... arguments) {
    if (tracer::active() || detail::computation_listener::active() || detail::host_log::active())
      return f_(std::forward<A>(arguments)...);
    return [&]<std::size_t... I>(std::index_sequence<I...> numbers) {
      std::tuple<held<I, A&&>...> frame(std::forward<A>(arguments)...);
      return call(frame, numbers);
    }(std::index_sequence_for<A...>{});
  }

  template <class... A>
  std::vector<graph> captured(bool keeps, A&&... arguments) {
    if (tracer::active() || detail::computation_listener::active() || detail::host_log::active())
      throw_error(at_, {"capture by shapes: a trace or another capture is under way"});
    return [&]<std::size_t... I>(std::index_sequence<I...> numbers) {
      std::tuple<held<I, A&&>...> frame(std::forward<A>(arguments)...);
      std::vector<graph> all;
      for (std::function<void()> grow;; grow = nullptr) {
        all = by_shapes(frame, numbers, keeps, grow);
        if (!grow) return all;
        grow();  // what is made then is recorded no more
      }
    }(std::index_sequence_for<A...>{});
  }

  /// Objects that the function is given by reference, or those by value.
  template <bool References, class... H, std::size_t... I>
  static void walk(std::tuple<H...>& frame, detail::part_visitor& v, std::index_sequence<I...>) {
    (
        [&] {
          if constexpr (std::is_reference_v<H> == References)
            detail::walk_part(std::get<I>(frame), v, "argument " + std::to_string(I + 1), I);
        }(),
        ...);
  }
  /// Whether graphs take the parts of storages that arguments see, wherever these are: not where elements of tracked
  /// containers may share them, nor on a device, to which storages are copied whole.
  bool takes_parts_of_storages() const {
    return !device_ && !needs_whole_.load(std::memory_order_relaxed) &&
           !elements_share_.load(std::memory_order_relaxed);
  }
  static std::uint64_t mode() {
    return std::uint64_t{context_access::is_recording()} | std::uint64_t{context_access::is_training()} << 1 |
           std::uint64_t{context_access::clock() != nullptr} << 2 |
           (precision_scope::current() ? std::uint64_t{1} + static_cast<std::uint64_t>(*precision_scope::current()) : 0)
               << 3;
  }
  template <class Frame>
  static std::uint64_t type_number() {
    return static_cast<std::uint64_t>(
        reinterpret_cast<std::uintptr_t>(static_cast<void const*>(&detail::type_address<Frame>)));
  }
  /// The same walk without taking memory, compiled for these types.
  template <class... H, std::size_t... I>
  static void walk_known(std::tuple<H...>& frame, detail::known_arguments& to, std::index_sequence<I...>) {
    to.structure(type_number<std::tuple<H...>>());
    (
        [&] {
          if constexpr (std::is_reference_v<H>) {
            to.refers_to(std::get<I>(frame));
            detail::walk_parts(std::get<I>(frame), to);
          }
        }(),
        ...);
    to.by_value();
    (
        [&] {
          if constexpr (!std::is_reference_v<H>) detail::walk_parts(std::get<I>(frame), to);
        }(),
        ...);
  }
  template <class... H, std::size_t... I>
  static bool is_known(std::tuple<H...>& frame, detail::known_call& c, std::index_sequence<I...> numbers) {
    if (!c.arguments.begin_comparison(mode())) return false;
    walk_known(frame, c.arguments, numbers);
    return c.arguments.end_comparison();
  }
  template <class... H, std::size_t... I>
  static std::uint64_t key_of(std::tuple<H...>& frame, std::index_sequence<I...>) {
    detail::argument_key key(type_number<std::tuple<H...>>() + mode());
    (
        [&] {
          if constexpr (std::is_reference_v<H> && !std::is_base_of_v<tensor, std::remove_cvref_t<H>>)
            key.put(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&std::get<I>(frame))));
          detail::walk_parts(std::get<I>(frame), static_cast<detail::part_visitor&>(key));
        }(),
        ...);
    return key.value();
  }
  template <class... H, std::size_t... I>
  detail::compiled_base::sizes walk_all(std::tuple<H...>& frame, detail::argument_state& to,
                                        std::index_sequence<I...> numbers) const {
    to.put(type_number<std::tuple<H...>>());
    to.put(mode());
    walk<true>(frame, to, numbers);
    detail::compiled_base::sizes const n{to.tensors.size(), to.cells.size(), to.plains.size(), to.form.size()};
    walk<false>(frame, to, numbers);
    to.ask_places(takes_parts_of_storages());
    if (elements_share_.load(std::memory_order_relaxed)) to.ask_sharing();
    return n;
  }
  template <class... H, std::size_t... I>
  decltype(auto) invoke(std::tuple<H...>& frame, std::index_sequence<I...>) {
    return f_(std::forward<H>(std::get<I>(frame))...);
  }

  template <class... H, std::size_t... I>
  auto call(std::tuple<H...>& frame, std::index_sequence<I...> numbers) {
    using R = decltype(invoke(frame, numbers));
    static_assert(!std::is_reference_v<R>, "neap: a compiled function gives its result by value");
    auto& calls = calls_.here();
    if (auto* const known = known_call_of(frame, numbers, calls)) {
      auto const found = graph_of(*known);
      if (found != detail::guard_program::none && !known->paths->graphs[found]->staged && !is_next_verified())
        return hit<R>(frame, numbers, calls, *known, *known->paths->graphs[found]);
      return look_up<R>(frame, numbers, calls,
                        found != detail::guard_program::none && !known->paths->graphs[found]->staged);
    }
    return look_up<R>(frame, numbers, calls, false);
  }
  /// What this thread has called with before; null: something else.
  template <class... H, std::size_t... I>
  detail::known_call* known_call_of(std::tuple<H...>& frame, std::index_sequence<I...> numbers,
                                    detail::known_calls& calls) {
    if (calls.is_busy || elements_share_.load(std::memory_order_relaxed)) return nullptr;
    calls.follow(publications_.load(std::memory_order_acquire));
    auto* known = calls.last;
    if (!known || !is_known(frame, *known, numbers)) {
      known = known ? calls.find(key_of(frame, numbers)) : nullptr;
      if (known && (known == calls.last || !is_known(frame, *known, numbers))) known = nullptr;
    }
    return known;
  }

  /// Runs the graph of a known call.
  template <class R, class... H, std::size_t... I>
  R hit(std::tuple<H...>& frame, std::index_sequence<I...> numbers, detail::known_calls& calls, detail::known_call& c,
        detail::compiled_graph& g) {
    if (!calls.is_busy) calls.use(c);
    use(g);
    detail::known_calls::busy const others_keep_out(calls);
    results r;
    if (!g.refused.empty() || !run(g, c.arguments, r)) {
      why_ = r.finds_others ? in_host_code : g.refused.empty() ? "the graph failed" : g.refused;
      if (device_) refuse_on_device(g.refused);
      if constexpr (std::is_void_v<R>) return (void)invoke(frame, numbers);
      else return invoke(frame, numbers);
    }
    if (g.captured.thrown) {
      detail::fill_thrown(g.captured, r.made);
      commit(g.captured, c.arguments, r);
      std::rethrow_exception(g.captured.thrown);
    }
    if constexpr (std::is_void_v<R>) {
      return commit(g.captured, c.arguments, r);
    } else {
      R result = *static_cast<R const*>(g.result.get());
      auto const tensor_of = [&](std::size_t k) {
        return tensor_from(g.captured, g.captured.result[k], c.arguments, r.made);
      };
      auto const value_of = [&](std::size_t k) { return c.arguments.value(g.captured.result_cells[k]); };
      detail::result_filler<decltype(tensor_of), decltype(value_of)> parts{tensor_of, value_of};
      detail::walk_parts(result, parts);
      commit(g.captured, c.arguments, r);
      return result;
    }
  }

  /// The look-up of arguments that are not known, and captures. `verifies`: a hit is to be checked.
  template <class R, class... H, std::size_t... I>
  R look_up(std::tuple<H...>& frame, std::index_sequence<I...> numbers, detail::known_calls& calls, bool verifies) {
    using kept = std::conditional_t<std::is_void_v<R>, std::tuple<>, R>;
    detail::argument_state begin;
    auto const n = walk_all(frame, begin, numbers);
    begin.check_overlap();
    detail::host_log log;
    auto const names = [&] { return names_of(frame, numbers); };
    std::unique_lock lock(mutex_);
    auto const eagerly = [&](std::string reason) -> R {
      if (lock.owns_lock()) lock.unlock();
      why_ = std::move(reason);
      return go_on<R>(frame, numbers, log);
    };
    if (begin.unusable) return eagerly(begin.unusable);
    auto paths = paths_of(begin.signature);
    bool const is_fresh = !paths;
    std::shared_ptr<detail::compiled_graph> known;
    std::string why;
    if (paths) {
      if (!calls.is_busy) calls.follow(publications_.load(std::memory_order_relaxed));
      detail::known_call passing;
      auto& c = calls.is_busy ? passing : calls.renew(key_of(frame, numbers));
      c.paths = paths->published;
      c.arguments.begin_first(mode(), takes_parts_of_storages());
      walk_known(frame, c.arguments, numbers);
      c.arguments.end_first();
      auto const found = graph_of(c);
      if (found != detail::guard_program::none) {
        known = c.paths->graphs[found];
        if (!verifies && !is_next_verified()) {
          last_ = paths;
          if (!known->staged) {
            lock.unlock();
            return hit<R>(frame, numbers, calls, c, *known);
          }
          use(*known);
          auto const published = c.paths;
          lock.unlock();
          std::optional<kept> result;
          switch (run_stages(*known->staged, begin, *published, log, why, result, names)) {
            case detail::staged_run::outcome::ended:
              if constexpr (std::is_void_v<R>) return;
              else return std::move(*result);
            case detail::staged_run::outcome::failed: return eagerly("the graph failed");
            case detail::staged_run::outcome::busy: return eagerly(in_host_code);
            case detail::staged_run::outcome::shares: elements_share_ = true; return eagerly(detail::shared_element);
            case detail::staged_run::outcome::missed: break;
          }
          lock.lock();
          // Its own stages may not go.
          if (graphs_ >= options_.graphs) return eagerly(limit_reached(why));
          if (paths_of(begin.signature) != paths || std::ranges::find(paths->graphs, known) == paths->graphs.end())
            return eagerly(why);
        } else {
          if (!known->refused.empty()) return eagerly(known->refused);
          why = "the path is verified";
        }
      } else {
        why = other_answer(frame, numbers, *c.paths, c.arguments.node);
      }
    } else {
      detail::argument_state named(true);
      walk_all(frame, named, numbers);
      why = other_signature(named);
      paths = std::make_shared<detail::compiled_paths>();
      paths->signature = std::move(named.signature);
      paths->cell_count = begin.cells.size();
    }
    if (is_recording_) return eagerly(in_host_code);
    if (!known && !make_room()) return eagerly(limit_reached(why));
    why_ = std::move(why);
    if (!is_fresh) last_ = paths;
    return record<kept, R>(frame, numbers, begin, n, paths, is_fresh, known.get(), log, lock);
  }
  /// Of the arguments' tracked scalars.
  template <class... H, std::size_t... I>
  std::vector<std::string> names_of(std::tuple<H...>& frame, std::index_sequence<I...> numbers) const {
    detail::argument_state named(true);
    walk_all(frame, named, numbers);
    return std::move(named.cell_names);
  }
  template <class... H, std::size_t... I>
  std::string other_answer(std::tuple<H...>& frame, std::index_sequence<I...> numbers,
                           detail::published_paths const& paths, std::uint32_t node) const {
    return compiled_base::other_answer(paths.guards.place(node), paths.tape, paths.guards.question(node),
                                       names_of(frame, numbers));
  }
  using compiled_base::other_answer;
  /// The call runs eagerly; what the host has done in it already is not repeated.
  template <class R, class... H, std::size_t... I>
  R go_on(std::tuple<H...>& frame, std::index_sequence<I...> numbers, detail::host_log& log) {
    log.restart();
    detail::log_scope const goes_on(log.is_empty() ? nullptr : &log);
    return invoke(frame, numbers);
  }

  /// Runs a path of several stages. Missed: `why` says where. Throws what the call ends by, after all that comes before.
  template <class Kept>
  detail::staged_run::outcome run_stages(detail::planned_stage& first, detail::argument_state& begin,
                                         detail::published_paths const& paths, detail::host_log& log, std::string& why,
                                         std::optional<Kept>& result,
                                         std::function<std::vector<std::string>()> const& names,
                                         detail::known_reads* reads = nullptr) {
    std::vector<std::uint64_t> cells;
    for (auto const& c : begin.cells) std::memcpy(&cells.emplace_back(0), c.value, c.bytes);
    std::unique_lock alone(running_);
    if (is_in_host_code_) return detail::staged_run::outcome::busy;
    if (!device_) arena_.grow(first.arena_bytes);
    else detail::with_place(at_, [&] { device_->reserve_carried(static_cast<bytes_t>(first.arena_bytes)); });
    detail::staged_run running(begin, paths.tape, cells, log, arena_.memory(), device_.get(),
                               {&alone, &is_in_host_code_}, options_.run.step_seconds);
    auto outcome = detail::staged_run::outcome::failed;
    std::exception_ptr thrown;
    auto const build = [&](detail::planned_stage& last) {
      thrown = last.end->thrown;
      detail::fill_thrown(*last.end, running.made());
      if constexpr (std::is_same_v<Kept, std::tuple<>>) return;
      if (thrown) return;
      result.emplace(*static_cast<Kept const*>(last.result.get()));
      auto const tensor_of = [&](std::size_t k) { return running.tensor_from(last.end->result[k]); };
      auto const value_of = [&](std::size_t k) { return running.value(last.end->result_cells[k]); };
      detail::result_filler<decltype(tensor_of), decltype(value_of)> parts{tensor_of, value_of};
      detail::walk_parts(*result, parts);
    };
    detail::with_place(at_, [&] { outcome = running(first, build); });
    if (thrown && outcome == detail::staged_run::outcome::ended) std::rethrow_exception(thrown);
    if (outcome == detail::staged_run::outcome::missed)
      why = other_answer(running.missed_at(), paths.tape, running.missed_question(), names());
    if (reads) *reads = running.reads();
    return outcome;
  }

  /// A path that was captured.
  template <class Kept>
  struct recorded_path {
    detail::captured_program program;
    std::optional<Kept> result;                  // of the call
    std::shared_ptr<Kept> form;                  // its form, without tensors
    std::vector<detail::planned_stage*> stages;  // those that are known
    char const* unusable = nullptr;              // why no graph can stand for the call
    bool is_beginning = false;                   // it ends before a read that is not known
    bool caught = false;                         // an exception that only a run of its operators could throw again
    std::string refusal;                         // with data: the call is to run eagerly, from its beginning
    std::function<void()> growth;                // first: the call is to be recorded again after it
  };

  /// Captures a call. Without data, arguments are left as they were; `known` is then what a device has read in this call.
  /// Again: the call is to run after that.
  template <class Kept, bool Again = false, class... H, std::size_t... I>
  recorded_path<Kept> recorded(std::tuple<H...>& frame, std::index_sequence<I...> numbers,
                               detail::argument_state& begin, detail::compiled_base::sizes const& n,
                               detail::compiled_paths& to, detail::host_log& log, bool with_data = true,
                               detail::known_reads const* known = nullptr) {
    recorded_path<Kept> path;
    std::exception_ptr thrown;
    bool lacks_memory = false;  // which is no answer of the path
    log.restart();
    detail::recorder rec(begin, to.tape, log, with_data, known);
    auto const take_back = [&](detail::argument_state const& end) {
      for (auto const& c : end.cells)
        if (c.mark) *c.mark = {};
      auto const form = std::string_view(begin.form).substr(0, n.form);
      if (with_data && rec.refusal().empty()) return true;
      return rec.take_back(end, n.tensors, n.cells, n.plains, form);
    };
    auto const require_taken_back = [&](detail::argument_state const& end) {
      if (!take_back(end))
        throw_error(at_,
                    {"capture by shapes: the function changed the structure of an argument (the length of a container, "
                     "what a pointer or an optional holds), which stays changed: keep what grows in a "
                     "neap::tracked_vector or neap::tracked_map"});
    };
    {
      caller_scope const here(at_);
      try {
        if constexpr (Again) {
          auto given = frame;  // the call goes on with what is given by value
          if constexpr (std::is_same_v<Kept, std::tuple<>>) invoke(given, numbers), path.result.emplace();
          else path.result.emplace(invoke(given, numbers));
        } else {
          if constexpr (std::is_same_v<Kept, std::tuple<>>) invoke(frame, numbers), path.result.emplace();
          else path.result.emplace(invoke(frame, numbers));
        }
      } catch (std::bad_alloc const&) { thrown = std::current_exception(), lacks_memory = true; } catch (...) {
        if (!rec.is_beginning() && !rec.growth()) thrown = std::current_exception();
      }
      if (!rec.refusal().empty() && (with_data || !is_of(thrown, rec.refusal()))) {
        rec.stop();
        path.result.reset();
        detail::argument_state now;
        walk<true>(frame, now, numbers);
        bool const can_go_on = take_back(now) && with_data && !is_of(thrown, rec.refusal());
        if (!can_go_on) throw_refusal(thrown, rec.refusal());
        path.refusal = rec.refusal();
        return path;
      }
      if (thrown && (!known || lacks_memory)) {
        rec.stop();
        detail::argument_state now;
        walk<true>(frame, now, numbers);
        require_taken_back(now);
        std::rethrow_exception(thrown);
      }
    }
    path.is_beginning = rec.is_beginning(), path.growth = rec.growth();
    detail::argument_state end, parts;
    walk<true>(frame, end, numbers);
    if (!path.is_beginning && !path.growth) {
      if (path.result) detail::walk_parts(*path.result, static_cast<detail::part_visitor&>(parts));
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
      detail::argument_state given;
      walk<false>(frame, given, numbers);
      given.handles.clear();
      if (path.caught)
        rec.set_unusable("the function catches an exception of an operator or of a function of the host");
      if (rec.was_used_elsewhere())
        rec.set_unusable("another thread has used tensors, states or functions of the host meanwhile");
      if (rec.is_kept_outside(detail::owners_in({&end, &parts, &given})))
        rec.set_unusable(
            "the function keeps a tensor that it has computed outside of its arguments and result, which graphs would "
            "not: keep it in a part of an argument, or return it");
    }
    if (!rec.unusable()) {
      std::vector<std::uint32_t> also_kept;
      if (rec.is_staged()) path.stages = known_stages(to, rec.stages());
      for (auto const* s : path.stages)
        for (auto const& k : s->captured.kept) also_kept.push_back(k.row);
      rec.finish(path.program, also_kept);
    }
    path.unusable = rec.unusable();
    if (path.unusable || path.is_beginning || !path.result) return path;
    path.form = std::make_shared<Kept>(*path.result);
    detail::argument_state form_parts;
    detail::walk_parts(*path.form, static_cast<detail::part_visitor&>(form_parts));
    for (auto* t : form_parts.tensors) *t = tensor();
    if (with_data) return path;
    path.result.reset(), parts.handles.clear(), form_parts.handles.clear();
    if (auto const* type = rec.kept_outside())
      throw_error(at_,
                  {"compile: the function keeps a tensor that it has computed, ", *type,
                   ", outside of its arguments and result, where it has no data: keep it in a part of an argument, "
                   "or return it"});
    return path;
  }
  /// Whether an exception states this refusal.
  static bool is_of(std::exception_ptr const& thrown, std::string const& refusal) {
    if (!thrown) return false;
    try {
      std::rethrow_exception(thrown);
    } catch (std::exception const& e) {
      return std::string_view(e.what()).find(refusal) != std::string_view::npos;
    } catch (...) { return false; }
  }
  [[noreturn]] static void throw_refusal(std::exception_ptr const& thrown, std::string const& refusal) {
    if (is_of(thrown, refusal)) std::rethrow_exception(thrown);
    throw_error({refusal});
  }

  /// Plans a path and publishes it; where no plan is found, why_ says so. Whether there is something new.
  template <class Kept>
  bool keep(recorded_path<Kept>&& recorded, std::shared_ptr<detail::compiled_paths> const& to, bool is_fresh,
            detail::compiled_graph* known) {
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
        publish(to, is_fresh, is_path);
        return true;
      }
      auto made = planned(std::move(p));
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
      auto made = std::make_shared<detail::compiled_graph>();
      made->refused = refused.why, made->captured.path = path;
      if (to->guards.add(path, number) <= path.size()) return false;
      to->graphs.push_back(std::move(made));
      publish(to, is_fresh);
      return true;
    }
  }

  template <class Kept, class R, class... H, std::size_t... I>
  R record(std::tuple<H...>& frame, std::index_sequence<I...> numbers, detail::argument_state& begin,
           detail::compiled_base::sizes const& n, std::shared_ptr<detail::compiled_paths> to, bool is_fresh,
           detail::compiled_graph* known, detail::host_log& log, std::unique_lock<std::mutex>& lock) {
    constexpr bool copies = (std::is_copy_constructible_v<H> && ...);
    std::optional<std::conditional_t<copies, std::tuple<H...>, bool>> again;  // for a call that is refused
    if constexpr (copies) again.emplace(frame);
    auto const expressions = to->tape.size();
    struct trimmed {  // what no graph needs goes
      detail::expression_tape& tape;
      std::size_t size;
      bool keeps = false;
      ~trimmed() {
        if (!keeps && tape.size() > size) tape.truncate(size);
      }
    } tape{to->tape, expressions};
    std::optional<recorded_path<Kept>> path;
    {
      turn const alone(*this, lock);
      path = recorded<Kept>(frame, numbers, begin, n, *to, log);
    }
    if (!path->refusal.empty()) {
      why_ = path->refusal;
      lock.unlock();
      if constexpr (copies) return go_on<R>(*again, numbers, log);
      else throw_error({path->refusal});
    }
    auto result = std::move(*path->result);
    tape.keeps = keep(std::move(*path), to, is_fresh, known);
    if constexpr (!std::is_void_v<R>) return result;
  }

  /// Captures by shapes the path of a call: `keeps` says whether it is planned. The graphs of its operators, else.
  template <class... H, std::size_t... I>
  std::vector<graph> by_shapes(std::tuple<H...>& frame, std::index_sequence<I...> numbers, bool keeps,
                               std::function<void()>& grow) {
    using R = decltype(invoke(frame, numbers));
    using kept = std::conditional_t<std::is_void_v<R>, std::tuple<>, R>;
    std::unique_lock lock(mutex_);
    turn const alone(*this, lock, true);
    detail::argument_state begin;
    auto const n = walk_all(frame, begin, numbers);
    if (begin.unusable) throw_error(at_, {"capture by shapes: ", begin.unusable});
    detail::host_log log;
    auto paths = keeps ? paths_of(begin.signature) : nullptr;
    bool const is_fresh = !paths;
    detail::compiled_graph* known = nullptr;
    if (paths) {
      detail::known_call c;
      c.paths = paths->published;
      c.arguments.begin_first(mode(), takes_parts_of_storages());
      walk_known(frame, c.arguments, numbers);
      c.arguments.end_first();
      if (auto const found = graph_of(c); found != detail::guard_program::none) known = c.paths->graphs[found].get();
    } else {
      paths = std::make_shared<detail::compiled_paths>();
      paths->signature = begin.signature, paths->cell_count = begin.cells.size();
    }
    if (known && !known->refused.empty()) throw_error(at_, {"compile: ", known->refused});
    if (known && !known->staged) return {};
    if (keeps && !known && !make_room()) throw_error(at_, {"compile: ", limit_reached("another path is to be kept")});
    constexpr bool again = (std::is_copy_constructible_v<H> && ...);
    auto path = recorded<kept, again>(frame, numbers, begin, n, *paths, log, false);
    if (path.growth) {
      if (!again)
        throw_error(at_, {"capture by shapes: the function makes the states of an optimizer, and takes an "
                          "argument by value that cannot be copied: take it by reference"});
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

  F f_;
};

/// What a program has of a compiled function.
template <class Calls>
class compiled_handle {
 public:
  explicit compiled_handle(std::unique_ptr<Calls> c) : calls_(std::move(c)) {}

  /// What f(arguments...) gives, with the same effects. Throws what it throws; and neap::error for what no graph can stand
  /// for, with the place.
  template <class... A>
  auto operator()(A&&... arguments) {
    return calls()(std::forward<A>(arguments)...);
  }

  /// Captures the path of a call with these arguments by shapes alone, and plans it, so that the call runs as a planned
  /// graph from the first time on. No operator runs, no host function is called, no tensor takes memory, and arguments are
  /// left as they are, but that a training_state gets the states that it lacks. Nothing happens where the path is known.
  /// Throws neap::error where the path depends on what a tensor contains, with the place, where no plan is found, and for
  /// what a call refuses.
  template <class... A>
  void prepare(A&&... arguments) {
    (void)calls().captured(true, std::forward<A>(arguments)...);
  }
  /// The graphs of that path, in the order in which they run: several where the host reads a value or calls a function
  /// between them. Nothing is kept.
  template <class... A>
  std::vector<graph> graphs_for(A&&... arguments) {
    return calls().captured(false, std::forward<A>(arguments)...);
  }

  /// How many graphs are kept.
  std::size_t graphs() const { return calls().graph_count(); }
  /// Why the last call that ran eagerly did so, in a sentence; empty if none did.
  std::string why_missed() const { return calls().why_missed(); }

 protected:
  Calls& calls() const {
    if (!calls_) throw_error({"compile: this compiled function was moved: call the one that it was moved to"});
    return *calls_;
  }

 private:
  std::unique_ptr<Calls> calls_;
};

}  // namespace detail

/// A function that compile() was given. It may be moved.
template <class F>
class compiled_function : public detail::compiled_handle<detail::function_calls<F>> {
 public:
  using detail::compiled_handle<detail::function_calls<F>>::compiled_handle;
};

namespace detail {
template <class Plan>
concept graph_planner = std::is_invocable_r_v<plan<graph>, Plan const&, graph const&> ||
                        std::is_invocable_r_v<plan<graph>, Plan const&, graph const&, bytes_t>;
template <class F>
constexpr void check_compiled() {
  static_assert(std::is_empty_v<F> || std::is_pointer_v<F> || is_instance<F, fixed_function>,
                "neap: a compiled function captures no variables: their later values would not be seen. Give them as "
                "arguments, or promise by neap::fixed(f) that they stay as they are");
}
template <graph_planner Plan>
compiled_base::planner planner_of(Plan how) {
  if constexpr (std::is_invocable_r_v<plan<graph>, Plan const&, graph const&, bytes_t>) return how;
  else return [how = std::move(how)](graph const& g, bytes_t) { return plan<graph>(how(g)); };
}
}  // namespace detail

/// Compiles f, a function without captured variables, or one that fixed() vouches for. `how` plans each captured graph
/// (plan_with); without one, graphs run in the order of the program. Nothing is captured before the first call.
template <class F, detail::graph_planner Plan>
auto compile(F f, Plan how, compile_options const& options = {},
             std::source_location at = std::source_location::current()) {
  detail::check_compiled<F>();
  return compiled_function<F>(
      std::make_unique<detail::function_calls<F>>(std::move(f), detail::planner_of(std::move(how)), options, at));
}
template <class F>
auto compile(F f, compile_options const& options = {}, std::source_location at = std::source_location::current()) {
  return compile(
      std::move(f), [](graph const& g) { return plan_in_order(g); }, options, at);
}

}  // namespace neap::inline v0
