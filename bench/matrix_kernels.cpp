// Matrix and image kernels of the host backend: one CSV row a case, GFLOP/s on 1 and 2 threads, best of several runs by
// wall time; with `--cpu` by the processor time of one thread, for machines that are not idle. `plain` is one
// single-threaded cblas call of the same product; of attention in bf16, its operator by way of f32, on one thread. Each
// kernel's result is checked by its own test, not here.
//
//     g++ -std=c++20 -O2 -Iinclude bench/matrix_kernels.cpp -lopenblas -pthread && ./a.out
#include <neap/backend/kernels/attention.hpp>
#include <neap/backend/kernels/conv2d.hpp>
#include <neap/backend/kernels/matmul.hpp>
#include <neap/ir/operators/kernels/attention.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

namespace {

using neap::shape;

double now(bool cpu) {
  if (cpu) {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}
template <class F>
double best(bool cpu, F const& f) {
  f();
  double least = 1e9, total = 0;
  for (int i = 0; i < 30 && (i < 5 || total < 0.3); ++i) {
    double const start = now(cpu);
    f();
    double const took = now(cpu) - start;
    least = std::min(least, took), total += took;
  }
  return least;
}

struct memory {
  std::vector<float> data;
  explicit memory(std::int64_t n) : data(static_cast<std::size_t>(n) + 16) {
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = float(i * 2654435761u % 1024) / 1024 - 0.5f;
  }
  float* at() { return reinterpret_cast<float*>((reinterpret_cast<std::uintptr_t>(data.data()) + 63) / 64 * 64); }
  neap::tensor_ref as(shape d) { return {at(), neap::dtype::f32, d, neap::dense_strides(d)}; }
};

bool cpu_time = false;

// f(backend, threads) does the work.
template <class F>
void row(char const* kernel, std::string const& what, double flops, double plain, F const& f) {
  double rate[2]{};
  for (int threads = 1; threads <= (cpu_time ? 1 : 2); ++threads) {
    neap::host_backend backend{threads};
    rate[threads - 1] = flops / best(cpu_time, [&] { f(backend); }) / 1e9;
  }
  std::printf("%s,%s,%.1f,%.1f,%.1f,%.1f\n", kernel, what.c_str(), flops / 1e6, rate[0], rate[1], plain);
  std::fflush(stdout);
}

void gemm(std::int64_t m, std::int64_t n, std::int64_t k, bool ta, bool tb) {
  auto const s = neap::gemm_shape::dense(m, n, k, ta, tb);
  memory a(m * k), b(k * n), c(m * n), w(neap::gemm_workspace(s, neap::dtype::f32) / 4);
  double const flops = 2.0 * double(m) * double(n) * double(k);
  neap::detail::single_threaded_blas();
  double const plain =
      flops / best(cpu_time, [&] { neap::detail::gemm_panel(s, 1.f, a.at(), b.at(), 0.f, c.at()); }) / 1e9;
  row("gemm",
      std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + (ta ? " ta" : "") + (tb ? " tb" : ""),
      flops, plain, [&](auto& backend) { neap::gemm(backend, s, 1.f, a.at(), b.at(), 0.f, c.at(), w.at()); });
}

void convolution(std::int64_t in, std::int64_t out, std::int64_t size, std::int64_t k, std::int64_t stride) {
  shape const xs{64, in, size, size}, ws{out, in, k, k};
  neap::conv2d_options const o{{stride, stride}, {k / 2, k / 2}};
  shape const ys = neap::conv2d_shape(xs, ws, o);
  auto const f32 = neap::dtype::f32;
  memory x(elements(xs)), w(elements(ws)), y(elements(ys)), dy(elements(ys)), dx(elements(xs)), dw(elements(ws));
  memory space(
      std::max({neap::conv2d_workspace(xs, ws, o, f32, 2), neap::conv2d_input_gradient_workspace(xs, ws, o, f32, 2),
                neap::conv2d_weight_gradient_workspace(xs, ws, o, f32, 2)}) /
          4 +
      16);
  double const flops = 2.0 * double(elements(ys) * in * k * k);
  std::string const what = "64x" + std::to_string(in) + "x" + std::to_string(size) + "x" + std::to_string(size) +
                           " to " + std::to_string(out) + " k" + std::to_string(k) + " s" + std::to_string(stride);
  row("conv2d", what, flops, 0, [&](auto& b) { neap::conv2d(b, x.as(xs), w.as(ws), {}, y.as(ys), o, space.at()); });
  row("conv2d_input_gradient", what, flops, 0,
      [&](auto& b) { neap::conv2d_input_gradient(b, dy.as(ys), w.as(ws), dx.as(xs), o, space.at()); });
  row("conv2d_weight_gradient", what, flops, 0,
      [&](auto& b) { neap::conv2d_weight_gradient(b, x.as(xs), dy.as(ys), dw.as(ws), o, space.at()); });
}

void attention(std::int64_t B, std::int64_t H, std::int64_t T, std::int64_t D, bool causal) {
  shape const s{B, H, T, D}, ls{B, H, T};
  neap::attention_options const o{causal, 0};
  memory q(elements(s)), k(elements(s)), v(elements(s)), y(elements(s)), dy(elements(s)), dq(elements(s)),
      dk(elements(s)), dv(elements(s)), l(elements(ls));
  auto const f32 = neap::dtype::f32;
  memory space(
      std::max(neap::attention_workspace(s, s, s, o, f32, 2), neap::attention_gradient_workspace(s, s, s, o, f32, 2)) /
      4);
  double const flops = 4.0 * double(B * H * T * T * D) * (causal ? 0.5 : 1);
  std::string const what = std::to_string(B) + "x" + std::to_string(H) + "x" + std::to_string(T) + "x" +
                           std::to_string(D) + (causal ? " causal" : "");
  row("attention", what, flops, 0,
      [&](auto& b) { neap::attention(b, q.as(s), k.as(s), v.as(s), y.as(s), l.as(ls), o, space.at()); });
  row("attention_gradient", what, 2.5 * flops, 0, [&](auto& b) {
    neap::attention_gradient(b, q.as(s), k.as(s), v.as(s), y.as(s), l.as(ls), dy.as(s), dq.as(s), dk.as(s), dv.as(s), o,
                             space.at());
  });
}

/// bf16 as the operators run it (on matrix units, if there are any), and by way of f32, in turn.
void attention_low(std::int64_t B, std::int64_t H, std::int64_t T, std::int64_t D, bool causal) {
  using neap::tensor_ref, neap::bf16;
  shape const s{B, H, T, D}, ls{B, H, T};
  auto const low = neap::dtype::bf16;
  memory source(elements(s)), l(elements(ls));
  std::vector<std::vector<bf16>> data(8, std::vector<bf16>(static_cast<std::size_t>(elements(s))));
  std::vector<tensor_ref> of;
  for (auto& x : data) {
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = bf16(source.at()[i]);
    of.push_back({x.data(), low, s, neap::dense_strides(s)});
  }
  auto const sums = l.as(ls);
  tensor_ref const in[] = {of[0], of[1], of[2]}, out[] = {of[3], sums};
  tensor_ref const grad_in[] = {of[4], of[0], of[1], of[2], of[3], sums}, grad_out[] = {of[5], of[6], of[7]};
  auto const layouts = [](auto const& refs) {
    std::vector<neap::tensor_layout> all;
    for (auto const& t : refs) all.push_back(neap::tensor_layout::dense({t.element, t.dims}));
    return all;
  };
  double const flops = 4.0 * double(B * H * T * T * D) * (causal ? 0.5 : 1);
  std::string const what = std::to_string(B) + "x" + std::to_string(H) + "x" + std::to_string(T) + "x" +
                           std::to_string(D) + (causal ? " causal" : "");
  auto const both = [&](char const* name, auto const& op, auto const& from, auto const& to, double work) {
    auto const types = layouts(from), made = layouts(to);
    memory space(op.workspace({types, made}) / 4);
    neap::kernel_arguments const a{from, to, space.at()};
    neap::host_backend one{1};
    auto const wide = [&] {
      neap::op::detail::run_widened(one, a, {},
                                    [&](neap::kernel_arguments const& x, bool) { neap::op::run(one, op, x); });
    };
    double plain = 1e9, native = 1e9;
    for (int i = 0; i < 4; ++i) {
      plain = std::min(plain, best(cpu_time, wide));
      native = std::min(native, best(cpu_time, [&] { neap::op::run(one, op, a); }));
    }
    std::printf("%s,%s,%.1f,%.1f,,%.1f\n", name, what.c_str(), work / 1e6, work / native / 1e9, work / plain / 1e9);
    std::fflush(stdout);
  };
  both("attention bf16", neap::op::attention{causal}, in, out, flops);
  both("attention_gradient bf16", neap::op::attention_grad{causal}, grad_in, grad_out, 2.5 * flops);
}

}  // namespace

int main(int argc, char** argv) {
  cpu_time = argc > 1 && std::strcmp(argv[1], "--cpu") == 0;
  std::puts("kernel,case,mflop,gflops_1_thread,gflops_2_threads,gflops_plain");
  gemm(512, 512, 512, false, false);
  gemm(1024, 1024, 1024, false, false);
  gemm(4096, 256, 256, false, true);
  gemm(256, 1024, 4096, true, false);
  gemm(64, 64, 65536, true, false);
  gemm(128, 128, 128, false, false);
  convolution(3, 16, 32, 3, 1);
  convolution(16, 16, 32, 3, 1);
  convolution(16, 32, 32, 3, 2);
  convolution(32, 32, 16, 3, 1);
  convolution(32, 64, 16, 3, 2);
  convolution(64, 64, 8, 3, 1);
  convolution(16, 32, 32, 1, 2);
  convolution(64, 64, 32, 1, 1);
  convolution(64, 256, 16, 1, 1);
  convolution(64, 64, 32, 3, 1);
  convolution(64, 128, 32, 3, 2);
  convolution(256, 256, 8, 3, 1);
  attention(4, 8, 256, 64, true);
  attention(4, 8, 1024, 64, false);
  for (std::int64_t t : {32, 64, 128, 256, 1024})
    for (std::int64_t d : {32, 64}) attention_low(4, 8, t, d, t % 128 == 0);
  attention_low(1, 8, 384, 128, false);
}
