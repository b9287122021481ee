// Lesson 19: an operator of one's own with a kernel on a GPU. Operator, gradient and kernels are in unit_rows.hpp, the
// launches on a GPU in unit_rows.cu. A planned training runs on the host, and on the GPU where there is one.
#include "unit_rows.hpp"

#include <neap/cuda.hpp>
#include <neap/neap.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>
#include <vector>

struct network {
  neap::nn::linear in{20, 96}, middle{96, 40}, out{40, 4};
  neap::tensor operator()(neap::tensor const& x) const {
    auto const h = neap::apply(unit_rows{}, {neap::gelu(in(x))});
    return out(neap::apply(unit_rows{}, {neap::gelu(middle(h * 8))}));
  }
};

// Rows of 20 numbers; the largest of the first four is to be found.
std::pair<neap::tensor, neap::tensor> rows() {
  auto const x = neap::tensor::randn({64, 20}, 2);
  return {x, neap::arg_max(neap::slice(x, 1, 0, 4), 1)};
}

// The losses of 12 steps, within the memory that a plan with recomputation has at 0.9 of the original.
template <class Backend>
std::vector<double> train(Backend& backend) {
  network model;
  neap::initialise(model, 1);
  auto const batch = rows();
  auto const step = neap::training_step(model, batch, neap::cross_entropy{}, neap::adamw{.rate = 0.02});
  auto const found = neap::optimize(step, neap::rematerialize{}, neap::memory_limit::of_original(0.9));
  neap::trainer run(step, found.placed, backend);
  std::vector<double> losses;
  for (int i = 0; i < 12; ++i) losses.push_back(run(batch));
  return losses;
}

int main() {
  neap::host_backend host(1);
  auto const here = train(host);

  network other;
  neap::initialise(other, 1);
  neap::training_state state;
  neap::adamw const optimizer{.rate = 0.02};
  bool equal = true;
  for (double const loss : here)
    equal &= loss == neap::eager_step(other, rows(), neap::cross_entropy{}, optimizer, state).item<double>();
  std::printf("host: loss %.4f -> %.4f, planned and eager %s\n", here.front(), here.back(),
              equal ? "equal to the bit" : "DIFFERENT");
  if (!equal || here.back() > 0.8 * here.front()) return 1;

  auto const gpu = neap::find_cuda_device();
  if (!gpu) return std::puts(gpu.message().c_str()), 0;
  neap::cuda_backend device;
  device.add_operators<unit_rows, unit_rows_grad>();
  auto const there = train(device);
  double difference = 0;
  for (std::size_t i = 0; i < there.size(); ++i) difference = std::max(difference, std::abs(there[i] - here[i]));
  std::printf("%s: loss %.4f -> %.4f, at most %.1e from the host's\n", gpu->name.c_str(), there.front(), there.back(),
              difference);
  return difference < 1e-3 ? 0 : 1;
}
