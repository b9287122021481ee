// A backend with cuDNN as its attention library, on the simulated device: results beside the definition, which attentions go
// where and why.
#include <neap/cuda/cudnn.hpp>

#include "../support/device/simulated_device.hpp"
#include "../support/device_tensor.hpp"
#include "with_cudnn.hpp"

#include <neap/cuda.hpp>
#include <neap/cuda/kernels/attention.cuh>
#include <neap/cuda/launch.cuh>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace {

using namespace neap;
using namespace neap::testing;

/// What the definition gives of q, k, v, dy [B, H, T, D]; lse is [B, H, T].
struct exact_attention {
  std::vector<double> y, lse, dq, dk, dv;

  template <class T>
  exact_attention(device_tensor<T> const& q, device_tensor<T> const& k, device_tensor<T> const& v,
                  device_tensor<T> const& dy, bool causal, double scale)
      : y(dy.host.size()),
        dq(q.host.size()),
        dk(k.host.size()),
        dv(v.host.size()) {
    auto const &n = q.ref.dims, &m = k.ref.dims;
    std::int64_t const group = n[1] / m[1], depth = n[3];
    auto const place = [&](std::int64_t row, std::int64_t i) { return static_cast<std::size_t>(row * depth + i); };
    auto const at = [&](auto const& t, std::int64_t row, std::int64_t i) {
      return static_cast<double>(static_cast<float>(t.host[place(row, i)]));
    };
    auto const dot = [&](auto const& a, std::int64_t i, auto const& b, std::int64_t j) {
      double sum = 0;
      for (std::int64_t l = 0; l < depth; ++l) sum += at(a, i, l) * at(b, j, l);
      return sum;
    };
    for (std::int64_t row = 0; row < n[0] * n[1] * n[2]; ++row) {
      std::int64_t const t = row % n[2], h = row / n[2] % n[1], b = row / n[2] / n[1];
      std::int64_t const keys = causal ? std::min(t + 1, m[2]) : m[2], first = (b * m[1] + h / group) * m[2];
      std::vector<double> p;
      double sum = 0, delta = 0;
      for (std::int64_t s = 0; s < keys; ++s) sum += p.emplace_back(std::exp(dot(q, row, k, first + s) * scale));
      lse.push_back(std::log(sum));
      for (std::int64_t s = 0; s < keys; ++s) {
        double& x = p[static_cast<std::size_t>(s)];
        x /= sum;
        delta += x * dot(v, first + s, dy, row);
        for (std::int64_t i = 0; i < depth; ++i) {
          y[place(row, i)] += x * at(v, first + s, i);
          dv[place(first + s, i)] += x * at(dy, row, i);
        }
      }
      for (std::int64_t s = 0; s < keys; ++s) {
        double const slope = (dot(v, first + s, dy, row) - delta) * p[static_cast<std::size_t>(s)] * scale;
        for (std::int64_t i = 0; i < depth; ++i) {
          dq[place(row, i)] += slope * at(k, first + s, i);
          dk[place(first + s, i)] += slope * at(q, row, i);
        }
      }
    }
  }
};
/// The largest difference, as a part of the largest element.
template <class T>
double worst(std::vector<T> const& got, std::vector<double> const& want) {
  double largest = 1e-3, most = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(static_cast<float>(got[i])) - want[i]));
    largest = std::max(largest, std::abs(want[i]));
  }
  return most / largest;
}

template <class T>
void check(with_cudnn& d, shape const& n, std::int64_t key_heads, std::int64_t keys, bool causal, std::size_t calls) {
  CAPTURE(name_of(dtype_of<T>));
  CAPTURE(causal);
  CAPTURE(key_heads);
  shape const m{n[0], key_heads, keys, n[3]};
  device_tensor<T> q(n, 1), k(m, 2), v(m, 3), y(n, 4), dy(n, 5), dq(n, 6), dk(m, 7), dv(m, 8);
  device_tensor<float> lse({n[0], n[1], n[2]}, 9);
  attention_options const o{causal, 0.25};
  exact_attention const exact(q, k, v, dy, causal, o.scale);
  auto const before = simulated_device::calls("cudnnBackendExecute");
  attention(d.backend, q.ref, k.ref, v.ref, y.ref, lse.ref, o);
  attention_gradient(d.backend, q.ref, k.ref, v.ref, y.ref, lse.ref, dy.ref, dq.ref, dk.ref, dv.ref, o);
  CHECK(simulated_device::calls("cudnnBackendExecute") - before == calls);
  auto const stream = d.backend.stream();
  double const within = dtype_of<T> == dtype::bf16 ? 3e-2 : dtype_of<T> == dtype::f16 ? 4e-3 : 1e-4;
  CHECK(worst(y.read(stream), exact.y) < within);
  CHECK(worst(lse.read(stream), exact.lse) < within);
  CHECK(worst(dq.read(stream), exact.dq) < within);
  CHECK(worst(dk.read(stream), exact.dk) < within);
  CHECK(worst(dv.read(stream), exact.dv) < within);
}

}  // namespace

TEST_CASE(
    "attention and its gradients by cuDNN: causal or not, other numbers of keys; the others go to our own kernels") {
  simulated_device::reset(6);
  with_cudnn d;
  for (bool const causal : {true, false}) {
    check<bf16>(d, {2, 2, 5, 8}, 2, 5, causal, 2);
    check<f16>(d, {1, 3, 4, 16}, 3, 7, causal, 2);
    check<bf16>(d, {1, 4, 6, 8}, 2, 6, causal, 1);  // forward alone: fewer heads of keys
    check<float>(d, {1, 2, 5, 8}, 2, 5, causal, 0);
  }
  check<bf16>(d, {1, 2, 1, 8}, 2, 1, false, 1);  // of one key the gradient is ours
  CHECK(simulated_device::faults() == "");
  CHECK(simulated_device::races() == "");
}

TEST_CASE("what cuDNN's attention does not compute has a reason") {
  simulated_device::reset(7);
  with_cudnn d;
  shape const n{1, 2, 8, 8};
  device_tensor<bf16> x(n, 1), shifted(n, 2, 1), y(n, 2), dq(n, 3), dk(n, 4), dv(n, 5);
  device_tensor<float> f(n, 1), lse({1, 2, 8}, 3);
  auto const reason = [&](with_cudnn& on, tensor_ref const& q, tensor_ref const& k) {
    return std::string(attention_way(on.backend, q, k, k, q, lse.ref).reason);
  };
  CHECK(reason(d, x.ref, x.ref) == "");
  CHECK(reason(d, f.ref, f.ref) == "cuDNN's attention is of f16 and bf16");
  CHECK(reason(d, x.ref, shifted.ref) == "addresses are no multiples of 16 bytes");
  with_cudnn poor({.scratch = 0});
  CHECK(reason(poor, x.ref, x.ref) == "cuDNN takes more scratch memory for it than it may have");
  // The logarithms of sums have a gradient.
  attention_gradient(d.backend, x.ref, x.ref, x.ref, y.ref, lse.ref, x.ref, dq.ref, dk.ref, dv.ref, {}, lse.ref);
  CHECK(simulated_device::calls("cudnnBackendExecute") == 0);
  cuda_backend alone;
  CHECK(attention_way(alone, x.ref, x.ref, x.ref, x.ref, lse.ref).reason == "the backend has no attention library");
  // What executables reserve: the library's, and the sums of dy * y in front.
  auto const layout = [](shape const& s, dtype t) { return tensor_layout{{t, s}, dense_strides(s)}; };
  auto const t = layout(n, dtype::bf16), sums = layout({1, 2, 8}, dtype::f32);
  std::vector<tensor_layout> const in{t, t, t, t, t, sums}, out{t, t, t};
  op::attention_grad const grad{};
  CHECK(detail::scratch_of<op::attention_grad>(d.backend, &grad, work_context{in, out}) == 4096 + 256);
  CHECK(detail::scratch_of<op::attention_grad>(alone, &grad, work_context{in, out}) == 2 * 16 * 4);
}
