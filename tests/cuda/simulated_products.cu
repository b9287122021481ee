// A backend with cuBLASLt as its product library, on the simulated device: results, which products go where, what is asked
// and what is kept.
#include <neap/cuda/cublaslt.hpp>

#include "../support/device/simulated_device.hpp"
#include "../support/device_tensor.hpp"

#include <neap/cuda.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace neap;
using namespace neap::testing;

/// op(a) op(b) of [batches, ...] by plain loops; elements are small multiples of 1/8, so that f32 sums are exact.
template <class T>
std::vector<float> expected(device_tensor<T> const& a, device_tensor<T> const& b, std::int64_t batches, std::int64_t m,
                            std::int64_t n, std::int64_t k, bool ta, bool tb) {
  std::vector<float> y;
  auto const at = [](device_tensor<T> const& t, std::int64_t i) {
    return static_cast<float>(t.host[static_cast<std::size_t>(i)]);
  };
  bool const one_b = b.ref.rank() == 2;
  for (std::int64_t p = 0; p < batches; ++p)
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t j = 0; j < n; ++j) {
        float sum = 0;
        for (std::int64_t l = 0; l < k; ++l)
          sum += at(a, p * m * k + (ta ? l * m + i : i * k + l)) *
                 at(b, (one_b ? 0 : p * n * k) + (tb ? j * k + l : l * n + j));
        y.push_back(sum);
      }
  return y;
}

struct with_cublaslt {
  cuda_backend backend;
  std::shared_ptr<cublaslt> library;
  explicit with_cublaslt(cublaslt_options const& o = {}) : library(std::make_shared<cublaslt>(backend.device(), o)) {
    backend.use_products(library);
  }
};

template <class T>
void check_product(with_cublaslt& d, shape const& a_dims, shape const& b_dims, shape const& y_dims, bool ta, bool tb,
                   bool accumulate, bool by_library, std::int64_t shift = 0) {
  CAPTURE(to_string(a_dims));
  CAPTURE(to_string(b_dims));
  device_tensor<T> a(a_dims, 1, shift), b(b_dims, 2), y(y_dims, 3);
  auto const way = matmul_way(d.backend, a.ref, b.ref, y.ref, {ta, tb, accumulate});
  CAPTURE(std::string(way.reason));
  CHECK(way.by_library == by_library);
  CHECK(way.reason.empty() == by_library);
  auto const calls = simulated_device::calls("cublasLtMatmul");
  int const questions = d.library->questions();
  matmul(d.backend, a.ref, b.ref, y.ref, {ta, tb, accumulate});
  CHECK(simulated_device::calls("cublasLtMatmul") == calls + (by_library ? 1 : 0));
  CHECK(d.library->questions() == questions);  // it was asked already
  auto const got = y.read(d.backend.stream());
  std::int64_t const k = a_dims[a_dims.rank() - (ta ? 2 : 1)];
  std::int64_t batches = 1;
  for (int i = 0; i < y_dims.rank() - 2; ++i) batches *= y_dims[i];
  auto want = expected(a, b, batches, y_dims[y_dims.rank() - 2], y_dims.back(), k, ta, tb);
  for (std::size_t i = 0; i < want.size(); ++i)
    if (accumulate) want[i] += static_cast<float>(y.host[i]);
  std::size_t different = 0;
  for (std::size_t i = 0; i < want.size(); ++i)
    different += static_cast<float>(got[i]) != static_cast<float>(T(want[i]));
  CHECK(different == 0);
}

}  // namespace

TEST_CASE("products by cuBLASLt: all transposes, batches, types; the others go to our own kernels") {
  simulated_device::reset(3);
  {
    with_cublaslt d;
    CHECK(d.backend.scratch_bytes() >= d.library->scratch_bytes());
    for (bool ta : {false, true})
      for (bool tb : {false, true})
        for (bool accumulate : {false, true}) {
          auto const dims = [](std::int64_t x, std::int64_t y, bool t) { return t ? shape{y, x} : shape{x, y}; };
          check_product<float>(d, dims(5, 7, ta), dims(7, 9, tb), {5, 9}, ta, tb, accumulate, true);
          check_product<bf16>(d, dims(16, 24, ta), dims(24, 8, tb), {16, 8}, ta, tb, accumulate, true);
          check_product<f16>(d, dims(8, 8, ta), dims(8, 16, tb), {8, 16}, ta, tb, accumulate, true);
        }
    check_product<bf16>(d, {3, 8, 16}, {3, 16, 8}, {3, 8, 8}, false, false, false, true);
    check_product<bf16>(d, {3, 8, 16}, {16, 8}, {3, 8, 8}, false, false, false, true);
    check_product<bf16>(d, {3, 16, 8}, {16, 8}, {3, 8, 8}, true, false, false, true);
    check_product<double>(d, {5, 7}, {7, 9}, {5, 9}, false, false, false, false);
    check_product<float>(d, {5, 0}, {0, 9}, {5, 9}, false, false, false, false);
    CHECK(simulated_device::faults() == "");
    CHECK(simulated_device::races() == "");
  }
}

TEST_CASE("what cuBLASLt refuses goes to our own kernel, with the reason; a fault of the library is an error") {
  simulated_device::reset();
  with_cublaslt d;
  auto const way = [&](std::int64_t rows) {
    device_tensor<bf16> a({rows, 16}, 1), b({16, 8}, 2), y({rows, 8}, 3);
    return matmul_way(d.backend, a.ref, b.ref, y.ref, {});
  };
  simulated_device::fail("cublasLtMatmulAlgoGetHeuristic", 1, cudaErrorInvalidValue);
  CHECK(way(8).reason == "cuBLASLt refuses such operands");
  CHECK(way(8).reason == "cuBLASLt refuses such operands");  // it was asked once
  simulated_device::fail("cublasLtMatmulAlgoGetHeuristic", 1, cudaErrorNotSupported);
  CHECK(way(16).reason == "cuBLASLt has no algorithm for it");
  simulated_device::fail("cublasLtMatmulAlgoGetHeuristic", 1, cudaErrorUnknown);
  CHECK_THROWS_AS(way(24), error);
  CHECK(way(24).by_library);
}

TEST_CASE("batches along two axes that are not one go to our own kernel, with the reason") {
  simulated_device::reset();
  with_cublaslt d;
  device_tensor<float> a({2, 4, 3, 8}, 1), b({2, 4, 3, 8}, 2), y({2, 3, 4, 4}, 3);
  // Heads of attention: [batch, time, heads, size] seen as [batch, heads, time, size].
  auto const heads = [](tensor_ref t) {
    t.dims = {2, 3, 4, 8}, t.strides = {4 * 3 * 8, 8, 3 * 8, 1};
    return t;
  };
  auto const way = matmul_way(d.backend, heads(a.ref), heads(b.ref), y.ref, {false, true, false});
  CHECK(!way.by_library);
  CHECK(way.reason == "batches lie along more than one axis");
  matmul(d.backend, heads(a.ref), heads(b.ref), y.ref, {false, true, false});
  auto const got = y.read(d.backend.stream());
  std::size_t different = 0, at = 0;
  for (std::size_t batch = 0; batch < 2; ++batch)
    for (std::size_t head = 0; head < 3; ++head)
      for (std::size_t i = 0; i < 4; ++i)
        for (std::size_t j = 0; j < 4; ++j) {
          float sum = 0;
          for (std::size_t l = 0; l < 8; ++l)
            sum += a.host[((batch * 4 + i) * 3 + head) * 8 + l] * b.host[((batch * 4 + j) * 3 + head) * 8 + l];
          different += got[at++] != sum;
        }
  CHECK(different == 0);
  CHECK(simulated_device::calls("cublasLtMatmul") == 0);
  CHECK(simulated_device::faults() == "");
  cuda_backend alone;
  CHECK(matmul_way(alone, heads(a.ref), heads(b.ref), y.ref, {false, true, false}).reason ==
        "the backend has no product library");
}

TEST_CASE("the library is asked once for a product, and not at all where its algorithm was read") {
  simulated_device::reset();
  std::string text;
  cuda_product p{dtype::bf16, 64, 32, 128, false, true, 128, 128, 32, 1};
  {
    with_cublaslt d;
    CHECK(d.library->way(p).by_library);
    CHECK(d.library->way(p).by_library);
    CHECK(d.library->questions() == 1);
    CHECK(simulated_device::calls("cublasLtMatmulAlgoGetHeuristic") == 1);
    auto other = p;
    other.alignment_a = 4;
    CHECK(d.library->way(other).by_library);
    CHECK(d.library->questions() == 2);
    CHECK(!d.library->way({dtype::f64, 4, 4, 4, false, false, 4, 4, 4}).by_library);
    CHECK(d.library->questions() == 2);
    text = d.library->text();
  }
  with_cublaslt again;
  auto const read = again.library->read(text);
  REQUIRE(read);
  CHECK(*read == 2);
  CHECK(again.library->text() == text);
  check_product<bf16>(again, {64, 128}, {32, 128}, {64, 32}, false, true, false, true);
  CHECK(again.library->questions() == 0);
  CHECK(simulated_device::faults() == "");

  // Not of this library, or damaged.
  auto const refused = [&](std::string const& t) {
    with_cublaslt d;
    auto const outcome = d.library->read(t);
    CHECK(!outcome);
    CHECK(d.library->text().find('\n', d.library->text().find('\n') + 1) ==
          d.library->text().size() - 1);  // none taken
    return outcome ? std::string() : outcome.message();
  };
  CHECK(refused("# cuBLASLt 1 on a toaster, 2 multiprocessors\n")
            .starts_with("cublaslt: algorithms are of 'cuBLASLt 1 on a toaster"));
  CHECK(refused("").starts_with("cublaslt: algorithms are of ''"));
  CHECK(refused(text + "bf16,1,2\n") == "cublaslt: line 5 is no algorithm");
  std::string wrong = text;
  wrong[wrong.size() - 2] = 'x';
  CHECK(refused(wrong) == "cublaslt: line 4 is no algorithm");
  // Another product's algorithm is not accepted: the library is asked again.
  std::string mixed = text;
  mixed.replace(mixed.find("bf16,64,32"), 10, "bf16,64,48");
  with_cublaslt d;
  auto const some = d.library->read(mixed);
  REQUIRE(some);
  CHECK(*some == 1);
}

TEST_CASE("epilogues of cuBLASLt: biases, activations, what they keep, gradients, sums") {
  auto const bent = [](float x) { return 0.5f * x * (1 + std::tanh(0.7978845608f * (x + 0.044715f * x * x * x))); };
  auto const slope = [&](float x) { return (bent(x + 1e-2f) - bent(x - 1e-2f)) / 2e-2f; };
  std::uint64_t seed = 0;
  for (int kind = 1; kind < static_cast<int>(product_epilogue::count); ++kind) {
    auto const e = static_cast<product_epilogue>(kind);
    CAPTURE(kind);
    for (bool const transposed : {false, true}) {
      simulated_device::reset(++seed);
      with_cublaslt d;
      bool const ta = e == product_epilogue::sums_of_a || transposed,
                 tb = e != product_epilogue::sums_of_b && transposed;
      device_tensor<float> a(ta ? shape{16, 24} : shape{24, 16}, 1), b(tb ? shape{8, 16} : shape{16, 8}, 2),
          vector({e == product_epilogue::sums_of_a ? 24 : 8}, 4), matrix({24, 8}, 5), y({24, 8}, 3);
      auto const p = detail::product_of(detail::matmul_plan::of(a.ref, b.ref, y.ref, {ta, tb, false}), dtype::f32,
                                        a.ref.data, b.ref.data, y.ref.data);
      REQUIRE(d.library->way(p, e).by_library);
      d.library->run(d.backend.stream(), p, a.ref.data, b.ref.data, y.ref.data, {e, vector.ref.data, matrix.ref.data},
                     d.backend.scratch(d.library->scratch_bytes()));
      CHECK(simulated_device::calls("cublasLtMatmul") == 1);
      auto const got = y.read(d.backend.stream()), got_vector = vector.read(d.backend.stream()),
                 got_matrix = matrix.read(d.backend.stream());
      auto want = expected(a, b, 1, 24, 8, 16, ta, tb), kept = matrix.host, sums = vector.host;
      for (std::size_t i = 0; i < want.size(); ++i) {
        float& x = want[i];
        bool const biased = e == product_epilogue::bias || e == product_epilogue::bias_gelu ||
                            e == product_epilogue::bias_relu || e == product_epilogue::bias_gelu_kept;
        if (biased) x += vector.host[i % 8];
        if (e == product_epilogue::bias_gelu_kept) kept[i] = x;
        if (e == product_epilogue::gelu || e == product_epilogue::bias_gelu || e == product_epilogue::bias_gelu_kept)
          x = bent(x);
        if (e == product_epilogue::bias_relu) x = std::max(x, 0.0f);
        if (e == product_epilogue::gelu_grad || e == product_epilogue::gelu_grad_sums) x *= slope(matrix.host[i]);
        CHECK(std::abs(got[i] - x) <= 1e-3f * (1 + std::abs(x)));
      }
      if (e == product_epilogue::sums_of_a || e == product_epilogue::sums_of_b)
        for (std::size_t j = 0; j < sums.size(); ++j) {
          sums[j] = 0;
          for (std::size_t l = 0; l < 16; ++l)
            sums[j] += e == product_epilogue::sums_of_a ? a.host[l * 24 + j] : b.host[l * 8 + j];
        }
      if (e == product_epilogue::gelu_grad_sums) {
        for (std::size_t j = 0; j < sums.size(); ++j) {
          sums[j] = 0;
          for (std::size_t i = j; i < want.size(); i += 8) sums[j] += want[i];
          CHECK(std::abs(got_vector[j] - sums[j]) <= 1e-2f * (1 + std::abs(sums[j])));
        }
        sums = got_vector;
      }
      CHECK(got_vector == sums);
      CHECK(got_matrix == kept);
      CHECK(simulated_device::faults() == "");
      CHECK(simulated_device::races() == "");
    }
  }
}

TEST_CASE("epilogues have algorithms of their own; what the library cannot do has a reason") {
  simulated_device::reset();
  with_cublaslt d;
  cuda_product p{dtype::bf16, 64, 32, 128, false, true, 128, 128, 32, 1};
  CHECK(d.library->way(p).by_library);
  CHECK(d.library->way(p, product_epilogue::bias_gelu_kept).by_library);
  CHECK(d.library->way(p, product_epilogue::bias_gelu_kept).by_library);
  CHECK(d.library->questions() == 2);
  auto const text = d.library->text();
  with_cublaslt again;
  auto const read = again.library->read(text);
  REQUIRE(read);
  CHECK(*read == 2);
  CHECK(again.library->text() == text);
  CHECK(again.library->way(p, product_epilogue::bias_gelu_kept).by_library);
  CHECK(again.library->questions() == 0);
  auto const reason = [&](product_epilogue e) { return std::string(d.library->way(p, e).reason); };
  p.n = p.ldc = 12;
  CHECK(reason(product_epilogue::bias_gelu).empty());
  CHECK(reason(product_epilogue::gelu_grad) == "cuBLASLt keeps single matrices whose rows are multiples of 8 elements");
  p.batches = 2, p.stride_a = 64 * 128, p.stride_b = 12 * 128, p.stride_y = 64 * 12;
  CHECK(reason(product_epilogue::sums_of_b) == "cuBLASLt sums operands of single products");
}

TEST_CASE("without a device there is one line; a call that is refused names the product") {
  simulated_device::reset();
  cuda_device const device = cuda_backend().device();
  auto const message = [](auto const& call) {
    try {
      call();
    } catch (error const& e) { return std::string(e.what()); }
    return std::string("no error");
  };
  simulated_device::reset(0, {.driver = 0});
  auto const none = message([&] { cublaslt library(device); });
  CHECK(none.find("cublaslt: no handle of the library: ") != none.npos);
  CHECK(none.find('\n') == none.npos);

  simulated_device::reset();
  with_cublaslt d;
  device_tensor<float> a({8, 16}, 1), b({16, 8}, 2), y({8, 8}, 3);
  simulated_device::fail("cublasLtMatmul", 1, cudaErrorLaunchFailure);
  auto const refused = message([&] { matmul(d.backend, a.ref, b.ref, y.ref); });
  CAPTURE(refused);
  CHECK(refused.find("cublaslt: f32 product of [8,16] and [16,8], 1 times: ") != refused.npos);
}
