// The bodies of <neap/import/known_operators.hpp>.
#pragma once

#include <neap/import/known_operators.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/ir/standard_operators.hpp>

#include <cmath>
#include <vector>

namespace neap { inline namespace v0 { namespace io {

namespace detail::aten_known {

NEAP_FUNC void need(bool so) {
  if (!so) throw unsupported_argument{};
}
/// All arguments are tensors.
template <class Op>
known_operator tensors_alone(aten_call const& c) {
  need(c.argument_count() == static_cast<std::size_t>(c.operand_count()) && !c.has_keywords());
  return Op{};
}
NEAP_FUNC double number(aten_call const& c, int p) {
  need(c.argument(p).is_number());
  return c.argument(p).get<double>();
}
/// The reciprocal of a number, if it is one exactly.
NEAP_FUNC double reciprocal(double x) {
  int e = 0;
  need(std::isfinite(x) && std::abs(std::frexp(x, &e)) == 0.5 && std::abs(e) < 1000);
  return 1 / x;
}

// add, sub, mul and div of a tensor and a tensor or a number
NEAP_FUNC bool by_number(aten_call const& c) {
  need(c.argument_count() == 2 && !c.has_keywords());
  return c.operand_count() == 1;
}
NEAP_FUNC known_operator add(aten_call const& c) {
  if (by_number(c)) return op::add_scalar{number(c, 1)};
  return op::add{};
}
NEAP_FUNC known_operator sub(aten_call const& c) {
  if (by_number(c)) return op::add_scalar{-number(c, 1)};
  return op::sub{};
}
NEAP_FUNC known_operator mul(aten_call const& c) {
  if (by_number(c)) return op::mul_scalar{number(c, 1)};
  return op::mul{};
}
NEAP_FUNC known_operator div(aten_call const& c) {
  if (by_number(c)) return op::mul_scalar{reciprocal(number(c, 1))};
  return op::div{};
}
NEAP_FUNC known_operator pow(aten_call const& c) {
  need(by_number(c));
  if (number(c, 1) == 2) return op::square{};
  return op::pow_scalar{number(c, 1)};
}
NEAP_FUNC known_operator gelu(aten_call const& c) {
  need(c.argument_count() == 1);
  auto const& how = c.keyword("approximate");
  need(c.has_keywords() == !how.is_null() && (how.is_null() || how == "none" || how == "tanh"));
  return op::gelu{.tanh_form = how == "tanh"};
}

// views and moves
/// Any view or copy that keeps the elements in their order.
NEAP_FUNC known_operator reshape(aten_call const& c) {
  need(!c.has_keywords() && c.operand_count() == 1);
  return op::reshape{c.out_dims()};
}
NEAP_FUNC known_operator copy(aten_call const& c) {
  auto const& from = c.layout(0).type;
  auto const& to = c.out_layout(0).type;
  need(c.operand_count() == 1 && from.dims == to.dims);
  if (from.element != to.element) return op::cast{to.element};
  return op::copy{};
}
NEAP_FUNC known_operator permuted(aten_call const& c, std::vector<std::int64_t> const& axes) {
  need(!c.has_keywords() && static_cast<int>(axes.size()) == c.rank(0));
  op::permute x;
  for (auto a : axes) x.axes.push_back(c.plain_axis(a, c.rank(0)));
  return x;
}
NEAP_FUNC known_operator permute(aten_call const& c) { return permuted(c, c.integers(1)); }
NEAP_FUNC known_operator transposed(aten_call const& c, int a, int b) {
  std::vector<std::int64_t> axes;
  for (int k = 0; k < c.rank(0); ++k) axes.push_back(k == a ? b : k == b ? a : k);
  return permuted(c, axes);
}
NEAP_FUNC known_operator transpose(aten_call const& c) {
  return transposed(c, c.axis(1, c.rank(0)), c.axis(2, c.rank(0)));
}
NEAP_FUNC known_operator t(aten_call const& c) {
  need(c.rank(0) == 2);
  return transposed(c, 0, 1);
}
NEAP_FUNC known_operator expand(aten_call const& c) {
  need(!c.has_keywords());
  return op::broadcast_to{c.out_dims()};
}
/// [start, stop) of an axis, as PyTorch reads them.
NEAP_FUNC op::slice stretch(aten_call const& c, int axis, std::int64_t extent, int p) {
  need(c.integer(p + 2, 1) == 1 && !c.has_keywords());
  auto const within = [&](std::int64_t k) { return std::clamp<std::int64_t>(k < 0 ? k + extent : k, 0, extent); };
  auto const first = within(std::max(c.integer(p, 0), -extent)),
             stop = within(std::max(c.integer(p + 1, extent), -extent));
  need(first < stop);
  return {axis, first, stop};
}
NEAP_FUNC known_operator slice(aten_call const& c) {
  int const axis = c.axis(1, c.rank(0), 0);
  return stretch(c, axis, c.dims(0)[axis], 2);
}
/// slice_backward(grad, sizes, dim, start, end, step): zeros around it.
NEAP_FUNC known_operator slice_backward(aten_call const& c) {
  int const axis = c.axis(2, c.rank(0));
  auto const n = c.out_dims()[axis];
  auto const s = stretch(c, axis, n, 3);
  return op::pad{axis, s.start, n - s.stop, 0};
}
NEAP_FUNC known_operator cat(aten_call const& c) {
  need(!c.has_keywords() && c.argument(0).is_array() &&
       c.argument(0).size() == static_cast<std::size_t>(c.operand_count()));
  return op::concat{c.axis(1, c.rank(0), 0)};
}
NEAP_FUNC known_operator split(aten_call const& c) {
  int const axis = c.axis(2, c.rank(0), 0);
  auto const n = c.dims(0)[axis], size = c.integer(1);
  need(!c.has_keywords() && size > 0 && n % size == 0 && n / size == c.output_count());
  for (int j = 0; j < c.output_count(); ++j) need(c.gives(j));
  return op::split{axis, c.output_count()};
}

// sums and products
template <class Op>
known_operator reduce(aten_call const& c) {
  Op x;
  need(!c.has_keywords() && is_floating(c.layout(0).type.element));
  if (!c.is_null(1))
    for (auto a : c.integers(1)) x.axes.push_back(c.plain_axis(a, c.rank(0)));
  x.keepdim = c.boolean(2, false);
  return x;
}
/// convolution(x, w, b, stride, padding, dilation, transposed, output_padding, groups).
NEAP_FUNC known_operator convolution(aten_call const& c) {
  need(!c.has_keywords() && c.argument_count() == 9 && !c.boolean(6));
  auto const pair = [&](int p) {
    auto const n = c.integers(p);
    need(n.size() == 2);
    return extents{n[0], n[1]};
  };
  return op::conv2d{pair(3), pair(4), pair(5), c.integer(8)};
}

struct row {
  std::string_view op;  // behind "aten."
  known_operator (*of)(aten_call const&);
};
inline constexpr auto table = std::to_array<row>({
    {"_to_copy.default", copy},
    {"_unsafe_view.default", reshape},
    {"abs.default", tensors_alone<op::abs>},
    {"add.Scalar", add},
    {"add.Tensor", add},
    {"alias.default", reshape},
    {"bmm.default", tensors_alone<op::matmul>},
    {"cat.default", cat},
    {"clone.default", copy},
    {"convolution.default", convolution},
    {"cos.default", tensors_alone<op::cos>},
    {"detach.default", reshape},
    {"div.Scalar", div},
    {"div.Tensor", div},
    {"erf.default", tensors_alone<op::erf>},
    {"exp.default", tensors_alone<op::exp>},
    {"expand.default", expand},
    {"gelu.default", gelu},
    {"lift_fresh_copy.default", copy},
    {"log.default", tensors_alone<op::log>},
    {"mean.dim", reduce<op::mean>},
    {"mm.default", tensors_alone<op::matmul>},
    {"mul.Scalar", mul},
    {"mul.Tensor", mul},
    {"neg.default", tensors_alone<op::neg>},
    {"permute.default", permute},
    {"pow.Tensor_Scalar", pow},
    {"reciprocal.default", tensors_alone<op::reciprocal>},
    {"relu.default", tensors_alone<op::relu>},
    {"reshape.default", reshape},
    {"rsqrt.default", tensors_alone<op::rsqrt>},
    {"sigmoid.default", tensors_alone<op::sigmoid>},
    {"silu.default", tensors_alone<op::silu>},
    {"sin.default", tensors_alone<op::sin>},
    {"slice.Tensor", slice},
    {"slice_backward.default", slice_backward},
    {"split.Tensor", split},
    {"sqrt.default", tensors_alone<op::sqrt>},
    {"squeeze.dim", reshape},
    {"squeeze.dims", reshape},
    {"sub.Scalar", sub},
    {"sub.Tensor", sub},
    {"sum.default", reduce<op::sum>},
    {"sum.dim_IntList", reduce<op::sum>},
    {"t.default", t},
    {"tanh.default", tensors_alone<op::tanh>},
    {"transpose.int", transpose},
    {"unsqueeze.default", reshape},
    {"view.default", reshape},
});
static_assert(std::ranges::is_sorted(table, {}, &row::op));

}  // namespace detail::aten_known

namespace detail::magis_known {

using aten_known::need;

NEAP_FUNC std::vector<std::int64_t> integers(nlohmann::json const& attributes, char const* name) {
  need(attributes.contains(name) && attributes[name].is_array());
  std::vector<std::int64_t> all;
  for (auto const& x : attributes[name]) {
    need(x.is_number_integer());
    all.push_back(x.get<std::int64_t>());
  }
  return all;
}
NEAP_FUNC bool flag(nlohmann::json const& attributes, char const* name) {
  return attributes.contains(name) && attributes[name] == true;
}
NEAP_FUNC extents pair(nlohmann::json const& attributes, char const* name) {
  auto const n = integers(attributes, name);
  need(n.size() == 2);
  return {n[0], n[1]};
}

NEAP_FUNC known_operator of(std::string_view tag, nlohmann::json const& a, std::span<extents const> in,
                            extents const& out) {
  struct row {
    std::string_view tag;
    known_operator known;
  };
  static row const plain[] = {{"ewise.bin.add", op::add{}},   {"ewise.bin.sub", op::sub{}},
                              {"ewise.bin.mul", op::mul{}},   {"ewise.uni.relu", op::relu{}},
                              {"ewise.uni.tanh", op::tanh{}}, {"ewise.uni.sigmoid", op::sigmoid{}},
                              {"ewise.uni.exp", op::exp{}},   {"ewise.uni.neg", op::neg{}}};
  for (auto const& r : plain)
    if (r.tag == tag) return r.known;
  need(a.is_object());
  if (tag.starts_with("ewise.uni.const.")) {
    need(a.contains("const") && a["const"].is_number());
    auto const x = a["const"].get<double>();
    if (tag.ends_with(".add")) return op::add_scalar{x};
    if (tag.ends_with(".mul")) return op::mul_scalar{x};
    if (tag.ends_with(".div")) return op::mul_scalar{aten_known::reciprocal(x)};
    need(tag.ends_with(".pow") && x == 2);
    return op::square{};
  }
  if (tag == "matmul") {
    need(!flag(a, "trans_c"));
    return op::matmul{flag(a, "trans_a"), flag(a, "trans_b")};
  }
  if (tag == "flex_matmul") {  // any axes of rows, one that is summed, one of columns
    for (auto turned : {"trans_a", "trans_b", "trans_c"}) need(!flag(a, turned));
    need(a.contains("n_batch_dims") && a["n_batch_dims"] == 0 && a.contains("n_reduce_dims") &&
         a["n_reduce_dims"] == 1);
    need(in.size() == 2 && in[1].rank() == 2 && (!a.contains("activation") || a["activation"].is_null()));
    return op::matmul{};
  }
  if (tag == "reshape") return op::reshape{out};
  if (tag == "permute") {
    op::permute x;
    for (auto k : integers(a, "dims")) x.axes.push_back(k);
    return x;
  }
  if (tag == "concat") {
    need(a.contains("dim") && a["dim"].is_number_integer());
    return op::concat{a["dim"].get<std::int64_t>()};
  }
  if (tag == "slice") {
    auto const axis = integers(a, "dims"), from = integers(a, "starts"), to = integers(a, "ends");
    need(axis.size() == 1 && from.size() == 1 && to.size() == 1);
    return op::slice{axis[0], from[0], to[0]};
  }
  need(tag == "conv2d" && a.contains("layout") && a["layout"] == "nchw");
  return op::conv2d{pair(a, "stride"), pair(a, "padding"), pair(a, "dilation"), 1};
}

}  // namespace detail::magis_known

NEAP_FUNC std::optional<known_operator> known_aten(aten_node const& n) {
  auto const& table = detail::aten_known::table;
  if (!n.op.starts_with("aten.") || !n.args || !n.args->is_array()) return std::nullopt;
  auto const row = std::ranges::lower_bound(table, n.op.substr(5), {}, &detail::aten_known::row::op);
  if (row == table.end() || row->op != n.op.substr(5)) return std::nullopt;
  try {
    detail::aten_call const c(n);
    if (!c.takes_inputs_in_turn()) return std::nullopt;
    return row->of(c);
  } catch (detail::unsupported_argument const&) { return std::nullopt; }
}

NEAP_FUNC std::optional<known_operator> known_magis(std::string_view tag, nlohmann::json const& attributes,
                                                    std::span<extents const> in, extents const& out) {
  try {
    return detail::magis_known::of(tag, attributes, in, out);
  } catch (detail::unsupported_argument const&) { return std::nullopt; }
}

}}}  // namespace neap::v0::io
