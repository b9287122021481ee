// The bodies of <neap/capture/container_recorder.hpp>.
#pragma once

#include <neap/capture/container_recorder.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void container_recorder::constructed(tracked_base& c) {
  if (scalars_.find(&c.self()) != number_map::none)
    state_.unusable = "it makes a tracked container of an argument anew";
  scalars_.own().insert(&c.self());
}

NEAP_FUNC container_record* container_recorder::record_of(tracked_base& c, std::source_location at) {
  if (scalars_.own().contains(&c.self())) return nullptr;
  auto const k = scalars_.find(&c.self());
  if (k == number_map::none)
    state_.refuse(
        context_access::place(at),
        {"compile: the function uses a tracked container that is no part of its arguments: a later call would "
         "not find it. Pass the object that has it to the function"});
  if (!state_.branches.empty()) state_.refuse_in_branch("uses a tracked container");
  for (auto& r : records_)
    if (r->scalar == k) return r.get();
  auto& r = *records_.emplace_back(std::make_unique<container_record>());
  r.container = &c, r.scalar = k, r.self = state_.tape.scalar(k), r.version = state_.tape.scalar(k + 1);
  state_.containers_begun.emplace_back(&c, c.restorer());
  return &r;
}

NEAP_FUNC void container_recorder::reads_element(container_record& r, std::uint32_t place, std::uint64_t now,
                                                 tensor const& t, std::source_location at) {
  if (t.is_empty() || is_known(r, place, now, at)) return;
  if (!t.is_traced() && storages_.find(*t.storage()) != storage_table::none) return shares_memory();
  if (t.is_traced() || t.storage()->is_borrowed())
    state_.unusable = "it reads borrowed memory from a tracked container";
  elements_.push_back({{r.self, place}, now});
  stages_.now().elements.push_back(elements_.back().what);
  storages_.add_element(t);
}

NEAP_FUNC bool container_recorder::is_known(container_record const& r, std::uint32_t place, std::uint64_t now,
                                            std::source_location at) {
  for (auto const& e : elements_)
    if (e.what.container == r.self && e.what.place == place) return true;
  // Places are expressions of constants and lengths: which are equal is a guard, too.
  auto& tape = state_.tape;
  auto const is_constant = [&](std::uint32_t k) { return tape[k].what == expression::kind::constant; };
  auto const where = tape[place].a;
  for (auto const& e : elements_) {
    auto const other = tape[e.what.place].a;
    if (e.what.container != r.self || (is_constant(where) && is_constant(other))) continue;
    stages_.add_guard(tape.call(&are_equal, other, where), e.place == now, at);
    if (e.place == now) return true;
  }
  return false;
}

NEAP_FUNC void container_recorder::shares_memory() {
  if (state_.begin.knows_sharing) return;
  state_.finds_sharing = true;
  state_.unusable = shared_element;
  if (!state_.has_data) state_.end_before([] {});
}

}}}  // namespace neap::v0::detail
