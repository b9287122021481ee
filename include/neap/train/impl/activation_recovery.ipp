// The bodies of <neap/train/activation_recovery.hpp>.
#pragma once

#include <neap/train/activation_recovery.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/ir/standard_operators.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC activation_recoverer::activation_recoverer(op_graph const& g, value_id loss)
    : g_(g),
      forward_(g.op_count()),
      from_(g.value_count(), nothing<op_id>),
      merged_(g.op_count(), no_id),
      seen_(g.op_count(), 0) {
  if (!g.parts().empty()) throw_error({"recover_activations: the graph has parts"});
  for (auto o : g.ops())
    for (auto v : g.inputs(o))
      if (auto const p = g.producer(v); p != nothing<op_id> && p >= o)
        throw_error({"recover_activations: op ", index(o), " reads what a later one makes"});
  if (auto const p = g.producer(loss); p != nothing<op_id>) forward_[p] = 1;
  for (std::size_t i = g.op_count(); i-- > 0;)
    if (auto const o = id_at<op_id>(i); forward_[o]) each_before(o, [&](op_id p) { forward_[p] = 1; });
}

NEAP_FUNC void activation_recoverer::match_normed_relu(op_id o) {
  if (!g_.as<op::relu>(o) || !forward_[o]) return;
  auto const y = g_.output(o), normed = g_.inputs(o)[0];
  auto const norm = g_.producer(normed);
  if (norm == nothing<op_id> || !g_.as<op::batch_norm>(norm) || g_.inputs(norm).size() != 3 || g_.is_kept(normed) ||
      g_.uses(normed).size() != 1)
    return;
  auto const slope = only_late_reader<op::relu_grad>(y);
  if (slope == nothing<op_id> || !(g_.layout(g_.inputs(slope)[0]) == g_.layout(y))) return;
  auto const g = g_.output(slope);
  if (g_.uses(g).size() != 1 || g_.is_kept(g)) return;
  auto const gradient = g_.uses(g)[0].op;
  if (!g_.as<op::batch_norm_grad>(gradient) || g_.inputs(gradient).size() != 5 || g_.inputs(gradient)[0] != g ||
      g_.inputs(gradient)[1] != g_.inputs(norm)[0] || g_.inputs(gradient)[2] != g_.output(norm, 1) ||
      !may_recover(y, gradient, slope))
    return;
  replace(gradient, slope, norm, op::batch_norm_relu_grad{late_ > 0}, g_.facets(gradient).joined());
}

NEAP_FUNC with_recovered_activations activation_recoverer::write() {
  program_copy copy(g_);
  // In the given order, except readers of a recovered activation: the gradient that recovers it comes first.
  late_value_.assign(g_.value_count(), nothing<value_id>);
  table<op_id, unsigned char> put(g_.op_count());
  for (auto last : g_.ops()) {
    open_.clear(), open_.push_back(last);
    while (!open_.empty()) {
      auto const o = open_.back();
      auto const size = open_.size();
      if (!put[o])
        each_before(o, [&](op_id p) {
          if (!put[p]) open_.push_back(p);
        });
      if (open_.size() > size) continue;
      open_.pop_back();
      if (put[o]) continue;
      put[o] = 1;
      if (is_slope(o)) continue;
      if (merged_[o] != no_id) write_merged(copy, o);
      else write_op(copy, o);
    }
  }
  with_recovered_activations out;
  out.program = copy.finish();
  out.value = std::move(copy.value);
  out.count = found_.size();
  return out;
}

NEAP_FUNC bool activation_recoverer::may_recover(value_id y, op_id gradient, op_id slope) {
  auto const s = g_.storage(y);
  if (g_.record(s).updates > 0 || g_.record(y).alias != alias_kind::fresh || merged_[gradient] != no_id) return false;
  if (!g_.may_recompute(g_.producer(y)) || !g_.may_swap(s) || !g_.may_replace(gradient) ||
      (slope != nothing<op_id> && !g_.may_replace(slope)))
    return false;
  // What the gradient needs.
  ++round_;
  open_.clear(), open_.push_back(gradient);
  while (!open_.empty()) {
    auto const o = open_.back();
    open_.pop_back();
    if (seen_[o] == round_ || forward_[o]) continue;
    seen_[o] = round_;
    if (o == slope) {
      if (auto const p = g_.producer(g_.inputs(o)[0]); p != nothing<op_id>) open_.push_back(p);
    } else {
      each_before(o, [&](op_id p) { open_.push_back(p); });
    }
  }
  late_ = 0;
  values_.clear(), values_.push_back(y);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    if (g_.is_kept(values_[i])) return false;
    for (auto const u : g_.uses(values_[i])) {
      if (u.op == slope) continue;
      if (!forward_[u.op]) {
        if (seen_[u.op] == round_) return false;
        ++late_;
        continue;
      }
      for (auto w : g_.outputs(u.op))
        if (g_.storage(w) == s) values_.push_back(w);
    }
  }
  return true;
}

NEAP_FUNC value_id activation_recoverer::late(program_copy& copy, value_id v) {
  if (from_[v] == nothing<op_id>) return copy.value[v];
  if (late_value_[v] != nothing<value_id>) return late_value_[v];
  auto const o = g_.producer(v);  // a view, made forward, of a recovered activation
  plain_vector<value_id> in;
  for (auto x : g_.inputs(o)) in.push_back(late(copy, x));
  return late_value_[v] = copy.edit.emit(g_.view(o), span_of(in))[index(v) - index(g_.output(o))];
}

NEAP_FUNC void activation_recoverer::write_merged(program_copy& copy, op_id o) {
  auto const& r = found_[merged_[o]];
  plain_vector<value_id> in{late(copy, r.slope == nothing<op_id> ? g_.inputs(o)[0] : g_.inputs(r.slope)[0])};
  for (auto v : g_.inputs(o).subspan(1)) in.push_back(late(copy, v));
  if (r.norm != nothing<op_id>) in.push_back(copy.value[g_.inputs(r.norm)[2]]);
  auto const made = copy.edit.emit({r.facets, bytes_.data() + r.attributes}, span_of(in));
  auto const outputs = g_.outputs(o);
  for (std::size_t j = 0; j < outputs.size(); ++j) copy.stands_for(outputs[j], made[j]);
  copy.edit.set_name(copy.edit.graph().producer(made[0]), g_.name(o));
  if (made.size() == outputs.size()) return;
  late_value_[r.result] = made.back();
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {
namespace detail {

NEAP_FUNC void activation_recoverer::write_op(program_copy& copy, op_id o) {
  inputs_.clear();
  for (auto v : g_.inputs(o)) inputs_.push_back(forward_[o] ? copy.value[v] : late(copy, v));
  copy.put(o, g_.view(o), span_of(inputs_));
}

}  // namespace detail
NEAP_FUNC with_recovered_activations recover_activations(op_graph const& g, value_id loss) {
  detail::activation_recoverer r(g, loss);
  for (auto o : g.ops()) detail::match_results(r, o, standard_operators::list{});
  return r.write();
}

}}  // namespace neap::v0
