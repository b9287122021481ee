#include <neap/ir/operators/attention.hpp>
#include <neap/ir/operators/channel_norm.hpp>
#include <neap/ir/operators/conv2d.hpp>
#include <neap/ir/operators/dropout.hpp>
#include <neap/ir/operators/image.hpp>
#include <neap/ir/operators/multinomial.hpp>
#include <neap/ir/operators/picking.hpp>

#include <neap/backend/kernels/conv2d.hpp>
#include <neap/backend/kernels/dropout.hpp>
#include <neap/backend/kernels/pool2d.hpp>

#include "../support/message.hpp"
#include "../support/operator_check.hpp"

#include <algorithm>
#include <limits>

using namespace neap;
using namespace neap::testing;

namespace {
numbers convolved(arrays const& in, op::conv2d const& op, shape const& y) {
  auto const &x = in[0].layout.type.dims, &w = in[1].layout.type.dims;
  std::vector<double> out;
  for (std::int64_t n = 0; n < y[0]; ++n)
    for (std::int64_t o = 0; o < y[1]; ++o)
      for (std::int64_t i = 0; i < y[2]; ++i)
        for (std::int64_t j = 0; j < y[3]; ++j) {
          double s = in.size() > 2 ? in[2][o] : 0;
          for (std::int64_t c = 0; c < w[1]; ++c)
            for (std::int64_t a = 0; a < w[2]; ++a)
              for (std::int64_t b = 0; b < w[3]; ++b) {
                auto const h = i * op.stride[0] + a * op.dilation[0] - op.padding[0],
                           v = j * op.stride[1] + b * op.dilation[1] - op.padding[1];
                if (h < 0 || v < 0 || h >= x[2] || v >= x[3]) continue;
                s += in[0].at({n, o / (y[1] / op.groups) * w[1] + c, h, v}) * in[1].at({o, c, a, b});
              }
          out.push_back(s);
        }
  return {out};
}
/// Each element of dy sent back to the elements of x that it was made of: dx, of shape `x`.
numbers sent_back(arrays const& in, op::conv2d const& op, shape const& x) {
  auto const &y = in[0].layout.type.dims, &w = in[1].layout.type.dims;
  std::vector<double> out(static_cast<std::size_t>(elements(x)));
  for (std::int64_t n = 0; n < y[0]; ++n)
    for (std::int64_t o = 0; o < y[1]; ++o)
      for (std::int64_t i = 0; i < y[2]; ++i)
        for (std::int64_t j = 0; j < y[3]; ++j)
          for (std::int64_t c = 0; c < w[1]; ++c)
            for (std::int64_t a = 0; a < w[2]; ++a)
              for (std::int64_t b = 0; b < w[3]; ++b) {
                auto const h = i * op.stride[0] + a * op.dilation[0] - op.padding[0],
                           v = j * op.stride[1] + b * op.dilation[1] - op.padding[1];
                if (h < 0 || v < 0 || h >= x[2] || v >= x[3]) continue;
                auto const channel = o / (y[1] / op.groups) * w[1] + c;
                out[static_cast<std::size_t>(((n * x[1] + channel) * x[2] + h) * x[3] + v)] +=
                    in[0].at({n, o, i, j}) * in[1].at({o, c, a, b});
              }
  return {out};
}
}  // namespace

TEST_CASE("convolution and its gradients") {
  struct {
    op::conv2d op;
    shape x, w;
    bool shift;
  } const cases[] = {{{}, {2, 2, 5, 6}, {4, 2, 3, 3}, false},
                     {{}, {2, 2, 5, 6}, {4, 2, 1, 1}, true},
                     {{{2, 1}, {1, 2}}, {2, 2, 5, 6}, {2, 2, 3, 3}, true},
                     {{{1, 2}, {2, 1}, {2, 1}}, {1, 4, 6, 7}, {2, 4, 3, 2}, false},
                     {{{1, 1}, {1, 1}, {1, 1}, 2}, {2, 4, 4, 4}, {6, 2, 3, 3}, true},
                     {{{2, 2}, {1, 1}, {1, 1}, 4}, {2, 4, 6, 6}, {4, 1, 3, 3}, false}};
  for (auto const& c : cases) {
    std::vector<operand> in{{c.x}, {c.w}};
    if (c.shift) in.push_back({{c.w[0]}});
    shape const y = conv2d_shape(c.x, c.w, op::detail::options_of(c.op));
    int const cuts = check_operator(c.op, in, [&](arrays const& a) { return convolved(a, c.op, y); });
    if (&c == cases) CHECK(cuts == 4);  // samples, filters, channels of both
    check_operator(op::conv2d_grad_input{c.x, c.op.stride, c.op.padding, c.op.dilation, c.op.groups}, {{y}, {c.w}},
                   [&](arrays const& a) { return sent_back(a, c.op, c.x); });
    check_operator(op::conv2d_grad_weight{c.w, c.op.stride, c.op.padding, c.op.dilation, c.op.groups}, {{c.x}, {y}});
  }
}

TEST_CASE("pooling and resizing") {
  for (shape x : {shape{2, 2, 6, 6}, shape{1, 2, 7, 5}, shape{0, 2, 6, 6}, shape{2, 0, 7, 5}}) {
    struct {
      extents window, stride, padding;
    } const cases[] = {{{2, 2}, {2, 2}, {0, 0}}, {{3, 3}, {2, 2}, {1, 1}}, {{3, 2}, {1, 2}, {0, 1}}};
    for (auto const& k : cases) {
      auto const pooled = [&](bool largest, bool all) {
        return [&k, x, largest, all](arrays const& in) {
          std::vector<double> y, places;
          for (std::int64_t p = 0; p < x[0] * x[1]; ++p)
            for (std::int64_t i = 0; i < (x[2] + 2 * k.padding[0] - k.window[0]) / k.stride[0] + 1; ++i)
              for (std::int64_t j = 0; j < (x[3] + 2 * k.padding[1] - k.window[1]) / k.stride[1] + 1; ++j) {
                double best = -std::numeric_limits<double>::infinity(), sum = 0, n = 0, place = 0;
                for (std::int64_t a = 0; a < k.window[0]; ++a)
                  for (std::int64_t b = 0; b < k.window[1]; ++b) {
                    auto const h = i * k.stride[0] + a - k.padding[0], v = j * k.stride[1] + b - k.padding[1];
                    if (h < 0 || v < 0 || h >= x[2] || v >= x[3]) continue;
                    double const e = in[0][p * x[2] * x[3] + h * x[3] + v];
                    if (e > best) best = e, place = static_cast<double>(a * k.window[1] + b);
                    sum += e, ++n;
                  }
                y.push_back(largest ? best : sum / (all ? static_cast<double>(k.window[0] * k.window[1]) : n));
                places.push_back(place);
              }
          return largest ? numbers{y, places} : numbers{y};
        };
      };
      check_operator(op::max_pool2d{k.window, k.stride, k.padding}, {{x}}, pooled(true, true));
      check_operator(op::avg_pool2d{k.window, k.stride, k.padding, true}, {{x}}, pooled(false, true));
      check_operator(op::avg_pool2d{k.window, k.stride, k.padding, false}, {{x}}, pooled(false, false));
      pool2d_options const o{
          {k.window[0], k.window[1]}, {k.stride[0], k.stride[1]}, {k.padding[0], k.padding[1]}, true};
      shape const y = pool2d_shape(x, o);
      // Places that lie inside the input for every window: any without padding, the middle of three.
      auto const taps = static_cast<double>(k.window[0] * k.window[1]);
      if (k.padding == extents{0, 0})
        check_operator(op::max_pool2d_grad{x, k.window, k.stride, k.padding}, {{y}, {y, 0, taps, dtype::u8, false}});
      else if (k.window == extents{3, 3})
        check_operator(op::max_pool2d_grad{x, k.window, k.stride, k.padding}, {{y}, {y, 4, 5, dtype::u8, false}});
      for (bool all : {false, true}) check_operator(op::avg_pool2d_grad{x, k.window, k.stride, k.padding, all}, {{y}});
    }
    check_operator(op::adaptive_avg_pool2d{}, {{x}}, [&](arrays const& in) {
      std::vector<double> y(static_cast<std::size_t>(x[0] * x[1]));
      auto const plane = x[2] * x[3];
      for (std::int64_t i = 0; i < in[0].count(); ++i)
        y[static_cast<std::size_t>(i / plane)] += in[0][i] / static_cast<double>(plane);
      return numbers{y};
    });
    check_operator(op::adaptive_avg_pool2d{3, 2}, {{x}});
    check_operator(op::adaptive_avg_pool2d_grad{x}, {{{x[0], x[1], 3, 2}}});
    check_operator(op::interpolate{2 * x[2], 2 * x[3]}, {{x}}, [&](arrays const& in) {
      std::vector<double> y;
      for (std::int64_t p = 0; p < x[0] * x[1]; ++p)
        for (std::int64_t i = 0; i < 2 * x[2]; ++i)
          for (std::int64_t j = 0; j < 2 * x[3]; ++j) y.push_back(in[0][p * x[2] * x[3] + i / 2 * x[3] + j / 2]);
      return numbers{y};
    });
    for (bool corners : {false, true}) {
      check_operator(op::interpolate{9, 4, true, corners}, {{x}});
      check_operator(op::interpolate_grad{x, true, corners}, {{{x[0], x[1], 9, 4}}});
    }
    check_operator(op::interpolate_grad{x}, {{{x[0], x[1], 4, 9}}});
  }
}

TEST_CASE("batch norm and group norm") {
  random_stream draw(61, 1);
  for (shape x : {shape{4, 6}, shape{2, 6, 3, 2}, shape{6, 4, 5}, shape{0, 4, 3}, shape{2, 4, 0},
                  shape{2 + draw.below(3), 2 * (1 + draw.below(3)), 2 + draw.below(3)}}) {
    auto const c = x[1], plane = x.rank() > 2 ? x[2] * (x.rank() > 3 ? x[3] : 1) : 1;
    auto const normalised = [&](std::int64_t groups) -> reference {  // 0: over the batch
      if (elements(x) == 0) return {};
      return [=](arrays const& in) {
        auto const cell = [&](std::int64_t i) {
          auto const n = i / (c * plane), k = i / plane % c;
          return static_cast<std::size_t>(groups ? n * groups + k / (c / groups) : k);
        };
        std::vector<double> y = in[0].values(), m(static_cast<std::size_t>(groups ? x[0] * groups : c)), r(m.size());
        double const n = static_cast<double>(elements(x)) / static_cast<double>(m.size());
        for (std::int64_t i = 0; i < elements(x); ++i) m[cell(i)] += in[0][i] / n;
        for (std::int64_t i = 0; i < elements(x); ++i)
          r[cell(i)] += (in[0][i] - m[cell(i)]) * (in[0][i] - m[cell(i)]) / n;
        for (auto& v : r) v = 1 / std::sqrt(v + 1e-5);
        for (std::int64_t i = 0; i < elements(x); ++i) {
          auto& v = y[static_cast<std::size_t>(i)];
          v = (v - m[cell(i)]) * r[cell(i)];
          if (in.size() > 1) v *= in[1][i / plane % c];
          if (in.size() > 2) v += in[2][i / plane % c];
        }
        return numbers{y, m, r};
      };
    };
    check_operator(op::batch_norm{}, {{x}}, normalised(0));
    check_operator(op::batch_norm{}, {{x}, {{c}}, {{c}}}, normalised(0));
    check_operator(op::batch_norm_grad{}, {{x}, {x}, {{c}}, {{c}, 0.5, 2}, {{c}}});
    check_operator(op::batch_norm_grad{}, {{x}, {x}, {{c}}, {{c}, 0.5, 2}});
    for (bool result : {false, true})
      check_operator(op::batch_norm_relu_grad{result}, {{x}, {x}, {{c}}, {{c}, 0.5, 2}, {{c}}, {{c}}});
    check_operator(op::group_norm{2}, {{x}}, normalised(2));
    check_operator(op::group_norm{2}, {{x}, {{c}}, {{c}}}, normalised(2));
    check_operator(op::group_norm_grad{2}, {{x}, {x}, {{x[0], 2}}, {{x[0], 2}, 0.5, 2}, {{c}}});
    check_operator(op::group_norm_grad{2}, {{x}, {x}, {{x[0], 2}}, {{x[0], 2}, 0.5, 2}});
    check_operator(op::batch_norm_inference{},
                   {{x}, {{c}, -1, 1, dtype::f64, false}, {{c}, 0.5, 2, dtype::f64, false}, {{c}}, {{c}}},
                   [&](arrays const& in) {
                     std::vector<double> y;
                     for (std::int64_t i = 0; i < elements(x); ++i) {
                       auto const k = i / plane % c;
                       y.push_back((in[0][i] - in[1][k]) / std::sqrt(in[2][k] + 1e-5) * in[3][k] + in[4][k]);
                     }
                     return numbers{y};
                   });
  }
  check_operator(op::batch_norm_update{0.2, 1e-5, 10}, {{{3}}, {{3}, 0.5, 2}, {{3}}, {{3}, 0.5, 2}},
                 [](arrays const& in) {
                   std::vector<double> m, v;
                   for (std::int64_t i = 0; i < 3; ++i) {
                     m.push_back(0.8 * in[0][i] + 0.2 * in[2][i]);
                     v.push_back(0.8 * in[1][i] + 0.2 * (1 / (in[3][i] * in[3][i]) - 1e-5) * 10 / 9);
                   }
                   return numbers{m, v};
                 },
                 {.gradient = false});
}

TEST_CASE("attention") {
  struct operands {
    shape q, k, v;
    bool causal;
    double scale;
  };
  std::vector<operands> cases{
      {{2, 2, 4, 6}, {2, 2, 4, 6}, {2, 2, 4, 6}, false, 0},  {{2, 2, 4, 6}, {2, 2, 4, 6}, {2, 2, 4, 2}, true, 0},
      {{2, 4, 5, 2}, {2, 2, 5, 2}, {2, 2, 5, 4}, true, 0.3}, {{1, 2, 3, 4}, {1, 2, 7, 4}, {1, 2, 7, 4}, false, 1},
      {{0, 2, 3, 4}, {0, 2, 3, 4}, {0, 2, 3, 4}, true, 0},   {{2, 2, 0, 4}, {2, 2, 3, 4}, {2, 2, 3, 4}, false, 0},
      {{2, 2, 3, 4}, {2, 1, 3, 4}, {2, 1, 3, 0}, false, 0}};
  random_stream draw(62, 1);
  for (int i = 0; i < 4; ++i) {
    auto const n = [&](std::uint32_t most) { return std::int64_t{1} + draw.below(most); };
    std::int64_t const b = n(2), heads = n(2), group = n(2), d = n(5), s = n(6);
    bool const causal = i % 2;
    std::int64_t const t = causal ? s : n(6);
    cases.push_back({{b, heads * group, t, d}, {b, heads, s, d}, {b, heads, s, n(5)}, causal, 0});
  }
  for (auto const& c : cases) {
    check_operator(op::attention{c.causal, c.scale}, {{c.q}, {c.k}, {c.v}}, [&](arrays const& in) {
      std::vector<double> y, lse;
      double const scale = c.scale != 0 ? c.scale : 1 / std::sqrt(static_cast<double>(c.q[3]));
      for (std::int64_t b = 0; b < c.q[0]; ++b)
        for (std::int64_t h = 0; h < c.q[1]; ++h)
          for (std::int64_t t = 0; t < c.q[2]; ++t) {
            auto const head = h / (c.q[1] / c.k[1]);
            std::vector<double> p;
            double sum = 0;
            for (std::int64_t s = 0; s < (c.causal ? t + 1 : c.k[2]); ++s) {
              double d = 0;
              for (std::int64_t i = 0; i < c.q[3]; ++i) d += in[0].at({b, h, t, i}) * in[1].at({b, head, s, i});
              p.push_back(std::exp(d * scale));
              sum += p.back();
            }
            lse.push_back(std::log(sum));
            for (std::int64_t i = 0; i < c.v[3]; ++i) {
              double r = 0;
              for (std::size_t s = 0; s < p.size(); ++s)
                r += p[s] / sum * in[2].at({b, head, static_cast<std::int64_t>(s), i});
              y.push_back(r);
            }
          }
      return numbers{y, lse};
    });
    shape const y{c.q[0], c.q[1], c.q[2], c.v[3]}, sums{c.q[0], c.q[1], c.q[2]};
    std::vector<operand> given{{y}, {c.q}, {c.k}, {c.v}, {y}, {sums, 1, 3}};
    check_operator(op::attention_grad{c.causal, c.scale}, given);
    given.push_back({sums});
    check_operator(op::attention_grad{c.causal, c.scale}, given);
  }
  // many rows and keys: several blocks of both
  check_operator(op::attention{true}, {{{1, 1, 300, 2}}, {{1, 1, 300, 2}}, {{1, 1, 300, 2}}});
  graph_editor e{operator_table(standard_operators::facets)};
  auto const q = e.add_source(role::input, {dtype::f32, {1, 2, 3, 4}}),
             none = e.add_source(role::input, {dtype::f32, {1, 2, 0, 4}}),
             one = e.add_source(role::input, {dtype::f32, {1, 2, 1, 4}});
  CHECK(message_of([&] {
          e.add(op::attention{}, {q, none, none});
        }) == "attention: needs at least one key, got [1,2,0,4]");
  auto const same = e.add(op::broadcast_to{{1, 2, 3, 4}}, {one})[0];
  CHECK(message_of([&] {
          e.add(op::attention{}, {q, same, q});
        }) == "attention: rows of input 1 must be dense and apart, got f32[1,2,3,4] with strides [8,4,0,1]");
  // Logarithms of sums keep the bits that their exponentials need.
  auto const narrow = e.add_source(role::input, {dtype::bf16, {1, 2, 3, 4}}),
             narrow_sums = e.add_source(role::input, {dtype::bf16, {1, 2, 3}});
  auto const out = e.add(op::attention{}, {narrow, narrow, narrow});
  e.add(op::attention_grad{}, {narrow, narrow, narrow, narrow, out[0], out[1]});
  CHECK(message_of([&] {
          e.add(op::attention_grad{}, {narrow, narrow, narrow, narrow, out[0], narrow_sums});
        }) == "attention_grad: logsumexp must be f32, got bf16[1,2,3]");
  CHECK(e.graph().type(out[0]) == tensor_type{dtype::bf16, {1, 2, 3, 4}});
  CHECK(e.graph().type(out[1]) == tensor_type{dtype::f32, {1, 2, 3}});
}

TEST_CASE("rows and elements picked by numbers") {
  for (shape ids : {shape{4}, shape{2, 6}, shape{}, shape{3, 2, 2}}) {
    CHECK(check_operator(op::embedding{}, {{{5, 6}}, {ids, 0, 5, dtype::i64}}, [](arrays const& in) {
            std::vector<double> y;
            for (std::int64_t i = 0; i < in[1].count(); ++i)
              for (std::int64_t k = 0; k < 6; ++k) y.push_back(in[0].at({static_cast<std::int64_t>(in[1][i]), k}));
            return numbers{y};
          }) > std::min(ids.rank(), 1));
    shape g = ids;
    g.push_back(6);
    CHECK(check_operator(op::embedding_grad{5}, {{g}, {ids, 0, 5, dtype::i64}}) > std::min(ids.rank(), 1));
  }
  for (shape ids : {shape{0}, shape{2, 0}}) {
    check_operator(op::embedding{}, {{{5, 6}}, {ids, 0, 5, dtype::i64}});
    check_operator(op::gather{ids.rank() - 1}, {{ids.rank() == 1 ? shape{4} : shape{2, 4}}, {ids, 0, 4, dtype::i64}});
    check_operator(op::scatter_add{ids.rank() - 1, 5}, {{ids}, {ids, 0, 5, dtype::i64}}, [](arrays const& in) {
      return numbers{std::vector<double>(in[0].layout.type.rank() == 1 ? 5 : 10)};
    });
  }
  random_stream draw(71, 1);
  for (std::uint64_t k = 1; k <= 4; ++k) {
    shape const x = random_shape(draw, 1, 4);
    int const axis = static_cast<int>(draw.below(static_cast<std::uint32_t>(x.rank())));
    shape index = x;
    index[axis] = 1 + draw.below(6);
    check_operator(op::gather{axis}, {{x}, {index, 0, static_cast<double>(x[axis]), dtype::i64}}, {}, {}, k);
    check_operator(op::scatter_add{axis - x.rank(), 4}, {{x}, {x, 0, 4, dtype::i64}}, {}, {}, k);
  }
  check_operator(op::gather{1}, {{{4, 6}}, {{4, 3}, 0, 6, dtype::i64}}, [](arrays const& in) {
    std::vector<double> y;
    for (std::int64_t i = 0; i < 4; ++i)
      for (std::int64_t k = 0; k < 3; ++k) y.push_back(in[0].at({i, static_cast<std::int64_t>(in[1].at({i, k}))}));
    return numbers{y};
  });
  check_operator(op::scatter_add{0, 5}, {{{4, 6}}, {{4, 6}, 0, 5, dtype::i64}}, [](arrays const& in) {
    std::vector<double> y(30);
    for (std::int64_t i = 0; i < 24; ++i)
      y[static_cast<std::size_t>(static_cast<std::int64_t>(in[1][i]) * 6 + i % 6)] += in[0][i];
    return numbers{y};
  });
}

TEST_CASE("sampled places are the same in parts and again") {
  for (bool replacement : {false, true}) {
    op::multinomial o;
    o.count = 3, o.replacement = replacement, o.key = 42;
    check_operator(o, {{{8, 5}, 0.1, 1}, {{}, 3, 4, dtype::i64}});
    check_operator(o, {{{1, 4, 5}, 0.1, 1}, {{}, 3, 4, dtype::i64}});
    check_operator(o, {{{5}, 0.1, 1}, {{}, 3, 4, dtype::i64}});
  }
}

TEST_CASE("dropout drops the same elements again") {
  for (double p : {0.0, 0.4, 1.0})
    check_operator(op::dropout{p, 42}, {{{7, 30}}, {{}, 3, 4, dtype::i64}}, [p](arrays const& in) {
      std::vector<double> y;
      for (std::int64_t i = 0; i < 210; ++i)
        y.push_back(p < 1 && dropout_keeps(42, 3, i, static_cast<float>(p)) ? in[0][i] / (1 - p) : 0);
      return numbers{y};
    });
  check_operator(op::dropout_grad{0.4, 42}, {{{7, 30}}, {{}, 3, 4, dtype::i64}});
  check_operator(op::dropout{0.4, 42}, {{{7, 0}}, {{}, 3, 4, dtype::i64}});
}
