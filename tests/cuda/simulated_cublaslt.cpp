// Matrix products of the simulated cuBLASLt against sums of exact products, for types, orders, transposes, batches and
// epilogues; what the library would refuse is refused.
#include "../support/device/simulated_device.hpp"

#include <doctest/doctest.h>

#include <cublasLt.h>
#include <cuda_runtime_api.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace neap::testing;

void ok(cudaError_t e) { REQUIRE(std::string(cudaGetErrorString(e)) == "no error"); }
void ok(cublasStatus_t s) { REQUIRE(std::string(cublasLtGetStatusString(s)) == "success"); }

double value_of(std::uint16_t bits, cudaDataType t) {
  if (t == CUDA_R_16BF) return std::bit_cast<float>(std::uint32_t{bits} << 16);
  return static_cast<double>(std::bit_cast<_Float16>(bits));
}

/// A matrix on the device, with gaps between its lines and batches.
struct matrix {
  cudaDataType type;
  bool by_rows;
  int rows, columns, batches;
  std::int64_t leading, stride;
  void* at = nullptr;
  cublasLtMatrixLayout_t layout = nullptr;

  matrix(cudaDataType t, bool r, int m, int n, int count, int gap)
      : type(t),
        by_rows(r),
        rows(m),
        columns(n),
        batches(count),
        leading((r ? n : m) + gap),
        stride(leading * (r ? m : n) + gap) {
    ok(cudaMalloc(&at, bytes()));
    ok(cublasLtMatrixLayoutCreate(&layout, type, static_cast<std::uint64_t>(rows), static_cast<std::uint64_t>(columns),
                                  leading));
    std::int32_t const order = by_rows ? CUBLASLT_ORDER_ROW : CUBLASLT_ORDER_COL;
    ok(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_ORDER, &order, sizeof order));
    ok(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batches, sizeof batches));
    ok(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride));
  }
  ~matrix() {
    cudaFree(at);
    cublasLtMatrixLayoutDestroy(layout);
  }
  matrix(matrix const&) = delete;
  matrix& operator=(matrix const&) = delete;

  std::size_t element() const { return type == CUDA_R_32F ? 4 : 2; }
  std::size_t bytes() const { return static_cast<std::size_t>(stride * batches) * element(); }
  std::size_t place(int batch, int i, int j) const {
    return static_cast<std::size_t>(batch * stride + (by_rows ? i * leading + j : j * leading + i));
  }
  /// Small multiples of 1/8, exact in all types.
  void fill(std::mt19937& random) const {
    std::vector<std::byte> host(bytes());
    for (std::size_t k = 0; k < bytes() / element(); ++k) {
      float const v = static_cast<float>(static_cast<int>(random() % 17) - 8) / 8;
      if (type == CUDA_R_32F) {
        std::memcpy(host.data() + 4 * k, &v, 4);
      } else {
        auto const bits = type == CUDA_R_16BF ? static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(v) >> 16)
                                              : std::bit_cast<std::uint16_t>(static_cast<_Float16>(v));
        std::memcpy(host.data() + 2 * k, &bits, 2);
      }
    }
    ok(cudaMemcpy(at, host.data(), bytes(), cudaMemcpyHostToDevice));
    ok(cudaDeviceSynchronize());
  }
  std::vector<double> read() const {
    std::vector<std::byte> host(bytes());
    ok(cudaMemcpy(host.data(), at, bytes(), cudaMemcpyDeviceToHost));
    std::vector<double> out(bytes() / element());
    for (std::size_t k = 0; k < out.size(); ++k) {
      if (type == CUDA_R_32F) {
        out[k] = std::bit_cast<float>(*reinterpret_cast<std::uint32_t const*>(host.data() + 4 * k));
      } else {
        std::uint16_t bits = 0;
        std::memcpy(&bits, host.data() + 2 * k, 2);
        out[k] = value_of(bits, type);
      }
    }
    return out;
  }
};

struct problem {
  cublasLtHandle_t handle = nullptr;
  cublasLtMatmulDesc_t desc = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cudaStream_t stream = nullptr;
  void* workspace = nullptr;
  std::uint64_t workspace_bytes = 1 << 16;

  problem() {
    ok(cublasLtCreate(&handle));
    ok(cublasLtMatmulDescCreate(&desc, CUBLAS_COMPUTE_32F, CUDA_R_32F));
    ok(cublasLtMatmulPreferenceCreate(&preference));
    ok(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace_bytes,
                                            sizeof workspace_bytes));
    std::uint32_t const reductions = CUBLASLT_REDUCTION_SCHEME_NONE;
    ok(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &reductions,
                                            sizeof reductions));
    ok(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    ok(cudaMalloc(&workspace, workspace_bytes));
  }
  ~problem() {
    cudaFree(workspace);
    cudaStreamDestroy(stream);
    cublasLtMatmulPreferenceDestroy(preference);
    cublasLtMatmulDescDestroy(desc);
    cublasLtDestroy(handle);
  }
  problem(problem const&) = delete;
  problem& operator=(problem const&) = delete;

  template <class T>
  void set(cublasLtMatmulDescAttributes_t which, T value) const {
    ok(cublasLtMatmulDescSetAttribute(desc, which, &value, sizeof value));
  }
  cublasStatus_t choose(matrix const& a, matrix const& b, matrix const& c, matrix const& d,
                        cublasLtMatmulHeuristicResult_t& out) const {
    int count = 0;
    cublasStatus_t const s = cublasLtMatmulAlgoGetHeuristic(handle, desc, a.layout, b.layout, c.layout, d.layout,
                                                            preference, 1, &out, &count);
    return s == CUBLAS_STATUS_SUCCESS && count == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : s;
  }
  cublasStatus_t run(matrix const& a, matrix const& b, matrix const& c, matrix const& d, float alpha,
                     float beta) const {
    cublasLtMatmulHeuristicResult_t chosen{};
    if (cublasStatus_t const s = choose(a, b, c, d, chosen); s != CUBLAS_STATUS_SUCCESS) return s;
    return cublasLtMatmul(handle, desc, &alpha, a.at, a.layout, b.at, b.layout, &beta, c.at, c.layout, d.at, d.layout,
                          &chosen.algo, workspace, chosen.workspaceSize, stream);
  }
};

double rounding(cudaDataType t) { return t == CUDA_R_32F ? 1e-6 : t == CUDA_R_16F ? 1e-3 : 8e-3; }
bool near(double x, double y, cudaDataType t) { return std::abs(x - y) <= rounding(t) * (1 + std::abs(y)); }

/// sum over k of op(A)[i, k] op(B)[k, j].
double sum_of_products(matrix const& a, std::vector<double> const& x, bool ta, matrix const& b,
                       std::vector<double> const& y, bool tb, int batch, int i, int j) {
  double sum = 0;
  int const k = ta ? a.rows : a.columns;
  for (int l = 0; l < k; ++l)
    sum += x[ta ? a.place(batch, l, i) : a.place(batch, i, l)] * y[tb ? b.place(batch, j, l) : b.place(batch, l, j)];
  return sum;
}

TEST_CASE("products of all orders, transposes, batches and types") {
  std::mt19937 random(1);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    simulated_device::reset(static_cast<std::uint64_t>(round));
    auto const coin = [&] { return random() % 2 != 0; };
    int const m = 1 + static_cast<int>(random() % 20), n = 1 + static_cast<int>(random() % 20),
              k = 1 + static_cast<int>(random() % 20), batches = 1 + static_cast<int>(random() % 3);
    cudaDataType const types[] = {CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF};
    auto const in = types[random() % 3], out = coin() ? in : CUDA_R_32F;
    bool const ta = coin(), tb = coin(), order = coin();
    {
      problem p;
      p.set(CUBLASLT_MATMUL_DESC_TRANSA, ta ? CUBLAS_OP_T : CUBLAS_OP_N);
      p.set(CUBLASLT_MATMUL_DESC_TRANSB, tb ? CUBLAS_OP_T : CUBLAS_OP_N);
      int const gap = static_cast<int>(random() % 3);
      matrix a(in, coin(), ta ? k : m, ta ? m : k, batches, gap), b(in, coin(), tb ? n : k, tb ? k : n, batches, gap),
          c(out, order, m, n, batches, gap), d(out, order, m, n, batches, 0);
      for (matrix const* x : {&a, &b, &c}) x->fill(random);
      float const alpha = 0.5f, beta = coin() ? 2.0f : 0.0f;
      ok(cudaDeviceSynchronize());
      ok(p.run(a, b, c, d, alpha, beta));
      ok(cudaStreamSynchronize(p.stream));
      auto const x = a.read(), y = b.read(), z = c.read(), got = d.read();
      for (int batch = 0; batch < batches; ++batch)
        for (int i = 0; i < m; ++i)
          for (int j = 0; j < n; ++j) {
            double const sum = sum_of_products(a, x, ta, b, y, tb, batch, i, j);
            CHECK(near(got[d.place(batch, i, j)], alpha * sum + static_cast<double>(beta) * z[c.place(batch, i, j)],
                       out));
          }
    }
    CHECK(simulated_device::faults() == "");
    CHECK(simulated_device::races() == "");
    CHECK(simulated_device::operations().back().kind == device_work::copy_to_host);
  }
}

double gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979) * (x + 0.044715 * x * x * x)));
}
double slope(double x) { return (gelu(x + 1e-5) - gelu(x - 1e-5)) / 2e-5; }

TEST_CASE("epilogues: bias, GELU and ReLU with what their gradients need, and those gradients") {
  std::mt19937 random(2);
  for (auto const type : {CUDA_R_32F, CUDA_R_16BF}) {
    for (bool const of_gelu : {true, false}) {
      CAPTURE(of_gelu);
      simulated_device::reset(7);
      {
        problem p;
        int const m = 24, n = 9, k = 11, leading = of_gelu ? 32 : 128;
        matrix a(type, false, m, k, 1, 0), b(type, false, k, n, 1, 0), d(type, false, m, n, 1, 0),
            back(type, false, m, n, 1, 0), bias(type, false, m, 1, 1, 0), bias_gradient(type, false, m, 1, 1, 0),
            auxiliary(type, false, leading, n, 1, 0);
        for (matrix const* x : {&a, &b, &bias}) x->fill(random);
        ok(cudaDeviceSynchronize());
        p.set(CUBLASLT_MATMUL_DESC_EPILOGUE,
              of_gelu ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_RELU_AUX_BIAS);
        p.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias.at);
        p.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, auxiliary.at);
        p.set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, std::int64_t{leading});
        ok(p.run(a, b, d, d, 1, 0));
        p.set(CUBLASLT_MATMUL_DESC_EPILOGUE, of_gelu ? CUBLASLT_EPILOGUE_DGELU_BGRAD : CUBLASLT_EPILOGUE_DRELU_BGRAD);
        p.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias_gradient.at);
        ok(p.run(a, b, back, back, 1, 0));
        ok(cudaStreamSynchronize(p.stream));
        auto const x = a.read(), y = b.read(), z = bias.read(), got = d.read(), gradient = back.read(),
                   sums = bias_gradient.read();
        for (int i = 0; i < m; ++i) {
          double sum = 0;
          for (int j = 0; j < n; ++j) {
            double const product = sum_of_products(a, x, false, b, y, false, 0, i, j);
            double const before = product + z[static_cast<std::size_t>(i)];
            CHECK(near(got[d.place(0, i, j)], of_gelu ? gelu(before) : std::max(before, 0.0), type));
            double const expected = product * (of_gelu ? slope(before) : before > 0 ? 1 : 0);
            CHECK(std::abs(gradient[back.place(0, i, j)] - expected) <= 0.05 * (1 + std::abs(expected)));
            sum += expected;
          }
          CHECK(std::abs(sums[static_cast<std::size_t>(i)] - sum) <= 0.05 * (4 + std::abs(sum)));
        }
      }
      CHECK(simulated_device::faults() == "");
    }
  }
}

TEST_CASE("gradients of a bias from the operands") {
  std::mt19937 random(3);
  simulated_device::reset(3);
  problem p;
  int const m = 6, n = 5, k = 7;
  matrix a(CUDA_R_32F, false, m, k, 1, 0), b(CUDA_R_32F, false, k, n, 1, 0), d(CUDA_R_32F, false, m, n, 1, 0),
      sums(CUDA_R_32F, false, 8, 1, 1, 0);
  for (matrix const* x : {&a, &b}) x->fill(random);
  ok(cudaDeviceSynchronize());
  p.set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, sums.at);
  for (auto const epilogue : {CUBLASLT_EPILOGUE_BGRADA, CUBLASLT_EPILOGUE_BGRADB}) {
    p.set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    ok(p.run(a, b, d, d, 1, 0));
    ok(cudaStreamSynchronize(p.stream));
    bool const of_a = epilogue == CUBLASLT_EPILOGUE_BGRADA;
    auto const x = (of_a ? a : b).read(), got = sums.read();
    for (int i = 0; i < (of_a ? m : n); ++i) {
      double sum = 0;
      for (int l = 0; l < k; ++l) sum += x[of_a ? a.place(0, i, l) : b.place(0, l, i)];
      CHECK(near(got[static_cast<std::size_t>(i)], sum, CUDA_R_32F));
    }
  }
  CHECK(simulated_device::faults() == "");
}

TEST_CASE("what the library refuses is refused, and what it would get wrong is a fault") {
  simulated_device::reset(3);
  std::mt19937 random(4);
  problem p;
  matrix a(CUDA_R_32F, false, 8, 8, 1, 0), b(CUDA_R_32F, false, 8, 8, 1, 0), d(CUDA_R_32F, false, 8, 8, 1, 0),
      wide(CUDA_R_32F, false, 8, 16, 1, 0), by_rows(CUDA_R_32F, true, 8, 8, 1, 0);
  a.fill(random);
  CHECK(p.run(a, wide, d, d, 1, 0) == CUBLAS_STATUS_INVALID_VALUE);
  p.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_RELU);
  CHECK(p.run(a, b, by_rows, by_rows, 1, 0) == CUBLAS_STATUS_NOT_SUPPORTED);
  p.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  CHECK(p.run(a, b, d, d, 1, 0) == CUBLAS_STATUS_INVALID_VALUE);  // no pointer
  p.set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_DEFAULT);

  cublasLtMatmulHeuristicResult_t chosen{};
  ok(p.choose(a, b, d, d, chosen));
  CHECK(chosen.workspaceSize > 0);
  float const one = 1, zero = 0;
  auto const run = [&](matrix const& y, void* at_y, std::size_t workspace) {
    return cublasLtMatmul(p.handle, p.desc, &one, a.at, a.layout, at_y, y.layout, &zero, d.at, d.layout, d.at, d.layout,
                          &chosen.algo, p.workspace, workspace, p.stream);
  };
  CHECK(run(b, b.at, chosen.workspaceSize - 1) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(run(b, static_cast<char*>(b.at) + 4, chosen.workspaceSize) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(run(by_rows, by_rows.at, chosen.workspaceSize) == CUBLAS_STATUS_NOT_SUPPORTED);  // chosen for another product
  CHECK(simulated_device::faults().find("written") == std::string::npos);
  ok(run(b, b.at, chosen.workspaceSize));
  CHECK(simulated_device::faults().find("reads byte 0 of B, which was never written") != std::string::npos);

  std::uint64_t const none = 0;
  ok(cublasLtMatmulPreferenceSetAttribute(p.preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &none, sizeof none));
  ok(p.choose(a, b, d, d, chosen));
  CHECK(chosen.workspaceSize == 0);
  simulated_device::reset(0, {.devices = 0});
  cublasLtHandle_t other = nullptr;
  CHECK(cublasLtCreate(&other) == CUBLAS_STATUS_NOT_INITIALIZED);
}

}  // namespace
