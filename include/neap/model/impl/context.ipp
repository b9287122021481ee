// The bodies of <neap/model/context.hpp>.
#pragma once

#include <neap/model/context.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC eager_context::~eager_context() {
  if (active() == this) active() = outer_;
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC bool is_in_program(std::source_location const& at) {
  constexpr std::string_view here = std::source_location::current().file_name(), name = "model/impl/context.ipp";
  constexpr std::string_view root = here.ends_with(name) ? here.substr(0, here.size() - name.size()) : "";
  std::string_view const file = at.file_name();
  bool const header = file.ends_with(".hpp") || file.ends_with(".ipp");
  bool const ours = (!root.empty() && file.starts_with(root)) || (header && file.find("include/neap/") != file.npos);
  return !file.empty() && !ours && file.find("/include/c++/") == file.npos;
}

NEAP_FUNC std::string named_by_function(std::string_view text, std::string_view op) {
  char const* const function = context_access::function();
  bool const of_op = text.starts_with(op) && text.substr(op.size()).starts_with(": ");
  return function && of_op ? function + std::string(text.substr(op.size())) : std::string(text);
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC eager_context& eager_context::current() {
  if (auto* c = active()) return *c;
  thread_local eager_context own{eager_options{}, nullptr};
  return own;
}

NEAP_FUNC host_backend& eager_context::backend() {
  if (!backend_) backend_.emplace(threads_);
  return *backend_;
}

NEAP_FUNC void* eager_context::workspace(std::int64_t bytes) {
  if (static_cast<std::size_t>(bytes) > workspace_.bytes()) {
    workspace_ = byte_block();  // first, so that there are never two
    workspace_ = byte_block(static_cast<std::size_t>(bytes), 64);
  }
  return workspace_.data();
}

NEAP_FUNC std::uint64_t eager_context::draw() {
  if (auto* l = detail::computation_listener::active()) l->draws();
  auto const four = philox{random_.seed}(random_.draws++, random_.stream);
  return four[0] | std::uint64_t{four[1]} << 32;
}

NEAP_FUNC eager_context::eager_context(eager_options o, eager_context* outer)
    : threads_(o.threads),
      random_{o.seed, 0, 0, nullptr},
      outer_(outer) {}

NEAP_FUNC eager_context*& eager_context::active() {
  thread_local eager_context* current = nullptr;
  return current;
}

NEAP_FUNC std::source_location context_access::place(std::source_location at) {
  return place(at, eager_context::current().place_ || detail::is_in_program(at));
}

NEAP_FUNC std::source_location context_access::place(std::source_location at, bool is_in_program) {
  auto const& c = eager_context::current();
  if (c.place_) return *c.place_;
  if (is_in_program) return at;
  return c.caller_ ? *c.caller_ : std::source_location{};
}

NEAP_FUNC std::uint64_t context_access::next_order() {
  static std::atomic<std::uint64_t> recorded = 0;
  return recorded.fetch_add(1, std::memory_order_relaxed) + 1;
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC mode_scope::mode_scope(bool recording, bool training)
    : context_(eager_context::current()),
      recording_(std::exchange(context_.recording_, recording)),
      training_(std::exchange(context_.training_, training)) {}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC place_scope::place_scope(std::source_location const& at, char const* function)
    : context_(eager_context::current()),
      before_(context_.place_),
      function_(function) {
  if (!before_ && detail::is_in_program(at)) context_.place_ = &at;
}

NEAP_FUNC caller_scope::caller_scope(std::source_location const& at)
    : context_(eager_context::current()),
      before_(context_.caller_) {
  if (detail::is_in_program(at)) context_.caller_ = &at;
}

}}  // namespace neap::v0
