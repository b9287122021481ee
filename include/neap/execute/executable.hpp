// An executable: a plan bound to memory and kernels. Everything that can be worked out beforehand is: which function
// runs at each step, with which addresses, and which transfers it waits for. Running a step walks the launch list; it
// takes no memory.
//
//   executable run(plan, residents, backend);     // one arena for all that is not resident
//   run();                                        // one training step, weights updated in place
//
// Residents (weights, optimizer states, inputs...) stay in memory of the caller's, who may bind inputs anew before each
// step. On the host backend `store` and `load` go to a spill file. If the disk fails during a step, the step ends with
// neap::error and every resident is as it was before the step: those that the step updates while transfers are still
// outstanding are written to the spill file first, in the idle moments of its thread, and read back.
#pragma once

#include <neap/backend/types.hpp>
#include <neap/core/compiled_once.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/execute/arena.hpp>
#include <neap/execute/kernel_check.hpp>
#include <neap/execute/spill_file.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/ir/stored.hpp>
#include <neap/plan/limits.hpp>
#include <neap/plan/plan.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace neap::inline v0 {

/// Where a source value's storage is: at least as many bytes as the graph says, 64-byte aligned.
struct source_binding {
  value_id source;
  void* memory;
};

/// How a trainer or an evaluator plans batches of other sizes than the sample's, and what it keeps of them.
struct size_options {
  time_budget search{std::chrono::seconds(60)};  // of one size, at most: where no order that is known fits the arena
  std::size_t kept = 64;  // planned sizes beside those that were given, at least 2; the least recently used goes first
  bool transfers = true;  // may use the spill file where the given plan does not, if nothing else is found to fit
};

struct execution_options {
  std::string spill_folder = "/tmp";  // of the spill file, where the plan has stores
  std::span<std::byte> memory{};      // the arena's place, 64-byte aligned, kept by the caller; none: one of its own
  std::vector<seconds_t>* step_seconds = nullptr;  // where each run writes the time of each of the plan's steps
  size_options sizes{};                            // of batches other than the sample; for trainers and evaluators
};

template <class Ops, class Backend>
class executable {
 public:
  using graph_type = basic_graph<Ops>;

  /// Throws neap::error if a source that the graph reads is not bound (inputs may be bound later), an op has no kernel
  /// (opaque ones) or the host does not compute it in its type, the plan's alignment is not a multiple of the 64 bytes
  /// that kernels build on, memory or the spill file cannot be had. The backend outlives the executable.
  executable(plan<graph_type> p, std::span<source_binding const> sources, Backend& backend,
             execution_options const& options = {});
  executable(executable const&) = delete;  // the launch list holds addresses
  executable& operator=(executable const&) = delete;

  /// A source is somewhere else from now on (another batch). A donated input is copied from there at the beginning of each
  /// run; what is there is only read.
  void bind(value_id source, void* memory) {
    for (auto& d : donated_)
      if (d.storage == plan_.graph.storage(source)) {
        d.from = memory;
        return;
      }
    auto& at = address_[plan_.graph.storage(source)];
    if (at == memory) return;
    at = static_cast<std::byte*>(memory);
    for (auto const& f : fixups_)
      if (f.storage == plan_.graph.storage(source)) refs_[f.ref].data = at + f.offset;
  }

  /// Runs one step. Throws neap::error if an input is not bound, or if the spill file fails; residents are then as they
  /// were before the step.
  void operator()() {
    for (auto const& f : fixups_)
      if (!refs_[f.ref].data) throw_error({"executable: an input is bound to no memory"});
    for (auto const& d : donated_) {
      if (!d.from) throw_error({"executable: an input is bound to no memory"});
      std::memcpy(address_[d.storage], d.from, static_cast<std::size_t>(plan_.graph.bytes(d.storage)));
    }
    high_water_ = std::max(high_water_, plan_.resident_bytes);
    if (seconds_) seconds_->assign(launches_.size(), 0);
    if (!spill_) {
      for (auto const& l : launches_) run(l);
    } else {
      run_with_transfers();
    }
    ++steps_;
  }

  /// A value that is kept, after a step; data is null for one that has no elements, or that the graph does not keep or
  /// bind.
  tensor_ref value(value_id v) const {
    return tensor_ref::place(address_[plan_.graph.storage(v)], plan_.graph.layout(v));
  }

  plan<graph_type> const& planned() const { return plan_; }
  /// The end of the highest buffer or workspace that the launches so far were given, in the plan's terms: from the
  /// first resident's byte. After a step it is the plan's arena_bytes.
  bytes_t high_water_bytes() const { return high_water_; }
  /// Where it computes: what is not resident.
  std::byte* arena_data() const { return memory_; }
  bytes_t arena_bytes() const { return plan_.arena_bytes - plan_.resident_bytes; }
  std::size_t steps_run() const { return steps_; }
  spill_file const* spill() const { return spill_.get(); }

 private:
  enum class action : std::uint8_t { compute, view, store, load };
  struct launch {
    kernel_function<Backend> kernel = nullptr;
    void const* attributes = nullptr;
    std::uint32_t refs = 0;  // first of inputs, then outputs, in refs_
    std::uint16_t inputs = 0, outputs = 0;
    action what = action::view;
    void* workspace = nullptr;
    bytes_t top = 0;                                // the end of the highest buffer or workspace it is given
    std::uint32_t first_wait = 0, waits = 0;        // in plan_.waits
    std::uint32_t slot = 0;                         // of the spill file
    std::uint32_t first_journal = 0, journals = 0;  // residents to save first
  };
  struct fixup {
    std::uint32_t ref;
    storage_id storage;
    bytes_t offset;
  };
  struct journal_entry {
    storage_id storage;
    std::uint32_t slot;
    spill_file::ticket saved = 0;
  };

  void build(execution_options const& options);
  void add_ref(value_id v, op_id o);

  void run(launch const& l) {
    if (l.what == action::view) return;
    high_water_ = std::max(high_water_, l.top);
    if (l.what != action::compute) return;
    if (seconds_) return run_timed(l);
    launch_kernel(l);
  }
  void run_timed(launch const& l) {
    auto const begin = std::chrono::steady_clock::now();
    launch_kernel(l);
    (*seconds_)[static_cast<std::size_t>(&l - launches_.data())] =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  void launch_kernel(launch const& l) {
    std::span<tensor_ref const> const refs(refs_);
    l.kernel(*backend_, l.attributes,
             {refs.subspan(l.refs, l.inputs), refs.subspan(l.refs + l.inputs, l.outputs), l.workspace});
  }

  void run_with_transfers();
  /// A transfer moves the whole storage, whatever part of it the value shows.
  std::byte* storage_address(std::uint32_t step) const {
    auto const o = plan_.steps[step].op;
    auto const& g = plan_.graph;
    return address_[g.storage(launches_[step].what == action::store ? g.inputs(o)[0] : g.output(o))];
  }

  plan<graph_type> plan_;
  Backend* backend_;
  arena arena_;
  std::byte* memory_;
  table<storage_id, std::byte*> address_;
  plain_vector<launch> launches_;
  plain_vector<tensor_ref> refs_;
  plain_vector<fixup> fixups_;
  struct donated_input {
    storage_id storage = nothing<storage_id>;
    void const* from = nullptr;
  };
  plain_vector<donated_input> donated_;
  plain_vector<journal_entry> journal_;
  std::vector<spill_file::ticket> tickets_;
  std::unique_ptr<spill_file> spill_;
  std::uint32_t final_wait_ = 0;
  std::vector<seconds_t>* seconds_;
  bytes_t high_water_ = 0;
  std::size_t steps_ = 0;
};

template <class Ops, class Backend>
executable<Ops, Backend>::executable(plan<graph_type> p, std::span<source_binding const> sources, Backend& backend,
                                     execution_options const& options)
    : plan_(std::move(p)),
      backend_(&backend),
      arena_(options.memory.empty() ? plan_.arena_bytes - plan_.resident_bytes : 0),
      memory_(options.memory.empty() ? arena_.data() : options.memory.data()),
      address_(plan_.graph.storage_count(), nullptr),
      seconds_(options.step_seconds) {
  auto const& g = plan_.graph;
  if (!options.memory.empty() && static_cast<bytes_t>(options.memory.size()) < arena_bytes())
    throw_error({"executable: the plan needs ", arena_bytes(), " bytes, it was given ", options.memory.size()});
  if (reinterpret_cast<std::uintptr_t>(options.memory.data()) % 64 != 0)
    throw_error({"executable: the memory that it was given does not begin at a multiple of 64 bytes, as kernels need"});
  if (plan_.options.alignment % 64 != 0)
    throw_error(
        {"executable: the plan aligns buffers to ", plan_.options.alignment, " bytes, kernels need a multiple of 64"});
  for (auto const& b : plan_.buffers)
    if (!b.resident) {
      address_[b.storage] = memory_ + (b.offset - plan_.resident_bytes);
      if (g.is_source(b.storage)) donated_.push_back({b.storage});
    }
  for (auto const& s : sources) address_[g.storage(s.source)] = static_cast<std::byte*>(s.memory);
  build(options);
}

template <class Ops, class Backend>
void executable<Ops, Backend>::build(execution_options const& options) {
  static_assert(detail::kernel_checks<Backend, typename Ops::list>::ok);
  auto const& g = plan_.graph;
  auto const n = static_cast<std::uint32_t>(plan_.steps.size());
  std::size_t refs = 0;
  for (auto o : g.ops()) refs += g.inputs(o).size() + g.outputs(o).size();
  refs_.reserve(refs);
  launches_.resize(n);
  std::vector<bytes_t> slots;
  std::vector<std::uint32_t> slot_of(g.value_count(), no_id);
  std::uint32_t last_wait = 0;  // the last step that waits for a transfer, or one after the last
  table<storage_id, bytes_t> end_of(g.storage_count(), 0);
  for (auto const& b : plan_.buffers) end_of[b.storage] = b.offset + b.bytes;
  for (std::uint32_t i = 0; i < n; ++i) {
    op_id const o = plan_.steps[i].op;
    auto& l = launches_[i];
    l.refs = static_cast<std::uint32_t>(refs_.size());
    l.inputs = static_cast<std::uint16_t>(g.inputs(o).size());
    l.outputs = static_cast<std::uint16_t>(g.outputs(o).size());
    l.attributes = g.attributes(o);
    for (auto v : g.inputs(o)) l.top = std::max(l.top, end_of[g.storage(v)]);
    for (auto v : g.outputs(o)) l.top = std::max(l.top, end_of[g.storage(v)]);
    if (g.template as<op::store>(o)) {
      l.what = action::store;
      l.slot = slot_of[index(g.output(o))] = static_cast<std::uint32_t>(slots.size());
      slots.push_back(g.bytes(g.storage(g.inputs(o)[0])));
      add_ref(g.inputs(o)[0], o);
      continue;
    }
    if (g.template as<op::load>(o)) {
      l.what = action::load;
      l.slot = slot_of[index(g.output(store_of(g, g.inputs(o)[0])))];
      add_ref(g.output(o), o);
      continue;
    }
    bool all_views = !g.outputs(o).empty();
    for (auto v : g.outputs(o)) all_views &= g.record(v).alias == alias_kind::view;
    if (all_views) continue;
    l.what = action::compute;
    l.kernel = detail::kernel_in<Backend, Ops>(g, o);
    if (!l.kernel) {
      auto const* x = g.template as<op::opaque>(o);
      throw_error(
          {"executable: ", x ? g.text(x->target) : g.facets(o).name, " has no kernel: its meaning is not known"});
    }
    if constexpr (std::is_same_v<Backend, host_backend>)
      if (g.facets(o).f32_or_f64)
        for (auto v : g.outputs(o))
          if (auto const t = g.type(v).element; is_floating(t) && t != dtype::f32 && t != dtype::f64)
            refuse_on_host(g.facets(o).name, t);
    for (auto v : g.inputs(o)) {
      if (!fits(g.facets(o).takes, g.layout(v)))
        throw_error({"executable: ", g.facets(o).name, " #", index(o), " cannot read an input with strides ",
                     g.layout(v).strides});
      add_ref(v, o);
    }
    for (auto v : g.outputs(o)) add_ref(v, o);
    if (auto const& s = plan_.steps[i]; s.workspace_bytes) {
      l.workspace = memory_ + (s.workspace_offset - plan_.resident_bytes);
      l.top = std::max(l.top, s.workspace_offset + s.workspace_bytes);
    }
  }
  std::uint32_t w = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    launches_[i].first_wait = w;
    while (w < plan_.waits.size() && plan_.waits[w].step == i) ++w;
    launches_[i].waits = w - launches_[i].first_wait;
    if (launches_[i].waits) last_wait = i;
  }
  final_wait_ = w;
  if (final_wait_ < plan_.waits.size()) last_wait = n;
  if (slots.empty()) return;

  // Residents that are updated before the last transfer has ended are saved first, so that a failing disk leaves the
  // weights of the last finished step.
  std::vector<bool> saved(g.storage_count());
  for (std::uint32_t i = 0; i < std::min(last_wait, n); ++i) {
    launches_[i].first_journal = static_cast<std::uint32_t>(journal_.size());
    for (auto v : g.outputs(plan_.steps[i].op)) {
      auto const s = g.storage(v);
      if (g.record(v).alias != alias_kind::update || !g.is_resident(s) || saved[index(s)]) continue;
      saved[index(s)] = true;
      journal_.push_back({s, static_cast<std::uint32_t>(slots.size())});
      slots.push_back(g.bytes(s));
    }
    launches_[i].journals = static_cast<std::uint32_t>(journal_.size()) - launches_[i].first_journal;
  }
  tickets_.assign(n, 0);
  spill_ = std::make_unique<spill_file>(options.spill_folder, slots, std::min<std::size_t>(slots.size(), 64),
                                        journal_.size());
}

template <class Ops, class Backend>
void executable<Ops, Backend>::add_ref(value_id v, op_id o) {
  auto const& g = plan_.graph;
  auto const s = g.storage(v);
  std::byte* const at = address_[s];
  value_id const first = g.record(s).first;  // v may be a view of it
  if (!at && g.bytes(s) > 0 && g.is_resident(s) && g.role(first) != role::input)
    throw_error({"executable: the ", name_of(g.role(first)), " \"", g.name(first), "\" that ", g.facets(o).name,
                 " reads is bound to no memory"});
  if (g.is_resident(s))
    fixups_.push_back({static_cast<std::uint32_t>(refs_.size()), s, g.layout(v).offset * size_of(g.type(v).element)});
  refs_.push_back(tensor_ref::place(at, g.layout(v)));
  if (!at) refs_.back().data = nullptr;
}

template <class Ops, class Backend>
void executable<Ops, Backend>::run_with_transfers() {
  std::size_t journaled = 0;
  try {
    for (auto& j : journal_) j.saved = spill_->save(j.slot, address_[j.storage]);
    for (std::uint32_t i = 0; i < launches_.size(); ++i) {
      auto const& l = launches_[i];
      for (std::uint32_t w = l.first_wait; w < l.first_wait + l.waits; ++w)
        spill_->wait(tickets_[plan_.waits[w].transfer]);
      for (std::uint32_t j = l.first_journal; j < l.first_journal + l.journals; ++j) {
        spill_->wait_saved(journal_[j].saved);
        journaled = j + 1;
      }
      run(l);
      if (l.what == action::store) tickets_[i] = spill_->store(l.slot, storage_address(i));
      if (l.what == action::load) tickets_[i] = spill_->load(l.slot, storage_address(i));
    }
    for (std::uint32_t w = final_wait_; w < plan_.waits.size(); ++w) spill_->wait(tickets_[plan_.waits[w].transfer]);
  } catch (...) {
    spill_->settle();
    for (std::size_t j = 0; j < journaled; ++j)
      spill_->wait(spill_->load(journal_[j].slot, address_[journal_[j].storage]));
    throw;
  }
}

NEAP_INSTANTIATE_ONCE(class executable<standard_operators, host_backend>);

}  // namespace neap::inline v0
