// Kernels as nvcc compiles them, run by the interpreter: results equal the host's, and right kernels have no fault,
// whatever the order of warps and lanes.
#include "../support/ptx/device.hpp"

#include "../support/ptx/compiled.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace {

namespace ptx = neap::testing::ptx;

std::vector<float> random_floats(std::size_t n, unsigned seed, float low = -2, float high = 2) {
  std::mt19937 r(seed);
  std::uniform_real_distribution<float> d(low, high);
  std::vector<float> out(n);
  for (auto& x : out) x = d(r);
  return out;
}
std::vector<int> random_ints(std::size_t n, unsigned seed, int low, int high) {
  std::mt19937 r(seed);
  std::uniform_int_distribution<int> d(low, high);
  std::vector<int> out(n);
  for (auto& x : out) x = d(r);
  return out;
}

/// For each architecture and some seeds; once, with a line, where there is no nvcc.
template <class F>
void each_way(F f) {
  for (int const architecture : {80, 90}) {
    auto const m = ptx::compiled("kernels", architecture);
    if (!m) {
      MESSAGE("this test is skipped: no nvcc");
      return;
    }
    for (std::uint64_t const seed : {0, 1, 2}) {
      CAPTURE(architecture);
      CAPTURE(seed);
      ptx::device d;
      d.options.seed = seed;
      f(*m, d);
    }
  }
}
void clean(ptx::report const& r) { CHECK_MESSAGE(r.clean(), r.text()); }

double relative(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  return std::fabs(a - b) / std::max(std::fabs(b), 1e-30);
}

TEST_CASE("ptx: saxpy of four elements a thread, odd lengths") {
  each_way([](auto const& m, ptx::device& d) {
    for (int const n : {0, 1, 3, 4, 127, 1000}) {
      auto const a = random_floats(static_cast<std::size_t>(n), 1), b = random_floats(static_cast<std::size_t>(n), 2);
      auto const x = d.buffer(a), y = d.buffer(b);
      clean(d.launch(m, "saxpy", {2}, {128}, 0, 1.5f, x, y, n));
      auto expected = b;
      for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = std::fma(1.5f, a[i], expected[i]);
      CHECK(d.read<float>(y) == expected);
    }
  });
}

TEST_CASE("ptx: cub::BlockReduce, all algorithms, bits repeat") {
  each_way([](auto const& m, ptx::device& d) {
    auto const a = random_floats(1000, 3);
    auto const x = d.buffer(a);
    for (auto const* name : {"sum_warps", "sum_raking", "sum_commutative"}) {
      CAPTURE(name);
      auto const sums = d.template buffer<float>(3);
      clean(d.launch(m, name, {3}, {128}, 0, x, sums, 1000));
      auto const got = d.template read<float>(sums);
      for (std::size_t b = 0; b < 3; ++b) {
        double expected = 0;
        for (std::size_t i = 0; i < 1000; ++i)
          if (i / 128 % 3 == b) expected += static_cast<double>(a[i]);
        CHECK(relative(got[b], expected) < 1e-4);
      }
      auto const again = d.template buffer<float>(3);
      d.options.seed = d.options.seed + 17;
      clean(d.launch(m, name, {3}, {128}, 0, x, again, 1000));
      CHECK(d.template read<float>(again) == got);
    }
    std::vector<double> const w(777, 0.1);
    auto const v = d.buffer(w), sum = d.template buffer<double>(1);
    clean(d.launch(m, "sum_of_doubles", {1}, {96}, 0, v, sum, 777));
    CHECK(relative(d.template read<double>(sum)[0], 77.7) < 1e-13);
  });
}

TEST_CASE("ptx: cub::BlockScan and cub::BlockRadixSort") {
  each_way([](auto const& m, ptx::device& d) {
    auto const a = random_ints(256, 4, -1000, 1000);
    auto const x = d.buffer(a);
    std::vector<int> expected(256);
    std::partial_sum(a.begin(), a.end(), expected.begin());
    for (auto const* name : {"scan_warps", "scan_raking"}) {
      auto const sums = d.template buffer<int>(256), whole = d.template buffer<int>(1);
      clean(d.launch(m, name, {1}, {64}, 0, x, sums, whole));
      CHECK(d.template read<int>(sums) == expected);
      CHECK(d.template read<int>(whole)[0] == expected.back());
    }
    auto keys = random_floats(256, 5);
    keys[7] = keys[9];
    std::vector<int> order(256);
    std::iota(order.begin(), order.end(), 0);
    auto const k = d.buffer(keys), v = d.buffer(order);
    clean(d.launch(m, "radix_sort", {1}, {64}, 0, k, v));
    std::ranges::stable_sort(order, {}, [&](int i) { return keys[static_cast<std::size_t>(i)]; });
    CHECK(d.template read<int>(v) == order);
    std::ranges::sort(keys);
    CHECK(d.template read<float>(k) == keys);
  });
}

TEST_CASE("ptx: transpose through shared memory; its bank conflicts are counted") {
  each_way([](auto const& m, ptx::device& d) {
    auto const a = random_floats(45 * 70, 6);
    auto const x = d.buffer(a);
    for (auto const* name : {"transpose", "transpose_with_conflicts"}) {
      auto const y = d.template buffer<float>(45 * 70);
      auto const r = d.launch(m, name, {3, 2}, {32, 8}, 0, x, y, 45, 70);
      clean(r);
      auto const got = d.template read<float>(y);
      bool equal = true;
      for (std::size_t i = 0; i < 45; ++i)
        for (std::size_t j = 0; j < 70; ++j) equal &= got[j * 45 + i] == a[i * 70 + j];
      CHECK(equal);
    }
    auto const square = d.buffer(std::vector<float>(64 * 64)), out = d.template buffer<float>(64 * 64);
    if (d.options.seed) return;  // lanes that run apart are counted apart
    auto const good = d.launch(m, "transpose", {2, 2}, {32, 8}, 0, square, out, 64, 64).counts;
    CHECK(good.bank_conflicts == 0);
    CHECK(good.sectors_per_request() == 4);
    CHECK(good.global_requests == 2 * 64 * 2);
    auto const bad = d.launch(m, "transpose_with_conflicts", {2, 2}, {32, 8}, 0, square, out, 64, 64).counts;
    CHECK(bad.bank_conflicts == 31 * 64 * 2);
  });
}

TEST_CASE("ptx: softmax of rows") {
  each_way([](auto const& m, ptx::device& d) {
    auto const a = random_floats(3 * 201, 7, -30, 30);
    auto const x = d.buffer(a), y = d.template buffer<float>(3 * 201);
    clean(d.launch(m, "softmax", {3}, {128}, 0, x, y, 201));
    auto const got = d.template read<float>(y);
    for (std::size_t row = 0; row < 3; ++row) {
      auto const* p = a.data() + row * 201;
      float const max = *std::max_element(p, p + 201);
      double sum = 0, worst = 0;
      for (std::size_t i = 0; i < 201; ++i) sum += std::exp(static_cast<double>(p[i]) - max);
      for (std::size_t i = 0; i < 201; ++i)
        worst = std::max(worst, relative(got[row * 201 + i], std::exp(static_cast<double>(p[i]) - max) / sum));
      CHECK(worst < 1e-5);
    }
  });
}

TEST_CASE("ptx: shuffles, votes, matches, reductions of a warp") {
  each_way([](auto const& m, ptx::device& d) {
    auto const in = random_ints(64, 8, 0, 900);
    std::vector<unsigned> const v(in.begin(), in.end());
    auto const x = d.buffer(v), out = d.template buffer<unsigned>(64 * 16);
    clean(d.launch(m, "warps", {1}, {64}, 0, x, out));
    auto const got = d.template read<unsigned>(out);
    for (unsigned t = 0; t < 64; ++t) {
      unsigned const w = t / 32 * 32, l = t % 32;
      unsigned const* o = got.data() + t * 16;
      auto const at = [&](unsigned lane) { return v[w + lane]; };
      unsigned odd = 0, mod = 0, sum = 0, low = ~0u, parity = 0, max_odd = 0;
      for (unsigned k = 0; k < 32; ++k) {
        odd |= (at(k) & 1) << k;
        mod |= static_cast<unsigned>(at(k) % 5 == at(l) % 5) << k;
        sum += at(k);
        low = std::min(low, at(k));
        parity ^= at(k);
        if (at(k) & 1) max_odd = std::max(max_odd, at(k));
      }
      CHECK(o[0] == at(5));
      CHECK(o[1] == at(l < 3 ? l : l - 3));
      CHECK(o[2] == at(l % 16 < 13 ? l + 3 : l));
      CHECK(o[3] == at(l ^ 9));
      CHECK(o[4] == odd);
      CHECK(o[5] == static_cast<unsigned>(std::count(v.begin() + w, v.begin() + w + 32, 7u) > 0) * 2 + 1);
      CHECK(o[6] == mod);
      CHECK(o[7] == 0xffffffffu + 1);  // all are below 1000: one value
      CHECK(o[8] == sum);
      CHECK(o[9] == low);
      CHECK(o[10] == parity);
      CHECK(o[11] == static_cast<unsigned>(std::popcount(at(l)) * 100 + std::countl_zero(at(l))));
      unsigned reversed = 0;
      for (unsigned k = 0; k < 32; ++k) reversed |= (at(l) >> k & 1) << (31 - k);
      CHECK(o[12] == reversed);
      std::uint64_t const both = static_cast<std::uint64_t>(~at(l)) << 32 | at(l);
      unsigned permuted = 0;
      for (unsigned k = 0; k < 4; ++k)
        permuted |= static_cast<unsigned>(both >> (8 * (0x3715 >> (4 * k) & 15)) & 255) << (8 * k);
      CHECK(o[13] == static_cast<unsigned>(at(l) ? std::countr_zero(at(l)) + 1 : 0) + permuted);
      CHECK(o[14] == ((at(l) + 1) << 9 | at(l) >> 23));
      if (d.options.seed == 0) CHECK(o[15] == (at(l) & 1 ? max_odd : 32 - static_cast<unsigned>(std::popcount(odd))));
    }
  });
}

TEST_CASE("ptx: atomics in shared and global memory, between blocks too") {
  each_way([](auto const& m, ptx::device& d) {
    std::vector<std::uint8_t> bytes(1000);
    std::mt19937 r(9);
    for (auto& b : bytes) b = static_cast<std::uint8_t>(r() % 7 * 9);
    std::vector<unsigned> expected(256);
    for (auto b : bytes) ++expected[b];
    auto const x = d.buffer(bytes), counts = d.buffer(std::vector<unsigned>(256));
    clean(d.launch(m, "histogram", {3}, {64}, 0, x, counts, 1000));
    CHECK(d.template read<unsigned>(counts) == expected);

    auto const v = random_ints(128, 10, -50, 50);
    std::vector<int> o(16 + 128);
    o[1] = -1000, o[2] = 1000, o[5] = -1;
    auto const in = d.buffer(v), out = d.buffer(o), f = d.buffer(std::vector<float>(1)),
               u = d.buffer(std::vector<std::uint64_t>(1));
    clean(d.launch(m, "atomics", {2}, {64}, 0, in, out, f, u));
    auto const got = d.template read<int>(out);
    int const sum = std::accumulate(v.begin(), v.end(), 0);
    CHECK(got[0] == sum);
    CHECK(got[1] == *std::ranges::max_element(v));
    CHECK(got[2] == *std::ranges::min_element(v));
    CHECK(got[3] == std::accumulate(v.begin(), v.end(), 0, std::bit_or{}));
    CHECK(got[4] == std::accumulate(v.begin(), v.end(), 0, std::bit_xor{}));
    CHECK(got[5] == std::accumulate(v.begin(), v.end(), -1, std::bit_and{}));
    CHECK(got[6] == sum);
    CHECK(got[7] == 128);
    CHECK(std::count(got.begin() + 16, got.end(), 1) == 128);
    CHECK(d.template read<float>(f)[0] == static_cast<float>(sum));
    CHECK(static_cast<std::int64_t>(d.template read<std::uint64_t>(u)[0]) == sum);

    auto const a = random_floats(6 * 32, 11);
    auto const y = d.buffer(a), parts = d.template buffer<float>(6), arrived = d.buffer(std::vector<unsigned>(1)),
               total = d.template buffer<float>(1);
    clean(d.launch(m, "sum_last_block", {6}, {32}, 0, y, parts, arrived, total));
    CHECK(relative(d.template read<float>(total)[0], std::accumulate(a.begin(), a.end(), 0.0)) < 1e-4);
  });
}

std::uint16_t to_bf16(float x) { return static_cast<std::uint16_t>(ptx::encode(static_cast<double>(x), 7, 8)); }
double from_bf16(std::uint16_t x) { return ptx::to_double(ptx::bfloat{x}); }

TEST_CASE("ptx: matmul on tensor cores with cp.async, ldmatrix and mma.sync") {
  each_way([](auto const& m, ptx::device& d) {
    std::size_t const rows = 64, columns = 32, depth = 96;
    std::vector<std::uint16_t> a, b;
    for (float const x : random_floats(rows * depth, 12)) a.push_back(to_bf16(x));
    for (float const x : random_floats(depth * columns, 13)) b.push_back(to_bf16(x));
    auto const x = d.buffer(a), y = d.buffer(b), c = d.template buffer<float>(rows * columns);
    auto const r = d.launch(m, "matmul_bf16", {1, 2}, {64}, 0, x, y, c, 64, 32, 96);
    clean(r);
    CHECK(d.unwritten(c) == 0);
    auto const got = d.template read<float>(c);
    double worst = 0;
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) {
        double sum = 0;
        for (std::size_t k = 0; k < depth; ++k) sum += from_bf16(a[i * depth + k]) * from_bf16(b[k * columns + j]);
        worst = std::max(worst, std::fabs(got[i * columns + j] - sum));
      }
    CHECK(worst < 1e-4);

    auto const p = random_floats(16 * 8, 14), q = random_floats(8 * 8, 15);
    auto const pa = d.buffer(p), qa = d.buffer(q), o = d.template buffer<float>(16 * 8);
    clean(d.launch(m, "matmul_tf32", {1}, {32}, 0, pa, qa, o));
    auto const t = d.template read<float>(o);
    auto const tf32 = [](float v) { return static_cast<double>(ptx::to_tf32(v, ptx::rounding::nearest_away)); };
    for (std::size_t i = 0; i < 16; ++i)
      for (std::size_t j = 0; j < 8; ++j) {
        double sum = 0;
        for (std::size_t k = 0; k < 8; ++k) sum += tf32(p[i * 8 + k]) * tf32(q[k * 8 + j]);
        CHECK(std::fabs(t[i * 8 + j] - sum) < 1e-5);
      }
  });
}

template <class T>
void check_halves(ptx::module const& m, ptx::device& d, char const* name, bool least) {
  std::vector<std::uint16_t> a, b;
  for (float const x : random_floats(64, 16)) a.push_back(ptx::from_double<T>(static_cast<double>(x)).bits);
  for (float const x : random_floats(64, 17)) b.push_back(ptx::from_double<T>(static_cast<double>(x)).bits);
  auto const x = d.buffer(a), y = d.buffer(b), out = d.buffer<std::uint16_t>(64 * 8);
  clean(d.launch(m, name, {1}, {64}, 0, x, y, out));
  auto const got = d.read<std::uint16_t>(out);
  auto const round = [](double v) { return ptx::to_double(ptx::from_double<T>(v)); };
  for (std::size_t i = 0; i < 64; ++i) {
    double const u = ptx::to_double(T{a[i]}), v = ptx::to_double(T{b[i]});
    auto const o = [&](std::size_t k) { return ptx::to_double(T{got[i * 8 + k]}); };
    CHECK(o(0) == round(u + v));
    CHECK(o(1) == round(u * v));
    CHECK(o(2) == round(u * v + u));
    CHECK(o(3) == (least ? std::min(u, v) : std::max(u, v)));
    CHECK(o(4) == round(static_cast<double>(static_cast<float>(u) / 3)));
    CHECK(o(5) == (least ? std::fabs(v) : u < v ? u : -v));
    CHECK(o(6) == round(u * u + round(u + u)));
    CHECK(o(7) == round(v * v + round(v + v)));
  }
}

TEST_CASE("ptx: arithmetic of f16 and bf16") {
  each_way([](auto const& m, ptx::device& d) {
    check_halves<ptx::half>(m, d, "halves", false);
    check_halves<ptx::bfloat>(m, d, "bfloats", true);
  });
}

TEST_CASE("ptx: functions of floats, those of the library included") {
  each_way([](auto const& m, ptx::device& d) {
    auto a = random_floats(200, 18, -8, 8);
    a[0] = 0, a[1] = -0.0f, a[2] = 1e-30f, a[3] = 30, a[4] = std::numeric_limits<float>::infinity();
    auto const x = d.buffer(a), out = d.template buffer<float>(200 * 16);
    clean(d.launch(m, "functions", {2}, {128}, 0, x, out, 200));
    auto const got = d.template read<float>(out);
    for (std::size_t i = 0; i < 200; ++i) {
      float const v = a[i];
      double const e = static_cast<double>(v);
      float const* o = got.data() + i * 16;
      CAPTURE(v);
      CHECK(o[0] == std::sqrt(std::fabs(v)));
      CHECK(o[1] == 1 / v);
      CHECK(o[2] == std::fma(v, v, 1.0f));
      CHECK(o[3] == std::nearbyint(v));
      CHECK(o[4] == std::floor(v));
      if (i != 4) CHECK(o[5] == std::trunc(v));
      CHECK(relative(o[6], std::exp(e)) < 4e-7);
      CHECK(relative(o[7], std::log(static_cast<double>(std::fabs(v) + 1))) < 4e-7);
      CHECK(relative(o[8], std::tanh(e)) < 4e-7);
      CHECK(relative(o[9], std::erf(e)) < 4e-7);
      if (i != 4) CHECK(std::fabs(o[10] - std::sin(e)) < 3e-7);
      CHECK(relative(o[11], std::pow(std::fabs(e), 1.5)) < 1e-6);
      CHECK(relative(o[12], std::exp(e)) < 4e-6);
      CHECK(relative(o[13], 1 / (1 + std::exp(-e))) < 4e-6);
      CHECK(relative(o[14], 1 / std::sqrt(static_cast<double>(std::fabs(v) + 1))) < 4e-7);
      if (i != 4) CHECK(std::fabs(o[15] - std::cos(static_cast<double>(v * 1e6f))) < 3e-7);
    }
  });
}

TEST_CASE("ptx: integers of 16 to 64 bits") {
  each_way([](auto const& m, ptx::device& d) {
    auto a = random_ints(64, 19, std::numeric_limits<int>::min(), std::numeric_limits<int>::max());
    auto b = random_ints(64, 20, -300, 300);
    for (auto& y : b)
      if (y == 0) y = 1;
    auto const x = d.buffer(a), y = d.buffer(b), out = d.template buffer<std::int64_t>(64 * 12);
    clean(d.launch(m, "integers", {1}, {64}, 0, x, y, out));
    auto const got = d.template read<std::int64_t>(out);
    for (std::size_t i = 0; i < 64; ++i) {
      std::int64_t const* o = got.data() + i * 12;
      std::int64_t const p = a[i], q = b[i];
      auto const ua = static_cast<std::uint32_t>(a[i]), ub = static_cast<std::uint32_t>(b[i]);
      auto const narrow = [](std::int64_t v) { return static_cast<std::int64_t>(static_cast<std::int32_t>(v)); };
      CHECK(o[0] == p / q);
      CHECK(o[1] == p % q);
      CHECK(o[2] == ua / ub);
      CHECK(o[3] == static_cast<std::int64_t>(static_cast<std::uint64_t>(p * q) * 1000003));
      CHECK(o[4] == (p << 20) / q);
      CHECK(o[5] == (p * q) >> 32);
      CHECK(o[6] == static_cast<std::int64_t>(std::uint64_t{ua} * ub >> 32));
      auto const big = static_cast<std::uint64_t>(p) * 0x123456789abcdefull;
      CHECK(o[7] == static_cast<std::int64_t>(static_cast<std::uint64_t>(
                        static_cast<ptx::uint128>(big) * static_cast<std::uint64_t>(q) >> 64)));
      CHECK(o[8] == p >> (q & 31));
      CHECK(o[9] == static_cast<std::int64_t>(static_cast<std::uint64_t>(p) >> (q & 63)));
      CHECK(o[10] == narrow(std::min(p, q) * 3 + std::max(p, q) + narrow(std::abs(p))));
      CHECK(o[11] == static_cast<std::int16_t>(a[i]) * static_cast<std::int8_t>(b[i]));
    }
  });
}

TEST_CASE("ptx: calls, local arrays, a switch, structures by value, module variables") {
  each_way([](auto const& m, ptx::device& d) {
    auto const a = random_floats(40, 21);
    auto const x = d.buffer(a), out = d.template buffer<float>(40);
    clean(d.launch(m, "calls", {1}, {40}, 0, x, out, 6));
    auto const got = d.template read<float>(out);
    for (std::size_t i = 0; i < 40; ++i) {
      float r = 0;
      for (int k = 6; k >= 0; --k) r = std::fma(r, a[i], static_cast<float>(k + 1));
      float const by_case[] = {r + 1, r * 2, r - a[i], -r, r * r, r};
      CHECK(got[i] == by_case[i % 6]);
    }

    struct settings {
      float scale;
      int shift;
      std::uint64_t out;
      char bytes[8];
    };
    auto const v = random_ints(20, 22, -100, 100);
    auto const in = d.buffer(v), o = d.template buffer<int>(20);
    settings const s{2, 7, o.address(), {1, 2, 3, 4, 5, 0, 0, 0}};
    clean(d.launch(m, "by_value", {1}, {20}, 0, s, in));
    auto const w = d.template read<int>(o);
    for (std::size_t i = 0; i < 20; ++i)
      CHECK(w[i] == v[i] * 2 + 7 + s.bytes[i % 5] + 10 * (static_cast<int>(i % 4) + 1) + 3);
  });
}

TEST_CASE(
    "ptx: right kernels have no fault: barriers of a warp, one address for all, own words, warps that are not full") {
  each_way([](auto const& m, ptx::device& d) {
    auto const a = random_ints(96, 23, 0, 99);
    auto const x = d.buffer(a), out = d.template buffer<int>(96);
    clean(d.launch(m, "quiet", {1}, {96}, 96 * sizeof(int), x, out));
    auto const got = d.template read<int>(out);
    for (std::size_t t = 0; t < 96; ++t) {
      auto const neighbour = [&](std::size_t u) { return a[u / 32 * 32 + (u + 1) % 32]; };
      CHECK(got[t] == neighbour(t) + neighbour(0) + 1 + neighbour(t) + 1 + a[0] + 5 + 1);
    }
  });
}

TEST_CASE("ptx: arguments that do not fit are refused") {
  auto const m = ptx::compiled("kernels", 80);
  if (!m) {
    MESSAGE("this test is skipped: no nvcc");
    return;
  }
  ptx::device d;
  auto const x = d.buffer<float>(4);
  CHECK_THROWS_WITH_AS(d.launch(*m, "saxpy", {1}, {32}, 0, 1.0f, x, x), "saxpy has 4 parameters, not 3", ptx::error);
  CHECK_THROWS_WITH_AS(d.launch(*m, "saxpy", {1}, {32}, 0, 1.0, x, x, 4), "saxpy: parameter 0 has 4 bytes, not 8",
                       ptx::error);
  CHECK_THROWS_WITH_AS(d.launch(*m, "saxpys", {1}, {32}, 0), "no kernel is named 'saxpys'", ptx::error);
  CHECK_THROWS_AS(d.launch(*m, "scan_", {1}, {32}, 0), ptx::error);
}

}  // namespace
