// Products of matrices by a library of the device's vendor, in place of our own kernels: what such a library is to a backend.
// cuda/cublaslt.hpp is one; without any, cuda/kernels/gemm.hpp makes all products.
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/tensor_type.hpp>
#include <neap/core/units.hpp>
#include <neap/cuda/library_way.hpp>

#include <compare>
#include <cstdint>

struct CUstream_st;

namespace neap { inline namespace v0 {

/// y [m, n] = op(a) op(b) (+ y) of `batches` products: all that decides how a library makes it.
struct cuda_product {
  dtype element = dtype::f32;  // of a, b and y
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;  // a is stored [k, m], b is stored [n, k]
  std::int64_t lda = 0, ldb = 0, ldc = 0;         // elements from a stored row to the next
  std::int64_t batches = 1;
  std::int64_t stride_a = 0, stride_b = 0, stride_y = 0;     // elements from a batch to the next
  int alignment_a = 16, alignment_b = 16, alignment_y = 16;  // of addresses, in bytes: 16, or less

  friend auto operator<=>(cuda_product const&, cuda_product const&) = default;
};

/// What a library does with a product before it writes y. The numbers are in files of algorithms.
enum class product_epilogue : int {
  none,
  bias,            // y = product + vector [n]
  gelu,            // y = gelu(product), by tanh; so are the other gelus
  bias_gelu,       // y = gelu(product + vector [n])
  bias_relu,       // y = relu(product + vector [n])
  bias_gelu_kept,  // as bias_gelu; matrix = product + vector
  gelu_grad,       // y = product * slope of gelu at matrix
  sums_of_a,       // y = product; vector [m] = the sums of op(a)'s rows
  sums_of_b,       // y = product; vector [n] = the sums of op(b)'s columns
  gelu_grad_sums,  // as gelu_grad; vector [n] = the sums of y's columns
  count
};

/// An epilogue on its operands, which are of y's element type. A matrix has y's rows: [m, n], `ldc` elements from one to the
/// next.
struct product_epilogue_call {
  product_epilogue kind = product_epilogue::none;
  void* vector = nullptr;
  void* matrix = nullptr;
};

/// A stream is the runtime's cudaStream_t.
class cuda_product_library {
 public:
  cuda_product_library() = default;
  cuda_product_library(cuda_product_library const&) = delete;
  cuda_product_library& operator=(cuda_product_library const&) = delete;
  virtual ~cuda_product_library() = default;

  /// What it takes of the backend's scratch memory at most, whatever the product.
  virtual bytes_t scratch_bytes() const = 0;
  /// Whether it makes such a product; finds out how, at the first call for a product: steps call it with ones they had.
  virtual cuda_library_way way(cuda_product const& p) = 0;
  /// Likewise with an epilogue, whose vector and matrix are aligned to 16 bytes.
  virtual cuda_library_way way(cuda_product const& p, product_epilogue e) {
    return e == product_epilogue::none ? way(p) : cuda_library_way{false, "the library has no epilogues"};
  }
  /// Makes a product whose way is by_library; y += if `accumulate`. `scratch`: scratch_bytes.
  virtual void run(CUstream_st* stream, cuda_product const& p, void const* a, void const* b, void* y, bool accumulate,
                   void* scratch) = 0;
  /// Makes a product with an epilogue, whose way is by_library. Throws neap::error if the library has none.
  virtual void run(CUstream_st* /*stream*/, cuda_product const& /*p*/, void const* /*a*/, void const* /*b*/,
                   void* /*y*/, product_epilogue_call const& /*e*/, void* /*scratch*/) {
    throw_error({"products: the library has no epilogues"});
  }
};

}}  // namespace neap::v0
