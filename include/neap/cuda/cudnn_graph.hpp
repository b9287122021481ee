// Graphs of operations for cuDNN's backend interface, and plans that run them. A plan is chosen for a device's properties:
// of the device that is there, or read from text that was saved on a machine that has it.
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/tensor_type.hpp>
#include <neap/core/units.hpp>

#include <cudnn.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if CUDNN_VERSION < 90800
#error "neap: cuDNN 9.8 or newer is needed, which plans for properties of a device"
#endif

namespace neap { inline namespace v0 { namespace detail {

inline void check_cudnn(cudnnStatus_t status, std::string_view what, std::source_location at) {
  if (status != CUDNN_STATUS_SUCCESS) throw_error(at, {"cudnn: ", what, ": ", cudnnGetErrorString(status)});
}
inline cudnnDataType_t cudnn_type(dtype t) {
  return t == dtype::bf16 ? CUDNN_DATA_BFLOAT16 : t == dtype::f16 ? CUDNN_DATA_HALF : CUDNN_DATA_FLOAT;
}

/// The library's name for values of type T.
template <class T>
constexpr cudnnBackendAttributeType_t cudnn_attribute() {
  if constexpr (std::same_as<T, std::int64_t>) return CUDNN_TYPE_INT64;
  else if constexpr (std::same_as<T, float>) return CUDNN_TYPE_FLOAT;
  else if constexpr (std::same_as<T, bool>) return CUDNN_TYPE_BOOLEAN;
  else if constexpr (std::same_as<T, char>) return CUDNN_TYPE_CHAR;
  else if constexpr (std::same_as<T, void*>) return CUDNN_TYPE_VOID_PTR;
  else if constexpr (std::same_as<T, cudnnHandle_t>) return CUDNN_TYPE_HANDLE;
  else if constexpr (std::same_as<T, cudnnDataType_t>) return CUDNN_TYPE_DATA_TYPE;
  else if constexpr (std::same_as<T, cudnnConvolutionMode_t>) return CUDNN_TYPE_CONVOLUTION_MODE;
  else if constexpr (std::same_as<T, cudnnPointwiseMode_t>) return CUDNN_TYPE_POINTWISE_MODE;
  else if constexpr (std::same_as<T, cudnnReduceTensorOp_t>) return CUDNN_TYPE_REDUCTION_OPERATOR_TYPE;
  else {
    static_assert(std::same_as<T, cudnnBackendHeurMode_t>);
    return CUDNN_TYPE_HEUR_MODE;
  }
}

/// An object of the library: its attributes are set, then it is finished.
class cudnn_object {
 public:
  explicit cudnn_object(cudnnBackendDescriptorType_t type, std::source_location at = std::source_location::current()) {
    cudnnBackendDescriptor_t made = nullptr;
    check_cudnn(cudnnBackendCreateDescriptor(type, &made), "a descriptor", at);
    made_.reset(made);
  }
  cudnnBackendDescriptor_t get() const { return made_.get(); }

  template <class T>
  cudnn_object& set(cudnnBackendAttributeName_t which, T const& value) {
    return set_all(which, cudnn_attribute<T>(), 1, &value);
  }
  template <class T, std::size_t N>
  cudnn_object& set(cudnnBackendAttributeName_t which, std::array<T, N> const& values) {
    return set_all(which, cudnn_attribute<T>(), N, values.data());
  }
  template <class T>
  cudnn_object& set(cudnnBackendAttributeName_t which, std::span<T const> values) {
    return set_all(which, cudnn_attribute<T>(), values.size(), values.data());
  }
  cudnn_object& set(cudnnBackendAttributeName_t which, cudnn_object const& part) {
    auto const d = part.get();
    return set_all(which, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &d);
  }
  cudnn_object& set_parts(cudnnBackendAttributeName_t which, std::span<cudnnBackendDescriptor_t const> parts) {
    return set_all(which, CUDNN_TYPE_BACKEND_DESCRIPTOR, parts.size(), parts.data());
  }
  /// As set; a library that does not know the attribute goes without.
  void try_set(cudnnBackendAttributeName_t which, cudnnHandle_t value) {
    cudnnBackendSetAttribute(get(), which, CUDNN_TYPE_HANDLE, 1, &value);
  }
  /// Whether the library takes what was set so far.
  cudnnStatus_t finish() { return status_ == CUDNN_STATUS_SUCCESS ? status_ = cudnnBackendFinalize(get()) : status_; }

 private:
  cudnn_object& set_all(cudnnBackendAttributeName_t which, cudnnBackendAttributeType_t type, std::size_t n,
                        void const* values) {
    auto const s = cudnnBackendSetAttribute(get(), which, type, static_cast<std::int64_t>(n), values);
    if (status_ == CUDNN_STATUS_SUCCESS) status_ = s;
    return *this;
  }
  struct destroyer {
    void operator()(cudnnBackendDescriptor_t d) const { cudnnBackendDestroyDescriptor(d); }
  };
  std::unique_ptr<void, destroyer> made_;
  cudnnStatus_t status_ = CUDNN_STATUS_SUCCESS;  // the first that is no success
};

struct cudnn_handle_deleter {
  void operator()(cudnnHandle_t h) const { cudnnDestroy(h); }
};
using cudnn_handle = std::unique_ptr<cudnnContext, cudnn_handle_deleter>;

/// The device that plans are made for: of a handle, or elsewhere and known by its properties.
class cudnn_device {
 public:
  explicit cudnn_device(cudnnHandle_t handle) : handle_(handle) {}
  /// As properties() had them on a machine with the device.
  explicit cudnn_device(std::string const& text, std::source_location at = std::source_location::current())
      : elsewhere_(std::make_unique<cudnn_object>(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR)) {
    elsewhere_->set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, std::span<char const>(text.c_str(), text.size() + 1));
    check_cudnn(elsewhere_->finish(), "properties of a device, from text", at);
  }

  // By numbers: newer headers mark the names as deprecated, older libraries need them.
  void set_for_graph(cudnn_object& graph) const {
    if (handle_) graph.try_set(static_cast<cudnnBackendAttributeName_t>(800), handle_);  // OPERATIONGRAPH_HANDLE
  }
  void set_for_plan(cudnn_object& plan) const {
    if (handle_) plan.try_set(static_cast<cudnnBackendAttributeName_t>(400), handle_);  // EXECUTION_PLAN_HANDLE
    set_if_elsewhere(plan, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
  }
  void set_if_elsewhere(cudnn_object& object, cudnnBackendAttributeName_t which) const {
    if (elsewhere_) object.set(which, *elsewhere_);
  }

  std::string properties(std::source_location at = std::source_location::current()) const {
    std::unique_ptr<cudnn_object> of_handle;
    if (handle_) {
      of_handle = std::make_unique<cudnn_object>(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
      of_handle->set(CUDNN_ATTR_DEVICEPROP_HANDLE, handle_);
      check_cudnn(of_handle->finish(), "the device's properties", at);
    }
    auto const from = (handle_ ? of_handle : elsewhere_)->get();
    auto const get = [&](std::int64_t room, std::int64_t& size, char* to) {
      check_cudnn(
          cudnnBackendGetAttribute(from, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR, room, &size, to),
          "the device's properties as text", at);
    };
    std::int64_t size = 0;
    get(0, size, nullptr);
    std::string out(static_cast<std::size_t>(size), '\0');
    get(size, size, out.data());
    out.resize(std::min(out.find('\0'), out.size()));
    return out;
  }

 private:
  cudnnHandle_t handle_ = nullptr;
  std::unique_ptr<cudnn_object> elsewhere_;
};

/// What a plan may do.
struct cudnn_conditions {
  bool rounds_inputs = false;  // to types that tensor cores take
  bytes_t max_scratch = 0;
};

struct cudnn_plan {
  std::unique_ptr<cudnn_object> object;  // null: there is none
  std::string_view reason;               // why
  bytes_t scratch = 0;
  std::int64_t engine = -1;  // the library's number of the algorithm
};

/// Operations on tensors with numbers of their own, and all objects that they are made of.
class cudnn_graph {
 public:
  /// A tensor; a virtual one has no memory. Strides in elements; `value`: a number of the host, given when the plan runs.
  cudnn_object const& tensor(std::int64_t number, cudnnDataType_t type, std::span<std::int64_t const> dims,
                             std::span<std::int64_t const> strides, bool is_virtual = false, bool value = false) {
    auto& t = add(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    t.set(CUDNN_ATTR_TENSOR_DATA_TYPE, type)
        .set(CUDNN_ATTR_TENSOR_DIMENSIONS, dims)
        .set(CUDNN_ATTR_TENSOR_STRIDES, strides)
        .set(CUDNN_ATTR_TENSOR_UNIQUE_ID, number)
        .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, std::int64_t{16});
    if (is_virtual) t.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
    if (value) t.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
    note(t.finish());
    return t;
  }
  /// An object of the graph that is no operation.
  cudnn_object& add(cudnnBackendDescriptorType_t type) { return objects_.emplace_back(type); }
  cudnn_object& operation(cudnnBackendDescriptorType_t type) {
    auto& o = add(type);
    operations_.push_back(o.get());
    return o;
  }
  /// Finishes an object, after its attributes were set.
  void finish(cudnn_object& o) { note(o.finish()); }

  /// The first plan that the library proposes for the device and that keeps to the conditions. All of its results are the
  /// same each time.
  cudnn_plan plan(cudnn_device const& device, cudnn_conditions const& within) {
    cudnn_plan out;
    auto& graph = add(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph.set_parts(CUDNN_ATTR_OPERATIONGRAPH_OPS, operations_);
    device.set_for_graph(graph);
    note(graph.finish());
    out.reason = "cuDNN does not take such operands";
    if (status_ != CUDNN_STATUS_SUCCESS) return out;
    out.reason = "cuDNN has no algorithm for it";
    for (auto const mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
      cudnn_object proposals(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
      proposals.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph).set(CUDNN_ATTR_ENGINEHEUR_MODE, mode);
      device.set_if_elsewhere(proposals, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP);
      if (proposals.finish() != CUDNN_STATUS_SUCCESS) continue;
      std::int64_t count = 0;
      if (cudnnBackendGetAttribute(proposals.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, 0,
                                   &count, nullptr) != CUDNN_STATUS_SUCCESS)
        continue;
      std::vector<cudnn_object> proposed;
      std::vector<cudnnBackendDescriptor_t> at;
      for (std::int64_t i = 0; i < count; ++i)
        at.push_back(proposed.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR).get());
      if (cudnnBackendGetAttribute(proposals.get(), CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
                                   &count, at.data()) != CUDNN_STATUS_SUCCESS)
        continue;
      for (std::int64_t i = 0; i < count; ++i)
        if (try_plan(out, proposed[static_cast<std::size_t>(i)], device, within)) return out;
    }
    return out;
  }

 private:
  void note(cudnnStatus_t s) {
    if (status_ == CUDNN_STATUS_SUCCESS) status_ = s;
  }
  static bool try_plan(cudnn_plan& out, cudnn_object const& proposed, cudnn_device const& device,
                       cudnn_conditions const& within) {
    cudnn_object engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
    std::array<cudnnBackendNumericalNote_t, CUDNN_NUMERICAL_NOTE_TYPE_COUNT> notes{};
    std::int64_t number = -1, one = 0, count = 0, scratch = 0;
    auto const of_engine = engine.get();
    auto of = of_engine;
    if (cudnnBackendGetAttribute(proposed.get(), CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &one,
                                 &of) != CUDNN_STATUS_SUCCESS ||
        cudnnBackendGetAttribute(of_engine, CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &one, &number) !=
            CUDNN_STATUS_SUCCESS ||
        cudnnBackendGetAttribute(of_engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                 static_cast<std::int64_t>(notes.size()), &count, notes.data()) != CUDNN_STATUS_SUCCESS)
      return false;
    for (auto const n : std::span(notes).first(static_cast<std::size_t>(std::min<std::int64_t>(count, notes.size()))))
      if (auto const why = refusal(n, within); !why.empty()) {
        out.reason = why;
        return false;
      }
    auto plan = std::make_unique<cudnn_object>(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    plan->set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, proposed);
    device.set_for_plan(*plan);
    auto const status = plan->finish();
    if (status >= CUDNN_STATUS_EXECUTION_FAILED) out.reason = "cuDNN's algorithm for it is not loaded by the driver";
    if (status != CUDNN_STATUS_SUCCESS ||
        cudnnBackendGetAttribute(plan->get(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &one,
                                 &scratch) != CUDNN_STATUS_SUCCESS)
      return false;
    if (scratch > within.max_scratch) {
      out.reason = "cuDNN takes more scratch memory for it than it may have";
      return false;
    }
    out = {std::move(plan), {}, scratch, number};
    return true;
  }
  /// Why a plan of an algorithm with such a note is not taken; empty if it may be.
  static std::string_view refusal(cudnnBackendNumericalNote_t n, cudnn_conditions const& within) {
    switch (n) {
      case CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC: return "cuDNN's results would differ from one time to the next";
      case CUDNN_NUMERICAL_NOTE_TENSOR_CORE:
      case CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS:
        return within.rounds_inputs ? "" : "cuDNN would round the operands";
      case CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION: return "cuDNN would add in less than f32";
      case CUDNN_NUMERICAL_NOTE_FFT:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6:
      case CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13: return "cuDNN would transform the operands, which loses precision";
      default: return "";
    }
  }

  std::deque<cudnn_object> objects_;
  std::vector<cudnnBackendDescriptor_t> operations_;
  cudnnStatus_t status_ = CUDNN_STATUS_SUCCESS;
};

/// Runs a plan on the handle's stream; addresses of tensors by their numbers.
inline cudnnStatus_t run_cudnn_plan(cudnnHandle_t handle, cudnn_plan const& plan, std::span<std::int64_t const> numbers,
                                    std::span<void* const> addresses, void* scratch) {
  cudnn_object operands(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  operands.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, numbers)
      .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, addresses)
      .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, scratch);
  if (auto const s = operands.finish(); s != CUDNN_STATUS_SUCCESS) return s;
  return cudnnBackendExecute(handle, plan.object->get(), operands.get());
}

}}}  // namespace neap::v0::detail
