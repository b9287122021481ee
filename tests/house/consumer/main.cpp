#include <neap/neap.hpp>

#if defined(O_RDONLY) || defined(O_CREAT) || defined(LOCK_EX)
#error "neap's umbrella lets <fcntl.h> or <sys/file.h> through"
#endif

#include <neap/import/graph_file.hpp>

#include <cstdio>

// A planned training step runs: headers, kernels and what they link to are all there. This program is no graph file.
int main(int, char** arguments) {
  if (auto const g = neap::io::read_graph(arguments[0])) return 1;
  else std::puts(g.message().c_str());
  neap::nn::linear model(8, 4);
  std::pair const batch{neap::tensor::randn({16, 8}, 1), neap::tensor::randn({16, 4}, 2)};
  auto const step = neap::training_step(model, batch, neap::mse{}, neap::sgd{.rate = 0.1});
  auto const found = neap::optimize(step, neap::rematerialize{}, neap::memory_limit::of_original(0.9),
                                    neap::time_budget{std::chrono::milliseconds(50)});
  neap::host_backend backend(1);
  neap::trainer train(step, found.placed, backend);
  double const first = train(batch);
  double last = first;
  for (int i = 0; i < 20; ++i) last = train(batch);
  std::printf("neap %d.%d.%d: loss %g, then %g\n", NEAP_VERSION_MAJOR, NEAP_VERSION_MINOR, NEAP_VERSION_PATCH, first,
              last);
  return last < first ? 0 : 1;
}
