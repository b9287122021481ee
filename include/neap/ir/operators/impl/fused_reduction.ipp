// The bodies of <neap/ir/operators/fused_reduction.hpp>.
#pragma once

#include <neap/ir/operators/fused_reduction.hpp>

#include <neap/backend/kernels/reduce.hpp>
#include <neap/core/separate_compilation.hpp>

#include <algorithm>

namespace neap { inline namespace v0 { namespace op {

namespace detail {
/// The shape that `count` operands broadcast to together, dims_of(i) being the i-th one's.
template <class Dims>
shape broadcast_of(std::size_t count, Dims const& dims_of) {
  shape whole;
  for (std::size_t i = 0; i < count; ++i)
    if (int const rank = dims_of(i).rank(); rank > whole.rank()) whole = extents::filled(rank, 1);
  for (std::size_t i = 0; i < count; ++i) {
    shape const& own = dims_of(i);
    for (int k = 0, missing = whole.rank() - own.rank(); k < own.rank(); ++k)
      if (own[k] != 1) whole[missing + k] = own[k];
  }
  return whole;
}
}  // namespace detail

NEAP_FUNC tensor_type fused_reduction::made_of(shape const& whole) const {
  auto const p = program();
  return {p.step(p.step_count() - 1).element, whole};
}

NEAP_FUNC tensor_type fused_reduction::x_type(std::span<tensor_layout const> in) const {
  return made_of(detail::broadcast_of(in.size(), [&](std::size_t i) -> shape const& { return in[i].type.dims; }));
}

NEAP_FUNC tensor_type fused_reduction::x_type(std::span<tensor_ref const> in) const {
  return made_of(detail::broadcast_of(in.size(), [&](std::size_t i) -> shape const& { return in[i].dims; }));
}

NEAP_FUNC std::array<bool, max_rank> fused_reduction::reduces(shape const& x) const {
  std::array<bool, max_rank> all{};
  if (follows() == reduction_function::sum_to) {
    neap::detail::broadcast_axes(x, dims, all.data());
  } else {
    detail::reduced_axes const marked(axes, x.rank());
    std::copy_n(marked.at, max_rank, all.begin());
  }
  return all;
}

NEAP_FUNC std::string fused_reduction::fault(std::size_t arity) const {
  if (function < 0 || function >= static_cast<std::int64_t>(reduction_function::count))
    return neap::detail::text_of({"there is no reduction ", function});
  bool const by_dims = follows() == reduction_function::sum_to;
  if (by_dims ? axes.rank() > 0 || keepdim : dims.rank() > 0)
    return by_dims ? "sum_to has no axes" : "its reduction has no extents";
  return program().fault(arity);
}

NEAP_FUNC void fused_reduction::infer(shape_context& c) const {
  auto const wrong = fault(static_cast<std::size_t>(c.arity()));
  c.require(wrong.empty(), wrong);
  shape_context made("fused_reduction", c.inputs());
  program().infer(made);
  auto const& x = made.outputs()[0].layout;
  c.require(is_floating(x.type.element), "its steps make ", x.type, ", which is of no floating type");
  with_function([&](auto const& f) {
    std::string const who = "fused_reduction: " + std::string(std::decay_t<decltype(f)>::name);
    shape_context end(who, {&x, 1});
    f.infer(end);
    c.fresh(end.outputs()[0].layout.type);
  });
  if (keeps_x) c.fresh(x.type);
}

NEAP_FUNC void fused_reduction::relate(dim_context& c) const {
  auto const whole = detail::broadcast_of(static_cast<std::size_t>(c.arity()), [&](std::size_t i) -> shape const& {
    return c.in(static_cast<int>(i)).dims;
  });
  auto const reduced = reduces(whole);
  bool const by_dims = follows() == reduction_function::sum_to;
  auto const how = kind() == neap::reduction::mean  ? combine::mean
                   : kind() == neap::reduction::max ? combine::max
                   : kind() == neap::reduction::min ? combine::min
                                                    : combine::sum;
  for (int k = 0, y = by_dims ? c.out(0).rank() - whole.rank() : 0, n = 0; k < whole.rank(); ++k) {
    bool const reduces_k = reduced[static_cast<std::size_t>(k)];
    for (int i = 0; i < c.arity(); ++i) {
      int const own = k - (whole.rank() - c.in(i).rank());
      if (own < 0 || c.in(i).dims[own] != whole[k]) continue;
      if (reduces_k) c.reduced(i, own, n, how);
      else c.same(i, own, 0, y);
      if (keeps_x) c.same(i, own, 1, k);
    }
    n += reduces_k;
    y += by_dims || keepdim || !reduces_k;
  }
}

NEAP_FUNC neap::reduction fused_reduction::kind() const {
  switch (follows()) {
    case reduction_function::mean: return neap::reduction::mean;
    case reduction_function::max_reduce: return neap::reduction::max;
    case reduction_function::min_reduce: return neap::reduction::min;
    default: return neap::reduction::sum;
  }
}

NEAP_FUNC work fused_reduction::cost(work_context const& c) const {
  work w = detail::streaming_work(c, 0);
  double flops = 1;
  auto const p = program();
  for (int k = 0; k < p.step_count(); ++k) flops += detail::step_at(p.step(k).row)->flops;
  w.flops = flops * static_cast<double>(x_type(c.in).count());
  return w;
}

NEAP_FUNC bytes_t fused_reduction::workspace(work_context const& c) const {
  auto const x = x_type(c.in);
  auto const reduced = reduces(x.dims);
  return neap::detail::reduce_bytes(x, c.out[0].type.element, reduced.data());
}

}}}  // namespace neap::v0::op
