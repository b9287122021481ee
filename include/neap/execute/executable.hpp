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

#include <neap/core/plain_vector.hpp>
#include <neap/core/separate_compilation.hpp>
#include <neap/execute/anomaly.hpp>
#include <neap/execute/arena.hpp>
#include <neap/execute/launch_list.hpp>
#include <neap/execute/spill_file.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/model/storage.hpp>
#include <neap/plan/limits.hpp>
#include <neap/plan/plan.hpp>

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace neap { inline namespace v0 {

/// Where a source value's storage is: at least as many bytes as the graph says, 64-byte aligned.
struct source_binding {
  value_id source;
  void* memory;  // on the host
  // Of a model's tensor: on a device, its data stay there until they are read. Without it they are copied before and
  // after each step.
  detail::tensor_storage* storage = nullptr;
};

namespace detail {
/// What executables for several sizes of batches share on a device.
class shared_device_memory {
 public:
  virtual ~shared_device_memory() = default;
};
}  // namespace detail

/// When a step of a plan ran, in seconds from the beginning of the run.
struct step_span {
  seconds_t begin = 0, end = 0;  // both 0: nothing ran
  friend bool operator==(step_span const&, step_span const&) = default;
};

/// How a trainer or an evaluator plans batches of other sizes than the sample's, and what it keeps of them.
struct size_options {
  time_budget search{std::chrono::seconds(60)};  // of one size, at most: where no order that is known fits the arena
  std::size_t kept = 64;  // planned sizes beside those that were given, at least 2; the least recently used goes first
  bytes_t limit = 0;  // of any size, what is resident included: so much memory is taken at once, for batches that are
                      // larger than the sample, too; 0: what the given plan needs
  bool transfers = true;  // may use the spill file where the given plan does not, if nothing else is found to fit
};

struct execution_options {
  std::string spill_folder = "/tmp";  // of the spill file, where the plan has stores
  std::span<std::byte> memory{};      // the arena's place, 64-byte aligned, kept by the caller; none: one of its own
  std::vector<seconds_t>* step_seconds = nullptr;  // where each run writes the time of each of the plan's steps
  std::vector<step_span>* step_spans = nullptr;    // on a GPU: where each run writes when each of the steps ran
  size_options sizes{};                            // of batches other than the sample; for trainers and evaluators
  anomaly watch =
      anomaly::none;  // on the host: each result is looked through, and the first one that has such an element
                      // throws, by name; weights may then have been updated in part
  bool graph = true;  // on a GPU: the step is captured as one CUDA graph and replayed; false: launched op by op
  std::shared_ptr<detail::shared_device_memory> device_memory{};  // of another executable; for trainers and evaluators
};

/// On the host, and on backends that compute in the host's memory. Executables of a GPU: cuda/executable.hpp.
template <class Backend>
class executable : detail::launch_list<Backend> {
  using base = detail::launch_list<Backend>;
  using base::plan_, base::memory_, base::address_, base::launches_, base::refs_, base::fixups_, base::donated_;
  using typename base::action, typename base::launch;

 public:
  /// Throws neap::error if a source that the graph reads is not bound (inputs may be bound later), an op has no kernel
  /// (opaque ones) or the host does not compute it in its type, the plan's alignment is not a multiple of the 64 bytes
  /// that kernels build on, memory or the spill file cannot be had. The backend outlives the executable.
  executable(plan p, std::span<source_binding const> sources, Backend& backend, execution_options const& options = {});
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
    base::point_to(plan_.graph.storage(source), static_cast<std::byte*>(memory));
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

  plan const& planned() const { return plan_; }
  /// The end of the highest buffer or workspace that the launches so far were given, in the plan's terms: from the
  /// first resident's byte. After a step it is the plan's arena_bytes.
  bytes_t high_water_bytes() const { return high_water_; }
  /// Where it computes: what is not resident.
  std::byte* arena_data() const { return memory_; }
  bytes_t arena_bytes() const { return plan_.arena_bytes - plan_.resident_bytes; }
  /// The largest arena_bytes that a plan for another size may have to run in this one's memory.
  bytes_t room(plan const& other) const { return other.resident_bytes + memory_bytes_; }
  /// Lets another executable use this one's memory.
  void share_memory(execution_options& other) const {
    other.memory = {memory_, static_cast<std::size_t>(memory_bytes_)};
  }
  /// Residents are in the host's memory already.
  void sync() {}
  spill_file const* spill() const { return spill_.get(); }

 private:
  struct journal_entry {
    storage_id storage;
    std::uint32_t slot;
    spill_file::ticket saved = 0;
  };

  void prepare_transfers(execution_options const& options);

  void run(launch const& l) {
    if (l.what == action::view) return;
    high_water_ = std::max(high_water_, l.top);
    if (l.what != action::compute) return;
    if (seconds_) run_timed(l);
    else base::launch_kernel(l);
    if (watch_ != anomaly::none) watch(l);
  }
  void watch(launch const& l) const {
    auto const& g = plan_.graph;
    for (std::size_t j = 0; j < l.outputs; ++j) {
      auto const& x = refs_[l.refs + l.inputs + j];
      auto const bad = detail::first_bad(x, watch_);
      if (bad.number < 0) continue;
      op_id const o = plan_.steps[static_cast<std::size_t>(&l - launches_.data())].op;
      std::string const name(g.name(o)), kind(g.facets(o).name);
      throw_error({"the result of ", kind, name.empty() || name == kind ? std::string() : " " + name, ", ",
                   g.type(g.output(o, static_cast<int>(j))), ", is ", bad.value, " at element ", bad.number, " of ",
                   x.count()});
    }
  }
  void run_timed(launch const& l) {
    auto const begin = std::chrono::steady_clock::now();
    base::launch_kernel(l);
    (*seconds_)[static_cast<std::size_t>(&l - launches_.data())] =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  void run_with_transfers();
  std::byte* storage_address(std::uint32_t step) const { return address_[base::moved_storage(step)]; }

  bytes_t memory_bytes_;  // where it computes: at least arena_bytes()
  arena arena_;
  plain_vector<journal_entry> journal_;
  std::vector<spill_file::ticket> tickets_;
  std::unique_ptr<spill_file> spill_;
  std::vector<seconds_t>* seconds_;
  anomaly watch_;
  bytes_t high_water_ = 0;
  std::size_t steps_ = 0;
};

template <class Backend>
executable<Backend>::executable(plan p, std::span<source_binding const> sources, Backend& backend,
                                execution_options const& options)
    : base(std::move(p), backend),
      memory_bytes_(options.memory.empty() ? std::max(plan_.arena_bytes, options.sizes.limit) - plan_.resident_bytes
                                           : static_cast<bytes_t>(options.memory.size())),
      arena_(options.memory.empty() ? memory_bytes_ : 0),
      seconds_(options.step_seconds),
      watch_(options.watch) {
  if constexpr (requires { Backend::runs_on_device; })
    static_assert(!Backend::runs_on_device, "neap: executables of a GPU are in another header: include neap/cuda.hpp");
  if (options.step_spans)
    throw_error({"executable: execution_options::step_spans are measured on a GPU alone (step_seconds on the host)"});
  if (options.sizes.limit < 0)
    throw_error({"executable: execution_options::sizes.limit is a number of bytes, got ", options.sizes.limit});
  if (memory_bytes_ < arena_bytes())
    throw_error({"executable: the plan needs ", arena_bytes(), " bytes, got ", memory_bytes_});
  if (reinterpret_cast<std::uintptr_t>(options.memory.data()) % 64 != 0)
    throw_error({"executable: the memory does not begin at a multiple of 64 bytes, as kernels need"});
  base::place_buffers(options.memory.empty() ? arena_.data() : options.memory.data());
  for (auto const& s : sources) address_[plan_.graph.storage(s.source)] = static_cast<std::byte*>(s.memory);
  base::build();
  if (!base::slots_.empty()) prepare_transfers(options);
}

// Residents that are updated before the last transfer has ended are saved first, so that a failing disk leaves the
// weights of the last finished step.
template <class Backend>
void executable<Backend>::prepare_transfers(execution_options const& options) {
  auto const& g = plan_.graph;
  auto const n = static_cast<std::uint32_t>(plan_.steps.size());
  auto slots = base::slots_;
  std::vector<bool> saved(g.storage_count());
  for (std::uint32_t i = 0; i < std::min(base::last_wait_, n); ++i) {
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

template <class Backend>
void executable<Backend>::run_with_transfers() {
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
    for (std::uint32_t w = base::final_wait_; w < plan_.waits.size(); ++w)
      spill_->wait(tickets_[plan_.waits[w].transfer]);
  } catch (...) {
    spill_->settle();
    for (std::size_t j = 0; j < journaled; ++j)
      spill_->wait(spill_->load(journal_[j].slot, address_[journal_[j].storage]));
    throw;
  }
}

NEAP_INSTANTIATE_ONCE(class executable<host_backend>);

}}  // namespace neap::v0
