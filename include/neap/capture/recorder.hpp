// Records one call of a compiled function: operators become graphs, what the program branches on guards, and what
// differs at the end from the beginning, effects. With data, the call computes as it would without, and frees memory as
// it would.
//
// The parts of a recording:
//
//   recording_state   what all share: arguments at the beginning, the tape of expressions, why no graph can stand for the call
//   storage_table     storages, their values, the log of operators; it makes the graphs
//   stage_list        stages and guards: what the host reads, does and decides
//   tensor_recorder, scalar_recorder, host_recorder, container_recorder
//                     what tensors, tracked scalars, functions of the host and tracked containers report
#pragma once

#include <neap/capture/container_recorder.hpp>
#include <neap/capture/host_recorder.hpp>
#include <neap/capture/tensor_recorder.hpp>

#include <initializer_list>
#include <string_view>

namespace neap { inline namespace v0 { namespace detail {

/// Whether one tensor is as good as the other for all that follows: the same one, or the same memory looked at alike,
/// both without history.
bool are_alike(tensor const& a, tensor const& b);

class recorder {
 public:
  /// `log`: what the host has done in this call. Without data, nothing is computed, and take_back() is to follow;
  /// `known`: what has been read in this call, null: a path that depends on a read is refused.
  recorder(argument_state const& begin, expression_tape& tape, host_log& log, bool with_data = true,
           known_reads const* known = nullptr);
  recorder(recorder const&) = delete;
  recorder& operator=(recorder const&) = delete;
  ~recorder() { stop(); }
  void stop() { state_.stop(); }

  recording_state& state() { return state_; }
  void set_unusable(char const* why) { state_.unusable = why; }
  /// Their guards so far.
  std::vector<captured_stage> const& stages() const { return stages_.all(); }

  /// Resets arguments to what they began with; `end` is a walk of them now. False: their structure has changed, or
  /// memory of a weight; what has changed then stays so in part.
  bool take_back(argument_state const& end, std::size_t tensors, std::size_t scalars, std::size_t plains,
                 std::string_view form);
  /// After a capture with data: whether a tensor that the call has made has other owners than these, of which each
  /// stands for one.
  bool is_kept_outside(owner_counts const& owners) const;
  /// Whether a tracked scalar or container that the call has made lives on elsewhere than in these.
  bool keeps_tracked(std::initializer_list<argument_state const*> parts);

  /// Where a tensor comes from that the call leaves behind; a tensor with history becomes one without, as a later run
  /// of the graph makes it.
  tensor_origin leave(tensor& t);
  /// What the call leaves in containers.
  void leave_containers(captured_end& to);
  /// What the exception that ends a call without data carries of the tensors that it has made: storages that live on
  /// where all else has let them go. Their tensors have no history from then on.
  void keep_thrown(captured_end& to);
  /// After a capture without data whose result is gone: the type of a tensor that it has computed and that
  /// lives on; null: none.
  tensor_type const* kept_outside() const;
  /// The expression of an argument's tracked scalar at the end, where it is then, and at the beginning.
  std::uint32_t at_end(argument_state::scalar_place const& end) { return scalars_.at_end(end); }
  std::uint32_t at_begin(std::uint32_t scalar) { return state_.tape.scalar(scalar); }
  /// The expression of a result's sym; number_map::none for a state, which no result has.
  std::uint32_t of_result(argument_state::scalar_place const& c) { return scalars_.of_result(c); }

  /// The stages, after leave() of all that is left behind. `also_kept`: storages that stages keep besides.
  void finish(captured_path& p, std::vector<std::uint32_t> const& also_kept);

 private:
  recording_state state_;
  context_access::randomness randomness_;  // of the thread, at the beginning
  storage_table storages_;
  stage_list stages_;
  tensor_recorder tensors_;
  scalar_recorder scalars_;
  host_recorder host_;
  container_recorder containers_;
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/capture/impl/recorder.ipp>
#endif
