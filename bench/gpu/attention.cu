// Attention on a GPU, forward and backward, at shapes of GPT-2: median times by events, and the rate of the 4 and 10
// products of [T, T, D] multiply-adds (half of them where causal). Each kernel's results are compared with the host's on a
// short sequence first. CSV on stdout; exit status 0 if they agree, 1 if not, 2 if there is no GPU to be used.
#include <neap/cuda.hpp>

#include <neap/backend/kernels/attention.hpp>
#include <neap/core/philox.hpp>
#include <neap/cuda/events.hpp>
#include <neap/cuda/kernels/attention.cuh>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

using namespace neap;

namespace {

struct problem {
  char const* name;
  std::int64_t batch, heads, length, depth;
  bool causal;

  shape dims() const { return {batch, heads, length, depth}; }
};

/// Operands and results on the device, [B, H, T, D] in [B, T, H, D] order.
template <class T>
struct tensors {
  problem p;
  std::vector<cuda_device_memory> memory;
  std::vector<std::vector<T>> on_host;
  tensor_ref q, k, v, dy, y, dq, dk, dv, lse;

  explicit tensors(problem const& of) : p(of) {
    random_stream draw(5);
    for (tensor_ref* t : {&q, &k, &v, &dy}) {
      std::vector<T> values(static_cast<std::size_t>(elements(p.dims())));
      for (T& x : values) x = T(2 * draw.uniform() - 1);
      *t = place(dtype_of<T>, p.dims());
      check_cuda(cudaMemcpy(t->data, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice), "copy");
      on_host.push_back(std::move(values));
    }
    for (tensor_ref* t : {&y, &dq, &dk, &dv}) *t = place(dtype_of<T>, p.dims());
    lse = place(dtype::f32, {p.batch, p.heads, p.length});
    check_cuda(cudaDeviceSynchronize(), "copy");  // kernels run on a stream that does not wait for copies
  }
  tensor_ref place(dtype t, shape const& s) {
    memory.emplace_back(elements(s) * size_of(t), "attention");
    extents const strides = s.rank() == 4 ? extents{s[1] * s[2] * s[3], s[3], s[1] * s[3], 1} : dense_strides(s);
    return {memory.back().data(), t, s, strides};
  }
  std::vector<float> read(tensor_ref const& t) const {
    std::vector<T> values(static_cast<std::size_t>(t.count()));
    check_cuda(cudaMemcpy(values.data(), t.data, values.size() * sizeof(T), cudaMemcpyDeviceToHost), "copy");
    return {values.begin(), values.end()};
  }
  attention_options options() const { return {p.causal, 0}; }
  void forward(cuda_backend& b) { attention(b, q, k, v, y, lse, options()); }
  void backward(cuda_backend& b) { attention_gradient(b, q, k, v, y, lse, dy, dq, dk, dv, options()); }
};

/// The largest difference from the host's results, as a part of the largest of each.
template <class T>
double difference(cuda_backend& b, problem const& p) {
  tensors<T> t(p);
  b.reserve_scratch(attention_gradient_scratch(p.dims(), dtype_of<T>));
  t.forward(b);
  t.backward(b);
  check_cuda(cudaStreamSynchronize(b.stream()), "attention");
  std::vector<std::vector<float>> values;
  for (auto const& x : t.on_host) values.emplace_back(x.begin(), x.end());
  auto const at = [&](std::vector<float>& x) { return tensor_ref{x.data(), dtype::f32, p.dims(), t.q.strides}; };
  auto const count = values[0].size();
  std::vector<float> y(count), dq(count), dk(count), dv(count), sums(static_cast<std::size_t>(t.lse.count()));
  tensor_ref const lse{sums.data(), dtype::f32, t.lse.dims, t.lse.strides};
  host_backend host;
  auto const o = t.options();
  std::vector<std::byte> work(static_cast<std::size_t>(
      std::max(attention_workspace(p.dims(), p.dims(), p.dims(), o, dtype::f32, host.threads()),
               attention_gradient_workspace(p.dims(), p.dims(), p.dims(), o, dtype::f32, host.threads()))));
  attention(host, at(values[0]), at(values[1]), at(values[2]), at(y), lse, o, work.data());
  attention_gradient(host, at(values[0]), at(values[1]), at(values[2]), at(y), lse, at(values[3]), at(dq), at(dk),
                     at(dv), o, work.data());
  double worst = 0;
  auto const compare = [&](tensor_ref const& got, std::vector<float> const& want) {
    auto const x = t.read(got);
    double most = 0, off = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
      most = std::max(most, std::abs(double{want[i]}));
      double const by = std::abs(double{x[i]} - double{want[i]});
      if (!(by <= off) && off == off) off = by;  // a NaN stays
    }
    if (!(off / most <= worst) && worst == worst) worst = off / most;
  };
  compare(t.y, y), compare(t.dq, dq), compare(t.dk, dk), compare(t.dv, dv);
  return worst;
}

/// Median seconds of a call, of 20 after 3.
template <class F>
double seconds_of(cuda_backend& b, F const& call) {
  auto const begin = detail::make_cuda_event(true), end = detail::make_cuda_event(true);
  std::vector<double> all;
  for (int i = 0; i < 23; ++i) {
    check_cuda(cudaEventRecord(begin.get(), b.stream()), "record");
    call();
    check_cuda(cudaEventRecord(end.get(), b.stream()), "record");
    check_cuda(cudaEventSynchronize(end.get()), "attention");
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "time");
    if (i >= 3) all.push_back(1e-3 * double{milliseconds});
  }
  std::nth_element(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(all.size() / 2), all.end());
  return all[all.size() / 2];
}

template <class T>
bool run(cuda_backend& b, problem const& p, double within) {
  problem small = p;
  small.batch = 1, small.heads = 2, small.length = 200;
  double const off = difference<T>(b, small);
  bool const right = off <= within;
  tensors<T> t(p);
  b.reserve_scratch(attention_gradient_scratch(p.dims(), dtype_of<T>));
  double const products = 2.0 * static_cast<double>(p.batch * p.heads) * static_cast<double>(p.length) *
                          static_cast<double>(p.length) * static_cast<double>(p.depth) * (p.causal ? 0.5 : 1.0);
  auto const row = [&](char const* pass, double count, double seconds) {
    std::printf("\"%s\",%s,%lld,%lld,%lld,%lld,%d,%s,%.4f,%.1f,%.2e,%s\n", p.name,
                std::string(name_of(dtype_of<T>)).c_str(), static_cast<long long>(p.batch),
                static_cast<long long>(p.heads), static_cast<long long>(p.length), static_cast<long long>(p.depth),
                p.causal, pass, 1e3 * seconds, 1e-12 * count * products / seconds, off, right ? "ok" : "wrong");
    std::fflush(stdout);
  };
  row("forward", 2, seconds_of(b, [&] { t.forward(b); }));
  row("backward", 5, seconds_of(b, [&] { t.backward(b); }));
  return right;
}

}  // namespace

int main() {
  auto const device = find_cuda_device();
  if (!device) {
    std::fprintf(stderr, "%s\n", device.message().c_str());
    return 2;
  }
  try {
    cuda_backend b;
    std::printf("case,element,batch,heads,length,depth,causal,pass,milliseconds,tflops,difference,outcome\n");
    bool right = true;
    for (problem const& p :
         {problem{"GPT-2 small", 8, 12, 1024, 64, true}, problem{"GPT-2 medium", 4, 16, 1024, 64, true},
          problem{"long", 1, 16, 8192, 64, true}, problem{"heads of 128", 2, 16, 4096, 128, true},
          problem{"not causal", 8, 12, 1024, 64, false}}) {
      right &= run<bf16>(b, p, 1.0 / 64);
      right &= run<float>(b, p, 1e-5);
    }
    return right ? 0 : 1;
  } catch (error const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
