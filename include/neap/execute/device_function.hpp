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

#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <utility>

namespace neap { inline namespace v0 {

namespace detail {

/// Calls that run on a device.
class calls_on_device : public compiled_base {
 public:
  static constexpr bool copies_arguments = true;
  using compiled_base::compiled_base;
  bytes_t device_bytes() const {
    std::scoped_lock const alone(running_);
    return device_->device_bytes();
  }

 protected:
  template <class Call>
  void perform(Call& now);

 private:
  static constexpr std::size_t max_captures = 100000;  // of one call

  /// Captures what is not known of the path, and runs it.
  void look_up(compiled_call& now, known_calls& calls, bool verifies);
  /// Runs a path that is not kept: a function of the host has thrown an exception, or the call is refused at its end.
  void run_once(compiled_call& now, known_calls& calls, turn& alone, std::unique_lock<std::mutex>& lock,
                std::optional<argument_state>& begun, sizes n, compiled_paths& like, recorded_path path, host_log& log,
                known_reads& reads);
  /// Whether the library has refused something: later calls are to state it anew.
  static bool is_refusal(std::exception_ptr const& thrown);
  /// No graph stands for the path.
  [[noreturn]] void refuse(recorded_path const& path) const;
};

template <class Call>
void calls_on_device::perform(Call& now) {
  auto& calls = calls_.here();
  bool verifies = false;
  if (auto* const known = known_call_of(now, calls)) {
    auto const found = graph_of(*known);
    if (found != guard_program::none && !known->paths->graphs[found]->staged) {
      verifies = is_next_verified();
      if (!verifies && !finds_sharing(*known->paths->graphs[found], known->arguments))
        return hit(now, calls, *known, *known->paths->graphs[found]);
    }
  }
  look_up(now, calls, verifies);
}

template <class F>
using device_calls = function_calls<F, calls_on_device>;

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

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/execute/impl/device_function.ipp>
#endif
