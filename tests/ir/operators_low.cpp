// Operators of bf16 and f16 whose kernels go by way of f32: they give what the operator gives in f32 of the same numbers,
// rounded once; in the workspace that they ask for; with the same bits on any number of threads.
#include <neap/ir/operators/by_f32.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/model/kernels.hpp>

#include <doctest/doctest.h>

#include "../support/operator_check.hpp"

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

/// The outputs of an op, and whether it wrote beside its workspace or its outputs.
std::vector<array> outputs_of(operator_view op, std::vector<array> const& in, int threads) {
  host_backend b(threads);
  std::vector<tensor_layout> layouts;
  for (auto const& x : in) layouts.push_back(x.layout);
  auto const rules = neap::testing::detail::infer(op, in);
  std::vector<array> out;
  for (auto const& r : rules) out.emplace_back(r.layout), layouts.push_back(r.layout);
  auto const all = span_of(layouts);
  bytes_t const bytes =
      op.facets->workspace ? op.facets->workspace(op.bytes, {all.first(in.size()), all.subspan(in.size())}) : 0;
  constexpr std::size_t guard = 256;
  struct alignas(64) line {
    unsigned char bytes[64];
  };
  std::vector<line> memory((static_cast<std::size_t>(bytes) + 2 * guard) / 64 + 2);
  auto* const begin = memory.front().bytes;
  std::size_t const size = memory.size() * 64;
  std::memset(begin, 0xa5, size);
  std::vector<tensor_ref> refs, to;
  for (auto const& x : in) refs.push_back(x.ref());
  for (auto const& x : out) to.push_back(x.ref());
  host_kernel (*op.facets)(b, op.bytes, {refs, to, begin + guard});
  bool untouched = true;
  for (std::size_t i = 0; i < guard; ++i) untouched = untouched && begin[i] == 0xa5;
  for (std::size_t i = guard + static_cast<std::size_t>(bytes); i < size; ++i)
    untouched = untouched && begin[i] == 0xa5;
  CHECK_MESSAGE(untouched, std::string(op.facets->name));
  return out;
}

array as(dtype t, array const& x) {
  if (!is_floating(x.layout.type.element)) return x;
  auto l = x.layout;
  l.type.element = t;
  array y(l);
  for (std::int64_t i = 0; i < x.count(); ++i) y.set(i, x[i]);
  return y;
}

double rounded(dtype t, double x) {
  return t == dtype::bf16 ? static_cast<double>(float(bf16(static_cast<float>(x))))
                          : static_cast<double>(float(f16(static_cast<float>(x))));
}

/// `kept`: bits of floating inputs that are f32 beside low ones. `sums`: the f32 results may differ in the order of sums.
template <class Op>
void check_low(Op const& op, std::vector<operand> const& spec, bool sums = false, std::uint32_t kept = 0) {
  static std::uint64_t seed = 0;
  for (dtype t : {dtype::bf16, dtype::f16})
    for (bool views : {false, true}) {
      if (views && facets_of<Op>.takes == layouts::dense) continue;
      auto const drawn = neap::testing::detail::draw_inputs(spec, dtype::f32, ++seed, false);
      std::vector<array> low, wide;
      random_stream layouts(seed, 3);
      for (std::size_t i = 0; i < drawn.size(); ++i) {
        bool const is_low_one = is_floating(spec[i].element) && !(kept >> i & 1);
        array x = as(is_low_one ? t : drawn[i].layout.type.element, drawn[i]);
        if (views && i == 0 && x.layout.type.rank() == 4) {  // samples apart from one another
          auto l = x.layout;
          l.strides[0] += 7, l.offset = 3;
          array y(l);
          for (std::int64_t k = 0; k < x.count(); ++k) y.set(k, x[k]);
          x = std::move(y);
        }
        wide.push_back(is_low_one ? as(dtype::f32, x) : x);
        low.push_back(std::move(x));
      }
      INFO(Op::name << " in " << name_of(t));
      auto const one = outputs_of(view_of(op), low, 1), three = outputs_of(view_of(op), low, 3);
      auto const expected = outputs_of(view_of(op), wide, 2);
      for (std::size_t j = 0; j < one.size(); ++j) {
        CHECK(std::memcmp(one[j].memory.data(), three[j].memory.data(), one[j].memory.size() * 8) == 0);
        auto const element = one[j].layout.type.element;
        double worst = 0;
        double const unit = element == dtype::bf16 ? 0x1p-8 : element == dtype::f16 ? 0x1p-11 : 0x1p-20;
        bool equal = true;
        for (std::int64_t i = 0; i < one[j].count(); ++i) {
          double const x = one[j][i], y = is_low(element) ? rounded(element, expected[j][i]) : expected[j][i];
          equal = equal && x == y;
          worst =
              std::max(worst, std::abs(x - expected[j][i]) / std::max(std::abs(expected[j][i]), sums ? 0.5 : 0x1p-6));
        }
        CHECK(one[j].layout.type.dims == expected[j].layout.type.dims);
        if (sums) CHECK(worst <= 1.5 * unit);
        else CHECK(equal);
      }
    }
}

operand const places{{5, 3, 4, 4}, 0, 4, dtype::u8, false};

}  // namespace

TEST_CASE("pooling and resizing in bf16 and f16") {
  operand const x{{5, 3, 8, 8}}, g{{5, 3, 4, 4}};
  check_low(op::max_pool2d{}, {x});
  check_low(op::max_pool2d{{3, 3}, {2, 2}, {1, 1}}, {x});
  check_low(op::max_pool2d_grad{{5, 3, 8, 8}}, {g, places});
  check_low(op::max_pool2d_grad{{5, 3, 8, 8}, {3, 3}, {2, 2}, {1, 1}}, {g, {{5, 3, 4, 4}, 4, 5, dtype::u8, false}});
  check_low(op::avg_pool2d{}, {x});
  check_low(op::avg_pool2d_grad{{5, 3, 8, 8}, {3, 3}, {2, 2}, {1, 1}, false}, {g});
  check_low(op::adaptive_avg_pool2d{3, 2}, {x});
  check_low(op::adaptive_avg_pool2d_grad{{5, 3, 9, 7}}, {g});
  check_low(op::interpolate{16, 12, true, true}, {x});
  check_low(op::interpolate{5, 7}, {x});
  check_low(op::interpolate_grad{{5, 3, 8, 8}, true}, {g});
  // More than a group of samples, and a last one that is smaller.
  check_low(op::max_pool2d{}, {{{7, 8, 64, 66}}});
  check_low(op::max_pool2d{}, {{{0, 2, 4, 4}}});
}

TEST_CASE("convolutions in bf16 and f16") {
  operand const b{{6}};
  for (std::int64_t groups : {1, 2}) {
    operand const x{{5, 4, 9, 8}}, w{{6, 4 / groups, 3, 3}};
    op::conv2d const forward{{2, 1}, {1, 1}, {1, 1}, groups};
    check_low(forward, {x, w}, true);
    check_low(forward, {x, w, b}, true);
    operand const dy{{5, 6, 5, 8}};
    check_low(op::conv2d_grad_input{{5, 4, 9, 8}, {2, 1}, {1, 1}, {1, 1}, groups}, {dy, w}, true);
    check_low(op::conv2d_grad_weight{{6, 4 / groups, 3, 3}, {2, 1}, {1, 1}, {1, 1}, groups}, {x, dy}, true);
  }
  // Several groups of samples, by the ways that the kernel has: windows of 3 x 3 by 1, single points.
  operand const x{{6, 16, 40, 40}}, y{{6, 32, 40, 40}};
  for (std::int64_t k : {1, 3}) {
    operand const w{{32, 16, k, k}, -0.2, 0.2};
    extents const one{1, 1}, pad{k / 2, k / 2};
    check_low(op::conv2d{one, pad, one, 1}, {x, w, {{32}}}, true);
    check_low(op::conv2d_grad_input{x.dims, one, pad, one, 1}, {y, w}, true);
    check_low(op::conv2d_grad_weight{w.dims, one, pad, one, 1}, {x, y}, true);
  }
}

TEST_CASE("attention in bf16 and f16: the logarithms of sums are f32") {
  for (bool causal : {false, true})
    for (std::int64_t keys : {1, 4}) {
      operand const q{{3, 4, 20, 8}}, k{{3, keys, 20, 8}}, v{{3, keys, 20, 6}}, y{{3, 4, 20, 6}}, lse{{3, 4, 20}, 2, 4};
      check_low(op::attention{causal}, {q, k, v}, true);
      check_low(op::attention_grad{causal}, {y, q, k, v, y, lse}, true, 1u << 5);
      check_low(op::attention_grad{causal}, {y, q, k, v, y, lse, lse}, true, 3u << 5);
    }
  operand const large{{5, 4, 160, 64}}, lse{{5, 4, 160}, 4, 6};
  check_low(op::attention{true}, {large, large, large}, true);
  check_low(op::attention_grad{true}, {large, large, large, large, large, lse}, true, 1u << 5);
  // Odd extents, keys that are shared: large enough for matrix units, where there are any.
  operand const q{{2, 4, 131, 24}}, k{{2, 2, 131, 24}}, v{{2, 2, 131, 17}}, y{{2, 4, 131, 17}}, sums{{2, 4, 131}, 5, 6};
  check_low(op::attention{}, {q, k, v}, true);
  check_low(op::attention_grad{}, {y, q, k, v, y, sums, sums}, true, 3u << 5);
}

TEST_CASE("losses of bf16 and f16 logits are f32") {
  for (dtype t : {dtype::bf16, dtype::f16})
    for (bool per_row : {false, true}) {
      tensor_layout const in[] = {tensor_layout::dense({t, {4, 5}}), tensor_layout::dense({dtype::i64, {4}})};
      shape_context c("cross_entropy", in);
      op::cross_entropy{-100, per_row}.infer(c);
      CHECK(c.outputs()[0].layout.type == tensor_type{dtype::f32, per_row ? shape{4} : shape{}});
    }
}
