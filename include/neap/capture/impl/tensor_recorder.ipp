// The bodies of <neap/capture/tensor_recorder.hpp>.
#pragma once

#include <neap/capture/tensor_recorder.hpp>

#include <neap/core/separate_compilation.hpp>

#include <algorithm>
#include <cstring>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void tensor_recorder::ran(operator_view op, std::span<tensor const> in, std::span<tensor const> out,
                                    std::span<output_rule const> rules, std::source_location at) {
  if (state_.is_unheard) return;
  storages_.ran(op, in, out, rules, at);
  if (!out.empty()) state_.nodes_made.push_back(out.front().node());
}

NEAP_FUNC void tensor_recorder::made(tensor const& t) {
  if (state_.is_unheard) return;
  state_.nodes_made.push_back(t.node());
  storages_.know_numbers(t.storage());
}

NEAP_FUNC void tensor_recorder::copied(tensor_storage const& from, std::shared_ptr<tensor_storage> const& to) {
  if (!state_.is_unheard) storages_.know_copy(to, from);
}

NEAP_FUNC std::byte* tensor_recorder::reads_data(tensor const& t, std::source_location at) {
  if (state_.is_unheard) return overwrites(*t.storage()), nullptr;
  if (storages_.has_numbers(*t.storage(), true)) return nullptr;
  state_.refuse(context_access::place(at),
                {"compile: the function takes the address of a tensor's elements, ", t.type(),
                 ": what is read and written there is not seen. Read numbers by item() or neap::item, hand tensors to "
                 "neap::effect or neap::external, or choose by neap::where(condition, a, b)"});
}

NEAP_FUNC std::byte* tensor_recorder::reads_elements(tensor const& t, std::source_location at) {
  if (state_.is_unheard || storages_.has_numbers(*t.storage(), false)) return nullptr;
  bool const has_data = state_.has_data;
  if (!has_data && !state_.known) state_.refuse_value(at);
  if (t.count() > max_read)
    state_.refuse(context_access::place(at),
                  {"compile: the function reads the elements of a tensor, ", t.type(),
                   ": a path would depend on each of them. Return the tensor and read it outside, hand it to "
                   "neap::effect or neap::external, or choose by neap::where(condition, a, b)"});
  tensor const copy = has_data ? apart(t, at) : unwritten_tensor(t.type());
  auto const bytes = static_cast<std::size_t>(size_of(t.element()));
  auto const id = storages_.copy_for_host(t, at);
  std::vector<std::uint32_t> elements;
  for (std::int64_t i = 0; i < t.count(); ++i) elements.push_back(stages_.element_of(id, i, at));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    std::uint64_t bits = stages_.known(elements[i]).value_or(0);
    auto* const element = copy.storage()->data() + i * bytes;
    if (has_data) std::memcpy(&bits, element, bytes);
    stages_.add_guard(elements[i], bits, at);
    std::memcpy(element, &bits, bytes);
  }
  if (has_data) return nullptr;
  read_elements_.push_back(copy);
  return copy.storage()->data();
}

NEAP_FUNC void tensor_recorder::writes_data(tensor_storage const& s) {
  if (state_.is_unheard) return overwrites(const_cast<tensor_storage&>(s));
  if (storages_.find(s) != storage_table::none)
    state_.refuse(context_access::place({}), {"compile: the function gives a ", name_of(s.role()), ", ", s.type(),
                                              ", other data than by an operator: write it by neap::assign"});
}

NEAP_FUNC void tensor_recorder::differentiates(std::uint64_t order, std::source_location at) {
  if (order < state_.first_order && !state_.is_unheard)
    state_.refuse(context_access::place(at),
                  {"compile: grad goes through an operator that ran before the call: a later call's argument may have "
                   "another history. Compute it in the function, or detach() it"});
}

NEAP_FUNC void tensor_recorder::grows(tensor const& part, std::function<void()> grow) {
  if (state_.has_data || std::ranges::find(state_.begin.tensors, &part) == state_.begin.tensors.end()) return;
  state_.end_before(std::move(grow));
}

NEAP_FUNC void tensor_recorder::draws() {
  if (context_access::clock() != state_.clock || state_.is_unheard) return;
  state_.refuse(
      context_access::place({}),
      {"compile: the function draws from ",
       state_.clock ? "a neap::random_scope that began before the call" : "the random generator of its thread",
       ", which a graph does not go on with: draw within a neap::random_scope that begins in the function"});
}

NEAP_FUNC void tensor_recorder::overwrites(tensor_storage& s) {
  if (!state_.has_data || !storages_.is_argument(s)) return;
  if (std::ranges::find(saved_, &s, &saved::storage) == saved_.end()) saved_.push_back({&s, copy_of_data(s)});
}

NEAP_FUNC void tensor_recorder::take_back() const {
  for (auto const& s : saved_)
    std::memcpy(s.storage->data_to_overwrite(), s.before.storage()->data(),
                static_cast<std::size_t>(s.storage->bytes()));
}

}}}  // namespace neap::v0::detail
