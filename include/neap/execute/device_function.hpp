// A compiled function whose graphs run on a device, from the first call on: a call whose path is new is captured by
// shapes, planned, and run there. Nothing is computed on the host instead: what no graph on the device stands for is
// refused, with the reason.
//
// Where an element that the program reads decides, the stages before it are captured first. They run on the device,
// what they read is known from then on, and the function is captured again with it, up to the next read or its end.
// Effects and functions of the host run once, with the stages. A function that ends by an exception has, as far as it
// came, the effects of eager execution: its path is captured, run and kept, and ends by that exception in each later
// call. Where a function of the host throws, the library refuses something, or the exception carries tensors that the
// call has computed, the path is run and not kept.
#pragma once

#include <neap/execute/compile.hpp>

#include <memory>
#include <mutex>
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
    std::scoped_lock const alone(arena_.running);
    return arena_.device->device_bytes();
  }
};

template <class F>
using device_calls = function_calls<F, calls_on_device>;

}  // namespace detail

/// A function compiled for a device. A call is as a compiled function's on the host, but that the function is called
/// without data where a path is new, as often as elements that decide are read in it. Throws neap::error in addition
/// where no graph on the device stands for the call, or the device fails: arguments are as before the call, or as the
/// message states. why_missed() is why the last call that was captured had no graph before.
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
