// The bodies of <neap/capture/host_function.hpp>.
#pragma once

#include <neap/capture/host_function.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC host_result const& host_log::perform(std::shared_ptr<host_function const> const& f,
                                               std::span<tensor const> tensors,
                                               std::span<std::uint64_t const> scalars) {
  while (skips_failed_ && next_ < done_.size() && done_[next_].failed) ++next_;
  if (next_ < done_.size()) {
    if (auto const& e = done_[next_]; e.function->is_like(*f)) {
      ++next_;
      if (e.failed) std::rethrow_exception(e.failed);
      return e.result;
    }
    if (next_ < firm_)
      throw_error(context_access::place({}),
                  {"compile: one call has the host do different things: the function depends on something that is no "
                   "part of its arguments"});
  }
  auto const made = done_.insert(done_.begin() + static_cast<std::ptrdiff_t>(next_++), {f, {}, nullptr});
  try {
    made->result = f->call(tensors, scalars);
  } catch (...) {
    made->failed = std::current_exception();
    throw;
  }
  return made->result;
}

NEAP_FUNC host_result const* host_log::known(std::size_t k) const {
  if (k >= done_.size()) return nullptr;
  if (done_[k].failed) std::rethrow_exception(done_[k].failed);
  return &done_[k].result;
}

NEAP_FUNC branch_scope::branch_scope(std::source_location at) : listener_(host_listener::active()) {
  if (listener_) listener_->begins_branch(at);
}

NEAP_FUNC branch_scope::~branch_scope() {
  if (listener_) listener_->ends_branch();
}

NEAP_FUNC tensor apart(tensor const& t, std::source_location at) {
  if (t.is_empty()) no_tensor(at);
  if (t.is_traced())
    throw_error(context_access::place(at),
                {"a traced tensor has no data: neap::effect, neap::external and neap::item are for eager and compiled "
                 "functions"});
  unseen_scope const unseen;
  mode_scope const unrecorded(false, context_access::is_training());
  tensor copy = make_leaf(std::make_shared<tensor_storage>(t.type(), initialiser{}, role::activation),
                          tensor_layout::dense(t.type()));
  auto const from = t.ref(at);
  auto* to = copy.storage()->data_to_overwrite();
  auto const element = static_cast<std::size_t>(size_of(from.element));
  if (t.layout().is_dense()) {
    std::memcpy(to, from.data, static_cast<std::size_t>(copy.type().bytes()));
    return copy;
  }
  extents i = extents::filled(from.rank(), 0);
  for (std::int64_t n = from.count(); n > 0; --n, to += element) {
    std::int64_t offset = 0;
    for (int k = 0; k < from.rank(); ++k) offset += i[k] * from.strides[k];
    std::memcpy(to, static_cast<std::byte const*>(from.data) + static_cast<std::size_t>(offset) * element, element);
    for (int k = from.rank() - 1; k >= 0 && ++i[k] == from.dims[k]; --k) i[k] = 0;
  }
  return copy;
}

NEAP_FUNC std::pair<host_result, std::uint32_t> perform_on_host(std::shared_ptr<host_function const> const& f,
                                                                host_listener::arguments const& passed, bool is_effect,
                                                                std::source_location at) {
  if (auto* l = host_listener::active()) {
    if (!is_effect) return l->external(f, passed, at);
    l->effect(f, passed, at);
    return {};
  }
  recording_watch::uses(nullptr);
  std::vector<tensor> copies;
  for (auto const& t : passed.tensors) copies.push_back(apart(t, at));
  if (auto* log = host_log::active()) {
    if (is_effect && log->holds_effects()) return {};
    auto r = log->perform(f, copies, passed.bits);
    if (!r.made.is_empty()) r.made = apart(r.made, at);
    return {std::move(r), 0};
  }
  return {f->call(copies, passed.bits), 0};
}

}}}  // namespace neap::v0::detail
