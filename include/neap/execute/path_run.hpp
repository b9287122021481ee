// One call along a planned path: a graph, what the host reads of it and does, the guards that depend on that, the next
// graph. Nothing that eager execution would see is changed before the end but memory that operators write, of which
// copies are kept as long as the call may still turn out to need another path.
//
// One arena serves all stages. What later stages need of a stage is moved to the arena's end when it has run:
//
//   |<- stage k: its operators                 ...|<- made by stage k - 1 |<- made before that |
//
// On a device, it is moved to other memory there, from which later stages read it. The host copies what it needs of it.
#pragma once

#include <neap/capture/host_function.hpp>
#include <neap/capture/known_arguments.hpp>
#include <neap/execute/compiled_call.hpp>
#include <neap/execute/planned_path.hpp>

#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <source_location>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// Its arguments are those of which a look-up has found the path. What each hit does is inline: a call costs nanoseconds.
class path_run final : public made_parts {
 public:
  /// shares: an element of a tracked container has memory that the call updates, by a signature that does not state it.
  /// busy: graphs do not run now, as another call is in a function of the host.
  enum class outcome : std::uint8_t { ended, missed, failed, shares, busy };

  path_run(path_arena& on, planned_path& path, known_arguments& begin, host_log& log)
      : on_(&on),
        path_(&path),
        begin_(&begin),
        log_(&log),
        lock_(on.running, std::defer_lock) {}
  path_run(path_run const&) = delete;
  path_run& operator=(path_run const&) = delete;

  /// Runs the path, with the result and the effects of the call. Missed, failed, shares, busy: all memory is as before.
  /// Throws what a device throws, and what has met memory of arguments of which there is no copy.
  outcome operator()(compiled_call& now);
  /// What the path ends by in place of a result; null: it has one.
  std::exception_ptr const& thrown() const { return stage_->end->thrown; }
  /// What was read of tensors, and what functions of the host returned, so far.
  known_reads reads() const;
  /// Of a call that has missed: the guard, an expression of the tape.
  std::source_location missed_at() const { return more_->missed_at; }
  std::uint32_t missed_expr() const { return more_->missed_expr; }
  expression_tape const& tape() const { return *more_->tape; }

  tensor tensor_of(std::size_t k) override { return tensor_from(stage_->end->result[k]); }
  std::uint64_t value_of(std::size_t k) override { return value(stage_->end->result_scalars[k]); }

 private:
  struct saved {
    tensor_storage* storage;
    byte_block bytes;
  };
  struct sharing_found {};
  /// Where a stage has left what it has made.
  struct location {
    std::byte* host = nullptr;
    std::shared_ptr<tensor_storage> carried;  // in place of that: on the device
  };
  /// What passes between stages, and to the host.
  struct progress {
    progress(planned_path const& path, known_arguments const& begin, std::span<std::byte> arena);
    std::shared_ptr<expression_tape const> tape;
    std::vector<std::uint64_t> scalars;  // those of the arguments, then what was read
    expression_values values;
    std::vector<tensor> arguments;  // as they were at the beginning
    std::vector<location> locations;
    std::vector<tensor> externals;
    std::vector<captured_stage::host_call const*> pending;
    std::vector<seconds_t> seconds;  // of the steps of all graphs
    std::byte* free;                 // the end of what stages may use
    bytes_t carried_bytes = 0;       // on the device, so far
    bool has_effects = false;        // that may throw
    std::source_location missed_at{};
    std::uint32_t missed_expr = 0;
  };
  /// What the call leaves in arguments, beside scalars and what operators write.
  struct changes {
    std::vector<container_change> containers;
    std::vector<tensor> tensors;
  };

  /// Takes the arena. False: another call has it.
  bool enter() {
    lock_.lock();
    if (on_->is_in_host_code) return false;
    if (on_->device) on_->device->reserve_carried(static_cast<bytes_t>(path_->arena_bytes));
    else on_->memory.grow(path_->arena_bytes);
    if (recording_watch::is_under_way()) report_uses();
    if (!path_->is_simple) more_.emplace(*path_, *begin_, on_->memory.memory());
    return true;
  }
  /// The stage after the present one; null: none is known.
  planned_stage* next();
  /// The storages that the call leaves behind, and changes of arguments: memory is taken before the last graph runs.
  void begin_end(planned_stage const& s) {
    made_.reserve(s.made.size());
    for (auto const& m : s.end->made) made_.push_back(unwritten_storage(m.type, m.as));
    if (!s.captured.needs_host() && s.end->has_effects()) prepare(*s.end);
  }
  void fill_made(planned_stage& s) {
    for (std::size_t i = 0; i < made_.size(); ++i)
      if (auto const bytes = static_cast<std::size_t>(made_[i]->bytes()); bytes > 0)
        std::memcpy(made_[i]->data(),
                    s.made[i] == planned_stage::made_before ? read(s.end->made[i].storage) : kept_by(s, s.made[i]),
                    bytes);
  }
  void run_graph(planned_stage& s);
  void bind(planned_stage& s, bound_graph::runnable* on_host);
  /// What the host reads of a stage and does at its end.
  void serve(captured_stage const& c);
  void report_uses() const;

  location& place(std::uint32_t storage);
  /// The same for the host, which copies it if it has to.
  std::byte const* read(std::uint32_t storage);
  void set_scalar(std::uint32_t k, std::uint64_t bits);
  /// The value of an expression.
  std::uint64_t value(std::uint32_t expression) {
    return more_ ? more_->values(expression) : begin_->value(expression);
  }
  /// An argument's tensor, or an element of a tracked container.
  tensor const& argument(std::uint32_t k) const {
    auto const n = begin_->tensors().size();
    if (k >= n) return elements_[k - n];
    return more_ ? more_->arguments[k] : *begin_->tensors()[k].now;
  }
  tensor tensor_from(tensor_origin const& o) const;
  tracked_base& container_in(std::uint32_t scalar) const;
  /// What a graph has left for place k of its `kept`, in the host's memory.
  static std::byte* kept_by(planned_stage& s, std::size_t k) {
    auto const at = s.run ? (*s.run)->value(s.kept[k]) : s.on_device->value(s.kept[k]);
    return static_cast<std::byte*>(at.data);
  }
  void leave_on_device(planned_stage& s);
  void move_to_end(planned_stage& s);

  void save(tensor_storage& s);
  void restore();
  host_result const& perform(captured_stage::host_call const& c);
  void perform_effects();
  /// Takes all memory that commit() needs.
  void prepare(captured_end const& end);
  void commit(captured_end const& end);

  path_arena* on_;
  planned_path* path_;
  known_arguments* begin_;
  host_log* log_;
  std::unique_lock<std::mutex> lock_;
  planned_stage* stage_ = nullptr;
  std::optional<progress> more_;  // unless the path is simple
  std::optional<changes> changes_;
  std::vector<tensor> elements_;  // of tracked containers
  std::vector<std::shared_ptr<tensor_storage>> made_;
  std::vector<saved> saved_;
  bool is_unsaved_ = false;  // memory of arguments is written of which there is no copy
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/execute/impl/path_run.ipp>
#endif
