// The bodies of <neap/capture/scalar_recorder.hpp>.
#pragma once

#include <neap/capture/scalar_recorder.hpp>

#include <neap/core/separate_compilation.hpp>

#include <cstring>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC scalar_recorder::scalar_recorder(recording_state& state, storage_table& storages, stage_list& stages)
    : state_(state),
      storages_(storages),
      stages_(stages) {
  for (auto const& c : state.begin.scalars) {
    scalars_.add(c.address, count()), state.watch(c.address);
    written_.push_back(state.tape.scalar(count()));
    std::memcpy(&begun_bits_.emplace_back(0), c.value, c.bytes);
    if (c.symbol) *c.symbol = symbol_of(written_.back());
  }
}

NEAP_FUNC std::uint32_t scalar_recorder::expression_of(symbol_id m, std::uint64_t bits) {
  if (m.capture == 0) return state_.tape.constant(bits);
  if (m.capture != state_.serial)
    state_.refuse(context_access::place({}), {"compile: the function reads a sym that another call has left behind "
                                              "outside of the arguments: keep it in a neap::state of an argument"});
  return m.number;
}

NEAP_FUNC void scalar_recorder::write(void const* scalar, std::uint32_t number) {
  auto const k = number_of(scalar);
  state_.require_own_scalar(k);
  written_[k] = number;
}

NEAP_FUNC void scalar_recorder::constructed(void const* scalar, std::uint32_t number) {
  if (scalars_.add(scalar, count())) written_.push_back(number), state_.watch(scalar);
  else write(scalar, number);
  own_.insert(scalar);
}

NEAP_FUNC void scalar_recorder::filled(tensor const& t, std::uint32_t number) {
  stages_.know_value(number);
  state_.nodes_made.push_back(t.node());
  storages_.know_scalar(t.storage(), number);
}

NEAP_FUNC std::uint32_t scalar_recorder::at_end(argument_state::scalar_place const& end) {
  return end.symbol ? of_result(end) : read(end.address);
}

NEAP_FUNC std::uint32_t scalar_recorder::of_result(argument_state::scalar_place const& c) {
  if (!c.symbol) return number_map::none;
  std::uint64_t bits = 0;
  std::memcpy(&bits, c.value, c.bytes);
  return expression_of(*c.symbol, bits);
}

NEAP_FUNC void scalar_recorder::take_back(argument_state const& end, std::size_t count) const {
  for (std::size_t k = 0; k < count; ++k) std::memcpy(end.scalars[k].value, &begun_bits_[k], end.scalars[k].bytes);
}

NEAP_FUNC std::uint32_t scalar_recorder::number_of(void const* scalar) const {
  auto const k = scalars_.find(scalar);
  if (k == number_map::none)
    state_.refuse(context_access::place({}),
                  {"compile: the function uses a neap::state that is no part of its arguments: a later call would not "
                   "find it. Pass the object that has it to the function"});
  return k;
}

}}}  // namespace neap::v0::detail
