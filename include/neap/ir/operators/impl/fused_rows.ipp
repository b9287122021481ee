// The bodies of <neap/ir/operators/fused_rows.hpp>.
#pragma once

#include <neap/ir/operators/fused_rows.hpp>

#include <neap/backend/kernels/batch_norm.hpp>
#include <neap/backend/kernels/group_norm.hpp>
#include <neap/backend/kernels/layer_norm.hpp>
#include <neap/backend/kernels/rms_norm.hpp>
#include <neap/core/separate_compilation.hpp>

#include <algorithm>

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC std::string fused_rows::fault(std::size_t arity) const {
  using neap::detail::text_of;
  if (function < 0 || function >= static_cast<std::int64_t>(row_function::count))
    return text_of({"there is no function of rows ", function});
  if (eps != 0 && (is_gradient() || statistics() == 0)) return "its function has no eps";
  if (groups != 0 && !is_of_groups()) return "its function has no groups";
  if (gives_result && follows() != row_function::batch_norm_relu_grad) return "its function gives no result again";
  constexpr std::int64_t most = fused::max_inputs;
  if (before_inputs < 1 || before_inputs > most || after_inputs < 1 || after_inputs > most ||
      others(static_cast<int>(arity)) < 0 || others(static_cast<int>(arity)) >= max_operands)
    return text_of({"its programs are of ", before_inputs, " and ", after_inputs, " inputs, got ", arity});
  if (!has_before() && !has_after()) return "it has no steps";
  if (!has_before() && (before_inputs != 1 || keeps_x)) return "it makes no x, and has inputs for it or keeps it";
  if (!has_after() && (after_inputs != 1 || keeps_y)) return "it goes on from no y, and has inputs for it or keeps it";
  if (has_before())
    if (auto const wrong = before().fault(static_cast<std::size_t>(before_inputs)); !wrong.empty())
      return "before: " + wrong;
  if (has_after())
    if (auto const wrong = after().fault(static_cast<std::size_t>(after_inputs)); !wrong.empty())
      return "after: " + wrong;
  return {};
}

NEAP_FUNC void fused_rows::infer(shape_context& c) const {
  auto const wrong = fault(static_cast<std::size_t>(c.arity()));
  c.require(wrong.empty(), wrong);
  auto const in = c.inputs();
  auto const first = static_cast<std::size_t>(before_inputs),
             others_end = first + static_cast<std::size_t>(others(c.arity()));
  plain_vector<tensor_layout> of_function, of_after;
  if (has_before()) {
    shape_context made("fused_rows: before", in.first(first));
    before().infer(made);
    of_function.push_back(made.outputs()[0].layout);
  } else {
    of_function.push_back(in[0]);
  }
  for (auto i = first; i < others_end; ++i) of_function.push_back(in[i]);
  with_function([&](auto const& f) {
    std::string const who = "fused_rows: " + std::string(std::decay_t<decltype(f)>::name);
    shape_context made(who, {of_function.data(), of_function.size()});
    f.infer(made);
    auto const y = made.outputs()[0].layout;
    if (has_after()) {
      of_after.push_back(y);
      for (auto i = others_end; i < in.size(); ++i) of_after.push_back(in[i]);
      shape_context end("fused_rows: after", {of_after.data(), of_after.size()});
      after().infer(end);
      auto const& z = end.outputs()[0].layout.type;
      c.require(z == y.type, "after makes ", z, " of ", y.type);
    }
    c.fresh(y.type);
    if (keeps_x) c.fresh(of_function[0].type);
    if (keeps_y) c.fresh(y.type);
    for (std::size_t j = 1; j < made.outputs().size(); ++j) c.fresh(made.outputs()[j].layout.type);
  });
}

NEAP_FUNC void fused_rows::relate(dim_context& c) const {
  if (is_of_channels()) relate_channels(c);
  else relate_rows(c);
}

NEAP_FUNC void fused_rows::relate_rows(dim_context& c) const {
  int const rank = c.out(0).rank(), whole = whole_results(), first = static_cast<int>(before_inputs),
            count = others(c.arity());
  bool const sums = is_norm_gradient();
  auto const row_axis = [&](int i, int axis, int k) {
    for (int j = 0; j < whole; ++j) c.same(i, axis, j, k);
    for (int j = whole; j < c.output_count() && !sums; ++j) c.same(i, axis, j, k);
    if (sums && whole < c.output_count()) c.reduced(i, axis, k);
  };
  auto const broadcast = [&](int i) {
    int const behind = rank - c.in(i).rank();
    for (int k = std::max(0, behind); k + 1 < rank; ++k)
      if (c.in(i).dims[k - behind] == c.out(0).dims[k]) row_axis(i, k - behind, k);
  };
  for (int i = 0; i < first; ++i) broadcast(i);
  // Gradients read rows and their statistics, and then a scale; norms have scale and shift alone.
  for (int i = 0; is_gradient() && i < std::min(count, 1 + statistics()); ++i)
    for (int k = 0; k + 1 < rank; ++k) row_axis(first + i, k, k);
  for (int i = first + count; i < c.arity(); ++i) broadcast(i);
}

// Batch norms are cut along channels, group norms along samples. Beside whole tensors, the function has statistics
// [N, groups], which samples cut, and statistics and vectors [C], which channels cut.
NEAP_FUNC void fused_rows::relate_channels(dim_context& c) const {
  auto const& whole = c.out(0).dims;
  int const cut = is_of_groups() ? 0 : 1, first = static_cast<int>(before_inputs), end = first + others(c.arity());
  auto const axis_of = [&](int i) {
    int const rank = c.in(i).rank(), behind = whole.rank() - rank;
    if (i < first || i >= end) return cut - behind;
    if (is_of_groups()) return rank > 1 ? 0 : -1;
    return rank > 1 ? 1 : 0;
  };
  for (int i = 0; i < c.arity(); ++i) {
    int const axis = axis_of(i);
    bool const of_function = i >= first && i < end;
    if (axis < 0 || (!of_function && c.in(i).dims[axis] != whole[cut])) continue;
    bool summed = false;  // over samples: the gradients of a group norm's scale and shift
    for (int j = 0; j < c.output_count(); ++j)
      if (c.out(j).rank() > 1) c.same(i, axis, j, cut);
      else if (is_of_groups()) summed = true;
      else c.same(i, axis, j, 0);
    if (summed) c.reduced(i, axis, 0);
  }
}

}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC bool fused_rows::is_gradient() const {
  switch (follows()) {
    case row_function::layer_norm:
    case row_function::rms_norm:
    case row_function::softmax:
    case row_function::log_softmax:
    case row_function::batch_norm:
    case row_function::group_norm: return false;
    default: return true;
  }
}

NEAP_FUNC int fused_rows::statistics() const {
  switch (follows()) {
    case row_function::layer_norm:
    case row_function::layer_norm_grad:
    case row_function::batch_norm:
    case row_function::batch_norm_grad:
    case row_function::batch_norm_relu_grad:
    case row_function::group_norm:
    case row_function::group_norm_grad: return 2;
    case row_function::rms_norm:
    case row_function::rms_norm_grad: return 1;
    default: return 0;
  }
}

NEAP_FUNC int fused_rows::more_results(int operands) const {
  if (!is_norm_gradient()) return statistics();
  if (follows() == row_function::batch_norm_relu_grad) return gives_result ? 3 : 2;
  return operands > 1 + statistics() ? statistics() : 0;  // those of scale and shift
}

NEAP_FUNC work fused_rows::cost(work_context const& c) const {
  double flops = with_function([](auto const& f) { return neap::detail::flops_v<std::decay_t<decltype(f)>>; });
  for (auto const& p : {before(), after()})
    for (int k = 0; k < p.step_count(); ++k) flops += detail::step_at(p.step(k).row)->flops;
  return detail::streaming_work(c, flops);
}

NEAP_FUNC bytes_t fused_rows::workspace(work_context const& c) const {
  auto const& x = c.out[0].type;
  switch (follows()) {
    case row_function::batch_norm_grad:
    case row_function::batch_norm_relu_grad: return neap::batch_norm_workspace(x);
    case row_function::group_norm_grad: return neap::group_norm_backward_workspace(x);
    default: break;
  }
  if (!is_norm_gradient() || static_cast<int>(c.out.size()) == whole_results()) return 0;
  return statistics() == 2 ? neap::layer_norm_backward_workspace(x) : neap::rms_norm_backward_workspace(x);
}

}  // namespace op
}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace op { namespace detail {

NEAP_FUNC fused_rows_operands::fused_rows_operands(fused_rows const& op, kernel_arguments const& a) {
  auto const first = static_cast<std::size_t>(op.before_inputs);
  auto const others = static_cast<std::size_t>(op.others(static_cast<int>(a.in.size())));
  before_in = a.in.first(first);
  auto const& y = a.out[op.keeps_y ? (op.keeps_x ? 2 : 1) : 0];
  function_in[0] = !op.has_before() ? a.in[0] : op.keeps_x ? a.out[1] : y;
  for (std::size_t i = 0; i < others; ++i) function_in[operands++] = a.in[first + i];
  function_out[0] = after_in[0] = y;
  for (auto j = static_cast<std::size_t>(op.whole_results()); j < a.out.size(); ++j) function_out[results++] = a.out[j];
  for (std::size_t i = first + others, k = 1; i < a.in.size(); ++i) after_in[k++] = a.in[i];
}

NEAP_FUNC kernel_arguments fused_rows_operands::function(void* workspace) const {
  return {std::span(function_in).first(operands), std::span(function_out).first(results), workspace};
}

NEAP_FUNC kernel_arguments fused_rows_operands::after(fused_rows const& op, kernel_arguments const& a) const {
  return {std::span(after_in).first(static_cast<std::size_t>(op.after_inputs)), a.out.first(1)};
}

}  // namespace detail
}  // namespace op
}}  // namespace neap::v0
