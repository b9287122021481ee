// Lesson 7: evaluation under a plan, beside a trainer and on the same weights; what a step returns besides its loss; and the
// last, smaller batch of an epoch.
#include <neap/neap.hpp>

#include <cstdio>
#include <vector>

struct network {
  neap::nn::linear in{2, 64}, out{64, 2};
  neap::nn::dropout drop{0.1};
  neap::tensor operator()(neap::tensor const& x) const { return out(drop(neap::relu(in(x)))); }
};

// A loss may return a struct: all its members but `loss` are outputs of the step under their names.
struct step_outputs {
  neap::tensor loss, logits;
};

std::pair<neap::tensor, neap::tensor> points(std::int64_t n, std::uint64_t seed) {
  auto const x = neap::tensor::randn({n, 2}, seed);
  auto const v = x.values<float>();
  std::vector<std::int64_t> inside;
  for (std::size_t i = 0; i < v.size(); i += 2) inside.push_back(v[i] * v[i] + v[i + 1] * v[i + 1] < 1.4f);
  return {x, neap::tensor::from(inside, {n})};
}

int main() {
  network model;
  neap::initialise(model, 1);
  auto const loss = [](network& net, std::pair<neap::tensor, neap::tensor> const& batch) {
    auto const logits = net(batch.first);
    return step_outputs{neap::cross_entropy{}(logits, batch.second), logits};
  };
  auto const step = neap::training_step(model, points(64, 0), loss, neap::adamw{.rate = 1e-2});
  neap::host_backend backend(1);
  neap::trainer run(step, neap::plan_in_order(step.program), backend);
  neap::evaluator eval(model, points(64, 0).first, backend);  // dropout off, running statistics used

  for (std::uint64_t epoch = 0; epoch < 15; ++epoch)
    for (std::uint64_t i = 0; i < 4; ++i) run(points(i < 3 ? 64 : 23, 4 * epoch + i));  // 215 points an epoch
  std::printf("logits of the last batch: %s, sizes planned: %zu\n",
              neap::to_string(run.output("logits").shape()).c_str(), run.size_count());

  auto const test = points(500, 999);
  int right = 0;
  auto const labels = test.second.values<std::int64_t>();
  // Batches of other sizes than the sample's run in the same arena, as long as they are not larger.
  for (std::int64_t begin = 0; begin < 500; begin += 64) {
    auto const end = std::min<std::int64_t>(begin + 64, 500);
    auto const guess = neap::arg_max(eval(neap::slice(test.first, 0, begin, end))).values<std::int64_t>();
    for (std::size_t i = 0; i < guess.size(); ++i) right += guess[i] == labels[static_cast<std::size_t>(begin) + i];
  }
  std::printf("%d of 500 right\n", right);
  return right > 450 && run.size_count() == 2 ? 0 : 1;
}
