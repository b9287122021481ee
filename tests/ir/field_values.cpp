#include <neap/ir/field_values.hpp>

#include <neap/schedule/order.hpp>

#include "../support/graph_maker.hpp"
#include "../support/plain_run.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

/// Sources by their place.
class by_source final : public given_values {
 public:
  explicit by_source(op_graph const& g) : g_(g) {}
  bool given(value_id v, digest& name) const override {
    name = digest{}.mix(index(v));
    return g_.producer(v) == nothing<op_id>;
  }

 private:
  op_graph const& g_;
};

field_secret const secret(hash_key::of(1));

field_answer compared(graph const& a, graph const& b) {
  by_source const of_a(a), of_b(b);
  field_comparison shared(secret);
  field_values x(a, of_a, shared), y(b, of_b, shared);
  auto const answer = field_values::compare(x, a.kept()[0], y, b.kept()[0]);
  if (answer == field_answer::same && !field_values::within_magnitudes(x, y)) return field_answer::different;
  return answer;
}
bool same(graph const& a, graph const& b) { return compared(a, b) == field_answer::same; }
template <class F>
graph of(F const& f) {
  maker m;
  m.keep(f(m));
  return m.done();
}

}  // namespace

TEST_CASE("every operator of sums and products computes what its kernel computes") {
  // Whole numbers as small as the kernels' arithmetic is exact: the field's numbers are then the same ones.
  auto const check = [](graph const& g) {
    host_backend backend;
    auto sources = random_sources(g, 5);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      random_stream draw(i, 8);
      for (bytes_t k = 0; k < sources[i].bytes() / 8; ++k)
        reinterpret_cast<double*>(sources[i].data())[k] = static_cast<double>(draw.below(7)) - 3;
    }
    auto const expected = run_plainly(g, reverse_post_order{}(g), sources, backend);
    // The same ops once more, on the sources' numbers as constants: nothing is given then.
    class numbers final : public given_values {
     public:
      bool given(value_id, digest&) const override { return false; }
    };
    graph_editor edit{operator_table(standard_operators::facets)};
    table<value_id, value_id> to(g.value_count(), nothing<value_id>);
    std::size_t next = 0;
    for (auto v : g.sources()) {
      std::vector<value_id> cells;
      auto const* data = reinterpret_cast<double const*>(sources[next++].data());
      for (std::int64_t k = 0; k < g.type(v).count(); ++k)
        cells.push_back(edit.add(op::fill{{1}, dtype::f64, data[k]}, {})[0]);
      auto const row = edit.add(op::concat{0}, span_of(cells))[0];
      to[v] = edit.add(op::reshape{g.type(v).dims}, {row})[0];
    }
    for (auto o : reverse_post_order{}(g)) {
      std::vector<value_id> in;
      for (auto v : g.inputs(o)) in.push_back(to[v]);
      auto const out = edit.emit(g.view(o), span_of(in));
      for (std::size_t j = 0; j < out.size(); ++j) to[g.outputs(o)[j]] = out[j];
    }
    numbers const none;
    field_comparison shared(secret);
    field_values values(edit.graph(), none, shared);
    for (std::size_t i = 0; i < g.kept().size(); ++i) {
      auto const v = g.kept()[i];
      auto const* data = reinterpret_cast<double const*>(expected.kept[i].data());
      CAPTURE(g.facets(g.producer(v)).name);
      auto const& dims = g.type(v).dims;
      CHECK(g.type(v).count() > 0);
      for (std::int64_t k = 0; k < g.type(v).count(); ++k) {
        extents place = extents::filled(dims.rank(), 0);
        auto rest = k;
        for (int axis = dims.rank() - 1; axis >= 0; rest /= dims[axis--]) place[axis] = rest % dims[axis];
        CHECK(values.at(to[v], place) == secret.field.of(data[k]));
      }
    }
    CHECK(values);
  };
  maker m;
  auto const a = m.in({2, 3}), b = m.in({3}), c = m.in({3, 4}), d = m.in({2, 4, 3}), e = m.in({5, 4});
  for (auto x : {a + b,
                 a - b,
                 a * b,
                 -a,
                 2.5 * a,
                 0.5 + a,
                 m.put(op::square{}, {a}),
                 copied(a),
                 permuted(d, {2, 0, 1}),
                 reshaped(d, {4, 6}),
                 cut(d, 1, 1, 3),
                 padded(d, -1, 2, 1),
                 broadcast(b, {2, 3}),
                 summed(d, {0, 2}),
                 summed(d, {}),
                 summed_to(d, {4, 1}),
                 cat(1, {d, d}),
                 mm(a, c),
                 mm(d, c),
                 mm(d, e, true, true),
                 m.put(op::triangle{0, true}, {d}),
                 m.put(op::triangle{-1, false}, {d}),
                 m.put(op::mean{{1}, true}, {d}),
                 cast_to(cast_to(a, dtype::f64), dtype::f64)})
    m.keep(x);
  for (auto x : m.put_all(op::split{1, 2}, {d})) m.keep(copied(x));
  auto const image = m.in({2, 4, 5, 6}), k = m.in({6, 2, 3, 2}), f = m.in({6});
  op::conv2d const conv{{2, 1}, {1, 2}, {1, 2}, 2};
  auto const y = m.put(conv, {image, k});
  m.keep(y);
  m.keep(m.put(conv, {image, k, f}));
  m.keep(m.put(op::conv2d_grad_input{{2, 4, 5, 6}, conv.stride, conv.padding, conv.dilation, conv.groups}, {y, k}));
  m.keep(
      m.put(op::conv2d_grad_weight{{6, 2, 3, 2}, conv.stride, conv.padding, conv.dilation, conv.groups}, {image, y}));
  m.keep(m.put(op::accumulate{}, {copied(a), a}));
  auto const whole = m.put(op::fill{{2, 3}, dtype::f64, 0.25}, {});
  m.keep(m.put(op::place{1, 1}, {whole, m.in({2, 2})}));
  m.keep(m.put(op::combine_into{}, {copied(a), a}));
  check(m.done());
}

TEST_CASE("functions are told apart by what they are and what they read") {
  auto const x_of = [](auto const& f) {
    return of([&](maker& m) {
      auto const x = m.in({2, 3}), y = m.in({2, 3});
      return f(m, x, y);
    });
  };
  auto const plain = x_of([](maker&, expr x, expr y) { return tanh(x + y); });
  CHECK(same(plain, x_of([](maker&, expr x, expr y) { return tanh(y + x); })));
  CHECK(!same(plain, x_of([](maker&, expr x, expr y) { return tanh(x) + tanh(y); })));
  CHECK(!same(plain, x_of([](maker& m, expr x, expr y) { return m.put(op::sigmoid{}, {x + y}); })));
  auto const rows = x_of([](maker& m, expr x, expr y) { return m.put(op::softmax{}, {x * y}); });
  CHECK(same(rows, x_of([](maker& m, expr x, expr y) { return m.put(op::softmax{}, {y * x}); })));
  CHECK(!same(rows, x_of([](maker& m, expr x, expr y) { return m.put(op::softmax{}, {y * y + x}); })));
  CHECK(!same(rows, x_of([](maker& m, expr x, expr y) { return m.put(op::log_softmax{}, {x * y}); })));
}

TEST_CASE("large values are compared at every place, and what is too large is said to be") {
  auto const big = [](std::int64_t n, bool turned) {
    return of([&](maker& m) {
      auto const x = m.in({n, n}), y = m.in({n, n});
      return turned ? y + x : x + y;
    });
  };
  CHECK(same(big(3000, false), big(3000, true)));
  auto const product = of([](maker& m) {
    auto const x = m.in({2000, 2000}), y = m.in({2000, 2000});
    return mm(mm(x, y), y);
  });
  by_source const given(product);
  field_comparison shared(secret);
  field_values few(product, given, shared, 1'000'000);
  CHECK(field_values::compare(few, product.kept()[0], few, product.kept()[0]) == field_answer::too_large);
}
