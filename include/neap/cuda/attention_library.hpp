// Attention by a library of the device's vendor, in place of our own kernels: what such a library is to a backend.
// cuda/cudnn.hpp is one; without any, cuda/kernels/attention.cuh computes it.
#pragma once

#include <neap/core/tensor_type.hpp>
#include <neap/core/units.hpp>
#include <neap/cuda/library_way.hpp>

#include <compare>

struct CUstream_st;

namespace neap { inline namespace v0 {

/// y [B, H, T, E] and lse [B, H, T, 1], in f32, of q [B, H, T, D], k [B, K, S, D] and v [B, K, S, E]; or dq, dk and dv from
/// those and dy. Addresses are multiples of 16 bytes.
struct cuda_attention {
  bool backward = false;
  dtype element = dtype::f32;
  bool causal = false;
  float scale = 1;
  library_tensor q, k, v, y, lse;
  library_tensor dy, dq, dk, dv;  // of the backward pass

  friend auto operator<=>(cuda_attention const&, cuda_attention const&) = default;
};
struct cuda_attention_operands {
  void *q = nullptr, *k = nullptr, *v = nullptr, *y = nullptr, *lse = nullptr;
  void *dy = nullptr, *dq = nullptr, *dk = nullptr, *dv = nullptr;
};

/// A stream is the runtime's cudaStream_t.
class cuda_attention_library {
 public:
  cuda_attention_library() = default;
  cuda_attention_library(cuda_attention_library const&) = delete;
  cuda_attention_library& operator=(cuda_attention_library const&) = delete;
  virtual ~cuda_attention_library() = default;

  /// Whether it computes such an attention; plans it at the first call for one: steps run ones that are planned.
  virtual cuda_library_way way(cuda_attention const& a) = 0;
  /// What that takes of the backend's scratch memory; 0 if our own kernel computes it.
  virtual bytes_t scratch_bytes(cuda_attention const& a) = 0;
  /// Computes an attention whose way is by_library: writes y and lse, or dq, dk and dv. `scratch`: scratch_bytes(a).
  virtual void run(CUstream_st* stream, cuda_attention const& a, cuda_attention_operands const& at, void* scratch) = 0;
};

}}  // namespace neap::v0
