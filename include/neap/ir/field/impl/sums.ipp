// The bodies of <neap/ir/field/sums.hpp>.
#pragma once

#include <neap/ir/field/sums.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/ir/field/elementwise.hpp>
#include <neap/ir/operators/conv2d.hpp>
#include <neap/ir/operators/fused.hpp>
#include <neap/ir/operators/reduction.hpp>

#include <algorithm>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC field_element field_reduced(field_evaluator& e, field_request const& r, extents const& axes, bool keepdim) {
  auto const v = e.inputs(r.op)[0];
  auto const& dims = e.dims(v);
  op::detail::reduced_axes const reduced(axes, dims.rank());
  index_place p(dims.rank());
  for (int a = 0, b = 0; a < dims.rank(); ++a) {
    if (!reduced.at[a]) p[a] = r.place[b];
    b += !reduced.at[a] || keepdim;
  }
  return e.sum_over(dims, p, reduced.at, [&](index_place const& q) { return e.at(v, q); });
}

NEAP_FUNC field_element field_mean(field_evaluator& e, field_request const& r) {
  auto const& m = r.as<op::mean>();
  auto const& g = e.graph();
  auto const terms = g.type(g.inputs(r.op)[0]).count() / std::max<std::int64_t>(g.type(r.result).count(), 1);
  return e.mean(field_reduced(e, r, m.axes, m.keepdim), terms);
}

NEAP_FUNC field_element field_sum_to(field_evaluator& e, field_request const& r) {
  auto const from = e.inputs(r.op)[0];
  auto const &x = e.dims(from), &y = e.dims(r.result);
  bool reduced[max_rank]{};
  index_place q(x.rank());
  for (int a = 0, missing = x.rank() - y.rank(); a < x.rank(); ++a) {
    reduced[a] = a < missing || y[a - missing] != x[a];
    if (!reduced[a]) q[a] = r.place[a - missing];
  }
  return e.sum_over(x, q, reduced, [&](index_place const& p) { return e.at(from, p); });
}

NEAP_FUNC field_element field_product(field_evaluator& e, field_request const& r, op::matmul const& m) {
  auto const a = e.inputs(r.op)[0], b = e.inputs(r.op)[1];
  auto const &da = e.dims(a), &db = e.dims(b);
  int const ra = da.rank(), rb = db.rank(), rank = r.place.rank();
  index_place pa(ra), pb(rb);
  for (int k = 0; k < ra - 2; ++k)
    if (da[k] != 1) pa[k] = r.place[rank - ra + k];
  for (int k = 0; k < rb - 2; ++k)
    if (db[k] != 1) pb[k] = r.place[rank - rb + k];
  pa[m.transpose_a ? ra - 1 : ra - 2] = r.place[rank - 2];
  pb[m.transpose_b ? rb - 2 : rb - 1] = r.place[rank - 1];
  int const ka = m.transpose_a ? ra - 2 : ra - 1, kb = m.transpose_b ? rb - 1 : rb - 2;
  field_element s = da[ka] == 0 ? e.zero() : field_element{};
  for (std::int64_t i = 0; i < da[ka] && e.goes_on(); ++i) {
    pa[ka] = pb[kb] = {i, 0};
    s = e.sum(s, e.product(e.at(a, pa), e.at(b, pb)));
  }
  return s;
}

/// A result of a fused product.
NEAP_FUNC field_element field_fused_product(field_evaluator& e, field_request const& r, op::fused const& f) {
  auto const& g = e.graph();
  auto const z = g.outputs(r.op)[0];
  if (f.sums != product_sums::none && r.result == g.outputs(r.op).back()) {
    auto const v = f.summed() >= 0 ? g.inputs(r.op)[static_cast<std::size_t>(f.summed())] : z;
    auto const& dims = e.dims(v);
    bool reduced[max_rank]{};
    std::fill_n(reduced, dims.rank() - 1, true);
    index_place from(dims.rank());
    from[dims.rank() - 1] = r.place[0];
    return e.sum_over(dims, from, reduced, [&](index_place const& q) { return e.at(v, q); });
  }
  auto product = field_product(e, r, f.anchor_as<op::matmul>());
  if (f.epilogue.empty()) return product;
  if (product.degree > field_arithmetic::max_degree) product = e.give_up();
  e.see(g.type(z).element, product);
  plain_vector<value_id> in{z};
  for (auto x : g.inputs(r.op).subspan(2)) in.push_back(x);
  return field_steps(e, f.epilogue, span_of(in), &product, r.place, r.result == z ? f.epilogue.step_count - 1 : 0);
}

/// A result of a fused op: programs alone and products by their formulas, functions of rows and channels hashed.
NEAP_FUNC field_element field_fused(field_evaluator& e, field_request const& r) {
  auto const& f = r.as<op::fused>();
  auto const in = e.inputs(r.op);
  if (!f.fault(in.size()).empty()) return e.give_up();
  if (!f.has_anchor()) return field_steps(e, f.prologue, in, nullptr, r.place, f.prologue.step_count - 1);
  auto x = f.is_product() ? field_fused_product(e, r, f) : e.hashed(r);
  x.kernel = x.masked;
  return x;
}

// ---------------------------------------------------------------------------------------------- convolutions

inline index_place place_of(coordinate a, coordinate b, coordinate c, coordinate d) {
  index_place p(4);
  p[0] = a, p[1] = b, p[2] = c, p[3] = d;
  return p;
}
inline coordinate fixed(std::int64_t n) { return {n, 0}; }
inline coordinate moved(coordinate x, std::int64_t n) { return {x.at + n, x.form}; }

/// The group of a channel, and the channel in it, where each group has n; false: the cell must be cut.
NEAP_FUNC bool in_group(field_evaluator& e, coordinate channel, std::int64_t n, coordinate& group, coordinate& rest) {
  std::int64_t const radices[] = {0, n};
  coordinate digit[2];
  if (channel.form == 0) digit[0] = fixed(channel.at / n), digit[1] = fixed(channel.at % n);
  else if (!e.frame()->digits(channel, radices, 2, digit)) return false;
  group = digit[0], rest = digit[1];
  return true;
}

/// The output row or column that a tap and an input row or column belong to.
template <class Op>
coordinate_range output_index(field_evaluator& e, Op const& c, int axis, coordinate in, std::int64_t tap,
                              std::int64_t outputs, coordinate& out) {
  auto const x = moved(in, c.padding[axis] - tap * c.dilation[axis]);
  if (auto const low = e.side(x, 0); low <= 0) return low == 0 ? coordinate_range::varies : coordinate_range::outside;
  auto const stride = c.stride[axis];
  if (x.form == 0) {
    if (x.at % stride != 0) return coordinate_range::outside;
    out = fixed(x.at / stride);
  } else if (auto const whole = e.frame()->divided(x, stride, out); whole <= 0) {
    return whole == 0 ? coordinate_range::varies : coordinate_range::outside;
  }
  return e.in_range(out, outputs);
}

NEAP_FUNC field_element field_convolution(field_evaluator& e, field_request const& r) {
  auto const& c = r.as<op::conv2d>();
  auto const& p = r.place;
  auto const in = e.inputs(r.op);
  auto const &dx = e.dims(in[0]), &dw = e.dims(in[1]);
  field_element s;
  bool has_terms = in.size() > 2;
  if (has_terms) {
    index_place bias(1);
    bias[0] = p[1];
    s = e.at(in[2], bias);
  }
  coordinate group, rest;
  if (!in_group(e, p[1], dw[0] / c.groups, group, rest)) return s;
  auto const first = e.scaled_by(group, dw[1]);
  auto const down = e.scaled_by(p[2], c.stride[0]), across = e.scaled_by(p[3], c.stride[1]);
  for (std::int64_t k = 0; k < dw[2]; ++k)
    for (std::int64_t l = 0; l < dw[3]; ++l) {
      auto const row = moved(down, k * c.dilation[0] - c.padding[0]);
      auto const column = moved(across, l * c.dilation[1] - c.padding[1]);
      if (e.in_range(row, dx[2]) != coordinate_range::inside || e.in_range(column, dx[3]) != coordinate_range::inside)
        continue;
      has_terms = has_terms || dw[1] > 0;
      for (std::int64_t i = 0; i < dw[1] && e.goes_on(); ++i)
        s = e.sum(s, e.product(e.at(in[0], place_of(p[0], moved(first, i), row, column)),
                               field_arithmetic::in_kernel(e.at(in[1], place_of(p[1], fixed(i), fixed(k), fixed(l))))));
    }
  return has_terms ? s : e.zero();
}

NEAP_FUNC field_element field_convolution_to_input(field_evaluator& e, field_request const& r) {
  auto const& c = r.as<op::conv2d_grad_input>();
  auto const& p = r.place;
  auto const dy = e.inputs(r.op)[0], w = e.inputs(r.op)[1];
  auto const &d = e.dims(dy), &dw = e.dims(w);
  auto const per_group = dw[0] / c.groups;
  field_element s;
  bool has_terms = false;
  coordinate group, channel;
  if (!in_group(e, p[1], dw[1], group, channel)) return s;
  auto const first = e.scaled_by(group, per_group);
  for (std::int64_t k = 0; k < dw[2]; ++k)
    for (std::int64_t l = 0; l < dw[3]; ++l) {
      coordinate row, column;
      if (output_index(e, c, 0, p[2], k, d[2], row) != coordinate_range::inside ||
          output_index(e, c, 1, p[3], l, d[3], column) != coordinate_range::inside)
        continue;
      has_terms = has_terms || per_group > 0;
      for (std::int64_t i = 0; i < per_group && e.goes_on(); ++i)
        s = e.sum(s, e.product(e.at(dy, place_of(p[0], moved(first, i), row, column)),
                               e.at(w, place_of(moved(first, i), channel, fixed(k), fixed(l)))));
    }
  return has_terms ? s : e.zero();
}

NEAP_FUNC coordinate sum_of(field_evaluator& e, coordinate a, coordinate b) {
  if (a.form == 0) return moved(b, a.at);
  if (b.form == 0) return moved(a, b.at);
  index_place p(2);
  p[0] = a, p[1] = b;
  std::int64_t const ones[] = {1, 1};
  return e.frame()->combined(p, ones);
}

NEAP_FUNC field_element field_convolution_to_weight(field_evaluator& e, field_request const& r) {
  auto const& c = r.as<op::conv2d_grad_weight>();
  auto const& p = r.place;
  auto const x = e.inputs(r.op)[0], dy = e.inputs(r.op)[1];
  auto const &dx = e.dims(x), &d = e.dims(dy), &dw = e.dims(e.graph().output(r.op));
  field_element s;
  bool has_terms = false;
  coordinate group, rest;
  if (!in_group(e, p[0], dw[0] / c.groups, group, rest)) return s;
  auto const channel = sum_of(e, e.scaled_by(group, dw[1]), p[1]);
  auto const down = e.scaled_by(p[2], c.dilation[0]), across = e.scaled_by(p[3], c.dilation[1]);
  for (std::int64_t i = 0; i < d[2]; ++i)
    for (std::int64_t j = 0; j < d[3]; ++j) {
      auto const row = moved(down, i * c.stride[0] - c.padding[0]);
      auto const column = moved(across, j * c.stride[1] - c.padding[1]);
      if (e.in_range(row, dx[2]) != coordinate_range::inside || e.in_range(column, dx[3]) != coordinate_range::inside)
        continue;
      has_terms = has_terms || d[0] > 0;
      for (std::int64_t n = 0; n < d[0] && e.goes_on(); ++n)
        s = e.sum(s, e.product(e.at(x, place_of(fixed(n), channel, row, column)),
                               e.at(dy, place_of(fixed(n), p[0], fixed(i), fixed(j)))));
    }
  return has_terms ? s : e.zero();
}

NEAP_FUNC std::span<field_rule const> sum_field_rules() {
  static constexpr field_rule rules[]{
      {standard_row<op::sum>, 0,
       [](field_evaluator& e, field_request const& r) {
         auto const& x = r.as<op::sum>();
         return field_reduced(e, r, x.axes, x.keepdim);
       }},
      {standard_row<op::mean>, 0, &field_mean},
      {standard_row<op::sum_to>, 0, &field_sum_to},
      {standard_row<op::matmul>, 0,
       [](field_evaluator& e, field_request const& r) { return field_product(e, r, r.as<op::matmul>()); }},
      {standard_row<op::fused>, field_rule::keeps_kernels | field_rule::any_type, &field_fused},
      {standard_row<op::conv2d>, 0, &field_convolution},
      {standard_row<op::conv2d_grad_input>, 0, &field_convolution_to_input},
      {standard_row<op::conv2d_grad_weight>, 0, &field_convolution_to_weight},
  };
  return rules;
}

}}}  // namespace neap::v0::detail
