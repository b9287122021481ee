// Convolutions by a library of the device's vendor, in place of our own kernels: what such a library is to a backend.
// cuda/cudnn.hpp is one; without any, cuda/kernels/conv2d.hpp computes all convolutions.
#pragma once

#include <neap/core/tensor_type.hpp>
#include <neap/core/units.hpp>
#include <neap/cuda/library_way.hpp>

#include <array>
#include <compare>
#include <cstdint>

struct CUstream_st;

namespace neap { inline namespace v0 {

enum class convolution_part : int {
  forward,          // y from x and w
  input_gradient,   // dx from dy and w
  weight_gradient,  // dw from x and dy
};

/// x [N, C, H, W], w [O, C / groups, KH, KW], y [N, O, OH, OW]: all that decides how a library computes one of the three
/// parts. Gradients have the layout of what they belong to. Addresses are multiples of 16 bytes.
struct cuda_convolution {
  convolution_part part = convolution_part::forward;
  dtype element = dtype::f32;  // of x, w and y
  library_tensor x, w, y;
  std::array<std::int64_t, 2> stride{1, 1}, padding{}, dilation{1, 1};  // (rows, columns)

  friend auto operator<=>(cuda_convolution const&, cuda_convolution const&) = default;
};

/// A stream is the runtime's cudaStream_t.
class cuda_convolution_library {
 public:
  cuda_convolution_library() = default;
  cuda_convolution_library(cuda_convolution_library const&) = delete;
  cuda_convolution_library& operator=(cuda_convolution_library const&) = delete;
  virtual ~cuda_convolution_library() = default;

  /// Whether it computes such a convolution; plans it at the first call for one: steps run ones that are planned.
  virtual cuda_library_way way(cuda_convolution const& c) = 0;
  /// What that takes of the backend's scratch memory; 0 if our own kernel computes it.
  virtual bytes_t scratch_bytes(cuda_convolution const& c) = 0;
  /// Computes a convolution whose way is by_library: writes y, x or w, as its part is. `scratch`: scratch_bytes(c).
  virtual void run(CUstream_st* stream, cuda_convolution const& c, void* x, void* w, void* y, void* scratch) = 0;
};

}}  // namespace neap::v0
