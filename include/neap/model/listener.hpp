// What a capture learns of eager computation: while one is under way on a thread, tensors report operators, new data and
// reads of data to it. Otherwise the pointer below is null, and that is all that eager work sees of it.
#pragma once

#include <neap/core/number_map.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <span>

namespace neap { inline namespace v0 {

class tensor;
struct operator_view;
struct output_rule;

namespace detail {

class tensor_storage;
class computation_listener;
class scalar_listener;
class host_listener;
class container_listener;
class host_log;

/// What listens on a thread while a call is captured; null: nothing does.
struct capture_context {
  computation_listener* computations = nullptr;
  scalar_listener* scalars = nullptr;
  host_listener* host = nullptr;
  container_listener* containers = nullptr;
  host_log* log = nullptr;  // of the call that runs eagerly after it has begun as a graph

  /// This thread's.
  static capture_context& here();
};
inline constinit thread_local capture_context capture_of_thread{};
inline capture_context& capture_context::here() { return capture_of_thread; }

class computation_listener {
 public:
  /// `has_data`: operators compute. Else they report what they would compute: no memory is taken or read.
  explicit computation_listener(bool has_data = true) : has_data_(has_data) {}
  computation_listener(computation_listener const&) = delete;
  computation_listener& operator=(computation_listener const&) = delete;
  virtual ~computation_listener() = default;

  /// The operator has computed `out` from `in`, or made views, by its shape rule's outputs.
  virtual void ran(operator_view op, std::span<tensor const> in, std::span<tensor const> out,
                   std::span<output_rule const> rules, std::source_location at) = 0;
  /// A tensor was made from numbers of the program.
  virtual void made(tensor const& t) = 0;
  /// Another tensor of the same memory was made, without history.
  virtual void detached(tensor const& t) = 0;
  /// The data of a storage were copied before they are overwritten.
  virtual void copied(tensor_storage const& from, std::shared_ptr<tensor_storage> const& to) = 0;
  /// The program takes the address of elements, by which it may read and write them. Returns null.
  virtual std::byte* reads_data(tensor const& t, std::source_location at) = 0;
  /// The program copies elements. Returns where they are in row-major order; null: in the tensor's storage.
  virtual std::byte* reads_elements(tensor const& t, std::source_location at) = 0;
  /// The program writes elements other than by an operator.
  virtual void writes_data(tensor_storage const& s) = 0;
  /// A gradient goes through an operator of this order (tensor_node::order).
  virtual void differentiates(std::uint64_t order, std::source_location at) = 0;
  /// An object of the library, of which `part` is a tensor, makes by `grow` what it lacks at its first use; it does so now
  /// unless this throws.
  virtual void grows(tensor const& part, std::function<void()> grow) = 0;
  /// A key or a seed is drawn from the generator of the thread.
  virtual void draws() = 0;
  /// An operator is about to write this memory in place.
  virtual void overwrites(tensor_storage& s) = 0;
  /// An operator has thrown an exception when it computed.
  virtual void failed() = 0;

  bool has_data() const { return has_data_; }

  /// The capture under way on this thread; null: none.
  static computation_listener*& active() { return capture_context::here().computations; }
  /// Whether operators of this thread compute.
  static bool computes() { return !active() || active()->has_data(); }

 private:
  bool has_data_;
};

/// f(), which computes. Of an exception a capture learns: the function may catch it.
template <class F>
void reporting_failure(F const& f) {
  try {
    f();
  } catch (...) {
    if (auto* l = computation_listener::active()) l->failed();
    throw;
  }
}

/// A recording, as other threads see it, which record nothing: what they use of its memory and its tracked values it does
/// not hear. So it learns from them that it has missed something. Where nothing is recorded that costs them one load.
class recording_watch {
 public:
  recording_watch(recording_watch const&) = delete;
  recording_watch& operator=(recording_watch const&) = delete;

  static bool is_under_way() { return under_way_.load(std::memory_order_relaxed) != 0; }
  /// This thread uses memory or a tracked value, which no recording of its own hears; null: it does something else that
  /// recordings hear.
  static void uses(void const* part, std::uint64_t capture = 0) {
    if (under_way_.load(std::memory_order_relaxed) != 0) report(part, capture, false);
  }
  /// It writes a tracked value: also the thread that records, from a function of the host.
  static void writes(void const* cell) {
    if (under_way_.load(std::memory_order_relaxed) != 0) report(cell, 0, true);
  }
  static void uses(tensor_storage const& s) {
    if (under_way_.load(std::memory_order_relaxed) != 0) report(s);
  }

 protected:
  /// `capture`: the number that memory has which is made in the recording.
  explicit recording_watch(std::uint64_t capture);
  ~recording_watch();
  /// Other threads are to report this part.
  void watch(void const* part);
  bool was_used() const { return was_used_.load(std::memory_order_acquire); }

 private:
  /// An address that is the thread's own.
  static void const* this_thread();
  static void report(void const* part, std::uint64_t capture, bool writes);
  static void report(tensor_storage const& s);
  static inline std::atomic<int> under_way_ = 0;

  std::uint64_t capture_;
  void const* thread_ = this_thread();
  number_map parts_;
  std::atomic<bool> was_used_ = false;
};

}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/impl/listener.ipp>
#endif
