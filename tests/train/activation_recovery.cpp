#include <neap/train/activation_recovery.hpp>

#include <neap/ir/verify.hpp>
#include <neap/model/model.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/cost_model.hpp>
#include <neap/simulate/simulator.hpp>
#include <neap/train/training_step.hpp>

#include "run_program.hpp"

#include <doctest/doctest.h>

using namespace neap;

namespace {

std::size_t ops_named(op_graph const& g, std::string_view name) {
  std::size_t n = 0;
  for (auto o : g.ops()) n += g.facets(o).name == name ? 1 : 0;
  return n;
}

std::pair<tensor, tensor> batch(shape const& dims, int i) {
  std::vector<std::int64_t> labels;
  for (std::int64_t k = 0; k < dims[0]; ++k) labels.push_back((k * 3 + i) % 5);
  return {tensor::randn(dims, 100 + static_cast<std::uint64_t>(i)), tensor::from(labels, {dims[0]})};
}

/// Trains with and without; the programs with it are right, give the same bits and have `expected` ops of this name.
template <class Model>
void check_equal_bits(Model const& model, shape const& dims, std::string_view name, std::size_t expected,
                      training_options options = {}) {
  Model together = model, apart = model;
  initialise(together, 7), initialise(apart, 7);
  auto const one = training_step(together, batch(dims, 0), cross_entropy{}, adamw{.rate = 0.01}, options);
  options.recover_activations = false;
  training_state state, eager_state;
  options.state = &state;
  auto const two = training_step(apart, batch(dims, 0), cross_entropy{}, adamw{.rate = 0.01}, options);
  if (auto const s = verify(one.program); !s.ok()) FAIL(s.message());
  CHECK(ops_named(one.program, name) == expected);
  CHECK(ops_named(two.program, name) == 0);
  for (std::size_t i = 0; i < one.weights.size(); ++i)
    CHECK(one.program.name(one.weights[i]) == two.program.name(two.weights[i]));
  support::program_runner run_one(one), run_two(two);
  for (int i = 0; i < 4; ++i) {
    auto const b = batch(dims, i);
    CHECK(run_one({b.first, b.second}) == run_two({b.first, b.second}));
    auto const p = parameters(together), q = parameters(apart);
    for (std::size_t k = 0; k < p.size(); ++k) CHECK(p[k].template values<double>() == q[k].template values<double>());
  }
  auto const peak = [](auto const& g) { return simulate(g, given_order{}(g), no_cost{}, memory_options{}).peak_bytes; };
  CHECK(peak(one.program) <= peak(two.program));
  if (expected > 1) CHECK(peak(one.program) < peak(two.program));
}

struct perceptron {
  int kind = 0;
  nn::linear in{24, 160}, middle{160, 160}, out{160, 5};
  tensor act(tensor const& x) const { return kind == 0 ? gelu(x) : kind == 1 ? gelu(x, true) : silu(x); }
  tensor operator()(tensor const& x) const { return out(act(middle(act(in(x))))); }
  friend auto neap_fields(perceptron& self) { return std::tie(self.in, self.middle, self.out); }
  static constexpr std::array neap_names{"in", "middle", "out"};
};

// The sum's relu cannot be recovered: the norm's result is not all of its argument.
struct images {
  nn::conv2d a{3, 8, 3, {.padding = 1}}, b{8, 8, 3, {.padding = 1}}, c{8, 8, 3, {.padding = 1}};
  nn::batch_norm2d na{8}, nb{8}, nc{8};
  nn::linear head{8 * 5 * 5, 5};
  tensor operator()(tensor const& x) const {
    tensor const y = relu(na(a(x)));
    tensor const z = relu(nb(b(y)));
    return head(flatten(relu(nc(c(z)) + y), 1));
  }
  friend auto neap_fields(images& self) {
    return std::tie(self.a, self.b, self.c, self.na, self.nb, self.nc, self.head);
  }
  static constexpr std::array neap_names{"a", "b", "c", "na", "nb", "nc", "head"};
};

// The product reads the flattened result: a view that was made forward.
struct flat {
  nn::conv2d a{3, 8, 3, {.padding = 1}};
  nn::batch_norm2d na{8};
  nn::linear head{8 * 5 * 5, 5};
  tensor operator()(tensor const& x) const { return head(flatten(relu(na(a(x))), 1)); }
  friend auto neap_fields(flat& self) { return std::tie(self.a, self.na, self.head); }
  static constexpr std::array neap_names{"a", "na", "head"};
};

// The gradient of the product of the result with itself needs the result before gelu's own gradient is there.
struct squared {
  nn::linear in{24, 160}, out{160, 5};
  tensor operator()(tensor const& x) const {
    tensor const h = gelu(in(x));
    return out(h * h);
  }
  friend auto neap_fields(squared& self) { return std::tie(self.in, self.out); }
  static constexpr std::array neap_names{"in", "out"};
};

struct normed_rows {  // planes of single elements
  nn::linear in{24, 160};
  nn::batch_norm2d norm{160};
  nn::linear out{160, 5};
  tensor operator()(tensor const& x) const {
    return out(flatten(relu(norm(reshape(in(x), {x.size(0), 160, 1, 1}))), 1));
  }
  friend auto neap_fields(normed_rows& self) { return std::tie(self.in, self.norm, self.out); }
  static constexpr std::array neap_names{"in", "norm", "out"};
};

}  // namespace

TEST_CASE("recovered activations have the bits of kept ones") {
  SUBCASE("gelu") { check_equal_bits(perceptron{0}, {33, 24}, "gelu_grad_and_result", 2); }
  SUBCASE("gelu by tanh") { check_equal_bits(perceptron{1}, {33, 24}, "gelu_grad_and_result", 2); }
  SUBCASE("silu") { check_equal_bits(perceptron{2}, {33, 24}, "silu_grad_and_result", 2); }
  SUBCASE("micro-batches") {
    check_equal_bits(perceptron{0}, {32, 24}, "gelu_grad_and_result", 4, {.micro_batches = 2});
  }
  SUBCASE("clipped") { check_equal_bits(perceptron{0}, {33, 24}, "gelu_grad_and_result", 2, {.clip_norm = 0.1}); }
  SUBCASE("normed images") { check_equal_bits(images{}, {6, 3, 5, 5}, "batch_norm_relu_grad", 2); }
  SUBCASE("through a view") { check_equal_bits(flat{}, {6, 3, 5, 5}, "batch_norm_relu_grad", 1); }
  SUBCASE("normed rows") { check_equal_bits(normed_rows{}, {6, 24}, "batch_norm_relu_grad", 1); }
  SUBCASE("needed earlier") { check_equal_bits(squared{}, {33, 24}, "gelu_grad_and_result", 0); }
}

TEST_CASE("what is kept or has no gradient stays as it is") {
  squared frozen;
  initialise(frozen, 3);
  auto const step = training_step(frozen, batch({8, 24}, 0), cross_entropy{}, sgd{}, {.keep_gradients = true});
  auto const again = recover_activations(step.program, step.loss);
  CHECK(again.count == 0);
  CHECK(again.program.op_count() == step.program.op_count());
}
