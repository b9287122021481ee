#include "../support/shuffled_block.hpp"

#include "../backend/testing.hpp"

#include <neap/backend/kernels/adafactor.hpp>
#include <neap/backend/kernels/arg_max.hpp>
#include <neap/backend/kernels/batch_norm.hpp>
#include <neap/backend/kernels/cross_entropy.hpp>
#include <neap/backend/kernels/embedding.hpp>
#include <neap/backend/kernels/gather.hpp>
#include <neap/backend/kernels/group_norm.hpp>
#include <neap/backend/kernels/layer_norm.hpp>
#include <neap/backend/kernels/optimizer.hpp>
#include <neap/backend/kernels/rms_norm.hpp>
#include <neap/backend/kernels/softmax.hpp>
#include <neap/backend/kernels/sort_positions.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace {

using namespace neap;
using namespace neap_test;
using neap::testing::shuffled_backend;
using outputs = std::vector<owned>;

// The extents of a case: rows of `columns`, or for norms of channels [2, rows, columns].
struct extents_of_case {
  std::int64_t rows, columns;
};

// A case makes its operands from `r`, runs a kernel on a backend, and gives what was written.
struct softmax_case {
  template <class B>
  outputs operator()(B& b, dtype t, extents_of_case e, random_stream r) const {
    shape const s{e.rows, e.columns};
    auto const x = random_dense(t, s, r), dy = random_dense(t, s, r);
    owned y{t, s}, z{t, s}, dx{t, s}, dz{t, s}, in_place{x};
    softmax(b, y, x);
    log_softmax(b, z, x);
    softmax(b, in_place, in_place);
    softmax_backward(b, dx, dy, y);
    log_softmax_backward(b, dz, dy, z);
    return {y, z, in_place, dx, dz};
  }
};

struct cross_entropy_case {
  template <class B>
  outputs operator()(B& b, dtype t, extents_of_case e, random_stream r) const {
    shape const s{e.rows, e.columns};
    auto const x = random_dense(t, s, r);
    owned target{dtype::i64, {e.rows}};
    for (std::int64_t i = 0; i < e.rows; ++i)
      target.ref.as<std::int64_t>()[i] =
          r.below(4) == 0 ? -100 : std::int64_t{r.below(static_cast<std::uint32_t>(e.columns))};
    target.ref.as<std::int64_t>()[0] = 0;  // the mean is over one row at least
    std::vector<double> work(static_cast<std::size_t>(e.rows) + 16);
    outputs all;
    for (double smoothing : {0.0, 0.1})
      for (auto how : {loss_reduction::mean, loss_reduction::none}) {
        bool const each = how == loss_reduction::none;
        owned loss{each ? computed_in(t) : t, each ? shape{e.rows} : shape{}}, saved{computed_in(t), {e.rows}},
            dx{t, s};
        cross_entropy_forward(b, loss, saved, x, target, how, -100, work.data(), smoothing);
        auto const g = random_dense(t, each ? shape{e.rows} : shape{}, r);
        cross_entropy_backward(b, dx, g, x, saved, target, how, -100, work.data(), smoothing);
        for (auto* o : {&loss, &saved, &dx}) all.push_back(*o);
      }
    return all;
  }
};

struct mse_case {
  template <class B>
  outputs operator()(B& b, dtype t, extents_of_case e, random_stream r) const {
    shape const s{e.rows, e.columns};
    auto const x = random_dense(t, s, r), y = random_dense(t, s, r), g = random_dense(t, {}, r);
    std::vector<double> work(64);
    owned loss{t, {}}, dx{t, s};
    mse_forward(b, loss, x, y, loss_reduction::mean, work.data());
    mse_backward(b, dx, g, x, y, loss_reduction::mean);
    return {loss, dx};
  }
};

struct layer_norm_case {
  template <class B>
  outputs operator()(B& b, dtype t, extents_of_case e, random_stream r) const {
    shape const s{e.rows, e.columns}, w{e.columns};
    dtype const c = computed_in(t);
    auto const x = random_dense(t, s, r), dy = random_dense(t, s, r), weight = random_dense(t, w, r),
               bias = random_dense(t, w, r);
    owned y{t, s}, mean{c, {e.rows}}, rstd{c, {e.rows}}, dx{t, s}, dw{t, w}, db{t, w}, z{t, s}, r2{c, {e.rows}},
        dz{t, s}, dv{t, w};
    std::vector<std::byte> work(static_cast<std::size_t>(layer_norm_backward_workspace({t, s})) + 64);
    layer_norm(b, y, mean, rstd, x, weight, bias, 1e-5);
    layer_norm_backward(b, dx, dw, db, dy, x, mean, rstd, weight, work.data());
    rms_norm(b, z, r2, x, weight, 1e-5);
    rms_norm_backward(b, dz, dv, dy, x, r2, weight, work.data());
    return {y, mean, rstd, dx, dw, db, z, r2, dz, dv};
  }
};

struct group_norm_case {
  template <class B>
  outputs operator()(B& b, dtype t, extents_of_case e, random_stream r) const {
    shape const s{2, 2 * e.rows, e.columns}, w{2 * e.rows}, m{2, e.rows};
    dtype const c = computed_in(t);
    auto const x = random_dense(t, s, r), dy = random_dense(t, s, r), weight = random_dense(t, w, r),
               bias = random_dense(t, w, r);
    owned y{t, s}, mean{c, m}, rstd{c, m}, dx{t, s}, dw{t, w}, db{t, w};
    std::vector<std::byte> work(static_cast<std::size_t>(group_norm_backward_workspace({t, s})) + 64);
    group_norm(b, y, mean, rstd, x, weight, bias, e.rows, 1e-5);
    group_norm_backward(b, dx, dw, db, dy, x, mean, rstd, weight, e.rows, work.data());
    return {y, mean, rstd, dx, dw, db};
  }
};

struct batch_norm_case {
  template <class B>
  outputs operator()(B& b, dtype t, extents_of_case e, random_stream r) const {
    shape const s{5, e.rows, e.columns}, w{e.rows};  // with one column: planes of single elements
    dtype const c = computed_in(t);
    auto const x = random_dense(t, s, r), dy = random_dense(t, s, r), weight = random_dense(t, w, r),
               bias = random_dense(t, w, r), variance = random_dense(c, w, r, 0.5, 1);
    owned y{t, s}, mean{c, w}, rstd{c, w}, dx{t, s}, dw{t, w}, db{t, w}, z{t, s}, dz{t, s}, v{t, s},
        running_mean = random_dense(c, w, r), running_variance = random_dense(c, w, r, 0.5, 1);
    std::vector<std::byte> work(static_cast<std::size_t>(batch_norm_workspace({t, s})) + 64);
    batch_norm(b, y, mean, rstd, x, weight, bias, 1e-5, running_mean, running_variance);
    batch_norm_backward(b, dx, dw, db, dy, x, mean, rstd, weight, work.data());
    batch_norm_relu_backward(b, dz, dw, db, v, dy, x, mean, rstd, weight, bias, work.data());
    batch_norm_inference(b, z, x, mean, variance, weight, bias, 1e-5, work.data());
    return {y, mean, rstd, running_mean, running_variance, dx, dw, db, z, dz, v};
  }
};

struct embedding_case {
  template <class B>
  outputs operator()(B& b, dtype t, extents_of_case e, random_stream r) const {
    std::int64_t const n = 40;
    auto const table = random_dense(t, {e.rows, e.columns}, r), dy = random_dense(t, {n, e.columns}, r);
    owned index{dtype::i64, {n}}, y{t, {n, e.columns}}, dtable{t, {e.rows, e.columns}}, again{dtable};
    for (std::int64_t i = 0; i < n; ++i) index.ref.as<std::int64_t>()[i] = r.below(static_cast<std::uint32_t>(e.rows));
    std::vector<std::byte> work(static_cast<std::size_t>(embedding_backward_workspace(e.rows, n)));
    embedding(b, y, table, index);
    embedding_backward(b, dtable, dy, index, work.data());
    auto const sorted = [](B& backend, position_order const& o) { sort_positions(backend, thrust::cpp::par, o); };
    embedding_backward(b, again, dy, index, work.data(), sorted);
    return {y, dtable, again};
  }
};

struct gather_case {
  template <class B>
  outputs operator()(B& b, dtype t, extents_of_case e, random_stream r) const {
    shape const s{e.rows, e.columns};
    auto const x = random_dense(t, s, r);
    owned index{dtype::i64, s}, picked{t, s}, added{t, s}, best{dtype::i64, {e.rows}}, across{dtype::i64, {e.columns}};
    for (std::int64_t i = 0; i < e.rows * e.columns; ++i)
      index.ref.as<std::int64_t>()[i] = r.below(static_cast<std::uint32_t>(e.columns));
    gather(b, picked, x, index, 1);
    scatter_add(b, added, x, index, 1);
    arg_max(b, best, x, 1);
    arg_max(b, across, x, 0);
    return {picked, added, best, across};
  }
};

struct optimizer_case {
  template <class B>
  outputs operator()(B& b, dtype t, extents_of_case e, random_stream r) const {
    shape const s{e.rows, e.columns};
    dtype const c = computed_in(t);
    auto const g = random_dense(t, s, r);
    auto w = random_dense(t, s, r), row = random_dense(c, {e.rows}, r, 0.5, 1),
         column = random_dense(c, {e.columns}, r, 0.5, 1);
    owned total{dtype::f64, {1}}, scale{t, {1}};
    std::vector<std::byte> work(static_cast<std::size_t>(adafactor_workspace({t, s})) + 4096);
    add_sum_of_squares(b, total, g, work.data());
    add_sum_of_squares(b, total, w, work.data());
    clip_scale(b, scale, total, 0.5);
    adafactor_update(b, w, g, column, row, 3, {}, work.data());
    return {total, scale, w, row, column};
  }
};

// All cases, and what they are called.
auto const cases =
    std::tuple{softmax_case{},    cross_entropy_case{}, mse_case{},    layer_norm_case{}, group_norm_case{},
               batch_norm_case{}, embedding_case{},     gather_case{}, optimizer_case{}};

template <class Case>
void check(Case const& run, dtype t, extents_of_case e, int shuffles, int threads = 0) {
  CAPTURE(name_of(t));
  CAPTURE(e.rows);
  CAPTURE(e.columns);
  host_backend host(1);
  outputs const expected = run(host, t, e, random_stream{7});
  std::optional<outputs> first;
  for (int shuffle = 0; shuffle < shuffles; ++shuffle) {
    shuffled_backend b(static_cast<std::uint64_t>(shuffle), threads);
    outputs const got = run(b, t, e, random_stream{7});
    CHECK(b.launches > 0);
    if (shuffle == 0) {
      REQUIRE(got.size() == expected.size());
      for (std::size_t k = 0; k < got.size(); ++k) {
        CAPTURE(k);
        CHECK(near(got[k], values(expected[k]), 8 * tolerance(t)));
      }
      first.emplace(got);
      continue;
    }
    for (std::size_t k = 0; k < got.size(); ++k) {
      CAPTURE(shuffle);
      CAPTURE(k);
      CHECK(same_bits(got[k], (*first)[k]));
    }
  }
}

}  // namespace

TEST_CASE("kernels give the same bits in every order of a device's threads, and what the host gives") {
  std::apply(
      [](auto const&... run) {
        int number = 0;
        auto const all = [&](auto const& one) {
          CAPTURE(number);
          for (dtype t : {dtype::f32, dtype::bf16}) {
            check(one, t, {3, 37}, 100);  // a warp a row
            check(one, t, {1, 1}, 10);
            check(one, t, {70, 1}, 10);
            check(one, t, {2, 600}, 10);  // a thread block a row
            check(one, t, {3, 37}, 10, 256);
          }
          ++number;
        };
        (all(run), ...);
      },
      cases);
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
