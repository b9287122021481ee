// Lesson 4: an operator of one's own is a struct. It is used at once: eagerly, in gradients, in planned training.
#include <neap/neap.hpp>

#include <cstdio>

// A scalar function needs a name, its value and its slope; how it broadcasts, is differentiated, cut and run is known.
struct swish : neap::op::unary<swish> {
  static constexpr std::string_view name = "swish";
  double beta = 1;
  explicit swish(double b = 1) : beta(b) {}
  static constexpr auto attributes() { return std::array{neap::field<&swish::beta>("beta")}; }
  template <class T>
  NEAP_HD T operator()(T x) const {
    return x * neap::math::sigmoid(T(beta) * x);
  }
  template <class T>
  NEAP_HD T slope(T x) const {
    T const s = neap::math::sigmoid(T(beta) * x);
    return s + T(beta) * x * s * (T(1) - s);
  }
};

// Any other operator says its shapes, which axes belong together, its gradient, and has a kernel.
struct reverse {  // x (..., n) -> the rows backwards
  static constexpr std::string_view name = "reverse";
  void infer(neap::shape_context& c) const {
    c.require_arity(1, 1);
    c.require(c.in(0).rank() >= 1, "needs an axis, got ", c.in(0));
    c.fresh(c.in(0));
  }
  void relate(neap::dim_context& c) const {
    for (int k = 0; k + 1 < c.in(0).rank(); ++k) c.same(0, k, 0, k);  // rows may be cut apart, a row not
  }
  void gradient(neap::gradient_context& c) const { c.give(0, c.emit(reverse{}, {c.grad()})); }
};
template <class Backend>
void run(Backend& backend, reverse const&, neap::kernel_arguments const& a) {
  // Inputs are dense here: an operator whose kernel reads other layouts says so (`takes`).
  auto const* const x = a.in[0].as<float const>();
  auto* const y = a.out[0].as<float>();
  auto const n = a.in[0].extent(-1);
  backend.elementwise(a.in[0].count(), [=](std::int64_t i) { y[i] = x[i / n * n + n - 1 - i % n]; });
}

struct network {
  neap::nn::linear in{8, 32}, out{32, 1};
  neap::tensor operator()(neap::tensor const& x) const {
    return out(neap::apply(swish{1.5}, {in(neap::apply(reverse{}, {x}))}));
  }
};

int main() {
  network model, other;
  neap::initialise(model, 1), neap::initialise(other, 1);
  auto const x = neap::tensor::randn({64, 8}, 2);
  std::pair const batch{x, neap::sum(x, {1}, true)};

  auto const step = neap::training_step(model, batch, neap::mse{}, neap::sgd{.rate = 0.05});
  neap::host_backend backend(1);
  neap::trainer run(step, neap::plan_in_order(step.program), backend);
  neap::training_state state;
  double first = 0, last = 0;
  bool equal = true;
  for (int i = 0; i < 40; ++i) {
    last = run(batch);
    if (i == 0) first = last;
    equal &= last == neap::eager_step(other, batch, neap::mse{}, neap::sgd{.rate = 0.05}, state).item<double>();
  }
  std::printf("loss %.4f -> %.4f, planned and eager %s\n", first, last, equal ? "equal to the bit" : "DIFFERENT");
  return equal && last < 0.1 * first ? 0 : 1;
}
