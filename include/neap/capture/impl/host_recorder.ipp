// The bodies of <neap/capture/host_recorder.hpp>.
#pragma once

#include <neap/capture/host_recorder.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC host_result const* host_recorder::known_result() {
  host_result const* done = nullptr;
  reporting_failure([&] { done = state_.log.known(calls_++); });
  return done;
}

NEAP_FUNC void host_recorder::effect(std::shared_ptr<host_function const> f, arguments const& passed,
                                     std::source_location at) {
  if (!state_.branches.empty()) state_.refuse_in_branch("has an effect");
  if (!state_.has_data) (void)known_result();
  auto call = stages_.host_call(f, passed, at);
  stages_.now().effects.push_back(std::move(call));
  if (state_.has_data) (void)perform(f, passed, at);
}

NEAP_FUNC std::pair<host_result, std::uint32_t> host_recorder::external(std::shared_ptr<host_function const> f,
                                                                        arguments const& passed,
                                                                        std::source_location at) {
  if (!state_.branches.empty()) state_.refuse_in_branch("calls a function of the host");
  auto call = stages_.host_call(f, passed, at);
  for (auto const e : passed.scalars) stages_.know_value(e);
  host_result r;
  bool needs_call = false;  // its result's type is not known before
  if (state_.has_data) {
    r = perform(f, passed, at);
    if (!r.made.is_empty()) r.made = apart(r.made, at);
  } else {
    auto const* done = known_result();
    if (done) r.bits = done->bits;
    if (f->gives_tensor()) {
      auto type = done ? std::optional(done->made.type()) : f->type_given();
      if (!type && !state_.known)
        state_.refuse(context_access::place(at),
                      {"capture by shapes: a neap::external gives a tensor, whose type is not known before it is "
                       "called: pass the tensor to the function"});
      needs_call = !type;
      if (!type) type.emplace(dtype::f32, shape{});
      r.made = make_leaf(std::make_shared<tensor_storage>(*type, initialiser{}, role::activation),
                         tensor_layout::dense(*type));
    }
  }
  call.gives_tensor = !r.made.is_empty();
  call.storage = call.gives_tensor ? storages_.size() : 0;
  auto const result = stages_.call_external(std::move(call), at);
  if (!r.made.is_empty()) {
    state_.nodes_made.push_back(r.made.node());
    storages_.know_external(r.made.storage());
  }
  if (needs_call) stages_.end_before_read();
  if (!r.made.is_empty()) stages_.ask_type(result, r.made.type(), at);
  return {std::move(r), result};
}

NEAP_FUNC host_result host_recorder::perform(std::shared_ptr<host_function const> const& f, arguments const& passed,
                                             std::source_location at) {
  std::vector<tensor> copies;
  for (auto const& t : passed.tensors) copies.push_back(apart(t, at));
  unseen_scope const unseen;
  try {
    return state_.log.perform(f, copies, passed.bits);
  } catch (...) {
    state_.has_failed = true;
    throw;
  }
}

}}}  // namespace neap::v0::detail
