// Lesson 1: tensors compute at once, remember how, and give gradients.
#include <neap/neap.hpp>

#include <cstdio>

int main() {
  auto const x = neap::tensor::from({1.f, 2.f, 3.f, 4.f}, {2, 2});
  auto const y = 2 * x + neap::matmul(x, x);  // broadcasting, numbers, functions
  for (float v : y.values<float>()) std::printf("%g ", v);
  std::printf("\n");

  auto const t = neap::transpose(x);  // views share the data
  std::printf("t[0][1] = %g\n", neap::slice(neap::slice(t, 0, 0, 1), 1, 1, 2).item<float>());

  auto const w = neap::tensor::from({1.f, -1.f}, {2}).with_gradient();
  auto const loss = neap::sum(neap::square(x * w));
  auto const g = neap::grad(loss, {w})[0].values<float>();  // d loss / d w_j = 2 w_j sum_i x_ij^2
  std::printf("gradient %g %g\n", g[0], g[1]);

  try {
    (void)(x + neap::tensor::zeros({3}));
  } catch (neap::error const& mistake) {
    std::printf("%s\n", mistake.what());  // 01_tensors.cpp:21: add: shapes do not broadcast, [2,2] and [3]
  }
  return g[0] == 20 && g[1] == -40 ? 0 : 1;
}
