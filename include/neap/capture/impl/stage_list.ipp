// The bodies of <neap/capture/stage_list.hpp>.
#pragma once

#include <neap/capture/stage_list.hpp>

#include <neap/core/separate_compilation.hpp>

#include <algorithm>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void stage_list::require_known(std::uint32_t k) {
  if (!state_.known) state_.refuse_value(read_places_[k]);
  if (k >= state_.known->size()) end_before_read();
}

NEAP_FUNC void stage_list::add_guard(std::uint32_t expr, std::uint64_t value, std::source_location at) {
  if (state_.tape[expr].what == expression::kind::constant) return;
  know_value(expr);
  if (!state_.has_data && latest_[expr] > 0) require_known(latest_[expr] - 1);
  if (asked_.add(expr, 0)) now().path.push_back({expr, value, context_access::place(at)});
}

NEAP_FUNC void stage_list::know_value(std::uint32_t expr) {
  auto const begun = static_cast<std::uint32_t>(state_.begin.scalars.size());
  for (auto k = static_cast<std::uint32_t>(latest_.size()); k <= expr; ++k) {
    auto const& e = state_.tape[k];
    std::uint32_t latest = 0;  // one after the last element that it depends on
    if (e.what == expression::kind::scalar && e.a >= begun) latest = e.a - begun + 1;
    if (e.what == expression::kind::call) latest = std::max(latest_[e.a], latest_[e.b]);
    latest_.push_back(latest);
  }
  if (latest_[expr] > known_) end_stage(true);
}

NEAP_FUNC std::uint32_t stage_list::element_of(std::uint32_t id, std::int64_t i, std::source_location at) {
  auto const scalar = scalar_count_++;
  read_places_.push_back(at);
  now().reads.push_back({id, i, size_of(storages_.type_of(id).element), scalar});
  return state_.tape.scalar(scalar);
}

NEAP_FUNC std::optional<std::uint64_t> stage_list::known(std::uint32_t expr) const {
  auto const k = state_.tape[expr].a - state_.begin.scalars.size();
  if (!state_.known || k >= state_.known->size()) return std::nullopt;
  return (*state_.known)[k];
}

NEAP_FUNC captured_stage::host_call stage_list::host_call(std::shared_ptr<host_function const> f,
                                                          host_listener::arguments const& passed,
                                                          std::source_location at) {
  captured_stage::host_call c;
  c.function = std::move(f), c.scalars = passed.scalars;
  for (auto const& t : passed.tensors)
    c.storages.push_back(storages_.copy_for_host(t, at)), c.types.push_back(t.type());
  return c;
}

NEAP_FUNC std::uint32_t stage_list::call_external(captured_stage::host_call call, std::source_location at) {
  auto const scalar = call.result = scalar_count_++;
  read_places_.push_back(at);
  // What comes first: the effects before it, the elements that were read, operators that may throw.
  bool computes = !call.storages.empty() || known_ + 1 < read_count() || storages_.may_throw();
  for (auto s = stages_.rbegin(); s != stages_.rend() && !s->computes; ++s)
    for (auto const& e : s->effects) computes = computes || !e.storages.empty();
  now().external.push_back(std::move(call));
  end_stage(computes);
  known_ = read_count();
  return state_.tape.scalar(scalar);
}

NEAP_FUNC void stage_list::ask_type(std::uint32_t expr, tensor_type const& type, std::source_location at) {
  if (asked_.add(expr, 0)) now().path.push_back({expr, mix_type({}, type).low, context_access::place(at)});
}

NEAP_FUNC void stage_list::end_stage(bool computes) {
  if (computes) {
    storages_.end_graph();
    storages_.begin_graph();
    now().computes = true;
    known_ = read_count();
  }
  stages_.emplace_back();
}

NEAP_FUNC std::vector<captured_stage> stage_list::finish(std::vector<std::uint32_t> const& also_kept) {
  if (state_.is_beginning()) stages_.resize(state_.beginning);
  else storages_.end_graph(), now().computes = true;
  storages_.finish(stages_, also_kept);
  return std::move(stages_);
}

}}}  // namespace neap::v0::detail
