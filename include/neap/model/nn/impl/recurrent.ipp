// The bodies of <neap/model/nn/recurrent.hpp>.
#pragma once

#include <neap/model/nn/recurrent.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace nn { namespace detail {

NEAP_FUNC void require_state(char const* who, tensor const& s, std::int64_t batch, std::int64_t width) {
  if (shape const needed{batch, width}; s.shape() != needed)
    throw_error(context_access::place({}), {who, ": the state must have shape ", needed, ", got ", s.type()});
}

}  // namespace detail
}}}  // namespace neap::v0::nn

namespace neap { inline namespace v0 { namespace nn {

NEAP_FUNC lstm_cell::lstm_cell(std::int64_t in, std::int64_t width, dtype element, std::source_location at) {
  place_scope const here(at);
  input = linear(in, 4 * width, {.element = element});
  state = linear(width, 4 * width, {.bias = false, .element = element});
}

NEAP_FUNC lstm_state lstm_cell::operator()(tensor const& x, lstm_state const& s, std::source_location at) const {
  place_scope const here(at);
  scope const within(*this);
  detail::require_width(name, x, input.weight);
  return step(input(x), s);
}

NEAP_FUNC lstm_state lstm_cell::step(tensor const& seen, lstm_state const& s, std::source_location at) const {
  place_scope const here(at);
  for (auto const* t : {&s.hidden, &s.cell}) detail::require_state(name, *t, seen.size(0), width());
  std::vector<tensor> const gates = split(seen + state(s.hidden), 4, -1);
  tensor const i = neap::sigmoid(gates[0]), f = neap::sigmoid(gates[1]), g = neap::tanh(gates[2]),
               o = neap::sigmoid(gates[3]);
  tensor const c = f * s.cell + i * g;
  return {o * neap::tanh(c), c};
}

NEAP_FUNC lstm_state lstm_cell::start(std::int64_t batch, std::source_location at) const {
  place_scope const here(at);
  tensor const zeros = fill({batch, width()}, 0, state.weight.element());
  return {zeros, zeros};
}

NEAP_FUNC gru_cell::gru_cell(std::int64_t in, std::int64_t width, dtype element, std::source_location at) {
  place_scope const here(at);
  input = linear(in, 3 * width, {.element = element});
  state = linear(width, 3 * width, {.element = element});
}

NEAP_FUNC tensor gru_cell::operator()(tensor const& x, tensor const& h, std::source_location at) const {
  place_scope const here(at);
  scope const within(*this);
  detail::require_width(name, x, input.weight);
  return step(input(x), h);
}

NEAP_FUNC tensor gru_cell::step(tensor const& seen, tensor const& h, std::source_location at) const {
  place_scope const here(at);
  detail::require_state(name, h, seen.size(0), width());
  std::vector<tensor> const from_x = split(seen, 3, -1), from_h = split(state(h), 3, -1);
  tensor const r = neap::sigmoid(from_x[0] + from_h[0]), z = neap::sigmoid(from_x[1] + from_h[1]),
               n = neap::tanh(from_x[2] + r * from_h[2]);
  return n + z * (h - n);
}

NEAP_FUNC tensor gru_cell::start(std::int64_t batch, std::source_location at) const {
  place_scope const here(at);
  return fill({batch, width()}, 0, state.weight.element());
}

}}}  // namespace neap::v0::nn
