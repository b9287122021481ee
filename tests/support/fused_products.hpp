// Products with a program after them or sums beside them (op::fused), of each kind that product libraries have.
#pragma once

#include <neap/ir/operators/fused.hpp>
#include <neap/ir/standard_operators.hpp>

#include <vector>

namespace neap::testing {

enum class product_kind { bias, bias_relu, bias_gelu, gelu_grad, sums_of_a, sums_of_b, gelu_grad_sums, count };

/// `keeps`: what an activation reads is a second result.
inline op::fused product_of_kind(op::matmul const& m, product_kind kind, dtype element, bool keeps = false) {
  auto op = op::fused::of(m);
  op.keeps_step = keeps;
  if (kind == product_kind::sums_of_a || kind == product_kind::sums_of_b) {
    op.sums = kind == product_kind::sums_of_a ? product_sums::of_a : product_sums::of_b;
    return op;
  }
  op.epilogue = element_program(2);
  if (kind == product_kind::gelu_grad || kind == product_kind::gelu_grad_sums) {
    op.epilogue.add(op::gelu_grad{true}, element, {0, 1});
    if (kind == product_kind::gelu_grad_sums) op.sums = product_sums::of_result;
    return op;
  }
  int const sum = *op.epilogue.add(op::add{}, element, {0, 1});
  if (kind == product_kind::bias_relu) op.epilogue.add(op::relu{}, element, {sum});
  if (kind == product_kind::bias_gelu) op.epilogue.add(op::gelu{true}, element, {sum});
  return op;
}
/// The kind of a product that is one of these.
inline product_kind kind_of_product(op::fused const& op) {
  if (op.summed() >= 0) return op.summed() == 0 ? product_kind::sums_of_a : product_kind::sums_of_b;
  if (op.epilogue.is<op::gelu_grad>(0))
    return op.sums == product_sums::none ? product_kind::gelu_grad : product_kind::gelu_grad_sums;
  if (op.epilogue.step_count == 1) return product_kind::bias;
  return op.epilogue.is<op::relu>(1) ? product_kind::bias_relu : product_kind::bias_gelu;
}

struct product_case {
  product_kind kind;
  bool keeps;
  op::fused op;
};
/// All of them, transposed and not.
inline std::vector<product_case> all_products(dtype element) {
  std::vector<product_case> all;
  for (int k = 0; k < static_cast<int>(product_kind::count); ++k)
    for (bool const ta : {false, true})
      for (bool const tb : {false, true})
        for (bool const keeps : {false, true}) {
          auto const kind = static_cast<product_kind>(k);
          bool const bends = kind == product_kind::bias_relu || kind == product_kind::bias_gelu;
          if ((keeps && !bends) || (kind == product_kind::sums_of_a && !ta) || (kind == product_kind::sums_of_b && tb))
            continue;
          all.push_back({kind, keeps, product_of_kind({ta, tb}, kind, element, keeps)});
        }
  return all;
}

}  // namespace neap::testing
