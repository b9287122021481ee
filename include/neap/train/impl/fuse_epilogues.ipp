// The bodies of <neap/train/fuse_epilogues.hpp>.
#pragma once

#include <neap/train/fuse_epilogues.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0 {
namespace detail {

NEAP_FUNC epilogue_fuser::epilogue_fuser(op_graph const& g, operator_facets const& facets)
    : g_(g),
      facets_(facets),
      places_(g, "fuse_epilogues"),
      group_(g.op_count(), none),
      seen_(g.op_count(), 0),
      sums_(g.storage_count()) {
  for (auto o : places_.order)
    if (g.as<op::sum_to>(o)) sums_[g.storage(g.inputs(o)[0])].push_back(o);
  for (auto o : places_.order) match_activation(o);
  for (auto o : places_.order) match_bias(o);
  for (auto o : places_.order) match_gelu_gradient(o);
  for (auto o : places_.order) match_sums(o);
}

NEAP_FUNC fused_epilogues<op_graph> epilogue_fuser::write() {
  fused_epilogues<op_graph> out;
  program_copy copy(g_);
  table<op_id, unsigned char> done(g_.op_count(), 0);
  std::vector<op_id> waiting;  // for operators that are made later than their first op was
  auto const try_to_put = [&](op_id o) {
    bool ready = true;
    each_member(o, [&](op_id m) {
      each_before(m, [&](op_id b) { ready = ready && (done[b] || (group_[b] != none && group_[b] == group_[o])); });
    });
    if (!ready) return false;
    put(copy, o, out);
    each_member(o, [&](op_id m) { done[m] = 1; });
    return true;
  };
  for (auto o : places_.order) {
    if (group_[o] != none && groups_[group_[o]].ops.back() != o) continue;
    if (!try_to_put(o)) {
      waiting.push_back(o);
      continue;
    }
    for (std::size_t i = 0; i < waiting.size();)
      if (try_to_put(waiting[i])) waiting.erase(waiting.begin() + static_cast<std::ptrdiff_t>(i)), i = 0;
      else ++i;
  }
  out.program = copy.finish();
  out.value = std::move(copy.value);
  return out;
}

NEAP_FUNC bool epilogue_fuser::may_be_one(std::span<op_id const> ops) {
  auto const is_in = [&](op_id o) { return std::find(ops.begin(), ops.end(), o) != ops.end(); };
  plain_vector<op_id> open;
  for (auto o : ops)
    each_before(o, [&](op_id b) {
      if (!is_in(b)) open.push_back(b);
    });
  ++search_;
  while (!open.empty()) {
    auto const o = open.back();
    open.pop_back();
    if (std::exchange(seen_[o], search_) == search_) continue;
    bool cycle = false;
    each_member(o, [&](op_id m) {
      seen_[m] = search_;
      each_before(m, [&](op_id b) {
        cycle = cycle || is_in(b);
        if (seen_[b] != search_) open.push_back(b);
      });
    });
    if (cycle) return false;
  }
  return true;
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
  group made{
      op::matmul_epilogue::of(*g_.as<op::matmul>(product), by_tanh ? epilogue::bias_gelu : epilogue::bias_relu, keeps),
      {product, sum, o},
      inputs_of(product, g_.inputs(sum)[1]),
      {g_.output(o)}};
  if (keeps) made.out.push_back(before);
  join(std::move(made));
}

NEAP_FUNC void epilogue_fuser::match_bias(op_id o) {
  auto const product = biased_product(o);
  if (product != nothing<op_id>)
    join({op::matmul_epilogue::of(*g_.as<op::matmul>(product), epilogue::bias),
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
    if (sums_columns(sum, y) && join({op::matmul_epilogue::of(m, epilogue::gelu_grad_sums),
                                      {product, o, sum},
                                      inputs_of(product, in[1]),
                                      {y, g_.output(sum)}}))
      return;
  join({op::matmul_epilogue::of(m, epilogue::gelu_grad), {product, o}, inputs_of(product, in[1]), {y}});
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
      if (join({op::matmul_epilogue::of(*m, i == 0 ? epilogue::sums_of_a : epilogue::sums_of_b),
                {o, sum},
                {g_.inputs(o)[0], g_.inputs(o)[1]},
                {g_.output(o), g_.output(sum)}}))
        return;
    }
  }
}

}  // namespace detail
}  // namespace neap::inline v0
