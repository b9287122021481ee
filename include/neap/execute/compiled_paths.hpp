// The paths of a compiled function: what captures add to, under a lock, and what is published of it for look-ups, which
// never changes.
#pragma once

#include <neap/capture/argument_state.hpp>
#include <neap/capture/guard_program.hpp>
#include <neap/core/number_map.hpp>
#include <neap/execute/compile_options.hpp>
#include <neap/execute/planned_path.hpp>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// What look-ups read; captures put another one in its place.
struct published_paths {
  guard_program guards;
  std::vector<std::shared_ptr<planned_path>> paths;
  expression_tape tape;
};

/// A graph and its plan, after which graphs of other lengths are planned.
struct planned_before {
  graph program;
  plan planned;
};
/// What signatures share that differ in lengths alone (any_length).
struct length_family {
  std::string signature;  // without these lengths
  std::vector<planned_before> plans;
};

/// All paths that begin with one signature.
struct compiled_paths {
  std::string signature;
  std::shared_ptr<length_family> family;  // null: no length of it may change
  std::size_t scalar_count = 0;           // tracked scalars of the arguments
  expression_tape tape;                   // those of paths that were dropped stay
  std::size_t dropped = 0;
  guard_trie guards;
  std::vector<std::shared_ptr<planned_path>> paths;
  std::shared_ptr<published_paths const> published;

  std::size_t count() const {
    std::size_t n = 0;
    for (auto const& p : paths) n += p->count;
    return n;
  }
  std::uint64_t last_used() const {
    std::uint64_t last = 0;
    for (auto const& p : paths) last = std::max(last, p->last_used.load(std::memory_order_relaxed));
    return last;
  }
  void publish();
};

/// A text that threads write and read: why calls were missed.
class shared_text {
 public:
  shared_text& operator=(std::string x) {
    std::scoped_lock const alone(mutex_);
    text_ = std::move(x);
    return *this;
  }
  std::string get() const {
    std::scoped_lock const alone(mutex_);
    return text_;
  }
  std::string take() {
    std::scoped_lock const alone(mutex_);
    return std::exchange(text_, {});
  }
  bool empty() const { return get().empty(); }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

/// The paths of all signatures, as many as the options allow.
class path_store {
 public:
  explicit path_store(compile_options const& options) : options_(options) {}

  std::size_t count() const { return count_; }
  std::uint64_t publications() const { return publications_.load(std::memory_order_acquire); }
  void use(planned_path& p) {
    if (options_.full == when_full::drop_oldest || !options_.lengths.empty())
      p.last_used.store(uses_.fetch_add(1, std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
  /// Those of a signature; null: there are none.
  std::shared_ptr<compiled_paths> find(std::string const& signature);
  /// For a signature without paths. `family`: the signature without lengths that may change.
  std::shared_ptr<compiled_paths> fresh(argument_state const& begin, std::string family) const;
  /// Another call has these.
  void set_last(std::shared_ptr<compiled_paths const> p) { last_ = std::move(p); }
  /// Whether another path of these may be kept.
  bool has_room(compiled_paths const& of) const;
  /// The same, after others were dropped if the options say so.
  bool make_room(compiled_paths const& of);
  /// Makes another path of these, or the beginning of one, known to look-ups. Of too many lengths of a graph the one
  /// that was used least recently goes.
  void publish(std::shared_ptr<compiled_paths> const& to, bool is_fresh);
  /// Why arguments with this signature have no path yet.
  std::string other_signature(argument_state const& named) const;

 private:
  void add(std::shared_ptr<compiled_paths> fresh);
  /// Counts the paths: of several lengths as one.
  void recount();
  /// Forgets a signature, with all of its paths.
  void drop(std::shared_ptr<compiled_paths> const& p);
  /// Drops the path that was used least recently, with all that begin alike. All of its signature go where most
  /// expressions are those of paths that were dropped. False: there is none.
  bool drop_oldest();

  compile_options const& options_;
  number_map by_signature_;
  std::vector<std::shared_ptr<compiled_paths>> all_;
  std::shared_ptr<compiled_paths const> last_;
  std::atomic<std::size_t> count_ = 0;
  std::atomic<std::uint64_t> uses_ = 0;
  std::atomic<std::uint64_t> publications_ = 1;
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/execute/impl/compiled_paths.ipp>
#endif
