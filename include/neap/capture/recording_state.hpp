// What the parts of a recording share: what the call began with, what it is recorded to, and why no graph can stand for
// it.
#pragma once

#include <neap/capture/argument_state.hpp>
#include <neap/capture/captured_path.hpp>
#include <neap/capture/host_function.hpp>
#include <neap/model/listener.hpp>

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// Ends a recording without data that needs an element which was not read yet, or an object that is not complete.
struct recording_ends {};

class recording_state : private recording_watch {
 public:
  recording_state(argument_state const& first, expression_tape& expressions, host_log& host, bool computes,
                  known_reads const* reads, std::uint64_t number = next_serial());

  using recording_watch::watch;
  /// Whether another thread has used the arguments, or what was made of them.
  using recording_watch::was_used;

  /// This thread's listeners are these from now on, until stop().
  void start(capture_context const& listeners);
  void stop();

  /// What no graph stands for. With data, the function goes on as it would without a recording.
  [[noreturn]] void refuse(std::source_location at, std::initializer_list<text_part> parts);
  [[noreturn]] void refuse_in_branch(char const* what);
  /// By shapes, a path depends on a value.
  [[noreturn]] void refuse_value(std::source_location at);
  /// Without data, the call is to be recorded again after grow().
  [[noreturn]] void end_before(std::function<void()> grow);
  /// The last stage has begun after a read, or a function of the host, that is not known; `stages` come before it.
  [[noreturn]] void end_before_read(std::size_t stages);
  /// Whether it has ended before a read.
  bool is_beginning() const { return beginning > 0; }
  void set_needs_whole();
  /// context_access::place(at), which examines a file's name once for many operators in a id.
  std::source_location place_of(std::source_location at);
  /// In a branch, whether this was there before: it may not be written.
  void require_own_storage(std::uint32_t id);
  void require_own_scalar(std::uint32_t scalar);

  argument_state const& begin;
  expression_tape& tape;
  host_log& log;
  known_reads const* known;  // null: a path that depends on a read is refused
  bool const has_data;
  std::uint64_t const serial;
  void* const clock;                // of the thread's random numbers
  std::uint64_t const first_order;  // of operators of this call

  struct branch {
    std::uint32_t storages, scalars;  // that were there before
    std::source_location at;
  };
  std::vector<branch> branches;  // under way
  std::string refusal;           // what the function does that no graph stands for, as an error has it
  bool is_unheard = false;       // from then on: the function may have caught that error
  bool has_failed = false;       // an operator or a function of the host has thrown an exception
  bool finds_sharing =
      false;                 // an element of a container has the memory of a tensor, which the signature does not state
  bool needs_whole = false;  // graphs must have the whole of storages of which arguments see a part
  char const* unusable = nullptr;  // why no graph can stand for the call
  std::size_t beginning = 0;       // how many stages come before a read that is not known; 0: none is
  std::function<void()> grow;      // what is to be made before the call is recorded again; empty: nothing
  // Storages that the call has made, in order, and the nodes of its tensors.
  std::vector<std::weak_ptr<tensor_node>> nodes_made;
  // Tracked containers of the arguments that were used, and what restores their content of the beginning.
  std::vector<std::pair<tracked_base*, std::function<void()>>> containers_begun;

 private:
  static std::uint64_t next_serial();

  capture_context before_{};
  bool is_started_ = false;
  char const* last_file_ = nullptr;
  bool is_in_program_ = false;
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/capture/impl/recording_state.ipp>
#endif
