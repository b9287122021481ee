// The bodies of <neap/train/fuse_epilogues.hpp>.
#pragma once

#include <neap/train/fuse_epilogues.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void epilogue_fuser::find(std::span<std::vector<op_id> const> /*like*/) {
  for (auto o : places_.order)
    if (g_.as<op::sum_to>(o)) sums_[g_.storage(g_.inputs(o)[0])].push_back(o);
  for (auto o : places_.order) match_activation(o);
  for (auto o : places_.order) match_bias(o);
  for (auto o : places_.order) match_gelu_gradient(o);
  for (auto o : places_.order) match_sums(o);
}

NEAP_FUNC void epilogue_fuser::match_activation(op_id o) {
  auto const* bent = g_.as<op::gelu>(o);
  bool const by_tanh = bent && bent->tanh_form;
  if ((!by_tanh && !g_.as<op::relu>(o)) || !may_join(o)) return;
  auto const before = g_.inputs(o)[0];
  auto const sum = g_.producer(before);
  if (sum == nothing<op_id>) return;
  auto const product = biased_product(sum);
  bool const keeps = g_.uses(before).size() > 1 || g_.is_kept(before);
  if (product == nothing<op_id>) return;
  group made{&facets_,
             bytes_of(op::matmul_epilogue::of(*g_.as<op::matmul>(product),
                                              by_tanh ? epilogue::bias_gelu : epilogue::bias_relu, keeps)),
             {product, sum, o},
             inputs_of(product, g_.inputs(sum)[1]),
             {g_.output(o)}};
  if (keeps) made.out.push_back(before);
  join(std::move(made));
}

NEAP_FUNC void epilogue_fuser::match_bias(op_id o) {
  auto const product = biased_product(o);
  if (product != nothing<op_id>)
    join({&facets_,
          bytes_of(op::matmul_epilogue::of(*g_.as<op::matmul>(product), epilogue::bias)),
          {product, o},
          inputs_of(product, g_.inputs(o)[1]),
          {g_.output(o)}});
}

NEAP_FUNC void epilogue_fuser::match_gelu_gradient(op_id o) {
  auto const* slope = g_.as<op::gelu_grad>(o);
  if (!slope || !slope->tanh_form || !may_join(o)) return;
  auto const in = g_.inputs(o);
  auto const product = alone_behind(in[0]);
  if (product == nothing<op_id> || !g_.as<op::matmul>(product) || !(g_.type(in[0]) == g_.type(in[1])) ||
      !is_floating(g_.type(in[0]).element))
    return;
  auto const& m = *g_.as<op::matmul>(product);
  auto const y = g_.output(o);
  for (auto sum : sums_[g_.storage(y)])
    if (sums_columns(sum, y) && join({&facets_,
                                      bytes_of(op::matmul_epilogue::of(m, epilogue::gelu_grad_sums)),
                                      {product, o, sum},
                                      inputs_of(product, in[1]),
                                      {y, g_.output(sum)}}))
      return;
  join({&facets_,
        bytes_of(op::matmul_epilogue::of(m, epilogue::gelu_grad)),
        {product, o},
        inputs_of(product, in[1]),
        {y}});
}

NEAP_FUNC void epilogue_fuser::match_sums(op_id o) {
  auto const* m = g_.as<op::matmul>(o);
  if (!m || !may_join(o) || g_.type(g_.output(o)).rank() != 2) return;
  for (std::size_t i : {0u, 1u}) {
    if (i == 0 ? !m->transpose_a : m->transpose_b) continue;
    auto const x = g_.inputs(o)[i];
    if (g_.type(x).rank() != 2 || !g_.layout(x).is_dense()) continue;
    for (auto sum : sums_[g_.storage(x)]) {
      if (!sums_columns(sum, x)) continue;
      if (join({&facets_,
                bytes_of(op::matmul_epilogue::of(*m, i == 0 ? epilogue::sums_of_a : epilogue::sums_of_b)),
                {o, sum},
                {g_.inputs(o)[0], g_.inputs(o)[1]},
                {g_.output(o), g_.output(sum)}}))
        return;
    }
  }
}

}}}  // namespace neap::v0::detail

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC epilogue_fuser::epilogue_fuser(op_graph const& g, operator_facets const& facets)
    : operator_groups(g, "fuse_epilogues"),
      facets_(facets),
      sums_(g.storage_count()) {}

NEAP_FUNC op_id epilogue_fuser::biased_product(op_id sum) const {
  if (!g_.as<op::add>(sum) || !may_join(sum)) return nothing<op_id>;
  auto const in = g_.inputs(sum);
  auto const product = alone_behind(in[0]);
  if (product == nothing<op_id> || !g_.as<op::matmul>(product)) return nothing<op_id>;
  auto const& y = g_.type(in[0]);
  return is_floating(y.element) && g_.type(in[1]) == tensor_type{y.element, {y.dims.back()}} &&
                 g_.type(g_.output(sum)) == y
             ? product
             : nothing<op_id>;
}

NEAP_FUNC bool epilogue_fuser::sums_columns(op_id sum, value_id x) const {
  return may_join(sum) && shows_all_of(g_.inputs(sum)[0], x) &&
         g_.type(g_.output(sum)) == tensor_type{g_.type(x).element, {g_.type(x).dims.back()}};
}

NEAP_FUNC bool epilogue_fuser::shows_all_of(value_id v, value_id x) const {
  return g_.layout(v).is_dense() && g_.layout(v).offset == g_.layout(x).offset &&
         g_.type(v).element == g_.type(x).element && g_.type(v).count() == g_.type(x).count() &&
         g_.type(v).rank() >= 1 && g_.type(v).dims.back() == g_.type(x).dims.back() &&
         g_.record(g_.storage(v)).updates == 0;
}

NEAP_FUNC plain_vector<value_id> epilogue_fuser::inputs_of(op_id product, value_id third) const {
  auto const in = g_.inputs(product);
  return {in[0], in[1], third};
}

}  // namespace detail
}}  // namespace neap::v0
