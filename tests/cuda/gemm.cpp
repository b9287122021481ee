// Products of matrices by our own kernels, as nvcc compiles them, run by the interpreter of PTX: without a fault and
// without bank conflicts, every element written, within the rounding of sums in f32 (f64) of the exact product.
#include <neap/cuda/kernels/gemm.hpp>

#include "../support/interpreted_device.hpp"

#include <neap/cuda/kernels/matmul.hpp>

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace {

using namespace neap;
using namespace neap::testing;

interpreted_module* kernels() {
  static auto module = interpreted_kernels("gemm");
  if (!module) MESSAGE("this test is skipped: no nvcc");
  return module ? &*module : nullptr;
}

double unit_roundoff(dtype t) {
  return t == dtype::bf16 ? 0x1p-8 : t == dtype::f16 ? 0x1p-11 : t == dtype::f32 ? 0x1p-24 : 0x1p-53;
}

/// A product's operands in f64, as lists of rows, and how far a result may be from the exact one.
struct exact_product {
  std::vector<double> a, b, before;  // [batches, m, k], [batches, k, n], [batches, m, n]
  std::int64_t batches, m, n, k;
  double alpha = 1, beta = 0;

  /// The first element that is too far away: "[0,3,4]: 1.5, not 1.25"; empty if there is none. `sums`: the type in which
  /// products are added; `addends`: how many more sums an element is added from than from k products.
  std::string difference(tensor_ref const& y, dtype sums, int addends = 2) const {
    auto const got = neap_test::values(y);
    if (static_cast<std::int64_t>(got.size()) != batches * m * n) return "other extents";
    for (std::int64_t i = 0; i < batches; ++i)
      for (std::int64_t r = 0; r < m; ++r)
        for (std::int64_t c = 0; c < n; ++c) {
          auto const at = static_cast<std::size_t>((i * m + r) * n + c);
          double sum = 0, magnitude = 0;
          for (std::int64_t j = 0; j < k; ++j) {
            double const x =
                a[static_cast<std::size_t>((i * m + r) * k + j)] * b[static_cast<std::size_t>((i * k + j) * n + c)];
            sum += x, magnitude += std::abs(x);
          }
          sum *= alpha, magnitude *= std::abs(alpha);
          if (beta != 0) sum += beta * before[at], magnitude += std::abs(beta * before[at]);
          double const within = static_cast<double>(k + addends) * unit_roundoff(sums) * magnitude +
                                1.01 * unit_roundoff(y.element) * std::abs(sum);
          if (!(std::abs(got[at] - sum) <= within))
            return to_string(extents{i, r, c}) + ": " + std::to_string(got[at]) + ", not " + std::to_string(sum);
        }
    return {};
  }
};

tensor_ref transposed(tensor_ref t) {
  int const r = t.rank();
  std::swap(t.dims[r - 1], t.dims[r - 2]), std::swap(t.strides[r - 1], t.strides[r - 2]);
  return t;
}
/// The elements of op(x) in each of y's batches, x's batch axes broadcast.
std::vector<double> broadcast(tensor_ref x, bool transpose, tensor_ref const& y) {
  if (transpose) x = transposed(x);
  tensor_ref all = y;
  all.data = x.data;
  int const more = y.rank() - x.rank();
  for (int i = 0; i < y.rank(); ++i) {
    bool const absent = i < more, repeated = !absent && i < y.rank() - 2 && x.dims[i - more] == 1;
    all.strides[i] = absent || repeated ? 0 : x.strides[i - more];
    if (i >= y.rank() - 2) all.dims[i] = x.dims[i - more];
  }
  return neap_test::values(all);
}

struct product_case {
  std::int64_t m, n, k, shift = 0;
};

/// op(a) op(b) of dense matrices, by a tiling.
void check(interpreted_module& module, product_case c, dtype t, bool ta, bool tb, cuda_gemm_tiling tiling,
           std::uint64_t seed, double alpha = 1, double beta = 0) {
  CAPTURE(name_of(t));
  CAPTURE(c.m);
  CAPTURE(c.n);
  CAPTURE(c.k);
  CAPTURE(c.shift);
  CAPTURE(ta);
  CAPTURE(tb);
  CAPTURE(tiling.k_parts);
  CAPTURE(beta);
  case_memory memory({0, 0, c.shift}, random_stream{static_cast<std::uint64_t>(c.m + 7 * c.n + 31 * c.k)});
  auto const a = memory.random(t, ta ? shape{c.k, c.m} : shape{c.m, c.k}),
             b = memory.random(t, tb ? shape{c.n, c.k} : shape{c.k, c.n}),
             y = beta == 0 ? memory.unwritten(t, {c.m, c.n}) : memory.random(t, {c.m, c.n});
  exact_product const exact{
      broadcast(a, ta, y), broadcast(b, tb, y), neap_test::values(y), 1, c.m, c.n, c.k, alpha, beta};
  interpreted_device device(module, memory, seed);
  auto const plan = detail::matmul_plan::of(a, b, y, {ta, tb, false});
  bytes_t const scratch = cuda_gemm_scratch(tiling, c.m, c.n, 1, t);
  cuda_gemm(device, plan, tiling, t, a.data, b.data, y.data, alpha, beta, scratch ? device.scratch(scratch) : nullptr);
  CHECK(device.faults == "");
  CHECK(device.badly_written() == "");
  if (seed == 0) CHECK(device.bank_conflicts == 0);  // else lanes of a warp are at other steps of a loop
  CHECK(exact.difference(y, computed_in(t)) == "");
}

cuda_gemm_tiling whole(std::int64_t k) { return {1, std::max<std::int64_t>(k, 1)}; }

}  // namespace

TEST_CASE("products of our own kernels, interpreted: small and odd extents, all transposes and types") {
  auto* const module = kernels();
  if (!module) return;
  constexpr product_case cases[] = {{1, 1, 1},   {7, 1, 16},    {16, 17, 33, 1}, {33, 65, 7},   {65, 33, 17},
                                    {1, 65, 65}, {17, 7, 1, 3}, {64, 64, 64},    {16, 24, 40},  {9, 5, 0},
                                    {0, 5, 3},   {5, 0, 3},     {72, 8, 104},    {66, 130, 34}, {33, 64, 48, 4}};
  std::uint64_t seed = 0;
  for (auto const& c : cases)
    for (dtype t : {dtype::f32, dtype::bf16})
      for (int transposes = 0; transposes < 4; ++transposes)
        check(*module, c, t, transposes & 1, transposes & 2, whole(c.k), seed++ % 3);
  for (product_case c : {product_case{129, 130, 70}, {128, 136, 64}, {17, 200, 33, 1}})
    for (dtype t : {dtype::f32, dtype::bf16})
      for (int transposes = 0; transposes < 4; ++transposes)
        check(*module, c, t, transposes & 1, transposes & 2, whole(c.k), seed++ % 3);
  for (int transposes = 0; transposes < 4; ++transposes) {
    check(*module, {19, 34, 50}, dtype::f64, transposes & 1, transposes & 2, whole(50), 1);
    check(*module, {40, 34, 50}, dtype::f16, transposes & 1, transposes & 2, whole(50), 1);
  }
}

TEST_CASE("products of our own kernels, interpreted: k in parts, scaled, added to what was there") {
  auto* const module = kernels();
  if (!module) return;
  for (dtype t : {dtype::f32, dtype::bf16, dtype::f16, dtype::f64}) {
    check(*module, {3, 530, 70}, t, false, false, {2, 64}, 0);  // rows of sums that several thread blocks share
    for (int transposes : {0, 3}) {
      check(*module, {33, 18, 200}, t, transposes & 1, transposes & 2, {4, 64}, 1);  // the last part is shorter
      check(*module, {33, 18, 130}, t, transposes & 1, transposes & 2, {3, 64}, 0, 0.5, 2);
      check(*module, {33, 18, 20}, t, transposes & 1, transposes & 2, whole(20), 2, -2, 1);
      check(*module, {33, 18, 0}, t, transposes & 1, transposes & 2, whole(0), 0, 1, 1);
    }
  }
  CHECK(module->not_launched() == "");  // a new kernel in gemm.cu needs a case in this file
}

namespace {
/// The operator's run on the device against the exact product; `a` and `b` make the operands.
template <class MakeA, class MakeB>
void check_operator(interpreted_module& module, dtype t, op::matmul const& op, shape const& y_dims, MakeA const& make_a,
                    MakeB const& make_b, bool accumulate = false) {
  CAPTURE(name_of(t));
  CAPTURE(to_string(y_dims));
  case_memory memory({0, 0}, random_stream{11});
  tensor_ref const a = make_a(memory, t), b = make_b(memory, t),
                   y = accumulate ? memory.random(t, y_dims) : memory.unwritten(t, y_dims);
  int const r = y.rank();
  std::int64_t batches = 1;
  for (int i = 0; i < r - 2; ++i) batches *= y.dims[i];
  exact_product const exact{broadcast(a, op.transpose_a, y),
                            broadcast(b, op.transpose_b, y),
                            neap_test::values(y),
                            batches,
                            y.extent(-2),
                            y.extent(-1),
                            a.extent(op.transpose_a ? -2 : -1),
                            1,
                            accumulate ? 1.0 : 0.0};
  interpreted_device device(module, memory, 0);
  if (accumulate) {
    matmul(device, a, b, y, {op.transpose_a, op.transpose_b, true});
  } else {
    std::array const in{a, b};
    run(device, op, {in, std::span(&y, 1), nullptr});
    auto const layout = [](tensor_ref const& x) { return tensor_layout{{x.element, x.dims}, x.strides, 0}; };
    std::array const in_layouts{layout(a), layout(b)};
    std::array const out_layouts{layout(y)};
    CHECK(device.scratch_bytes == device_scratch(op, work_context{in_layouts, out_layouts}));
  }
  CHECK(device.faults == "");
  CHECK(device.badly_written() == "");
  CHECK(device.bank_conflicts == 0);
  CHECK(exact.difference(y, computed_in(t), 32) == "");
}
auto dense(shape s) {
  return [=](case_memory& m, dtype t) { return m.random(t, s); };
}
/// A part of a larger tensor: from `first` elements on, with these strides.
auto view(std::int64_t storage, std::int64_t first, shape dims, extents strides) {
  return [=](case_memory& m, dtype t) {
    auto x = m.random(t, {storage});
    x.data = x.as<std::byte>() + first * size_of(t);
    x.dims = dims, x.strides = strides;
    return x;
  };
}
}  // namespace

TEST_CASE("matmul on a device, interpreted: batches, broadcast axes, views, long k") {
  auto* const module = kernels();
  if (!module) return;
  for (dtype t : {dtype::f32, dtype::bf16}) {
    check_operator(*module, t, {}, {3, 5, 9}, dense({3, 5, 7}), dense({3, 7, 9}));
    check_operator(*module, t, {false, true}, {2, 3, 5, 9}, dense({2, 3, 5, 8}), dense({3, 9, 8}));
    check_operator(*module, t, {true, false}, {2, 3, 5, 9}, dense({2, 1, 7, 5}), dense({1, 3, 7, 9}));
    check_operator(*module, t, {true, true}, {0, 5, 9}, dense({0, 7, 5}), dense({9, 7}));
    check_operator(*module, t, {}, {4, 6, 10}, dense({4, 6, 16}), dense({16, 10}));  // batches become rows
    check_operator(*module, t, {}, {4, 6, 10}, dense({4, 6, 16}), dense({16, 10}), true);
    // Rows further apart than they are long; one operand stored transposed; a base and rows off 16 bytes.
    check_operator(*module, t, {}, {12, 16}, view(400, 8, {12, 24}, {32, 1}), view(24 * 16, 0, {24, 16}, {1, 24}));
    check_operator(*module, t, {}, {12, 16}, view(400, 3, {12, 24}, {32, 1}), view(24 * 17, 0, {24, 16}, {17, 1}));
    // Heads of attention: [batch, time, heads, size] seen as [batch, heads, time, size].
    check_operator(*module, t, {false, true}, {2, 3, 6, 6}, view(2 * 6 * 24, 0, {2, 3, 6, 8}, {144, 8, 24, 1}),
                   view(2 * 6 * 24, 0, {2, 3, 6, 8}, {144, 8, 24, 1}));
    check_operator(*module, t, {true, false}, {3, 10}, dense({1300, 3}), dense({1300, 10}));  // two parts of k
  }
}

TEST_CASE("matmul on a device refuses what it cannot do, in one line") {
  auto* const module = kernels();
  if (!module) return;
  case_memory memory({0, 0}, random_stream{1});
  interpreted_device device(*module, memory, 0);
  auto const says = [&](tensor_ref const& a, tensor_ref const& b, tensor_ref const& y, std::string const& text) {
    try {
      matmul(device, a, b, y);
      FAIL_CHECK("no error: " << text);
    } catch (error const& e) { CHECK(std::string(e.what()).find(text) != std::string::npos); }
  };
  auto const a = memory.random(dtype::f32, {2, 3}), b = memory.random(dtype::bf16, {3, 4}),
             y = memory.random(dtype::f32, {2, 4}), whole_numbers = memory.numbers({3, 3}, 5);
  says(a, b, y, "matmul: element types differ, f32 x bf16 -> f32");
  says(a, memory.random(dtype::f32, {4, 4}), y, "matmul: inner extents differ");
  says(whole_numbers, whole_numbers, whole_numbers, "no kernel computes in i64");
}

TEST_CASE(
    "the tiling of a product on a device depends on extents, covers k, and has parts where y is small and k long") {
  for (std::int64_t m : {1, 64, 65, 768, 8192, 50257})
    for (std::int64_t n : {1, 64, 65, 768, 8192, 50257})
      for (std::int64_t k : {0, 1, 64, 768, 1000, 8192, 1 << 20})
        for (std::int64_t batches : {1, 12, 96}) {
          auto const g = cuda_gemm_tiling::of(m, n, k, batches);
          CAPTURE(m);
          CAPTURE(n);
          CAPTURE(k);
          CAPTURE(batches);
          CHECK(g.k_parts >= 1);
          CHECK(g.k_parts * g.k_length >= k);
          CHECK((g.k_parts - 1) * g.k_length < std::max<std::int64_t>(k, 1));
          CHECK((g.k_parts == 1 || g.k_length % 64 == 0));
          std::int64_t const tiles = (m + g.side - 1) / g.side * ((n + g.side - 1) / g.side) * batches;
          CHECK((g.k_parts == 1 || tiles * g.k_parts <= 160));
        }
  auto const of = [](std::int64_t m, std::int64_t n, std::int64_t k) { return cuda_gemm_tiling::of(m, n, k, 1); };
  CHECK(of(8192, 768, 768) == cuda_gemm_tiling{1, 768});  // a layer of GPT-2 small
  CHECK(of(64, 768, 8192) == cuda_gemm_tiling{13, 640});  // the gradient of a narrow one
  CHECK(of(8, 768, 768) == cuda_gemm_tiling{1, 768});
}
