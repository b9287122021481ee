// What trainer and evaluator share: a planned program bound to a model's memory, run on batches; and the same program
// for batches of other sizes, each planned when it first comes (or before, by prepare), all in one arena. Of the sizes
// that were planned here a number is kept: the least recently used goes first.
#pragma once

#include <neap/core/byte_block.hpp>
#include <neap/execute/executable.hpp>
#include <neap/execute/plan_like.hpp>
#include <neap/model/functions/movement.hpp>
#include <neap/model/program.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// Says, in the first line of the compiler's error, why a program cannot be run by what was given behind it. False:
/// what a deduction guide requires that is never chosen.
template <class Plan = void, class Backend = void, class... Rest>
constexpr bool refuse_run() {
  using plan_t = std::remove_cvref_t<Plan>;
  constexpr bool is_answer = requires(plan_t& found) { found.placed; }, is_right = std::is_same_v<plan_t, plan>;
  static_assert(!is_answer, "neap: this is the answer of a search: give the plan in it, found.placed");
  static_assert(
      is_answer || is_right,
      "neap: a program is run by a plan of it and on a backend: give what a search has placed, found.placed, or "
      "plan_in_order(step.program), and then the backend");
  static_assert(!is_right || !std::is_void_v<Backend>,
                "neap: behind the plan a backend is needed:  neap::host_backend backend(2);");
  static_assert(!is_right || std::is_void_v<Backend> || std::is_lvalue_reference_v<Backend>,
                "neap: a backend lives longer than what runs on it: give a variable, not a temporary");
  return false;
}

bool lies_in(std::span<std::byte const> memory, void const* p);

/// A program traced for one sample and planned, with its inputs and kept values in the plan's terms.
template <class Program, class Backend>
class bound_program {
 public:
  bound_program(Program p, plan const& planned, Backend& backend, execution_options const& options,
                std::source_location at);

  /// Where a kept value of the program is after a run.
  tensor_ref value(value_id v) const {
    return run->value(counterpart(step.program.kept(), run->planned().graph.kept(), v));
  }

  /// Whether a run may write there: residents that it updates.
  bool writes_to(void const* p) const {
    for (auto const& memory : written_)
      if (lies_in(memory, p)) return true;
    return false;
  }
  /// The first weight or buffer that the model has in other memory since this was bound; none: null.
  resident const* moved_away() const {
    for (std::size_t i = 0; i < replacements_.size(); ++i)
      if (step.residents[i].holder.storage()->replacements() != replacements_[i]) return &step.residents[i];
    return nullptr;
  }
  /// Data of residents that a device has are copied back, where the host reads them.
  void settle_residents() {
    if constexpr (on_host)
      for (auto const& r : step.residents) (void)r.memory();
  }
  /// Keeps input k of a run alive until the next one, if a result of the run is a view of it.
  void hold(std::size_t k, tensor const& x) {
    if (!held_.empty() && output_aliases_input_[k]) held_[k] = x;
  }

  Program step;
  std::vector<value_id> inputs;
  std::vector<tensor_type> types;
  bool stays = false;           // it was given, not planned here
  std::uint64_t last_used = 0;  // a count of uses
  std::unique_ptr<executable<Backend>> run;

 private:
  static constexpr bool on_host = Backend::addresses_host_memory;

  plain_vector<std::uint32_t> replacements_;          // of each resident's memory, when this was bound
  plain_vector<std::span<std::byte const>> written_;  // memory of residents that are updated
  plain_vector<bool> output_aliases_input_;           // inputs that a kept value lies in
  std::vector<tensor> held_;                          // those, of the last run; empty where there are none

  /// Sources stand in the same order in a program and in its plans, and so do kept values; ids may differ.
  static value_id counterpart(std::span<value_id const> from, std::span<value_id const> to, value_id v) {
    for (std::size_t i = 0; i < from.size(); ++i)
      if (from[i] == v) return to[i];
    throw_error({"the plan is not one of this program"});
  }
};

template <class Program, class Backend>
bound_program<Program, Backend>::bound_program(Program p, plan const& planned, Backend& backend,
                                               execution_options const& options, std::source_location at)
    : step(std::move(p)) {
  if (planned.original != step.program.digest())
    throw_error(
        context_access::place(at),
        {"the plan is not one of this program: give what optimize(step, ...) or plan_in_order(step.program) made"});
  auto const& g = step.program;
  std::vector<source_binding> bindings;
  for (auto const& r : step.residents) {
    auto* const storage = r.holder.storage().get();
    void* const memory = on_host ? r.memory() : nullptr;
    bindings.push_back({counterpart(g.sources(), planned.graph.sources(), r.value), memory, storage});
    replacements_.push_back(storage->replacements());
    if constexpr (!on_host) continue;
    if (auto const s = g.storage(r.value); g.record(s).updates > 0)
      written_.push_back({static_cast<std::byte const*>(r.memory()), static_cast<std::size_t>(g.bytes(s))});
  }
  for (auto v : step.inputs) {
    inputs.push_back(counterpart(g.sources(), planned.graph.sources(), v));
    types.push_back(g.type(v));
    output_aliases_input_.push_back(
        std::any_of(g.kept().begin(), g.kept().end(), [&](value_id kept) { return g.storage(kept) == g.storage(v); }));
    if (output_aliases_input_.back()) held_.resize(step.inputs.size());
  }
  with_place(at, [&] { run = std::make_unique<executable<Backend>>(planned, bindings, backend, options); });
}

/// Runs a program on batches. `Program` has program, residents, inputs and recipe.
template <class Program, class Backend>
class batch_runner {
 public:
  using bound = bound_program<Program, Backend>;

  batch_runner(Program const& step, plan const& p, Backend& backend, execution_options const& options,
               std::string_view who, std::source_location at);

  /// A call under way, until it is destroyed.
  class call_under_way {
   public:
    explicit call_under_way(bool& busy) : busy_(&busy) {}
    call_under_way(call_under_way&& other) noexcept : busy_(std::exchange(other.busy_, nullptr)) {}
    call_under_way& operator=(call_under_way&&) = delete;
    ~call_under_way() {
      if (busy_) std::atomic_ref(*busy_).store(false, std::memory_order_release);
    }

   private:
    bool* busy_;
  };
  /// Throws neap::error if another call has not ended: there is one arena.
  [[nodiscard]] call_under_way begin_call(std::source_location at) {
    if (std::atomic_ref(busy_).exchange(true, std::memory_order_acquire))
      refuse(at, "another call of it is under way, on another thread or within this one: one thread at a time");
    return call_under_way(busy_);
  }

  /// The program for a batch's types, its inputs bound to the batch's memory. Results of an earlier run lie in the
  /// arena, where this run writes, and so may weights and buffers be written: as a part of the batch they are copied.
  bound& bind(sample_ref batch, std::source_location at);
  /// A program of this has run: its outputs may be read until the next run.
  void has_run(bound const& b) { running_ = &b; }
  /// Traces and plans the program for samples of these types, if it is not there yet.
  bound& prepare(sample_ref sample, std::source_location at) { return size_of(sample, at); }
  /// Copies weights and states that a device has to the model's memory.
  void sync() {
    for (auto const& s : sizes_) s->run->sync();
  }
  /// Takes a plan for another size.
  void add(Program const& step, plan const& p, std::source_location at);

  bound& first() { return *sizes_.front(); }
  bound const& first() const { return *sizes_.front(); }
  std::vector<std::unique_ptr<bound>> const& sizes() const { return sizes_; }

 private:
  [[noreturn]] void refuse(std::source_location at, std::string const& what) const {
    throw_error(context_access::place(at), {who_, ": ", what});
  }
  void* copied(std::size_t k, tensor_ref const& x);
  /// f(number, tensor) for the batch's tensors. Takes no memory.
  template <class F>
  static std::size_t each_tensor(sample_ref batch, F const& f) {
    std::size_t k = 0;
    batch.tensors().each_tensor([&](tensor const& x, auto const&) {
      if (!x.is_empty()) f(k++, x);
    });
    return k;
  }
  /// The arena and what is resident.
  bytes_t room(plan const& p) const { return first().run->room(p); }
  std::string needed(bytes_t beside_resident) const {
    return std::to_string(beside_resident) + " bytes beside what is resident, and the arena has " +
           std::to_string(room(first().run->planned()) - first().run->planned().resident_bytes);
  }

  bound& size_of(sample_ref batch, std::source_location at);
  /// Plans and keeps the program for another size.
  bound& planned(Program step, std::source_location at);
  /// Lets the least recently used sizes go until there is room for one more.
  void make_room();

  Backend* backend_;
  execution_options options_;
  std::string_view who_;
  std::vector<std::unique_ptr<bound>> sizes_;  // the first is the one that was given
  bound const* running_ = nullptr;             // what ran last: its outputs may be read
  std::uint64_t uses_ = 0;
  bool busy_ = false;               // a call is under way
  std::vector<tensor> dense_;       // the batch's tensors that are views with gaps, by their numbers
  std::vector<byte_block> copies_;  // of the batch's tensors that lie in the arena, by their numbers
};

template <class Program, class Backend>
batch_runner<Program, Backend>::batch_runner(Program const& step, plan const& p, Backend& backend,
                                             execution_options const& options, std::string_view who,
                                             std::source_location at)
    : backend_(&backend),
      options_(options),
      who_(who) {
  sizes_.push_back(std::make_unique<bound>(step, p, backend, options, at));
  sizes_.front()->run->share_memory(options_);
}

template <class Program, class Backend>
auto batch_runner<Program, Backend>::bind(sample_ref batch, std::source_location at) -> bound& {
  if (auto const* r = first().moved_away())
    refuse(at, "the model has \"" + r->name +
                   "\" in other memory than the plan was bound to, by std::move, by a temporary that was assigned, or "
                   "by another element type: assign a variable, whose data are copied, or make step and " +
                   std::string(who_) + " anew");
  auto& b = size_of(batch, at);
  if (storages_elsewhere.load(std::memory_order_relaxed) > 0) b.settle_residents();
  each_tensor(batch, [&](std::size_t k, tensor const& x) {
    tensor const* given = &x;
    if (!x.layout(at).is_dense()) {
      if (dense_.size() <= k) dense_.resize(k + 1);
      dense_[k] = contiguous(x.detach(), at);
      given = &dense_[k];
    }
    auto const from = given->ref(at);
    bool const is_written = lies_in(options_.memory, from.data) || b.writes_to(from.data);
    b.run->bind(b.inputs[k], is_written ? copied(k, from) : from.data);
    b.hold(k, *given);
  });
  return b;
}

template <class Program, class Backend>
void batch_runner<Program, Backend>::add(Program const& step, plan const& p, std::source_location at) {
  if (p.arena_bytes > room(p))
    refuse(at, "the plan for this size needs " + needed(p.arena_bytes - p.resident_bytes) +
                   ": plan the largest batch first");
  sizes_.push_back(std::make_unique<bound>(step, p, *backend_, options_, at));
  sizes_.back()->stays = true;
}

template <class Program, class Backend>
void* batch_runner<Program, Backend>::copied(std::size_t k, tensor_ref const& x) {
  if (copies_.size() <= k) copies_.resize(k + 1);
  auto const bytes = static_cast<std::size_t>(x.count() * neap::size_of(x.element));
  if (copies_[k].bytes() < bytes) copies_[k] = byte_block(bytes, 64);
  if (bytes > 0) std::memcpy(copies_[k].data(), x.data, bytes);
  return copies_[k].data();
}

template <class Program, class Backend>
auto batch_runner<Program, Backend>::size_of(sample_ref batch, std::source_location at) -> bound& {
  if (auto const other = first().step.form.difference(batch); !other.empty()) refuse(at, other);
  auto const& sample = first().types;
  for (auto const& s : sizes_) {
    bool same = true;
    auto const n = each_tensor(batch, [&](std::size_t k, tensor const& x) {
      same = same && k < s->types.size() && x.type(at) == s->types[k];
    });
    if (n != sample.size())
      refuse(at, "the batch has " + std::to_string(n) + " tensors, the sample had " + std::to_string(sample.size()));
    if (same) return s->last_used = ++uses_, *s;
  }
  each_tensor(batch, [&](std::size_t k, tensor const& x) {
    auto const& s = sample[k];
    if (x.element() != s.element || x.rank() != s.rank() || (!first().step.recipe && !(x.type() == s)))
      refuse(at, "tensor " + std::to_string(k) + " of the batch is " + to_string(x.type()) + ", the sample's was " +
                     to_string(s) + (x.element() != s.element ? ": cast it" : ""));
  });
  std::string differs;  // from the sample
  each_tensor(batch, [&](std::size_t k, tensor const& x) {
    if (differs.empty() && x.type(at) != sample[k])
      differs = "tensor " + std::to_string(k) + " of the batch is " + to_string(x.type()) + ", the sample's was " +
                to_string(sample[k]);
  });
  auto step = [&] {
    try {
      return first().step.recipe->for_sample(batch.get(), batch.type(), first().step, at);
    } catch (error const& e) {
      std::string const what = e.what();
      if (what.find(": " + std::string(who_) + ":") != what.npos) throw;
      refuse(at, differs + ": " + what);
    }
  }();
  return planned(std::move(step), at);
}

template <class Program, class Backend>
auto batch_runner<Program, Backend>::planned(Program step, std::source_location at) -> bound& {
  std::optional<plan> p;
  for (auto const& s : sizes_) {  // programs of other sizes may have other ops: of one sample, of a shorter sequence
    auto q = plan_like(s->run->planned(), s->step.program, step.program);
    if (q && (!p || q->arena_bytes < p->arena_bytes)) p = std::move(q);
    if (p && p->arena_bytes <= room(*p)) break;
  }
  auto const& like = first().run->planned();
  if (!p || p->arena_bytes > room(*p)) {
    auto q = plan_in_order(step.program, like.options);
    if (!p || q.arena_bytes < p->arena_bytes) p = std::move(q);
  }
  if (auto const limit = room(*p); p->arena_bytes > limit) {
    auto const& how = options_.sizes;
    auto within = plan_within(step.program, limit, like, how.search, how.transfers);
    if (!within.found) {
      bool const never = within.lower_bound_bytes > limit;
      auto const bytes = (never ? within.lower_bound_bytes : p->arena_bytes) - p->resident_bytes;
      char seconds[32];
      std::snprintf(seconds, sizeof seconds, "%g", how.search.limit.count());
      refuse(
          at,
          "a batch of this size needs " + std::string(never ? "at least " : "") + needed(bytes) +
              (never ? std::string() : ", and no plan within it was found in " + std::string(seconds) + " s") +
              ": plan the largest batch first, or give room by execution_options{.sizes = {.limit = ...}}, a plan by add()" +
              (never ? "" : ", more time by execution_options{.sizes = {.search = ...}}"));
    }
    p = std::move(within.found);
  }
  auto made = std::make_unique<bound>(std::move(step), *p, *backend_, options_, at);
  make_room();
  made->last_used = ++uses_;
  sizes_.push_back(std::move(made));
  return *sizes_.back();
}

template <class Program, class Backend>
void batch_runner<Program, Backend>::make_room() {
  for (;;) {
    std::size_t planned = 0, oldest = 0;
    for (std::size_t i = 1; i < sizes_.size(); ++i) {
      auto const& s = *sizes_[i];
      planned += !s.stays;
      if (s.stays || &s == running_) continue;
      if (oldest == 0 || s.last_used < sizes_[oldest]->last_used) oldest = i;
    }
    if (planned < std::max<std::size_t>(options_.sizes.kept, 2) || oldest == 0) return;
    sizes_.erase(sizes_.begin() + static_cast<std::ptrdiff_t>(oldest));
  }
}

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/execute/impl/batch_runner.ipp>
#endif
