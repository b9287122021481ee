// Matrix products of cuBLASLt on the simulated device: D = epilogue(alpha op(A) op(B) + beta C) by plain loops, with
// f32 accumulation in the order of k. Data are f32, f16 or bf16. What the library restricts is restricted here: epilogues
// need matrices in column order, leading dimensions of auxiliary matrices are multiples of 8 (GELU) or 128 (ReLU).
#include "library.hpp"

#include <cublasLt.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

namespace neap::testing { namespace {

struct layout {
  cudaDataType type = CUDA_R_32F;
  std::int32_t order = CUBLASLT_ORDER_COL;
  std::uint64_t rows = 0, columns = 0;
  std::int64_t leading = 0;
  std::int32_t batches = 1;
  std::int64_t batch_stride = 0;  // elements

  std::size_t bytes_of_element() const { return type == CUDA_R_32F ? 4 : 2; }
  bool by_rows() const { return order == CUBLASLT_ORDER_ROW; }
  std::int64_t at(std::int64_t batch, std::int64_t row, std::int64_t column) const {
    return batch * batch_stride + (by_rows() ? row * leading + column : column * leading + row);
  }
  bool valid() const {
    return (type == CUDA_R_32F || type == CUDA_R_16F || type == CUDA_R_16BF) && rows && columns && batches > 0 &&
           (order == CUBLASLT_ORDER_COL || order == CUBLASLT_ORDER_ROW) &&
           leading >= static_cast<std::int64_t>(by_rows() ? columns : rows);
  }
};

struct product {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  std::int32_t scale = CUDA_R_32F, pointer_mode = CUBLASLT_POINTER_MODE_HOST;
  std::int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N, transpose_c = CUBLAS_OP_N;
  std::uint32_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  void* bias = nullptr;
  void* auxiliary = nullptr;
  std::int64_t bias_stride = 0, auxiliary_leading = 0, auxiliary_stride = 0;
  std::int32_t bias_type = -1, auxiliary_type = -1;
  std::int32_t multiprocessors = 0;
};

struct preference {
  std::uint32_t search = CUBLASLT_SEARCH_BEST_FIT;
  std::uint64_t workspace = 0;
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::array<std::uint32_t, 4> alignments{256, 256, 256, 256};  // of A, B, C, D
  float waves = 0;
  std::uint64_t implementations = ~std::uint64_t{0};
};

/// What the 64 bytes of an algorithm hold.
struct algorithm {
  std::uint64_t mark = 0;
  std::uint64_t problem = 0;    // digest of what it was chosen for
  std::uint64_t workspace = 0;  // bytes that it needs
  std::array<std::uint32_t, 4> alignments{};
  std::uint32_t split = 1, reduction = CUBLASLT_REDUCTION_SCHEME_NONE;
};
constexpr std::uint64_t algorithm_mark = 0x6e65'6170'6d61'7473;
static_assert(sizeof(algorithm) <= sizeof(cublasLtMatmulAlgo_t));

static_assert(sizeof(layout) <= sizeof(cublasLtMatrixLayoutOpaque_t));
static_assert(sizeof(product) <= sizeof(cublasLtMatmulDescOpaque_t));
static_assert(sizeof(preference) <= sizeof(cublasLtMatmulPreferenceOpaque_t));

layout& of(cublasLtMatrixLayout_t l) { return *reinterpret_cast<layout*>(l); }
product& of(cublasLtMatmulDesc_t d) { return *reinterpret_cast<product*>(d); }
preference& of(cublasLtMatmulPreference_t p) { return *reinterpret_cast<preference*>(p); }

constexpr library_statuses<cublasStatus_t> statuses{CUBLAS_STATUS_SUCCESS,       CUBLAS_STATUS_NOT_INITIALIZED,
                                                    CUBLAS_STATUS_ALLOC_FAILED,  CUBLAS_STATUS_NOT_SUPPORTED,
                                                    CUBLAS_STATUS_INVALID_VALUE, CUBLAS_STATUS_EXECUTION_FAILED};
/// Runs the body of a function of the library: f(simulation&) gives its status.
template <class F>
cublasStatus_t library_call(char const* function, F&& f) {
  return testing::library_call(function, statuses, f);
}

// ---- attributes
template <class T>
cublasStatus_t set(T& field, void const* from, std::size_t bytes) {
  if (!from || bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&field, from, sizeof(T));
  return CUBLAS_STATUS_SUCCESS;
}
template <class T>
cublasStatus_t get(T const& field, void* to, std::size_t bytes, std::size_t* written) {
  if (bytes == 0) {
    if (!written) return CUBLAS_STATUS_INVALID_VALUE;
    *written = sizeof(T);
    return CUBLAS_STATUS_SUCCESS;
  }
  if (!to || bytes != sizeof(T)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(to, &field, sizeof(T));
  if (written) *written = sizeof(T);
  return CUBLAS_STATUS_SUCCESS;
}
/// Calls f(field) for the attribute's field; not supported if the simulation has none.
template <class F>
cublasStatus_t attribute(layout& l, cublasLtMatrixLayoutAttribute_t which, F&& f) {
  switch (which) {
    case CUBLASLT_MATRIX_LAYOUT_TYPE: return f(l.type);
    case CUBLASLT_MATRIX_LAYOUT_ORDER: return f(l.order);
    case CUBLASLT_MATRIX_LAYOUT_ROWS: return f(l.rows);
    case CUBLASLT_MATRIX_LAYOUT_COLS: return f(l.columns);
    case CUBLASLT_MATRIX_LAYOUT_LD: return f(l.leading);
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT: return f(l.batches);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET: return f(l.batch_stride);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}
template <class F>
cublasStatus_t attribute(product& p, cublasLtMatmulDescAttributes_t which, F&& f) {
  switch (which) {
    case CUBLASLT_MATMUL_DESC_COMPUTE_TYPE: return f(p.compute);
    case CUBLASLT_MATMUL_DESC_SCALE_TYPE: return f(p.scale);
    case CUBLASLT_MATMUL_DESC_POINTER_MODE: return f(p.pointer_mode);
    case CUBLASLT_MATMUL_DESC_TRANSA: return f(p.transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB: return f(p.transpose_b);
    case CUBLASLT_MATMUL_DESC_TRANSC: return f(p.transpose_c);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return f(p.epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return f(p.bias);
    case CUBLASLT_MATMUL_DESC_BIAS_BATCH_STRIDE: return f(p.bias_stride);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return f(p.auxiliary);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return f(p.auxiliary_leading);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE: return f(p.auxiliary_stride);
    case CUBLASLT_MATMUL_DESC_SM_COUNT_TARGET: return f(p.multiprocessors);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_DATA_TYPE: return f(p.auxiliary_type);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: return f(p.bias_type);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}
template <class F>
cublasStatus_t attribute(preference& p, cublasLtMatmulPreferenceAttributes_t which, F&& f) {
  switch (which) {
    case CUBLASLT_MATMUL_PREF_SEARCH_MODE: return f(p.search);
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return f(p.workspace);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return f(p.reductions);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return f(p.alignments[0]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return f(p.alignments[1]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return f(p.alignments[2]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return f(p.alignments[3]);
    case CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT: return f(p.waves);
    case CUBLASLT_MATMUL_PREF_IMPL_MASK: return f(p.implementations);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}
template <class Attribute, class Object>
cublasStatus_t set_attribute(char const* function, Object& o, Attribute which, void const* from, std::size_t bytes) {
  cublasStatus_t const status = attribute(o, which, [&](auto& field) { return set(field, from, bytes); });
  if (status == CUBLAS_STATUS_NOT_SUPPORTED)
    library_call(function, [&](simulation& s) {
      s.report(std::string(function) + ": attribute " + std::to_string(which) + " is not simulated");
      return status;
    });
  return status;
}

// GELU by tanh.
float gelu_inner(float x) { return std::sqrt(2 / std::numbers::pi_v<float>) * (x + 0.044715f * x * x * x); }
float gelu(float x) { return 0.5f * x * (1 + std::tanh(gelu_inner(x))); }
float gelu_slope(float x) {
  float const t = std::tanh(gelu_inner(x));
  float const inner_slope = std::sqrt(2 / std::numbers::pi_v<float>) * (1 + 3 * 0.044715f * x * x);
  return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * inner_slope;
}

// ---- products
/// One call of cublasLtMatmul: addresses, layouts and what was read of the host's memory.
struct matmul {
  product p;
  layout a, b, c, d;
  void const *at_a = nullptr, *at_b = nullptr, *at_c = nullptr, *at_alpha = nullptr, *at_beta = nullptr;
  void* at_d = nullptr;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  float alpha = 1, beta = 0;

  std::int64_t m() const { return static_cast<std::int64_t>(p.transpose_a == CUBLAS_OP_N ? a.rows : a.columns); }
  std::int64_t k() const { return static_cast<std::int64_t>(p.transpose_a == CUBLAS_OP_N ? a.columns : a.rows); }
  std::int64_t n() const { return static_cast<std::int64_t>(p.transpose_b == CUBLAS_OP_N ? b.columns : b.rows); }
  std::int64_t k_of_b() const { return static_cast<std::int64_t>(p.transpose_b == CUBLAS_OP_N ? b.rows : b.columns); }

  bool has_bias() const {
    switch (p.epilogue) {
      case CUBLASLT_EPILOGUE_BIAS:
      case CUBLASLT_EPILOGUE_RELU_BIAS:
      case CUBLASLT_EPILOGUE_RELU_AUX_BIAS:
      case CUBLASLT_EPILOGUE_GELU_BIAS:
      case CUBLASLT_EPILOGUE_GELU_AUX_BIAS: return true;
      default: return false;
    }
  }
  bool gives_bias_gradient() const {
    return p.epilogue == CUBLASLT_EPILOGUE_DRELU_BGRAD || p.epilogue == CUBLASLT_EPILOGUE_DGELU_BGRAD ||
           p.epilogue == CUBLASLT_EPILOGUE_BGRADA || p.epilogue == CUBLASLT_EPILOGUE_BGRADB;
  }
  bool has_auxiliary() const { return (p.epilogue & 128) != 0; }
  bool reads_auxiliary() const { return has_auxiliary() && (p.epilogue & (8 | 64)); }
  bool of_relu() const { return (p.epilogue & (2 | 8)) != 0; }
  bool of_gelu() const { return (p.epilogue & (32 | 64)) != 0; }
  cudaDataType bias_type() const { return p.bias_type < 0 ? d.type : static_cast<cudaDataType>(p.bias_type); }
  cudaDataType auxiliary_type() const {
    return p.auxiliary_type < 0 ? d.type : static_cast<cudaDataType>(p.auxiliary_type);
  }
  std::int64_t bias_length() const { return p.epilogue == CUBLASLT_EPILOGUE_BGRADB ? n() : m(); }

  /// Whether the library would take it; pointers aside.
  cublasStatus_t check() const {
    switch (p.compute) {
      case CUBLAS_COMPUTE_32F:
      case CUBLAS_COMPUTE_32F_PEDANTIC:
      case CUBLAS_COMPUTE_32F_FAST_TF32:
      case CUBLAS_COMPUTE_32F_FAST_16BF:
      case CUBLAS_COMPUTE_32F_FAST_16F: break;
      default: return CUBLAS_STATUS_NOT_SUPPORTED;
    }
    if (p.scale != CUDA_R_32F || p.transpose_c != CUBLAS_OP_N) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (p.pointer_mode != CUBLASLT_POINTER_MODE_HOST && p.pointer_mode != CUBLASLT_POINTER_MODE_DEVICE)
      return CUBLAS_STATUS_NOT_SUPPORTED;
    for (auto const t : {p.transpose_a, p.transpose_b})
      if (t != CUBLAS_OP_N && t != CUBLAS_OP_T && t != CUBLAS_OP_C) return CUBLAS_STATUS_INVALID_VALUE;
    for (layout const* l : {&a, &b, &c, &d})
      if (!l->valid()) return CUBLAS_STATUS_INVALID_VALUE;
    // D is f32, or of the operands' type; C and D are of one type and layout.
    if (a.type != b.type || c.type != d.type || (d.type != a.type && d.type != CUDA_R_32F))
      return CUBLAS_STATUS_NOT_SUPPORTED;
    if (c.order != d.order) return CUBLAS_STATUS_NOT_SUPPORTED;
    auto const rows = static_cast<std::uint64_t>(m()), columns = static_cast<std::uint64_t>(n());
    if (k() != k_of_b() || d.rows != rows || d.columns != columns || c.rows != rows || c.columns != columns)
      return CUBLAS_STATUS_INVALID_VALUE;
    for (layout const* l : {&a, &b, &c})
      if (l->batches != d.batches) return CUBLAS_STATUS_INVALID_VALUE;
    switch (p.epilogue) {
      case CUBLASLT_EPILOGUE_DEFAULT: return CUBLAS_STATUS_SUCCESS;
      case CUBLASLT_EPILOGUE_RELU:
      case CUBLASLT_EPILOGUE_RELU_AUX:
      case CUBLASLT_EPILOGUE_BIAS:
      case CUBLASLT_EPILOGUE_RELU_BIAS:
      case CUBLASLT_EPILOGUE_RELU_AUX_BIAS:
      case CUBLASLT_EPILOGUE_DRELU:
      case CUBLASLT_EPILOGUE_DRELU_BGRAD:
      case CUBLASLT_EPILOGUE_GELU:
      case CUBLASLT_EPILOGUE_GELU_AUX:
      case CUBLASLT_EPILOGUE_GELU_BIAS:
      case CUBLASLT_EPILOGUE_GELU_AUX_BIAS:
      case CUBLASLT_EPILOGUE_DGELU:
      case CUBLASLT_EPILOGUE_DGELU_BGRAD:
      case CUBLASLT_EPILOGUE_BGRADA:
      case CUBLASLT_EPILOGUE_BGRADB: break;
      default: return CUBLAS_STATUS_INVALID_VALUE;
    }
    for (layout const* l : {&a, &b, &c, &d})
      if (l->by_rows()) return CUBLAS_STATUS_NOT_SUPPORTED;
    // A gradient of the bias that overwrites it would have to be one sum of all batches.
    if (gives_bias_gradient() && d.batches > 1 && p.bias_stride == 0) return CUBLAS_STATUS_NOT_SUPPORTED;
    if (has_auxiliary()) {
      std::int64_t const multiple = of_relu() ? 128 : 8;
      if (p.auxiliary_leading < m() || p.auxiliary_leading % multiple) return CUBLAS_STATUS_INVALID_VALUE;
    }
    return CUBLAS_STATUS_SUCCESS;
  }

  /// What an algorithm is chosen for.
  std::uint64_t digest() const {
    std::uint64_t h = 0xcbf2'9ce4'8422'2325;
    auto const mix = [&](std::uint64_t v) { h = (h ^ v) * 0x1000'0000'01b3; };
    mix(static_cast<std::uint64_t>(p.compute));
    for (auto const v : {p.transpose_a, p.transpose_b, p.pointer_mode}) mix(static_cast<std::uint64_t>(v));
    mix(p.epilogue);
    for (layout const* l : {&a, &b, &c, &d}) {
      mix(static_cast<std::uint64_t>(l->type));
      mix(static_cast<std::uint64_t>(l->order));
      for (auto const v : {l->rows, l->columns, static_cast<std::uint64_t>(l->leading),
                           static_cast<std::uint64_t>(l->batches), static_cast<std::uint64_t>(l->batch_stride)})
        mix(v);
    }
    return h;
  }
};

std::vector<access_range> ranges_of(void const* at, layout const& l) {
  std::vector<access_range> out;
  std::int64_t const lines = static_cast<std::int64_t>(l.by_rows() ? l.rows : l.columns),
                     length = static_cast<std::int64_t>(l.by_rows() ? l.columns : l.rows);
  for (std::int64_t batch = 0; batch < l.batches; ++batch)
    for (std::int64_t line = 0; line < lines; ++line) {
      auto const first = simulation::address(at) +
                         static_cast<std::uint64_t>(batch * l.batch_stride + line * l.leading) * l.bytes_of_element();
      out.push_back({first, first + static_cast<std::uint64_t>(length) * l.bytes_of_element()});
    }
  return out;
}
std::vector<access_range> ranges_of_bias(matmul const& call) {
  std::vector<access_range> out;
  std::size_t const size = bytes_of(call.bias_type());
  for (std::int64_t batch = 0; batch < (call.p.bias_stride ? call.d.batches : 1); ++batch) {
    auto const first = simulation::address(call.p.bias) + static_cast<std::uint64_t>(batch * call.p.bias_stride) * size;
    out.push_back({first, first + static_cast<std::uint64_t>(call.bias_length()) * size});
  }
  return out;
}
std::vector<access_range> ranges_of_auxiliary(matmul const& call) {
  std::vector<access_range> out;
  for (std::int64_t batch = 0; batch < call.d.batches; ++batch)
    for (std::int64_t column = 0; column < call.n(); ++column) {
      auto const first =
          static_cast<std::uint64_t>(batch * call.p.auxiliary_stride + column * call.p.auxiliary_leading);
      auto const rows = static_cast<std::uint64_t>(call.m());
      std::uint64_t const base = simulation::address(call.p.auxiliary);
      if (call.of_relu()) out.push_back({base + first / 8, base + (first + rows + 7) / 8});
      else
        out.push_back(
            {base + first * bytes_of(call.auxiliary_type()), base + (first + rows) * bytes_of(call.auxiliary_type())});
    }
  return out;
}

outcome run(simulation& s, matmul const& call) {
  outcome out;
  std::vector<access_range> const of_a = ranges_of(call.at_a, call.a), of_b = ranges_of(call.at_b, call.b),
                                  of_d = ranges_of(call.at_d, call.d);
  bool ok = true;
  auto const get_view = [&](std::vector<access_range> const& ranges, char const* what, bool reads) {
    memory_view const v = view(s, ranges, std::string("cublasLtMatmul: ") + what);
    if (!v.ok) ok = false;
    else if (reads && !ranges.empty()) check_written(s, v, ranges, "cublasLtMatmul", what);
    auto& list = reads ? out.reads : out.writes;
    list.insert(list.end(), ranges.begin(), ranges.end());
    return v;
  };
  float alpha = call.alpha, beta = call.beta;
  if (call.p.pointer_mode == CUBLASLT_POINTER_MODE_DEVICE) {
    auto const scalar = [&](void const* at, char const* what) {
      auto const v = get_view({{simulation::address(at), simulation::address(at) + 4}}, what, true);
      return v.ok ? element(v.memory.bytes, CUDA_R_32F, 0) : 0.0f;
    };
    alpha = scalar(call.at_alpha, "alpha");
    beta = scalar(call.at_beta, "beta");
  }
  std::vector<access_range> of_c, of_bias, of_auxiliary, of_workspace;
  if (beta != 0) of_c = ranges_of(call.at_c, call.c);
  if (call.has_bias() || call.gives_bias_gradient()) of_bias = ranges_of_bias(call);
  if (call.has_auxiliary()) of_auxiliary = ranges_of_auxiliary(call);
  if (call.workspace_bytes)
    of_workspace = {{simulation::address(call.workspace), simulation::address(call.workspace) + call.workspace_bytes}};

  auto const a = get_view(of_a, "A", true), b = get_view(of_b, "B", true), c = get_view(of_c, "C", true);
  auto const bias = get_view(of_bias, "the bias", call.has_bias());
  auto const auxiliary = get_view(of_auxiliary, "the auxiliary matrix", call.reads_auxiliary());
  auto const d = get_view(of_d, "D", false);
  auto const workspace = get_view(of_workspace, "the workspace", false);
  if (!ok) {
    out.error = cudaErrorIllegalAddress;
    return out;
  }
  if (overlap(of_d, of_a) || overlap(of_d, of_b)) s.report("cublasLtMatmul: D overlaps an operand");
  if (!of_c.empty() && call.at_c != call.at_d && overlap(of_d, of_c))
    s.report("cublasLtMatmul: C and D overlap, and are not the same");
  for (std::vector<access_range> const& other : {of_a, of_b, of_c, of_d, of_bias, of_auxiliary})
    if (overlap(of_workspace, other)) s.report("cublasLtMatmul: the workspace overlaps another operand");
  if (workspace.memory.bytes) {  // its contents are the library's
    for (std::size_t k = 0; k < call.workspace_bytes; ++k)
      workspace.memory.bytes[k] = static_cast<std::uint8_t>(0xa5 ^ k);
    mark_written(workspace, of_workspace);
  }

  std::int64_t const m = call.m(), n = call.n(), k = call.k();
  bool const tf32 = call.p.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && call.a.type == CUDA_R_32F;
  auto const operand = [&](memory_view const& v, layout const& l, std::int64_t batch, bool transposed) {
    std::vector<float> values(l.rows * l.columns);  // of op(X), row by row
    auto const rows = static_cast<std::int64_t>(transposed ? l.columns : l.rows),
               columns = static_cast<std::int64_t>(transposed ? l.rows : l.columns);
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = 0; j < columns; ++j) {
        float const x = element(v.memory.bytes, l.type, transposed ? l.at(batch, j, i) : l.at(batch, i, j));
        values[static_cast<std::size_t>(i * columns + j)] = tf32 ? to_tf32(x) : x;
      }
    return values;
  };
  for (std::int64_t batch = 0; batch < call.d.batches; ++batch) {
    auto const x = operand(a, call.a, batch, call.p.transpose_a != CUBLAS_OP_N);
    auto const y = operand(b, call.b, batch, call.p.transpose_b != CUBLAS_OP_N);
    std::vector<float> product_values(static_cast<std::size_t>(m * n), 0.0f);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t l = 0; l < k; ++l) {
        float const v = x[static_cast<std::size_t>(i * k + l)];
        float const* const from = y.data() + l * n;
        float* const to = product_values.data() + i * n;
        for (std::int64_t j = 0; j < n; ++j) to[j] += v * from[j];
      }
    std::int64_t const first_bias = batch * call.p.bias_stride;
    std::vector<float> gradient(static_cast<std::size_t>(call.bias_length()), 0.0f);
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        float v = alpha * product_values[static_cast<std::size_t>(i * n + j)];
        if (beta != 0) v += beta * element(c.memory.bytes, call.c.type, call.c.at(batch, i, j));
        if (call.has_bias()) v += element(bias.memory.bytes, call.bias_type(), first_bias + i);
        std::int64_t const place = batch * call.p.auxiliary_stride + j * call.p.auxiliary_leading + i;
        if (call.has_auxiliary() && call.of_relu()) {
          std::uint8_t& byte = auxiliary.memory.bytes[place / 8];
          auto const bit = static_cast<std::uint8_t>(1 << (place % 8));
          if (call.reads_auxiliary()) v = byte & bit ? v : 0;
          else byte = static_cast<std::uint8_t>(v > 0 ? byte | bit : byte & ~bit);
        } else if (call.has_auxiliary()) {
          if (call.reads_auxiliary()) v *= gelu_slope(element(auxiliary.memory.bytes, call.auxiliary_type(), place));
          else put_element(auxiliary.memory.bytes, call.auxiliary_type(), place, v);
        }
        if (call.p.epilogue & CUBLASLT_EPILOGUE_RELU) v = v > 0 ? v : 0;
        if (call.p.epilogue & CUBLASLT_EPILOGUE_GELU) v = gelu(v);
        put_element(d.memory.bytes, call.d.type, call.d.at(batch, i, j), v);
        if (call.p.epilogue & 16) gradient[static_cast<std::size_t>(i)] += v;
      }
    if (call.p.epilogue == CUBLASLT_EPILOGUE_BGRADA)
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t l = 0; l < k; ++l)
          gradient[static_cast<std::size_t>(i)] += x[static_cast<std::size_t>(i * k + l)];
    if (call.p.epilogue == CUBLASLT_EPILOGUE_BGRADB)
      for (std::int64_t l = 0; l < k; ++l)
        for (std::int64_t j = 0; j < n; ++j)
          gradient[static_cast<std::size_t>(j)] += y[static_cast<std::size_t>(l * n + j)];
    if (call.gives_bias_gradient())
      for (std::int64_t i = 0; i < call.bias_length(); ++i)
        put_element(bias.memory.bytes, call.bias_type(), first_bias + i, gradient[static_cast<std::size_t>(i)]);
  }
  mark_written(d, of_d);
  if (call.gives_bias_gradient()) mark_written(bias, of_bias);
  if (call.has_auxiliary() && !call.reads_auxiliary()) mark_written(auxiliary, of_auxiliary);
  constexpr double seconds_per_flop = 1e-14;
  out.seconds = 3e-6 + seconds_per_flop * 2 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) *
                           call.d.batches;
  return out;
}

/// Bytes up to 16 that all lines of a matrix are aligned to, if its first element is.
std::uint32_t alignment_of(layout const& l) {
  std::uint64_t strides = static_cast<std::uint64_t>(l.leading) * l.bytes_of_element();
  if (l.batches > 1) strides |= static_cast<std::uint64_t>(l.batch_stride) * l.bytes_of_element();
  std::uint32_t a = 16;
  while (strides % a) a /= 2;
  return a;
}

constexpr std::size_t usual_workspace = 4096;

/// Algorithms in the order of their quality: one with a workspace, one without.
std::vector<algorithm> algorithms_for(matmul const& call, preference const& wanted) {
  algorithm first;
  first.mark = algorithm_mark;
  first.problem = call.digest();
  layout const* const layouts[] = {&call.a, &call.b, &call.c, &call.d};
  for (std::size_t i = 0; i < 4; ++i) first.alignments[i] = std::min(alignment_of(*layouts[i]), wanted.alignments[i]);
  std::vector<algorithm> all;
  if (wanted.workspace >= usual_workspace) {
    all.push_back(first);
    all.back().workspace = usual_workspace;
    if (wanted.reductions & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) {
      all.back().split = 2;
      all.back().reduction = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    }
  }
  all.push_back(first);
  return all;
}

cublasStatus_t submit(simulation& s, matmul call, algorithm const* chosen, cudaStream_t handle) {
  stream_state* const stream = s.stream(handle);
  if (!stream) return CUBLAS_STATUS_INVALID_VALUE;
  if (cublasStatus_t const status = call.check(); status != CUBLAS_STATUS_SUCCESS) return status;
  if (!call.at_a || !call.at_b || !call.at_d || !call.at_alpha || !call.at_beta) return CUBLAS_STATUS_INVALID_VALUE;
  if ((call.has_bias() || call.gives_bias_gradient()) && !call.p.bias) return CUBLAS_STATUS_INVALID_VALUE;
  if (call.has_auxiliary() && !call.p.auxiliary) return CUBLAS_STATUS_INVALID_VALUE;
  algorithm by_default;
  if (!chosen) {
    preference any;
    any.workspace = call.workspace ? call.workspace_bytes : 0;
    by_default = algorithms_for(call, any).front();
    chosen = &by_default;
  }
  if (chosen->mark != algorithm_mark) {
    s.report("cublasLtMatmul: the algorithm is not one of this library");
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (chosen->problem != call.digest()) {
    s.report("cublasLtMatmul: the algorithm was chosen for another product");
    return CUBLAS_STATUS_NOT_SUPPORTED;
  }
  if (chosen->workspace > call.workspace_bytes || (chosen->workspace && !call.workspace)) {
    s.report("cublasLtMatmul: the workspace has " + std::to_string(call.workspace_bytes) +
             " bytes, and the algorithm needs " + std::to_string(chosen->workspace));
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  call.workspace_bytes = chosen->workspace;
  void const* const addresses[] = {call.at_a, call.at_b, call.at_c, call.at_d};
  for (std::size_t i = 0; i < 4; ++i)
    if (addresses[i] && simulation::address(addresses[i]) % chosen->alignments[i]) {
      s.report(std::string("cublasLtMatmul: ") + "ABCD"[i] + " is not aligned to " +
               std::to_string(chosen->alignments[i]) + " bytes, as the algorithm needs");
      return CUBLAS_STATUS_INVALID_VALUE;
    }
  if (call.workspace_bytes && simulation::address(call.workspace) % 16) {
    s.report("cublasLtMatmul: the workspace is not aligned to 16 bytes");
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  if (call.p.pointer_mode == CUBLASLT_POINTER_MODE_HOST) {
    call.alpha = element(call.at_alpha, CUDA_R_32F, 0);
    call.beta = element(call.at_beta, CUDA_R_32F, 0);
    if (call.beta != 0 && !call.at_c) return CUBLAS_STATUS_INVALID_VALUE;
  } else if (!call.at_c) {
    return CUBLAS_STATUS_INVALID_VALUE;
  }
  std::string const name =
      "cublasLtMatmul " + std::to_string(call.m()) + "x" + std::to_string(call.n()) + "x" + std::to_string(call.k());
  cudaError_t const e =
      s.submit(*stream, {device_work::library, name, 0, [&s, call = std::move(call)] { return run(s, call); }});
  return e == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

template <class Object, class Opaque>
cublasStatus_t create(Opaque** out, Object const& initial) {
  if (!out) return CUBLAS_STATUS_INVALID_VALUE;
  *out = new (std::nothrow) Opaque{};
  if (!*out) return CUBLAS_STATUS_ALLOC_FAILED;
  new (*out) Object(initial);
  return CUBLAS_STATUS_SUCCESS;
}
template <class Object, class Opaque>
cublasStatus_t create_within(Opaque* at, std::size_t bytes, Object const& initial) {
  if (!at || bytes < sizeof(Object)) return CUBLAS_STATUS_ALLOC_FAILED;
  new (at) Object(initial);
  return CUBLAS_STATUS_SUCCESS;
}
template <class Opaque>
cublasStatus_t destroy(Opaque* o) {
  delete o;
  return CUBLAS_STATUS_SUCCESS;
}

int handle_mark = 0;  // what handles point to

}  // namespace

}  // namespace neap::testing

using namespace neap::testing;

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* out) {
  return library_call("cublasLtCreate", [&](simulation&) {
    if (!out) return CUBLAS_STATUS_INVALID_VALUE;
    *out = reinterpret_cast<cublasLtHandle_t>(&handle_mark);
    return CUBLAS_STATUS_SUCCESS;
  });
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t) {
  return library_call("cublasLtDestroy", [](simulation&) { return CUBLAS_STATUS_SUCCESS; });
}
std::size_t cublasLtGetVersion() { return CUBLAS_VERSION; }
std::size_t cublasLtGetCudartVersion() { return CUDART_VERSION; }
char const* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED: return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE: return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH: return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_MAPPING_ERROR: return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR: return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_LICENSE_ERROR: return "CUBLAS_STATUS_LICENSE_ERROR";
  }
  return "unknown status";
}
char const* cublasLtGetStatusString(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS: return "success";
    case CUBLAS_STATUS_NOT_INITIALIZED: return "the library was not initialized";
    case CUBLAS_STATUS_ALLOC_FAILED: return "the resource allocation failed";
    case CUBLAS_STATUS_INVALID_VALUE: return "an unsupported value or parameter was passed to the function";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "the function requires an architectural feature absent from the device architecture";
    case CUBLAS_STATUS_MAPPING_ERROR: return "an access to GPU memory space failed";
    case CUBLAS_STATUS_EXECUTION_FAILED: return "the function failed to launch on the GPU";
    case CUBLAS_STATUS_INTERNAL_ERROR: return "an internal operation failed";
    case CUBLAS_STATUS_NOT_SUPPORTED: return "the requested functionality is not supported";
    case CUBLAS_STATUS_LICENSE_ERROR: return "a license error was detected";
  }
  return "unknown status";
}

cublasStatus_t cublasLtMatrixLayoutInit_internal(cublasLtMatrixLayout_t at, std::size_t bytes, cudaDataType type,
                                                 std::uint64_t rows, std::uint64_t columns, std::int64_t leading) {
  return create_within(at, bytes, layout{type, CUBLASLT_ORDER_COL, rows, columns, leading});
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* out, cudaDataType type, std::uint64_t rows,
                                          std::uint64_t columns, std::int64_t leading) {
  return create(out, layout{type, CUBLASLT_ORDER_COL, rows, columns, leading});
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) { return destroy(l); }
cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t which,
                                                void const* from, std::size_t bytes) {
  return set_attribute("cublasLtMatrixLayoutSetAttribute", of(l), which, from, bytes);
}
cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t l, cublasLtMatrixLayoutAttribute_t which,
                                                void* to, std::size_t bytes, std::size_t* written) {
  return attribute(of(l), which, [&](auto& field) { return get(field, to, bytes, written); });
}

cublasStatus_t cublasLtMatmulDescInit_internal(cublasLtMatmulDesc_t at, std::size_t bytes, cublasComputeType_t compute,
                                               cudaDataType_t scale) {
  return create_within(at, bytes, product{compute, scale});
}
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* out, cublasComputeType_t compute, cudaDataType_t scale) {
  return create(out, product{compute, scale});
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) { return destroy(d); }
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t which,
                                              void const* from, std::size_t bytes) {
  return set_attribute("cublasLtMatmulDescSetAttribute", of(d), which, from, bytes);
}
cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t d, cublasLtMatmulDescAttributes_t which, void* to,
                                              std::size_t bytes, std::size_t* written) {
  return attribute(of(d), which, [&](auto& field) { return get(field, to, bytes, written); });
}

cublasStatus_t cublasLtMatmulPreferenceInit_internal(cublasLtMatmulPreference_t at, std::size_t bytes) {
  return create_within(at, bytes, preference{});
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* out) { return create(out, preference{}); }
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) { return destroy(p); }
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t which, void const* from,
                                                    std::size_t bytes) {
  return set_attribute("cublasLtMatmulPreferenceSetAttribute", of(p), which, from, bytes);
}
cublasStatus_t cublasLtMatmulPreferenceGetAttribute(cublasLtMatmulPreference_t p,
                                                    cublasLtMatmulPreferenceAttributes_t which, void* to,
                                                    std::size_t bytes, std::size_t* written) {
  return attribute(of(p), which, [&](auto& field) { return get(field, to, bytes, written); });
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t d,
                                              cublasLtMatrixLayout_t la, cublasLtMatrixLayout_t lb,
                                              cublasLtMatrixLayout_t lc, cublasLtMatrixLayout_t ld,
                                              cublasLtMatmulPreference_t wanted, int most,
                                              cublasLtMatmulHeuristicResult_t results[], int* count) {
  return library_call("cublasLtMatmulAlgoGetHeuristic", [&](simulation&) {
    if (handle != reinterpret_cast<cublasLtHandle_t>(&handle_mark)) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!d || !la || !lb || !lc || !ld || !wanted || !results || !count || most <= 0)
      return CUBLAS_STATUS_INVALID_VALUE;
    *count = 0;
    matmul call;
    call.p = of(d);
    call.a = of(la);
    call.b = of(lb);
    call.c = of(lc);
    call.d = of(ld);
    if (cublasStatus_t const status = call.check(); status != CUBLAS_STATUS_SUCCESS) return status;
    for (algorithm const& a : algorithms_for(call, of(wanted))) {
      if (*count == most) break;
      cublasLtMatmulHeuristicResult_t& r = results[(*count)++];
      r = {};
      std::memcpy(r.algo.data, &a, sizeof a);
      r.workspaceSize = a.workspace;
      r.state = CUBLAS_STATUS_SUCCESS;
      r.wavesCount = 1;
    }
    return CUBLAS_STATUS_SUCCESS;
  });
}
cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t la,
                                       cublasLtMatrixLayout_t lb, cublasLtMatrixLayout_t lc, cublasLtMatrixLayout_t ld,
                                       cublasLtMatmulAlgo_t const* algo, cublasLtMatmulHeuristicResult_t* result) {
  return library_call("cublasLtMatmulAlgoCheck", [&](simulation&) {
    if (!d || !la || !lb || !lc || !ld || !algo || !result) return CUBLAS_STATUS_INVALID_VALUE;
    matmul call;
    call.p = of(d);
    call.a = of(la);
    call.b = of(lb);
    call.c = of(lc);
    call.d = of(ld);
    algorithm a;
    std::memcpy(&a, algo->data, sizeof a);
    cublasStatus_t status = call.check();
    if (status == CUBLAS_STATUS_SUCCESS && (a.mark != algorithm_mark || a.problem != call.digest()))
      status = CUBLAS_STATUS_INVALID_VALUE;
    result->workspaceSize = a.workspace;
    result->state = status;
    result->wavesCount = 1;
    return status;
  });
}
cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(cublasLtMatmulAlgo_t const* algo,
                                                    cublasLtMatmulAlgoConfigAttributes_t which, void* to,
                                                    std::size_t bytes, std::size_t* written) {
  algorithm a;
  std::memcpy(&a, algo->data, sizeof a);
  switch (which) {
    case CUBLASLT_ALGO_CONFIG_ID: return get(std::int32_t{0}, to, bytes, written);
    case CUBLASLT_ALGO_CONFIG_SPLITK_NUM: return get(a.split, to, bytes, written);
    case CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME: return get(a.reduction, to, bytes, written);
    default: return CUBLAS_STATUS_NOT_SUPPORTED;
  }
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t d, void const* alpha, void const* a,
                              cublasLtMatrixLayout_t la, void const* b, cublasLtMatrixLayout_t lb, void const* beta,
                              void const* c, cublasLtMatrixLayout_t lc, void* result, cublasLtMatrixLayout_t ld,
                              cublasLtMatmulAlgo_t const* algo, void* workspace, std::size_t workspace_bytes,
                              cudaStream_t stream) {
  return library_call("cublasLtMatmul", [&](simulation& s) {
    if (handle != reinterpret_cast<cublasLtHandle_t>(&handle_mark)) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!d || !la || !lb || !lc || !ld) return CUBLAS_STATUS_INVALID_VALUE;
    matmul call{of(d), of(la), of(lb), of(lc), of(ld), a, b, c, alpha, beta, result, workspace, workspace_bytes};
    algorithm chosen;
    if (algo) std::memcpy(&chosen, algo->data, sizeof chosen);
    return submit(s, std::move(call), algo ? &chosen : nullptr, stream);
  });
}

}  // extern "C"
