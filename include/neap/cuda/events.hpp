// Events of streams and captured graphs, owned. Needs the CUDA toolkit's headers.
#pragma once

#include <neap/cuda/check.hpp>

#include <cuda_runtime_api.h>

#include <memory>
#include <type_traits>

namespace neap { inline namespace v0 { namespace detail {

struct cuda_event_deleter {
  void operator()(cudaEvent_t e) const { cudaEventDestroy(e); }
};
using cuda_event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, cuda_event_deleter>;

/// `timed`: it has a time, and costs more.
inline cuda_event make_cuda_event(bool timed = false) {
  cudaEvent_t e = nullptr;
  check_cuda(cudaEventCreateWithFlags(&e, timed ? cudaEventDefault : cudaEventDisableTiming), "creation of an event");
  return cuda_event(e);
}

struct cuda_graph_deleter {
  void operator()(cudaGraph_t g) const { cudaGraphDestroy(g); }
  void operator()(cudaGraphExec_t g) const { cudaGraphExecDestroy(g); }
};
using cuda_graph = std::unique_ptr<std::remove_pointer_t<cudaGraph_t>, cuda_graph_deleter>;
using cuda_graph_executable = std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, cuda_graph_deleter>;

/// The stream is captured no longer; what was captured is dropped.
inline void end_capture(cudaStream_t stream) {
  auto status = cudaStreamCaptureStatusNone;
  cudaGraph_t captured = nullptr;
  if (cudaStreamIsCapturing(stream, &status) == cudaSuccess && status != cudaStreamCaptureStatusNone)
    cudaStreamEndCapture(stream, &captured);
  if (captured) cudaGraphDestroy(captured);
  cudaGetLastError();
}

/// What issue() puts on the stream, and on streams that join it, as one graph, which can be launched; nothing runs. Kernels
/// are loaded at their first launch, within a capture, too: drivers allow it since CUDA 12.3. Throws neap::error if the
/// runtime refuses a part of it, and what issue() throws.
template <class F>
cuda_graph_executable capture_graph(cudaStream_t stream, F const& issue) {
  check_cuda(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "begin of a capture");
  cudaGraph_t captured = nullptr;
  try {
    issue();
  } catch (...) {
    end_capture(stream);
    throw;
  }
  auto const outcome = cudaStreamEndCapture(stream, &captured);
  if (outcome != cudaSuccess) end_capture(stream);
  check_cuda(outcome, "capture of a step");
  cuda_graph const graph(captured);
  cudaGraphExec_t made = nullptr;
  check_cuda(cudaGraphInstantiate(&made, graph.get(), 0), "instantiation of a captured step");
  return cuda_graph_executable(made);
}

/// Throws neap::error if the capture that the stream is in cannot go on.
inline void require_valid_capture(cudaStream_t stream) {
  auto status = cudaStreamCaptureStatusNone;
  check_cuda(cudaStreamIsCapturing(stream, &status), "capture");
  if (status == cudaStreamCaptureStatusInvalidated)
    throw_error({"cuda: capture: it did what cannot be captured (give execution_options{.graph = false})"});
}

}}}  // namespace neap::v0::detail
