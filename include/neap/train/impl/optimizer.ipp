// The bodies of <neap/train/optimizer.hpp>.
#pragma once

#include <neap/train/optimizer.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0 {

NEAP_FUNC void muon::update(tensor const& w, tensor const& g, std::span<tensor const> s, update_inputs& in) const {
  auto const& n = in.numbers();
  if (is_matrix(w, in.path())) {
    op::muon o;
    o.nesterov = nesterov, o.iterations = iterations, o.rms = rms;
    tensor own = apply(op::slice{0, 0, 3}, {n});
    if (n.size(0) > 8) own = concat({own, apply(op::slice{0, 8, 9}, {n})}, 0);  // whether the step counts
    apply(o, {w, g, s[0], own});
  } else {
    apply(op::adamw{}, {w, g, s[0], s[1], in.now(), apply(op::slice{0, 3, n.size(0)}, {n})});
  }
}

NEAP_FUNC bool muon::is_matrix(tensor const& w, std::string_view path) const {
  for (auto const& p : use_adamw_for)
    if (detail::matches(p, path)) return false;
  return w.rank() >= 2;
}

NEAP_FUNC std::vector<tensor> const& training_state::of(tensor const& weight, std::span<tensor_type const> types) {
  auto const* key = weight.storage().get();
  if (auto* l = detail::computation_listener::active()) {
    auto const row = rows_.find(key);
    if (row == number_map::none || states_[row].size() < types.size())
      l->grows(steps_,
               [this, weight, all = std::vector<tensor_type>(types.begin(), types.end())] { (void)of(weight, all); });
  }
  if (rows_.add(key, static_cast<std::uint32_t>(weights_.size()))) {
    weights_.push_back(weight);
    states_.emplace_back();
  }
  auto& states = states_[rows_.find(key)];
  while (states.size() < types.size())
    states.push_back(detail::reported(detail::make_owned(types[states.size()], initialiser::constant(0), role::state)));
  return states;
}

}  // namespace neap::inline v0
