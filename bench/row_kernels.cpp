// Speed of the elementwise and row kernels on the host. One CSV row a kernel, shape and number of threads:
// kernel,rows,columns,threads,milliseconds,gigabytes_per_second; the best of many runs, bytes as each tensor is read or
// written once. Each kernel's result is compared with one thread's before it is timed. For the sorts of an embedding's
// gradient, `rows` are the numbers sorted and `columns` the vocabulary.
#include <neap/backend/kernels/batch_norm.hpp>
#include <neap/backend/kernels/copy.hpp>
#include <neap/backend/kernels/cross_entropy.hpp>
#include <neap/backend/kernels/dropout.hpp>
#include <neap/backend/kernels/elementwise.hpp>
#include <neap/backend/kernels/embedding.hpp>
#include <neap/backend/kernels/layer_norm.hpp>
#include <neap/backend/kernels/optimizer.hpp>
#include <neap/backend/kernels/reduce.hpp>
#include <neap/backend/kernels/rms_norm.hpp>
#include <neap/backend/kernels/softmax.hpp>
#include <neap/backend/kernels/sort_positions.hpp>
#include <neap/core/philox.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using namespace neap;

namespace {

struct owned {
  std::vector<float> bytes;
  tensor_ref ref;
  explicit owned(shape dims, dtype t = dtype::f32) : bytes(static_cast<std::size_t>(elements(dims) * size_of(t) / 4)) {
    random_stream r{7};
    if (t == dtype::f32)
      for (auto& x : bytes) x = r.uniform() * 4 - 2;
    ref = {bytes.data(), t, dims, dense_strides(dims)};
  }
  operator tensor_ref const&() const { return ref; }
};

struct gelu {
  template <class C>
  C operator()(C x) const {
    return math::gelu(x);
  }
};
struct add {
  template <class C>
  C operator()(C a, C b) const {
    return a + b;
  }
};

void compare(std::int64_t rows, std::int64_t columns) {
  shape const s{rows, columns}, c{columns}, r{rows}, swapped{columns, rows};
  owned x{s}, y{s}, z{s}, g{s}, w{c}, bias{c}, dw{c}, db{c}, mean{r}, rstd{r}, lse{r}, one{shape{}}, t{swapped};
  owned channel_mean{c}, channel_rstd{c}, m{s}, v{s};
  owned target{r, dtype::i64};
  for (std::int64_t i = 0; i < rows; ++i) target.ref.as<std::int64_t>()[i] = i * 7919 % columns;
  owned index{r, dtype::i64};
  for (std::int64_t i = 0; i < rows; ++i) index.ref.as<std::int64_t>()[i] = i * 7919 % rows;
  std::vector<double> work(static_cast<std::size_t>(rows + 64 * columns + 64 * 256 + 1000) * 2);
  for (auto& q : v.bytes) q = q * q;
  int const last[]{1}, first[]{0};
  tensor_ref transposed = x;
  transposed.dims = swapped, transposed.strides = {1, columns};

  auto run = [&](char const* name, int tensors, auto kernel, tensor_ref const& out) {
    std::size_t const bytes = static_cast<std::size_t>(out.count() * size_of(out.element));
    std::vector<char> expected(bytes);
    for (int threads : {1, 2}) {
      host_backend b{threads};
      kernel(b);
      if (std::strncmp(name, "adamw", 5) != 0) {
        if (threads == 1) std::memcpy(expected.data(), out.data, bytes);
        else if (std::memcmp(expected.data(), out.data, bytes) != 0) {
          std::fprintf(stderr, "%s: two threads give another result\n", name);
          std::exit(1);
        }
      }
      double best = 1e9, spent = 0;
      for (int round = 0; round < 200 && spent < 0.3; ++round) {
        auto const start = std::chrono::steady_clock::now();
        kernel(b);
        double const seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        best = seconds < best ? seconds : best;
        spent += seconds;
      }
      double const gigabytes = static_cast<double>(tensors * rows * columns * 4) / 1e9;
      std::printf("%s,%lld,%lld,%d,%.4f,%.2f\n", name, static_cast<long long>(rows), static_cast<long long>(columns),
                  threads, best * 1e3, gigabytes / best);
      std::fflush(stdout);
    }
  };
  using hb = host_backend&;
  run(
      "copy", 2, [&](hb b) { copy(b, y, x); }, y);
  run(
      "transpose", 2, [&](hb b) { copy(b, t, transposed); }, t);
  run(
      "add", 3, [&](hb b) { map(b, add{}, y, x, g); }, y);
  run(
      "add_bias", 2, [&](hb b) { map(b, add{}, y, x, bias); }, y);
  run(
      "gelu", 2, [&](hb b) { map(b, gelu{}, y, x); }, y);
  run(
      "dropout", 2, [&](hb b) { dropout(b, y, x, 7, 1, 0.1); }, y);
  run(
      "sum_rows", 1, [&](hb b) { reduce(b, reduction::sum, mean, x, last, work.data()); }, mean);
  run(
      "sum_columns", 1, [&](hb b) { reduce(b, reduction::sum, dw, x, first, work.data()); }, dw);
  run(
      "softmax", 2, [&](hb b) { softmax(b, y, x); }, y);
  run(
      "softmax_backward", 3, [&](hb b) { softmax_backward(b, z, g, y); }, z);
  run(
      "log_softmax", 2, [&](hb b) { log_softmax(b, z, x); }, z);
  run(
      "layer_norm", 2, [&](hb b) { layer_norm(b, y, mean, rstd, x, w, bias, 1e-5); }, y);
  run(
      "layer_norm_backward", 3, [&](hb b) { layer_norm_backward(b, z, dw, db, g, x, mean, rstd, w, work.data()); }, z);
  run(
      "rms_norm", 2, [&](hb b) { rms_norm(b, y, rstd, x, w, 1e-5); }, y);
  run(
      "rms_norm_backward", 3, [&](hb b) { rms_norm_backward(b, z, dw, g, x, rstd, w, work.data()); }, z);
  run(
      "batch_norm_nc", 2, [&](hb b) { batch_norm(b, y, channel_mean, channel_rstd, x, w, bias, 1e-5); }, y);
  run(
      "batch_norm_nc_backward", 3,
      [&](hb b) { batch_norm_backward(b, z, dw, db, g, x, channel_mean, channel_rstd, w, work.data()); }, z);
  run(
      "cross_entropy", 1,
      [&](hb b) { cross_entropy_forward(b, one, lse, x, target, loss_reduction::mean, -100, work.data()); }, one);
  one.bytes[0] = 1;
  run(
      "cross_entropy_backward", 2,
      [&](hb b) { cross_entropy_backward(b, z, one, x, lse, target, loss_reduction::mean, -100, work.data()); }, z);
  run(
      "mse", 2, [&](hb b) { mse_forward(b, one, x, g, loss_reduction::mean, work.data()); }, one);
  run(
      "embedding", 2, [&](hb b) { embedding(b, y, x, index); }, y);
  run(
      "embedding_backward", 2, [&](hb b) { embedding_backward(b, z, g, index, work.data()); }, z);
  run(
      "adamw", 7, [&](hb b) { adamw_update(b, y, m, v, g, 3, {}); }, y);
}

/// The sort inside the gradient of an embedding, by counting and by Thrust; `rows` is the vocabulary.
void compare_sorts(std::int64_t numbers, std::int64_t rows) {
  auto const n = static_cast<std::size_t>(numbers);
  std::vector<std::int64_t> index(n), begin(static_cast<std::size_t>(rows) + 1), position(n), expected;
  random_stream r{3};
  for (auto& i : index) {
    double const u = static_cast<double>(r.uniform());  // few are frequent
    i = std::min(rows - 1, static_cast<std::int64_t>(u * u * u * static_cast<double>(rows)));
  }
  std::vector<double> scratch(3 * n + 512);
  host_backend b{1};
  position_order const o{index.data(),
                         numbers,
                         rows,
                         begin.data(),
                         position.data(),
                         scratch.data(),
                         static_cast<bytes_t>(scratch.size() * sizeof(double))};
  auto const run = [&](char const* name, auto const& sort) {
    double best = 1e9;
    for (int round = 0; round < 200; ++round) {
      auto const start = std::chrono::steady_clock::now();
      sort();
      best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    if (expected.empty()) expected = position;
    if (position != expected) std::fprintf(stderr, "%s: another order\n", name), std::exit(1);
    std::printf("%s,%lld,%lld,1,%.4f,%.2f\n", name, static_cast<long long>(numbers), static_cast<long long>(rows),
                best * 1e3, static_cast<double>(8 * (2 * numbers + rows)) / 1e9 / best);
  };
  run("counting_sort", [&] { counting_sort{}(b, o); });
  run("sort_positions", [&] { sort_positions(b, thrust_policy(b), o); });
}

}  // namespace

int main() {
  std::printf("kernel,rows,columns,threads,milliseconds,gigabytes_per_second\n");
  compare(512, 1024);
  compare(8192, 1024);
  for (std::int64_t numbers : {1024, 8192})
    for (std::int64_t rows : {256, 8192, 50257, 128256}) compare_sorts(numbers, rows);
}
