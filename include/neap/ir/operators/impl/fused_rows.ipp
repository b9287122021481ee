// The bodies of <neap/ir/operators/fused_rows.hpp>.
#pragma once

#include <neap/ir/operators/fused_rows.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0::op {

NEAP_FUNC std::string fused_rows::fault(std::size_t arity) const {
  using neap::detail::text_of;
  if (function < 0 || function >= static_cast<std::int64_t>(row_function::count))
    return text_of({"there is no function of rows ", function});
  if (eps != 0 && (is_gradient() || statistics() == 0)) return "its function has no eps";
  constexpr std::int64_t most = fused::most_inputs;
  if (before_inputs < 1 || before_inputs > most || after_inputs < 1 || after_inputs > most ||
      others(static_cast<int>(arity)) < 0 || others(static_cast<int>(arity)) >= most_operands)
    return text_of({"its programs are of ", before_inputs, " and ", after_inputs, " inputs, was given ", arity});
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

}  // namespace neap::inline v0::op
