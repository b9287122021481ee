// Paths of several stages, planned, and one call that runs along them: a graph, what the host reads of it and does, the
// guards that depend on that, the next graph. Nothing that eager execution would see is changed before the end but memory
// that operators write, of which copies are kept as long as the call may still turn out to need another path.
//
// One arena serves all stages. What later stages need of a stage is moved to the arena's end when it has run:
//
//   |<- stage k: its operators                 ...|<- made by stage k - 1 |<- made before that |
//
// On a device, it is moved to other memory there, from which later stages read it. The host copies what it needs of it.
#pragma once

#include <neap/capture/argument_state.hpp>
#include <neap/capture/captured_program.hpp>
#include <neap/capture/recorder.hpp>
#include <neap/capture/write_epoch.hpp>
#include <neap/core/digest.hpp>
#include <neap/execute/bound_graph.hpp>
#include <neap/execute/graph_device.hpp>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// A stage and those that may follow it.
struct planned_stage {
  captured_stage captured;                  // without its graph
  std::unique_ptr<bound_graph> run;         // none: no operators, or on a device
  std::unique_ptr<device_graph> on_device;  // in place of that
  std::vector<value_id> sources, kept;
  std::vector<digest> ops;  // for comparison
  byte_block scalars;
  bool throws_late = false;     // an operator may throw when another has written memory of arguments
  bytes_t peak = 0;             // of the graph in the order of the program
  bytes_t kept_bytes = 0;       // for later stages
  std::size_t arena_bytes = 0;  // of a first stage: what it and all after it need
  guard_trie guards;
  std::vector<std::unique_ptr<planned_stage>> next;
  std::unique_ptr<captured_program> end;  // the path ends here
  std::shared_ptr<void> result;           // its form, without tensors

  /// What this stage and those after it need of the arena, where `before` bytes are kept at its end; on a device, of the
  /// memory for what is kept.
  std::size_t needed(bytes_t before = 0) const {
    bytes_t const own = run ? (*run)->arena_bytes() : 0;
    auto most = static_cast<std::size_t>(std::max(align_up(own, 64), end ? 0 : kept_bytes) + before);
    for (auto const& n : next) most = std::max(most, n->needed(before + kept_bytes));
    return most;
  }
};

/// One call. Its arguments' tracked scalars are `cells`. `step_seconds`: where graphs write the times of their steps; at the
/// end it has those of all, in the order in which they ran.
class staged_run {
 public:
  /// shares: an element of a tracked container has memory that the call updates, by a signature that does not state it.
  /// busy: graphs do not run now, as another call is in a function of the host.
  enum class outcome : std::uint8_t { ended, missed, failed, shares, busy };
  /// The lock under which a call runs. Without it functions of the host are called, and others are let know.
  struct turn {
    std::unique_lock<std::mutex>* lock;
    bool* is_in_host_code;
  };

  staged_run(argument_state& begin, expression_tape const& tape, std::vector<std::uint64_t> cells, host_log& log,
             std::span<std::byte> arena, graph_device* device, turn const& under,
             std::vector<seconds_t>* step_seconds = nullptr)
      : begin_(&begin),
        cells_(std::move(cells)),
        values_(tape, cells_),
        log_(&log),
        free_(arena.data() + arena.size()),
        device_(device),
        turn_(under),
        step_seconds_(step_seconds) {}
  staged_run(staged_run const&) = delete;
  staged_run& operator=(staged_run const&) = delete;

  /// Runs the stage, whose guards hold, and those after it. `build(last, *this)` makes what the call gives, before its
  /// effects. Missed or failed: all memory is as before.
  outcome operator()(planned_stage& first, std::function<void(planned_stage&)> const& build) {
    try {
      auto* s = &first;
      for (;;) {
        run(*s);
        if (s->end) break;
        auto const found = s->guards.find(values_);
        if (found.graph == guard_trie::none) {
          missed_at_ = s->guards.place(found.at);
          missed_question_ = s->guards.nodes()[found.at].question;
          restore();
          return outcome::missed;
        }
        s = s->next[found.graph].get();
      }
      make(*s);
      build(*s);
      auto ready = prepared(*s);
      perform_effects();
      commit(*s, ready);
      if (step_seconds_) *step_seconds_ = std::move(seconds_);
      return outcome::ended;
    } catch (sharing_found const&) {
      restore();
      return outcome::shares;
    } catch (std::bad_alloc const&) {
      if (is_unsaved_) throw;  // memory may lack in any operator, or after all of them
      restore();
      return outcome::failed;
    } catch (...) {
      restore();
      if (is_on_device_ && !log_->has_failed()) throw;  // the device's fault: the host does not compute instead
      return outcome::failed;
    }
  }
  /// What was read of tensors, and what functions of the host gave, so far.
  known_reads reads() const {
    return {cells_.begin() + static_cast<std::ptrdiff_t>(begin_->cells.size()), cells_.end()};
  }
  std::source_location missed_at() const { return missed_at_; }
  std::uint32_t missed_question() const { return missed_question_; }
  tensor tensor_from(tensor_origin const& o) const {
    return tensor_of_origin(
        o, [&](std::uint32_t k) -> tensor const& { return argument(k); }, made_);
  }
  std::uint64_t value(std::uint32_t expression) { return values_(expression); }
  /// The storages that the call made.
  std::vector<std::shared_ptr<tensor_storage>> const& made() const { return made_; }

 private:
  struct saved {
    tensor_storage* storage;
    byte_block bytes;
  };
  struct sharing_found {};
  struct writes {
    std::vector<container_change> changes;
    std::vector<tensor> tensors;
    std::vector<std::uint64_t> cells;
  };

  /// Where a stage has left what it has made.
  struct location {
    std::byte* host = nullptr;
    std::shared_ptr<tensor_storage> carried;  // in place of that: on the device
  };
  location& place(std::uint32_t row) {
    if (row >= locations_.size()) locations_.resize(row + std::size_t{1});
    return locations_[row];
  }
  /// The same for the host, which copies it if it has to.
  std::byte const* read(std::uint32_t row) {
    auto const& at = place(row);
    return at.carried ? at.carried->data() : at.host;
  }
  void set_cell(std::uint32_t k, std::uint64_t bits) {
    if (k >= cells_.size()) cells_.resize(k + std::size_t{1});
    cells_[k] = bits;
  }

  /// Source i of a stage is this storage, or this memory of an earlier stage.
  static void bind(planned_stage& s, std::size_t i, std::shared_ptr<tensor_storage> const& storage) {
    if (s.run) (*s.run)->bind(s.sources[i], storage->data());
    else s.on_device->bind(i, storage);
  }
  static void bind(planned_stage& s, std::size_t i, std::byte* memory) {
    if (s.run) (*s.run)->bind(s.sources[i], memory);
    else s.on_device->bind(i, memory);
  }
  /// An argument's tensor, or an element of a tracked container.
  tensor const& argument(std::uint32_t k) const {
    auto const n = begin_->handles.size();
    return k < n ? begin_->handles[k] : elements_[k - n];
  }
  tracked_base& container_in(std::uint32_t cell) const {
    return **static_cast<tracked_base**>(begin_->cells[cell].value);
  }
  void run(planned_stage& s) {
    using kind = captured_stage::source::kind;
    auto const& c = s.captured;
    for (auto const& e : c.elements)
      elements_.push_back(*container_of(values_(e.container)).tensor_at(values_(e.place)));
    if (s.run || s.on_device) {
      auto const memory = [&](std::uint32_t n) -> auto const& { return *argument(n).storage(); };
      if (!elements_.empty() && is_shared_element(c.sources, c.updated, memory)) throw sharing_found{};
      std::size_t k = 0;
      for (std::size_t i = 0; i < c.sources.size(); ++i) {
        auto const& from = c.sources[i];
        switch (from.what) {
          case kind::argument:
            if (from.is_part) bind(s, i, memory_of(from, argument(from.number)));
            else bind(s, i, argument(from.number).storage());
            break;
          case kind::row:
            if (auto const& at = place(from.number); at.carried) bind(s, i, at.carried);
            else bind(s, i, at.host);
            break;
          case kind::external: bind(s, i, externals_[from.number].storage()); break;
          case kind::constant: break;
          case kind::scalar: {
            auto const bits = values_(from.number);
            std::memcpy(s.scalars.data() + 64 * k++, &bits, sizeof bits);
          }
        }
      }
      bool const may_be_undone = !s.end || s.throws_late || (s.run && (*s.run)->spill() != nullptr) || has_effects_ ||
                                 std::ranges::any_of(c.effects, [](auto const& e) { return e.function->may_throw(); });
      for (auto const u : c.updated) {
        auto& storage = *argument(u).storage();
        storage.keep_for_readers();
        if (may_be_undone) save(storage);
        else is_unsaved_ = true;
      }
      if (s.run) (**s.run)();
      else run_on_device(s);
      for (auto const u : c.updated) argument(u).storage()->written();
      if (step_seconds_) seconds_.insert(seconds_.end(), step_seconds_->begin(), step_seconds_->end());
      if (s.run) keep(s);
    }
    for (auto const& r : c.reads) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, read(r.row) + r.element * r.bytes, static_cast<std::size_t>(r.bytes));
      set_cell(r.cell, bits);
    }
    for (auto const& e : c.effects) {
      pending_.push_back(&e);
      has_effects_ = has_effects_ || e.function->may_throw();
    }
    if (c.external.empty()) return;
    perform_effects();
    auto const& e = c.external.front();
    auto const& r = perform(e);
    if (!e.gives_tensor) return set_cell(e.cell, r.bits);
    externals_.push_back(apart(r.made, {}));
    place(e.row).host = externals_.back().storage()->data();
    set_cell(e.cell, mix_type({}, externals_.back().type()).low);
  }
  /// What is kept of the stage is on the device for later ones; at the end, and where it is small, in the host's memory
  /// until the stage runs again.
  void run_on_device(planned_stage& s) {
    is_on_device_ = true;
    (*s.on_device)();
    auto const& kept = s.captured.kept;
    std::vector<device_graph::left> left;
    for (std::size_t k = 0; k < kept.size(); ++k) {
      auto& at = place(kept[k].row);
      if (!s.end && device_->carries(kept[k].type)) {
        left.push_back({s.kept[k], device_->carried(kept[k].type, carried_bytes_)});
        carried_bytes_ += align_up(kept[k].type.bytes(), 64);
        at = {nullptr, left.back().to.storage};
      } else {
        at = {static_cast<std::byte*>(s.on_device->value(s.kept[k]).data), nullptr};
      }
    }
    s.on_device->leave(left);
  }
  /// Where the stage has left what is kept of it, and that moved to where the next stages leave it alone.
  void keep(planned_stage& s) {
    struct move {
      std::byte* from;
      std::size_t k;  // in `kept`
    };
    std::vector<move> moves;
    auto const& kept = s.captured.kept;
    for (std::size_t k = 0; k < kept.size(); ++k) {
      auto const at = (*s.run)->value(s.kept[k]);
      place(kept[k].row).host = static_cast<std::byte*>(at.data);
      moves.push_back({static_cast<std::byte*>(at.data), k});
    }
    if (s.end) return;
    std::sort(moves.begin(), moves.end(), [](auto const& a, auto const& b) { return a.from > b.from; });
    auto const move_to_end = [&](std::size_t k) {
      auto*& at = place(kept[k].row).host;
      auto const bytes = kept[k].type.bytes();
      free_ -= align_up(bytes, 64);
      if (bytes > 0) std::memmove(free_, at, static_cast<std::size_t>(bytes));
      at = free_;
    };
    for (std::size_t i = 0; i < moves.size(); ++i)
      if (i == 0 || moves[i].from != moves[i - 1].from) move_to_end(moves[i].k);
    // What the plan has in one place is apart from now on.
    for (std::size_t i = 1; i < moves.size(); ++i)
      if (moves[i].from == moves[i - 1].from) {
        place(kept[moves[i].k].row).host = place(kept[moves[i - 1].k].row).host;
        move_to_end(moves[i].k);
      }
  }
  void save(tensor_storage& s) {
    auto const bytes = static_cast<std::size_t>(std::max<bytes_t>(s.bytes(), 1));
    saved_.push_back({&s, byte_block(bytes, 64)});
    std::memcpy(saved_.back().bytes.data(), s.data(), static_cast<std::size_t>(s.bytes()));
  }
  void restore() {
    while (!saved_.empty()) {
      auto const& last = saved_.back();
      std::memcpy(last.storage->data_to_overwrite(), last.bytes.data(),
                  static_cast<std::size_t>(last.storage->bytes()));
      saved_.pop_back();
    }
  }

  std::shared_ptr<tensor_storage> copy_of(std::uint32_t row, tensor_type const& type, made_as const& as = {}) {
    auto to = unwritten_storage(type, as);
    if (to->bytes() > 0) std::memcpy(to->data(), read(row), static_cast<std::size_t>(to->bytes()));
    return to;
  }
  host_result const& perform(captured_stage::host_call const& c) {
    std::vector<tensor> tensors;
    for (std::size_t k = 0; k < c.rows.size(); ++k)
      tensors.push_back(make_leaf(copy_of(c.rows[k], c.types[k]), tensor_layout::dense(c.types[k])));
    std::vector<std::uint64_t> scalars;
    for (auto const e : c.scalars) scalars.push_back(values_(e));
    struct left_turn {
      explicit left_turn(turn const& t) : of(t) { *of.is_in_host_code = true, of.lock->unlock(); }
      left_turn(left_turn const&) = delete;
      left_turn& operator=(left_turn const&) = delete;
      ~left_turn() { of.lock->lock(), *of.is_in_host_code = false; }
      turn const& of;
    } const meanwhile(turn_);
    return log_->perform(c.function, tensors, scalars);
  }
  void perform_effects() {
    for (auto const* e : pending_) (void)perform(*e);
    pending_.clear();
  }

  /// The storages that the call leaves behind.
  void make(planned_stage const& last) {
    for (auto const& m : last.end->made_rows) made_.push_back(copy_of(m.row, m.type, m.as));
  }
  writes prepared(planned_stage const& last) {
    writes w;
    for (auto const& c : last.end->containers) {
      w.changes.push_back(change_of(
          c, [&](tensor_origin const& o) { return tensor_from(o); }, [&](std::uint32_t e) { return values_(e); }));
      container_in(c.cell).prepare(w.changes.back());
    }
    for (auto const& t : last.end->tensors) w.tensors.push_back(tensor_from(t.from));
    for (auto const& c : last.end->cells) w.cells.push_back(values_(c.expression));
    return w;
  }
  void commit(planned_stage const& last, writes& w) {
    auto const& end = *last.end;
    for (std::size_t k = 0; k < w.changes.size(); ++k) container_in(end.containers[k].cell).commit(w.changes[k]);
    for (auto const& p : end.plains) write_plain(begin_->plains[p.to], p.bytes);
    for (std::size_t k = 0; k < w.cells.size(); ++k) {
      auto const& to = begin_->cells[end.cells[k].cell];
      std::memcpy(to.value, &w.cells[k], to.bytes);
      recording_watch::writes(to.address);
    }
    if (!w.cells.empty()) write_epoch::mark();
    for (std::size_t k = 0; k < w.tensors.size(); ++k) *begin_->tensors[end.tensors[k].to] = std::move(w.tensors[k]);
  }

  argument_state* begin_;
  std::vector<std::uint64_t> cells_;
  expression_values values_;
  host_log* log_;
  std::byte* free_;       // the end of what stages may use
  graph_device* device_;  // null: graphs run on the host
  turn turn_;
  bytes_t carried_bytes_ = 0;  // on the device, so far
  std::vector<location> locations_;
  std::vector<seconds_t>* step_seconds_;  // of the graph that ran last; at the end, of all
  std::vector<seconds_t> seconds_;
  std::vector<tensor> elements_, externals_;
  std::vector<std::shared_ptr<tensor_storage>> made_;
  std::vector<captured_stage::host_call const*> pending_;
  std::vector<saved> saved_;
  bool has_effects_ = false;  // that may throw
  bool is_on_device_ = false;
  bool is_unsaved_ = false;  // memory of arguments is written of which there is no copy
  std::source_location missed_at_{};
  std::uint32_t missed_question_ = 0;
};

}}}  // namespace neap::v0::detail
