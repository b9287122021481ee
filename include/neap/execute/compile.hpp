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
// of the arguments' tensors, plain values and lengths in the arguments, and conditions on neap::state and neap::sym.
// Outputs and state are those of the eager function, bit by bit.
//
// A path is kept for any objects: guards and effects are in terms of the arguments' parts. Of a class with neap_fields the
// bytes of members that it does not list are guards, too, and padding among them where it cannot be told from members:
// objects of such classes share graphs where these bytes are equal. What neap_parts does not list is not seen, unless it
// lists the whole object (parts::whole).
//
// An element that the function reads decides: the operators so far are a graph of their own, which runs first, and what
// follows is one for each value (capture/host.hpp). Printing, clocks and generators are there too.
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

#include <neap/capture/cond.hpp>
#include <neap/capture/host.hpp>
#include <neap/capture/sym_functions.hpp>
#include <neap/capture/tracked_map.hpp>
#include <neap/capture/tracked_sequence.hpp>
#include <neap/core/is_instance.hpp>
#include <neap/execute/compile_options.hpp>
#include <neap/execute/compiled_base.hpp>
#include <neap/execute/compiled_call.hpp>
#include <neap/execute/plan_like.hpp>
#include <neap/optimize/optimize.hpp>

#include <cstddef>
#include <functional>
#include <memory>
#include <source_location>
#include <stop_token>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

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
/// eagerly, and why_missed() says so. Where lengths may change (any_length), the first one is searched; the plan of
/// another follows from it, and a search takes place only where that does not fit.
template <class Moves, class... Option>
auto plan_with(Moves const& moves, Option const&... options) {
  return [=](graph const& g, bytes_t original = 0, detail::planned_before const* like = nullptr) -> plan {
    auto const search = [&](auto const&... more) {
      return optimize(g, moves, detail::of_path(options, original)..., more...);
    };
    if (like)
      if (auto const resized = plan_like(like->planned, like->program, g)) {
        std::stop_source over;
        over.request_stop();
        if (auto found = search(warm_start(*resized), over.get_token()); found.fits) return std::move(found.placed);
      }
    auto found = search();
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

/// The calls of a compiled function. Base: how it performs them.
template <class F, class Base = compiled_base>
class function_calls : public Base {
  template <std::size_t I, class A>
  using held = typename held_argument<typename decltype(parameter_list<F>())::type, I, A>::type;

 public:
  function_calls(F f, typename Base::planner how, compile_options const& options, std::source_location at,
                 std::unique_ptr<graph_device> device = nullptr)
      : Base(std::move(how), options, at, std::move(device)),
        f_(std::move(f)) {}

  template <class... A>
  auto operator()(A&&... arguments) {
    if (tracer::active() || computation_listener::active() || host_log::active())
      return f_(std::forward<A>(arguments)...);
    return with_call(
        [&](auto& now) {
          this->perform(now);
          return now.result();
        },
        std::forward<A>(arguments)...);
  }

  template <class... A>
  std::vector<graph> captured(bool keeps, A&&... arguments) {
    if (tracer::active() || computation_listener::active() || host_log::active())
      throw_error(this->arena_.at, {"capture by shapes: a trace or another capture is under way"});
    return with_call(
        [&](auto& now) {
          std::vector<graph> all;
          for (std::function<void()> grow;; grow = nullptr) {
            all = this->by_shapes(now, keeps, grow);
            if (!grow) return all;
            grow();  // what is made then is recorded no more
          }
        },
        std::forward<A>(arguments)...);
  }

 private:
  template <class Do, class... A>
  auto with_call(Do const& what, A&&... arguments) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      std::tuple<held<I, A&&>...> frame(std::forward<A>(arguments)...);
      using R = decltype(f_(std::forward<held<I, A&&>>(std::get<I>(frame))...));
      static_assert(!std::is_reference_v<R>, "neap: a compiled function gives its result by value");
      static_assert(!Base::copies_arguments || (std::is_copy_constructible_v<held<I, A&&>> && ...),
                    "neap: a function that is compiled for a device takes by value what can be copied: it is captured "
                    "before it runs. Take the argument by reference");
      call_of<F, R, held<I, A&&>...> now(f_, frame);
      return what(now);
    }(std::index_sequence_for<A...>{});
  }

  F f_;
};

/// What a program has of a compiled function.
template <class Calls>
class compiled_handle {
 public:
  explicit compiled_handle(std::unique_ptr<Calls> c) : calls_(std::move(c)) {}

  /// The result of f(arguments...), with the same effects. Throws what it throws; and neap::error for what no graph can stand
  /// for, with the place.
  template <class... A>
  auto operator()(A&&... arguments) {
    return calls()(std::forward<A>(arguments)...);
  }

  /// Captures the path of a call with these arguments by shapes alone, and plans it, so that the call runs as a planned
  /// graph from the first time on. No operator runs, no host function is called, no tensor takes memory, and arguments are
  /// left as they are, but that a training_state gets the states that it lacks. Nothing happens where the path is known.
  /// Throws neap::error where the path depends on what a tensor contains, with the place, where no plan is found, and for
  /// what a call refuses. Waits for a capture of this function in another thread: such a capture must not join this one.
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

  /// How many graphs are kept; those that differ in an any_length are one.
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

/// A compiled function. It may be moved.
template <class F>
class compiled_function : public detail::compiled_handle<detail::function_calls<F>> {
 public:
  using detail::compiled_handle<detail::function_calls<F>>::compiled_handle;
};

namespace detail {
template <class Plan>
concept graph_planner = std::is_invocable_r_v<plan, Plan const&, graph const&> ||
                        std::is_invocable_r_v<plan, Plan const&, graph const&, bytes_t> ||
                        std::is_invocable_r_v<plan, Plan const&, graph const&, bytes_t, planned_before const*>;
template <class F>
constexpr void check_compiled() {
  static_assert(std::is_empty_v<F> || std::is_pointer_v<F> || is_instance<F, fixed_function>,
                "neap: a compiled function captures no variables: their later values would not be seen. Give them as "
                "arguments, or promise by neap::fixed(f) that they stay as they are");
}
template <graph_planner Plan>
compiled_base::planner planner_of(Plan how) {
  using like = planned_before const*;
  if constexpr (std::is_invocable_r_v<plan, Plan const&, graph const&, bytes_t, like>) return how;
  else if constexpr (std::is_invocable_r_v<plan, Plan const&, graph const&, bytes_t>)
    return [how = std::move(how)](graph const& g, bytes_t original, like) { return plan(how(g, original)); };
  else return [how = std::move(how)](graph const& g, bytes_t, like) { return plan(how(g)); };
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

}}  // namespace neap::v0
