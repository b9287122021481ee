#include "../support/shuffled_block.hpp"
#include "../support/kernel_cases.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using namespace neap;
using namespace neap_test;
using namespace neap::testing;
using outputs = std::vector<owned>;

template <class Case>
void check(Case const& run, dtype t, case_extents e, int shuffles, int threads = 0) {
  CAPTURE(name_of(t));
  CAPTURE(e.rows);
  CAPTURE(e.columns);
  host_backend host(1);
  case_memory expected(e, random_stream{7});
  run(host, expected, t, e);
  std::optional<case_memory> first;
  for (int shuffle = 0; shuffle < shuffles; ++shuffle) {
    CAPTURE(shuffle);
    shuffled_backend b(static_cast<std::uint64_t>(shuffle), threads);
    case_memory got(e, random_stream{7});
    run(b, got, t, e);
    CHECK(b.launches > 0);
    if (first) {
      CHECK(first_difference(got, *first, 0) == -1);
      continue;
    }
    CHECK(first_difference(got, expected, Case::same_order ? 0 : 8 * neap_test::tolerance(t)) == -1);
    first.emplace(std::move(got));
  }
}

}  // namespace

TEST_CASE("kernels give the same bits in every order of a device's threads, and what the host gives") {
  for_each_kernel_case([](auto const& run, int number) {
    CAPTURE(number);
    for (dtype t : {dtype::f32, dtype::bf16}) {
      check(run, t, {3, 37}, 100);  // a warp a row
      check(run, t, {1, 1}, 10);
      check(run, t, {70, 1}, 10);
      check(run, t, {2, 600}, 10);  // a thread block a row
      check(run, t, {3, 37}, 10, 256);
    }
  });
}

// ---- planted faults: each is caught as the kernels above would be -------------------------------------------------------

namespace {

// Row sums, and then every element less the sum of its row, with a fault.
enum class fault {
  none,
  no_barrier,
  written_by_all,
  reversed_in_place,
  kept_in_one_thread,
  neighbour,
  mixed_loops,
  early_return
};
template <fault Fault>
struct centred_rows {
  float const* x;
  float *y, *total;
  std::int64_t columns;
  template <class Block>
  void operator()(Block& b) const {
    float const* const from = x + b.id * columns;
    float* const to = y + b.id * columns;
    float* const sum_of_row = total + b.id;
    std::int64_t const n = columns;
    if constexpr (Fault == fault::neighbour) {  // an iteration reads what another writes
      b.each(n, [=](std::int64_t i) { to[i] = from[i]; });
      b.sync();
      b.each(n, [=](std::int64_t i) { to[i] += i + 1 < n ? to[i + 1] : 0; });
      return;
    }
    if constexpr (Fault == fault::mixed_loops) {  // which deal indices out differently
      b.transform(
          n, to, [](float v) { return v + 1; }, from);
      b.each(n, [=](std::int64_t i) { to[i] *= 2; });
      return;
    }
    if constexpr (Fault == fault::reversed_in_place) {
      b.each(n, [=](std::int64_t i) { to[i] = from[i]; });
      b.sync();
      b.each(n, [=](std::int64_t i) { to[i] = to[n - 1 - i]; });
      return;
    }
    float const sum = b.reduce_each(
        n, 0.f, [=](std::int64_t i) { return from[i]; }, sum_op{});
    if constexpr (Fault == fault::written_by_all) *sum_of_row += sum;
    else b.once([=] { *sum_of_row += sum; });
    if constexpr (Fault == fault::kept_in_one_thread) {
      float kept = 0;
      float* const there = &kept;
      b.once([=] { *there = sum; });
      b.sync();
      b.each(n, [=](std::int64_t i) { to[i] = from[i] - *there; });
      return;
    }
    if constexpr (Fault == fault::early_return) {
      bool mine = false;
      bool* const owns = &mine;
      b.once([=] { *owns = true; });
      if (mine) return;
    }
    if constexpr (Fault != fault::no_barrier) b.sync();
    b.each(n, [=](std::int64_t i) { to[i] = from[i] - *sum_of_row; });
  }
};

// Whether bits differ between seeds, or from the host's beyond rounding, or a barrier is not reached by all.
template <fault Fault>
bool caught(int threads) {
  std::int64_t const rows = 3, columns = 41;
  random_stream r{5};
  auto const x = random_dense(dtype::f32, {rows, columns}, r);
  auto const run = [&](auto& b) {
    owned y{dtype::f32, {rows, columns}}, total{dtype::f32, {rows}};
    b.launch(rows, centred_rows<Fault>{x.ref.as<float const>(), y.ref.as<float>(), total.ref.as<float>(), columns},
             columns);
    return outputs{y, total};
  };
  host_backend host(1);
  outputs const expected = run(host);
  try {
    shuffled_backend one(0, threads);
    outputs const first = run(one);
    for (std::size_t k = 0; k < 2; ++k)
      if (!near(first[k], values(expected[k]), 1e-5)) return true;
    for (std::uint64_t seed = 1; seed < 20; ++seed) {
      shuffled_backend b(seed, threads);
      outputs const got = run(b);
      for (std::size_t k = 0; k < 2; ++k)
        if (!same_bits(got[k], first[k])) return true;
    }
  } catch (std::logic_error const& e) { return std::string(e.what()) == "a barrier that not all threads reach"; }
  return false;
}

}  // namespace

TEST_CASE("planted races are caught, and the kernel without one is not") {
  for (int threads : {32, 256}) {
    CAPTURE(threads);
    CHECK(!caught<fault::none>(threads));
    CHECK(caught<fault::no_barrier>(threads));
    CHECK(caught<fault::written_by_all>(threads));
    CHECK(caught<fault::reversed_in_place>(threads));
    CHECK(caught<fault::kept_in_one_thread>(threads));
    CHECK(caught<fault::neighbour>(threads));
    CHECK(caught<fault::mixed_loops>(threads));
    CHECK(caught<fault::early_return>(threads));
  }
}

TEST_CASE("sums are added in the device's order") {
  shuffled_backend b(3, 256);
  std::vector<float> x(600);
  random_stream r{9};
  for (float& v : x) v = r.uniform() * 1000;
  float got = 0;
  auto const from = x.data();
  b.launch(
      1,
      [&](auto& block) {
        float const sum = block.reduce_each(
            600, 0.f, [=](std::int64_t i) { return from[i]; }, sum_op{});
        block.once([&] { got = sum; });
      },
      600);
  float thread[256];
  for (int t = 0; t < 256; ++t) {
    thread[t] = 0;
    for (int i = t; i < 600; i += 256) thread[t] += x[static_cast<std::size_t>(i)];
  }
  auto const tree = [&](auto const& self, int first, int n) -> float {
    return n == 1 ? thread[first] : self(self, first, n / 2) + self(self, first + n / 2, n / 2);
  };
  float expected = tree(tree, 0, 32);
  for (int warp = 1; warp < 8; ++warp) expected += tree(tree, 32 * warp, 32);
  CHECK(got == expected);
}
