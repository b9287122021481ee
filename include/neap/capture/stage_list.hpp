// The stages of a recorded call and their guards. An element that the program reads is a copy in the graph at first,
// and a tracked scalar whose value is not known before the graph has run. Where the program decides by it, computes
// tensors with it or passes it to an external function, the graph ends, and another one begins with the storages made
// so far.
//
// A recording without data goes on with the elements that a device has read in this call so far (known_reads). Where
// the program needs another one, the recording ends: the stages before that are a path's beginning.
#pragma once

#include <neap/capture/recording_state.hpp>
#include <neap/capture/storage_table.hpp>
#include <neap/core/number_map.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

class stage_list {
 public:
  stage_list(recording_state& state, storage_table& storages)
      : state_(state),
        storages_(storages),
        scalar_count_(static_cast<std::uint32_t>(state.begin.scalars.size())),
        stages_(1) {}

  captured_stage& now() { return stages_.back(); }
  std::vector<captured_stage> const& all() const { return stages_; }
  /// The program branches on an expression, whose value it is: a guard.
  void add_guard(std::uint32_t expr, std::uint64_t value, std::source_location at);
  /// The program needs the value of an expression.
  void know_value(std::uint32_t expr);
  /// The expression of element i of a storage that is copied for the host.
  std::uint32_t element_of(std::uint32_t id, std::int64_t i, std::source_location at);
  /// The value of such an expression without data; none: it is not known yet.
  std::optional<std::uint64_t> known(std::uint32_t expr) const;
  captured_stage::host_call host_call(std::shared_ptr<host_function const> f, host_listener::arguments const& passed,
                                      std::source_location at);
  /// The stage ends by a call of an external function. The expression of its result, or of the result's type.
  std::uint32_t call_external(captured_stage::host_call call, std::source_location at);
  /// The type of what a function of the host returned is a guard.
  void ask_type(std::uint32_t expr, tensor_type const& type, std::source_location at);
  /// The recording ends before the last stage.
  [[noreturn]] void end_before_read() { state_.end_before_read(stages_.size() - 1); }
  /// The stages of the path. `also_kept`: storages that they keep besides what is needed.
  std::vector<captured_stage> finish(std::vector<std::uint32_t> const& also_kept);

 private:
  std::uint32_t read_count() const { return scalar_count_ - static_cast<std::uint32_t>(state_.begin.scalars.size()); }
  /// Read number k decides.
  void require_known(std::uint32_t k);
  /// Another stage begins. `computes`: all operators so far run before; what they have made lives on in memory.
  void end_stage(bool computes);

  recording_state& state_;
  storage_table& storages_;
  std::uint32_t scalar_count_, known_ = 0;  // tracked scalars so far; how many of the elements read have a value
  std::vector<captured_stage> stages_;
  std::vector<std::source_location> read_places_;  // of tracked scalars after those of the beginning
  number_map asked_;                               // guards, as a set
  std::vector<std::uint32_t> latest_;  // of each expression, one after the last element read that it depends on
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/capture/impl/stage_list.ipp>
#endif
