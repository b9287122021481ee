// Where eager tensors compute, and how: the backend, the generator that seeds random operators, whether operators are
// recorded for differentiation, whether a trace listens. By default each thread has one of its own;
// one that wants another seed or number of threads makes an eager_context and gets it for that scope.
//
//   neap::eager_context eager{{.seed = 7, .threads = 2}};   // until the end of the scope, on this thread
#pragma once

#include <neap/backend/host.hpp>
#include <neap/core/byte_block.hpp>
#include <neap/core/error.hpp>
#include <neap/core/philox.hpp>
#include <neap/model/listener.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <string_view>
#include <utility>

namespace neap { inline namespace v0 {

class tracer;
class precision_scope;

namespace detail {
class mode_scope;
/// Whether a place is in a user's program: not in this library, nor in the standard one (which calls functions and
/// constructors on behalf of others). Files of one program may know this library by several names: each compiler call has
/// its own way to write the folder.
bool is_in_program(std::source_location const& at);
}  // namespace detail

struct eager_options {
  std::uint64_t seed = 0;
  int threads = 0;  // of the backend; 0: one for each core
};

class eager_context {
 public:
  explicit eager_context(eager_options o = {}) : eager_context(o, active()) { active() = this; }
  eager_context(eager_context const&) = delete;
  eager_context& operator=(eager_context const&) = delete;
  ~eager_context();

  /// The one that this thread computes in.
  static eager_context& current();

  host_backend& backend();
  /// At least `bytes` bytes, 64-byte aligned, for one kernel's scratch.
  void* workspace(std::int64_t bytes);

  /// A number that no earlier call has given: the key of a random operator, the stream of a new weight.
  std::uint64_t draw();

 private:
  friend class tracer;
  friend class detail::mode_scope;
  friend class place_scope;
  friend class function_scope;
  friend class caller_scope;
  friend struct context_access;

  eager_context(eager_options o, eager_context* outer);

  // The one mutable global: which context this thread is in. Operators between tensors have no room for an argument
  // that would carry it, and a trace must see every operator that runs on its thread while it is active.
  static eager_context*& active();

  int threads_;
  struct randomness {
    std::uint64_t seed, draws, stream;
    void* clock;  // a step_clock, or none
  };
  randomness random_;
  eager_context* outer_;
  std::optional<host_backend> backend_;
  byte_block workspace_;
  tracer* trace_ = nullptr;
  bool recording_ = true, training_ = true;
  bool in_step_ = false;  // a training step runs at once: gradients in its loss have a history, as in a trace
  std::source_location const *place_ = nullptr, *caller_ = nullptr;
  char const* function_ = nullptr;
  precision_scope* precision_ = nullptr;
};

/// What the model layer itself reads of the context.
struct context_access {
  static tracer* trace() { return eager_context::current().trace_; }
  static bool is_recording() { return eager_context::current().recording_; }
  static bool is_training() { return eager_context::current().training_; }
  static bool is_in_step() { return eager_context::current().in_step_; }
  static bool set_in_step(eager_context& c, bool in) { return std::exchange(c.in_step_, in); }
  /// Which line of the program an error names: where it called the module of the library that is running, else `at`, else
  /// (where the library called what was written for its own use) where it called the library. No place if none is known.
  static std::source_location place(std::source_location at);
  /// The same for a place of which it is known whether it is in the program.
  static std::source_location place(std::source_location at, bool is_in_program);
  /// The public function that is running, by its function_scope; null where there is none.
  static char const* function() { return eager_context::current().function_; }
  static precision_scope* precision() { return eager_context::current().precision_; }
  static precision_scope* set_precision(eager_context& c, precision_scope* p) { return std::exchange(c.precision_, p); }
  using randomness = eager_context::randomness;
  static void* clock() { return eager_context::current().random_.clock; }
  static randomness enter(eager_context& c, randomness r) { return std::exchange(c.random_, r); }
  /// A higher number than that of any operator that ran before: one count for the process, as a tensor may have been
  /// computed in another context, or on another thread.
  static std::uint64_t next_order();
};

namespace detail {
/// While it lives, operators on this thread are recorded for differentiation, and modules train, or they do not.
class mode_scope {
 public:
  mode_scope(bool recording, bool training);
  mode_scope(mode_scope const&) = delete;
  mode_scope& operator=(mode_scope const&) = delete;
  ~mode_scope() { context_.recording_ = recording_, context_.training_ = training_; }

 private:
  eager_context& context_;
  bool recording_, training_;  // before
};
}  // namespace detail

namespace detail {
/// While it lives, a training step runs on this thread.
class step_scope {
 public:
  step_scope() : context_(eager_context::current()), before_(context_access::set_in_step(context_, true)) {}
  step_scope(step_scope const&) = delete;
  step_scope& operator=(step_scope const&) = delete;
  ~step_scope() { context_access::set_in_step(context_, before_); }

 private:
  eager_context& context_;
  bool before_;
};
}  // namespace detail

/// While it lives, operators on this thread are not recorded for differentiation; in a trace, no gradient goes through
/// them.
class no_gradient {
 public:
  no_gradient() : scope_(false, context_access::is_training()) {}

 private:
  detail::mode_scope scope_;
};

/// While it lives, modules on this thread behave as in evaluation: dropout does nothing, batch norm uses its running
/// statistics, nothing is recorded.
class evaluation {
 public:
  evaluation() : scope_(false, false) {}

 private:
  detail::mode_scope scope_;
};

/// While it lives, errors of operators begin with the name of this public function, not with the operator's:
/// "max: no axis 7", where the operator is max_reduce. The outermost scope counts: it is what the user has called. For
/// functions of other names than their operator, and for those that are made of several.
class function_scope {
 public:
  /// A literal; null: none.
  explicit function_scope(char const* name) : context_(eager_context::current()), before_(context_.function_) {
    if (!before_) context_.function_ = name;
  }
  function_scope(function_scope const&) = delete;
  function_scope& operator=(function_scope const&) = delete;
  ~function_scope() { context_.function_ = before_; }

 private:
  eager_context& context_;
  char const* before_;
};

/// While it lives, errors name the place where the library's module was called, not a line of the library. The
/// outermost scope counts: a module of the library inside another one is not the user's. With a name, it is a
/// function_scope as well.
class place_scope {
 public:
  explicit place_scope(std::source_location const& at, char const* function = nullptr);
  place_scope(place_scope const&) = delete;
  place_scope& operator=(place_scope const&) = delete;
  ~place_scope() { context_.place_ = before_; }

 private:
  eager_context& context_;
  std::source_location const* before_;
  function_scope function_;
};

/// While it lives, errors without a line of the program name `at`: for functions of the library that call what the program
/// gave them (models, losses), which may be the library's own. What is said deeper in the program goes before; of several
/// callers, the innermost.
class caller_scope {
 public:
  explicit caller_scope(std::source_location const& at);
  caller_scope(caller_scope const&) = delete;
  caller_scope& operator=(caller_scope const&) = delete;
  ~caller_scope() { context_.caller_ = before_; }

 private:
  eager_context& context_;
  std::source_location const* before_;
};

namespace detail {
/// f(), whose complaints about the model get the user's place.
template <class F>
void with_place(std::source_location at, F&& f) {
  try {
    f();
  } catch (error const& e) { throw_error(context_access::place(at), {e.what()}); }
}

/// The text of an operator's error, with the name of the public function that is running in place of the operator's.
std::string named_by_function(std::string_view text, std::string_view op);

/// The same for what an operator complains of.
template <class F>
void with_place(std::source_location at, std::string_view op, F&& f) {
  try {
    f();
  } catch (error const& e) { throw_error(context_access::place(at), {named_by_function(e.what(), op)}); }
}
}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/impl/context.ipp>
#endif
