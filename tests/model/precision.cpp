#include <neap/model/precision.hpp>

#include <neap/ir/standard_operators.hpp>
#include <neap/model/functions.hpp>
#include <neap/model/nn/linear.hpp>
#include <neap/model/program.hpp>
#include <neap/train/grad.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

using namespace neap;

namespace {

struct doubled {
  static constexpr std::string_view name = "doubled";
  void infer(shape_context& c) const { c.fresh(c.in(0)); }
  void relate(dim_context& c) const { c.aligned(0, 0); }
};
template <class Backend>
void run(Backend& b, doubled const&, kernel_arguments const& a) {
  auto const* const x = a.in[0].as<float const>();
  auto* const y = a.out[0].as<float>();
  b.elementwise(a.in[0].count(), [=](std::int64_t i) { y[i] = 2 * x[i]; });
}
struct softsign : op::unary<softsign> {
  static constexpr std::string_view name = "softsign";
  template <class T>
  NEAP_HD T operator()(T x) const {
    return x / (T(1) + math::abs(x));
  }
  template <class T>
  NEAP_HD T slope(T x) const {
    T const d = T(1) + math::abs(x);
    return T(1) / (d * d);
  }
};

std::size_t casts(op_graph const& g) {
  std::size_t n = 0;
  for (auto o : g.ops()) n += g.as<op::cast>(o) != nullptr;
  return n;
}

}  // namespace

TEST_CASE("the precision of the standard operators") {
  auto const named = [](precision_use use) {
    std::vector<std::string> names;
    for (auto const* f : standard_operators::facets)
      if (f->precision.use == use && f->name.find("_grad") == f->name.npos) names.emplace_back(f->name);
    std::sort(names.begin(), names.end());
    return names;
  };
  using list = std::vector<std::string>;
  CHECK(named(precision_use::reduced) == list{"attention", "conv2d", "matmul"});
  CHECK(named(precision_use::full) == list{"binary_cross_entropy", "cumsum", "equal", "greater", "greater_equal",
                                           "huber", "less", "less_equal", "log_softmax", "mean", "mse", "multinomial",
                                           "not_equal", "sum"});
  CHECK(named(precision_use::rows) == list{"embedding"});
  CHECK(named(precision_use::of_first) == list{"accumulate", "assign"});
  auto const common = named(precision_use::common);
  for (auto const* name : {"add", "sub", "mul", "div", "maximum", "pow", "where", "concat", "layer_norm", "rms_norm",
                           "batch_norm", "group_norm", "batch_norm_inference", "scatter_add", "index_add"})
    CHECK_MESSAGE(std::find(common.begin(), common.end(), name) != common.end(), name);
  for (auto const* name : {"adamw", "matmul_adamw", "cast", "reshape", "batch_norm_update", "cross_entropy", "softmax"})
    CHECK_MESSAGE(std::find(common.begin(), common.end(), name) == common.end(), name);
  CHECK(facets_of<doubled>.precision.use == precision_use::full);
  CHECK(facets_of<softsign>.precision.use == precision_use::common);
}

TEST_CASE("a program's own operators are given f32, functions of one tensor what there is") {
  precision_scope const low(dtype::bf16);
  tensor const x = cast(tensor::full({3}, 1.5), dtype::bf16), y = apply(doubled{}, {x});
  CHECK(y.element() == dtype::f32);
  CHECK(y.values<float>() == std::vector<float>(3, 3.f));
  CHECK(apply(softsign{}, {x}).element() == dtype::bf16);
}

TEST_CASE("what is f64 or an integer is never cast") {
  precision_scope const low(dtype::f16);
  tensor const x = tensor::randn({3, 3}, 1, dtype::f64);
  CHECK(matmul(x, x).element() == dtype::f64);
  CHECK(sum(x).element() == dtype::f64);
  CHECK((tensor::from<std::int64_t>({1, 2}, {2}) + 1).element() == dtype::i64);
}

TEST_CASE("casts of weights are made once, and again when the weight has changed, or where a gradient goes through") {
  nn::linear layer(4, 4);
  buffer table({4, 4}, initialiser::constant(1));
  tensor const x = tensor::randn({2, 4}, 1);
  auto const f = [&](tensor const& in) {
    tensor y;
    {
      no_gradient const off;
      y = layer(in);
    }
    y = y + layer(layer(in));
    y = matmul(y, table);
    assign(table, table * 2);
    return matmul(matmul(y, table), table);
  };
  precision_scope const low(dtype::bf16);
  auto const p = trace(f, x);
  // The sample twice for its products; weight and bias for each of recorded and not; the buffer before it is written, and
  // for each reader after, who looks at it anew.
  CHECK(casts(p.program) == 2 + 4 + 3);
  auto const w = parameters(layer);
  tensor const at_once = f(x);
  table.restart(initialiser::constant(1));
  auto const first = grad(sum(matmul(layer(layer(x)), table)), w);
  CHECK(first[0].element() == dtype::f32);
  CHECK(at_once.element() == dtype::bf16);
  // After an update another cast is read.
  tensor const before = layer(x);
  {
    no_gradient const off;
    apply(op::accumulate{}, {w[0], tensor::ones({4, 4})});
  }
  CHECK(before.values<float>() != layer(x).values<float>());
}

TEST_CASE("scopes nest, and end") {
  CHECK(!precision_scope::current());
  {
    precision_scope const low(dtype::bf16);
    {
      precision_scope const lower(dtype::f16);
      CHECK(precision_scope::current() == dtype::f16);
    }
    CHECK(precision_scope::current() == dtype::bf16);
  }
  CHECK(!precision_scope::current());
  CHECK_THROWS_WITH_AS(precision_scope{dtype::i32}, doctest::Contains("bf16 or f16, not in i32"), error);
}
