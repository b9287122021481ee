// The bodies of <neap/train/optimizer.hpp>.
#pragma once

#include <neap/train/optimizer.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

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
    used_.push_back(false);
    if (key->is_converted())  // the same weight in another type
      for (std::size_t i = 0; i + 1 < weights_.size(); ++i)
        if (key->is_conversion_of(*weights_[i].storage())) states_.back() = states_[i];
  }
  auto& states = states_[rows_.find(key)];
  while (states.size() < types.size())
    states.push_back(detail::reported(detail::make_owned(types[states.size()], initialiser::constant(0), role::state)));
  return states;
}

NEAP_FUNC void training_state::set_used_for(tensor const& weight) {
  (void)of(weight);
  used_[rows_.find(weight.storage().get())] = true;
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC void sgd::update(tensor const& w, tensor const& g, std::span<tensor const>, update_inputs& in) const {
  apply(op::sgd{}, {w, g, in.numbers()});
}

NEAP_FUNC void momentum::update(tensor const& w, tensor const& g, std::span<tensor const> s, update_inputs& in) const {
  apply(op::momentum{.nesterov = nesterov}, {w, g, s[0], in.numbers()});
}

NEAP_FUNC void nesterov::update(tensor const& w, tensor const& g, std::span<tensor const> s, update_inputs& in) const {
  momentum{.nesterov = true}.update(w, g, s, in);
}

NEAP_FUNC void adam::update(tensor const& w, tensor const& g, std::span<tensor const> s, update_inputs& in) const {
  apply(op::adam{}, {w, g, s[0], s[1], in.now(), in.numbers()});
}

NEAP_FUNC void adamw::update(tensor const& w, tensor const& g, std::span<tensor const> s, update_inputs& in) const {
  apply(op::adamw{}, {w, g, s[0], s[1], in.now(), in.numbers()});
}

NEAP_FUNC void lion::update(tensor const& w, tensor const& g, std::span<tensor const> s, update_inputs& in) const {
  apply(op::lion{}, {w, g, s[0], in.numbers()});
}

NEAP_FUNC std::vector<tensor_type> adafactor::state_types(tensor const& w, std::string_view) const {
  detail::weight_matrix const m(w.shape());
  auto const element = state_like(w).element;
  if (w.rank() < 2) return {{element, {m.columns}}};
  return {{element, {m.columns}}, {element, {m.rows}}};
}

NEAP_FUNC void adafactor::update(tensor const& w, tensor const& g, std::span<tensor const> s, update_inputs& in) const {
  tensor const dense = contiguous(g);
  if (s.size() == 2) apply(op::adafactor{}, {w, dense, s[0], s[1], in.now(), in.numbers()});
  else apply(op::adafactor{}, {w, dense, s[0], in.now(), in.numbers()});
}

NEAP_FUNC std::array<scheduled, 8> muon::values() const {
  return {rate, beta, weight_decay, others.rate, others.beta1, others.beta2, others.epsilon, others.weight_decay};
}

NEAP_FUNC std::vector<tensor_type> muon::state_types(tensor const& w, std::string_view path) const {
  return std::vector<tensor_type>(is_matrix(w, path) ? 1 : 2, state_like(w));
}

NEAP_FUNC training_state::training_state()
    : steps_(detail::make_owned({dtype::i64, {}}, initialiser::constant(0), role::state)),
      loss_scale_(detail::make_owned({dtype::f64, {}}, initialiser::constant(0), role::state)),
      good_steps_(detail::make_owned({dtype::i64, {}}, initialiser::constant(0), role::state)) {}

}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void begin_training(std::span<named_tensor const> weights, training_state const& state, std::string_view who,
                              std::source_location at) {
  auto const& counter = state.counter().storage();
  for (auto const& w : weights) {
    auto& s = *w.tensor.storage();
    bool const is_other = s.training() != counter;
    if (is_other && s.training_waits() && !counter->training_waits())
      throw_error(context_access::place(at),
                  {who, ": the weight \"", w.name,
                   "\" was loaded together with a training_state that is not this step's: make the step with "
                   "training_options{.state = &state}, or load weights alone by load(model, path)"});
    if (is_other || s.training_waits()) s.set_training(counter, false);
  }
  if (counter->training_waits()) counter->set_training(nullptr, false);
}

NEAP_FUNC step_attempt::step_attempt(training_state const& s)
    : count_(reinterpret_cast<std::int64_t*>(s.counter().storage()->data())),
      before_(*count_) {}

NEAP_FUNC step_attempt::~step_attempt() {
  if (!finished_) *count_ = before_;
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void require_names(std::span<tensor_type const> types, std::size_t names, std::string_view path) {
  if (types.size() > names)
    throw_error(context_access::place({}), {"the optimizer's state_types() are ", types.size(), " of the weight ", path,
                                            ", its `states` names ", names});
}

NEAP_FUNC std::vector<tensor_type> types_like(tensor const& weight, std::size_t states) {
  return std::vector<tensor_type>(states, state_like(weight));
}

NEAP_FUNC std::vector<scheduled> list_of(std::span<scheduled const> values) { return {values.begin(), values.end()}; }

}  // namespace detail
}}  // namespace neap::v0
