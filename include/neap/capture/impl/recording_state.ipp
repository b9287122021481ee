// The bodies of <neap/capture/recording_state.hpp>.
#pragma once

#include <neap/capture/recording_state.hpp>

#include <neap/core/separate_compilation.hpp>

#include <algorithm>
#include <atomic>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC std::uint64_t recording_state::next_serial() {
  static std::atomic<std::uint64_t> last = 0;
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

NEAP_FUNC recording_state::recording_state(argument_state const& first, expression_tape& expressions, host_log& host,
                                           bool computes, known_reads const* reads, std::uint64_t number)
    : recording_watch(number),
      begin(first),
      tape(expressions),
      log(host),
      known(reads),
      has_data(computes),
      serial(number),
      clock(context_access::clock()),
      first_order(context_access::next_order()) {}

NEAP_FUNC void recording_state::start(capture_context const& listeners) {
  before_ = std::exchange(capture_context::here(), listeners);
  is_started_ = true;
}

NEAP_FUNC void recording_state::stop() {
  if (!std::exchange(is_started_, false)) return;
  capture_context::here() = before_;
  if (is_unheard) log.end_trial();
}

NEAP_FUNC void recording_state::refuse(std::source_location at, std::initializer_list<text_part> parts) {
  try {
    throw_error(at, parts);
  } catch (error const& e) {
    if (refusal.empty()) refusal = e.what();
    if (has_data && !is_unheard) {
      is_unheard = true;
      for (auto* c : begin.tracked())
        if (std::ranges::find(containers_begun, c, [](auto const& b) { return b.first; }) == containers_begun.end())
          containers_begun.emplace_back(c, c->restorer());
      auto& here = capture_context::here();
      here.scalars = before_.scalars, here.host = before_.host;
      log.begin_trial();
      here.log = &log;
    }
    throw;
  }
}

NEAP_FUNC void recording_state::refuse_in_branch(char const* what) {
  refuse(context_access::place(branches.back().at),
         {"compile: a branch of neap::cond or neap::loop is computed whether it is chosen or not, and ", what});
}

NEAP_FUNC void recording_state::refuse_value(std::source_location at) {
  refuse(context_access::place(at),
         {"capture by shapes: the path depends on the value of a tensor or of a neap::external, which is not "
          "computed: choose by neap::where or neap::cond, or let the first call of the compiled function "
          "capture it"});
}

NEAP_FUNC void recording_state::end_before(std::function<void()> make) {
  if (!grow && !is_beginning()) grow = std::move(make);
  throw recording_ends{};
}

NEAP_FUNC void recording_state::end_before_read(std::size_t stages) {
  if (!is_beginning() && !grow) beginning = stages;
  throw recording_ends{};
}

NEAP_FUNC void recording_state::set_needs_whole() {
  needs_whole = true;
  unusable = "it uses more of a tensor than the part of it that is an argument";
}

NEAP_FUNC std::source_location recording_state::place_of(std::source_location at) {
  if (at.file_name() != last_file_) last_file_ = at.file_name(), is_in_program_ = is_in_program(at);
  return context_access::place(at, is_in_program_);
}

NEAP_FUNC void recording_state::require_own_storage(std::uint32_t id) {
  if (!branches.empty() && id < branches.back().storages)
    refuse_in_branch("writes memory that was there before: assign after it what it gives");
}

NEAP_FUNC void recording_state::require_own_scalar(std::uint32_t scalar) {
  if (!branches.empty() && scalar < branches.back().scalars)
    refuse_in_branch("writes a neap::state that was there before: give a neap::sym, and write it after");
}

}}}  // namespace neap::v0::detail
