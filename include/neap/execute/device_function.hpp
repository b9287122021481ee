// A compiled function whose graphs run on a device, from the first call on: a call whose path is new is captured by shapes,
// planned, and run there. Nothing is computed on the host instead: what no graph on the device stands for is refused, with
// the reason.
//
// Where an element that the program reads decides, the stages before it are captured first. They run on the device, what
// they read is known from then on, and the function is captured again with it, up to the next read or its end. Effects and
// functions of the host run once, with the stages. A function that ends by an exception has, as far as it came, the effects
// of eager execution: its path is captured, run and kept, and ends by that exception in each later call. Where a function
// of the host throws, the library refuses something, or the exception carries tensors that the call has computed, the path
// is run and not kept.
#pragma once

#include <neap/execute/compile.hpp>

#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace neap::inline v0 {

namespace detail {

template <class F>
class device_calls : public function_calls<F> {
  using base = function_calls<F>;
  template <std::size_t I, class A>
  using held = typename base::template held<I, A>;

 public:
  device_calls(F f, typename base::planner how, compile_options const& options, std::source_location at,
               std::unique_ptr<detail::graph_device> device)
      : base(std::move(f), std::move(how), options, at, std::move(device)) {}

  template <class... A>
  auto operator()(A&&... arguments) {
    if (tracer::active() || detail::computation_listener::active() || detail::host_log::active())
      return this->f_(std::forward<A>(arguments)...);
    return [&]<std::size_t... I>(std::index_sequence<I...> numbers) {
      std::tuple<held<I, A&&>...> frame(std::forward<A>(arguments)...);
      return call(frame, numbers);
    }(std::index_sequence_for<A...>{});
  }

  bytes_t device_bytes() const {
    std::scoped_lock const alone(this->running_);
    return this->device_->device_bytes();
  }

 private:
  using base::at_, base::graph_of, base::is_next_verified, base::keep, base::known_call_of, base::mutex_,
      base::refuse_on_device, base::walk_known;
  using outcome = detail::staged_run::outcome;
  static constexpr auto none = detail::guard_program::none;
  static constexpr std::size_t most_captures = 100000;  // of one call

  template <class... H, std::size_t... I>
  auto call(std::tuple<H...>& frame, std::index_sequence<I...> numbers) {
    static_assert((std::is_copy_constructible_v<H> && ...),
                  "neap: a function that is compiled for a device takes by value what can be copied: it is captured "
                  "before it runs. Take the argument by reference");
    using R = decltype(this->invoke(frame, numbers));
    static_assert(!std::is_reference_v<R>, "neap: a compiled function gives its result by value");
    auto& calls = this->calls_.here();
    bool verifies = false;
    if (auto* const known = known_call_of(frame, numbers, calls)) {
      auto const found = graph_of(*known);
      if (found != none && !known->paths->graphs[found]->staged) {
        verifies = is_next_verified();
        if (!verifies && !this->finds_sharing(*known->paths->graphs[found], known->arguments))
          return this->template hit<R>(frame, numbers, calls, *known, *known->paths->graphs[found]);
      }
    }
    return look_up<R>(frame, numbers, calls, verifies);
  }

  /// Captures what is not known of the path, and runs it.
  template <class R, class... H, std::size_t... I>
  R look_up(std::tuple<H...>& frame, std::index_sequence<I...> numbers, detail::known_calls& calls, bool verifies) {
    using kept = std::conditional_t<std::is_void_v<R>, std::tuple<>, R>;
    std::unique_lock lock(mutex_);
    typename base::turn alone(*this, lock, true);
    std::optional<detail::argument_state> begun;
    auto n = this->walk_all(frame, begun.emplace(), numbers);
    begun->check_overlap();
    if (begun->unusable) refuse_on_device(begun->unusable);
    detail::host_log log;
    detail::known_reads reads;
    std::size_t captures = 0;
    std::string first_why;
    auto const names = [&] { return this->names_of(frame, numbers); };
    auto const walk_again = [&] { n = this->walk_all(frame, begun.emplace(), numbers), reads.clear(); };
    for (;;) {
      auto paths = this->paths_of(begun->signature);
      bool const is_fresh = !paths;
      std::shared_ptr<detail::compiled_graph> known;
      std::string why;
      bool failed = false;
      if (paths) {
        if (!calls.is_busy) calls.follow(this->publications_.load(std::memory_order_relaxed));
        detail::known_call passing;
        auto& c = calls.is_busy ? passing : calls.renew(this->key_of(frame, numbers));
        find(frame, numbers, *paths, c);
        if (auto const found = graph_of(c); found != none) {
          known = c.paths->graphs[found];
          if (!known->refused.empty()) refuse_on_device(known->refused);
          if (!known->staged && !verifies && this->finds_sharing(*known, c.arguments)) {
            walk_again();
            continue;
          }
          if (!known->staged && !verifies) {
            alone.end(), lock.unlock();
            return this->template hit<R>(frame, numbers, calls, c, *known);
          }
          if (known->staged) {
            this->use(*known);
            auto const before = reads.size();
            std::optional<kept> result;
            log.restart();
            auto const end =
                this->run_stages(*known->staged, *begun, *paths->published, log, why, result, names, &reads);
            if (end == outcome::ended) {
              if constexpr (std::is_void_v<R>) return;
              else return std::move(*result);
            }
            if (end == outcome::shares) {
              this->elements_share_ = true;
              walk_again();
              continue;
            }
            failed = end == outcome::failed;
            if (!failed && captures > 0 && reads.size() <= before) this->untracked({});
          }
        } else {
          why = this->other_answer(frame, numbers, *c.paths, c.arguments.node);
        }
      } else {
        detail::argument_state named(true);
        this->walk_all(frame, named, numbers);
        why = this->other_signature(named);
        paths = std::make_shared<detail::compiled_paths>();
        paths->signature = std::move(named.signature), paths->cell_count = begun->cells.size();
      }
      if (!failed && !known && !this->make_room()) refuse_on_device(this->limit_reached(why));
      if (!failed && known && known->staged && !verifies && this->graphs_ >= this->options_.graphs)
        refuse_on_device(this->limit_reached(why));
      auto path = this->template recorded<kept, true>(frame, numbers, *begun, n, *paths, log, false, &reads);
      if (++captures > most_captures) this->untracked({});
      if (path.growth) {
        path.growth();
        walk_again();
        continue;
      }
      if (failed || path.caught || is_refusal(path.program.thrown) || !path.program.thrown_storages.empty())
        return run_once<R>(frame, numbers, calls, alone, lock, begun, n, *paths, std::move(path), log, reads);
      if (path.unusable) refuse(path);
      this->why_ = "";
      (void)keep(std::move(path), paths, is_fresh, known.get());
      if (!this->why_.empty()) refuse_on_device(this->why_.get());
      if (first_why.empty()) first_why = std::move(why);
      if (!verifies) this->why_ = first_why;
      verifies = false;
    }
  }

  template <class... H, std::size_t... I>
  void find(std::tuple<H...>& frame, std::index_sequence<I...> numbers, detail::compiled_paths const& paths,
            detail::known_call& c) const {
    c.paths = paths.published;
    c.arguments.begin_first(this->mode());
    walk_known(frame, c.arguments, numbers);
    c.arguments.end_first();
  }

  /// Of the library, which later calls are to state anew.
  static bool is_refusal(std::exception_ptr const& thrown) {
    if (!thrown) return false;
    try {
      std::rethrow_exception(thrown);
    } catch (error const&) { return true; } catch (...) {
      return false;
    }
  }
  /// No graph stands for the path.
  template <class Path>
  [[noreturn]] void refuse(Path const& path) const {
    if (path.program.thrown) std::rethrow_exception(path.program.thrown);
    this->refuse_on_device(path.unusable);
  }

  /// Runs a path that is not kept: a function of the host has thrown an exception, or the call is refused at its end.
  template <class R, class Path, class... H, std::size_t... I>
  R run_once(std::tuple<H...>& frame, std::index_sequence<I...> numbers, detail::known_calls& calls,
             typename base::turn& alone, std::unique_lock<std::mutex>& lock,
             std::optional<detail::argument_state>& begun, detail::compiled_base::sizes n, detail::compiled_paths& like,
             Path path, detail::host_log& log, detail::known_reads& reads) {
    using kept = std::conditional_t<std::is_void_v<R>, std::tuple<>, R>;
    log.skip_failed();
    auto const names = [&] { return this->names_of(frame, numbers); };
    for (std::size_t captures = 0;; ++captures) {
      bool const is_beginning = path.is_beginning;
      if (path.unusable) refuse(path);
      if (path.growth) {
        path.growth();
        n = this->walk_all(frame, begun.emplace(), numbers), reads.clear();
        path = this->template recorded<kept, true>(frame, numbers, *begun, n, like, log, false, &reads);
        continue;
      }
      auto const once = std::make_shared<detail::compiled_paths>();
      once->signature = begun->signature, once->cell_count = begun->cells.size(), once->tape = like.tape;
      path.stages.clear();
      this->why_ = "";
      std::size_t const graphs = this->graphs_;
      (void)keep(std::move(path), once, false, nullptr);
      this->graphs_ = graphs;
      if (auto const refused = this->why_.take(); !refused.empty()) refuse_on_device(refused);
      auto& g = *once->graphs.back();
      if (!g.staged) {
        alone.end(), lock.unlock();
        detail::known_calls::busy const others_keep_out(calls);
        detail::known_call c;
        find(frame, numbers, *once, c);
        (void)graph_of(c);
        return this->template hit<R>(frame, numbers, calls, c, g);
      }
      std::string why;
      std::optional<kept> result;
      auto const before = reads.size();
      log.restart();
      auto const end = this->run_stages(*g.staged, *begun, *once->published, log, why, result, names, &reads);
      if (end == outcome::ended) {
        if constexpr (std::is_void_v<R>) return;
        else return std::move(*result);
      }
      if (end == outcome::missed && (!is_beginning || reads.size() <= before)) this->untracked({});
      if (captures > most_captures) this->untracked({});
      path = this->template recorded<kept, true>(frame, numbers, *begun, n, like, log, false, &reads);
    }
  }
};

}  // namespace detail

/// A function that compile() was given for a device. A call is as a compiled function's on the host, but that the function
/// is called without data where a path is new, as often as elements that decide are read in it. Throws neap::error in
/// addition where no graph on the device stands for the call, or the device fails: arguments are as before the call, or as
/// the message states. why_missed() is why the last call that was captured had no graph before.
template <class F>
class device_function : public detail::compiled_handle<detail::device_calls<F>> {
 public:
  using detail::compiled_handle<detail::device_calls<F>>::compiled_handle;
  /// Device memory of all graphs together: their arena, and the weights and states that stay there.
  bytes_t device_bytes() const { return this->calls().device_bytes(); }
};

namespace detail {
template <class F, class Plan>
auto compile_for_device(F f, Plan how, std::unique_ptr<graph_device> device, compile_options const& options,
                        std::source_location at) {
  check_compiled<F>();
  return device_function<F>(
      std::make_unique<device_calls<F>>(std::move(f), planner_of(std::move(how)), options, at, std::move(device)));
}

}  // namespace detail

}  // namespace neap::inline v0
