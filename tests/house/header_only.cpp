// A program of two files, compiled header-only and apart: both print the same. This file runs the graph of the other one.
#include <neap/neap.hpp>

#include <cstdio>
#include <vector>

neap::graph built_elsewhere();

struct shout : neap::op::unary<shout> {  // an operator of the program's own
  static constexpr std::string_view name = "shout";
  template <class T>
  NEAP_HD T operator()(T x) const {
    return x + x;
  }
  template <class T>
  NEAP_HD T slope(T) const {
    return T(2);
  }
};
struct false_relu : neap::op::unary<false_relu> {  // named as a standard one that this program does not use
  static constexpr std::string_view name = "softplus";
  template <class T>
  NEAP_HD T operator()(T x) const {
    return x;
  }
  template <class T>
  NEAP_HD T slope(T) const {
    return T(1);
  }
};

struct network {
  neap::nn::layer_norm norm{16};
  std::vector<neap::nn::linear> layers{{16, 64}, {64, 64}, {64, 16}};
  neap::nn::linear head{16, 4};
  neap::tensor operator()(neap::tensor x) const {
    x = norm(x);
    for (auto const& l : layers) x = neap::gelu(l(x));
    return head(neap::apply(shout{}, {x}));
  }
};

void print(char const* what, neap::digest d) {
  std::printf("%s %016llx%016llx\n", what, static_cast<unsigned long long>(d.high),
              static_cast<unsigned long long>(d.low));
}

int main() {
  network model;
  neap::initialise(model, 1);
  auto const x = neap::tensor::randn({256, 16}, 1);
  std::vector<std::int64_t> classes(256);
  for (std::size_t i = 0; i < classes.size(); ++i) classes[i] = static_cast<std::int64_t>(i % 4);
  std::pair const batch{x, neap::tensor::from(classes, {256})};
  auto const step = neap::training_step(model, batch, neap::cross_entropy{}, neap::adamw{.rate = 1e-2});
  print("program", step.program.digest());
  auto const moves = neap::zip(neap::rematerialize{}, neap::swap{1e9}, neap::fission{} | neap::truncate(8));
  neap::search_options options;
  options.iterations = 200;
  auto const found = neap::optimize(step, moves, neap::memory_limit::of_original(0.7), options);
  print("found", found.best.graph.digest());
  std::printf("peak %lld, arena %lld, bound %lld\n", static_cast<long long>(found.best.result.peak_bytes),
              static_cast<long long>(found.placed.arena_bytes), static_cast<long long>(found.lower_bound_bytes));
  for (auto const& s : found.steps) std::puts(s.how.c_str());
  for (auto const& s : found.placed.steps) std::printf("%u ", static_cast<unsigned>(neap::index(s.op)));

  neap::host_backend backend(1);
  neap::trainer run(step, found.placed, backend);
  double const first = run(batch);
  double last = first;
  for (int i = 0; i < 20; ++i) last = run(batch);
  std::printf("\n%s\n", last < first ? "trained" : "not trained");

  auto const g = built_elsewhere();
  float numbers[4] = {0.75f, 0.75f, 0.75f, -4.0f};
  neap::source_binding const bound{g.sources()[0], numbers};
  neap::executable<neap::host_backend> sums(neap::plan_in_order(g), {&bound, 1}, backend);
  sums();
  auto const* const y = static_cast<float const*>(sums.value(sums.planned().graph.kept()[0]).data);
  std::printf("sums %g %g %g %g\n", y[0], y[1], y[2], y[3]);

  try {
    (void)neap::trace([](neap::tensor const& t) { return neap::apply(false_relu{}, {t}); }, x);
  } catch (neap::error const& e) {
    std::string const text = e.what();
    std::puts(text.substr(text.find(": ") + 2).c_str());
  }
}
