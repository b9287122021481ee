// Executables on a GPU. One block of device memory holds all of a plan; kernels run on one stream, stores and loads on two
// more, which wait for one another by events as the plan says. The whole step is captured as one CUDA graph and replayed
// (execution_options::graph); what changes from step to step (the batch, rates, step numbers, seeds) is in pinned memory,
// from which the graph's first nodes copy it. Nothing is allocated in a step. Bits are the same with a graph and without.
//
//   neap::cuda_backend backend;
//   neap::trainer run(step, found.placed, backend);      // the kernels: neap/src/cuda.hpp, in one .cu file
//
// Residents with a model's tensor behind them stay on the device; others are copied before and after each step. If a launch,
// a copy or the capture is refused, neap::error names the op. Nothing has run if the step is a graph; without one, the
// message states whether weights are updated in part. After a fault of the device its memory is lost: the model has the
// data that were last copied back.
#pragma once

#include <neap/core/byte_block.hpp>
#include <neap/cuda/backend.hpp>
#include <neap/cuda/events.hpp>
#include <neap/cuda/kernels.hpp>
#include <neap/cuda/step_memory.hpp>
#include <neap/execute/executable.hpp>

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

template <>
class executable<cuda_backend> : detail::launch_list<cuda_backend> {
  using base = detail::launch_list<cuda_backend>;
  using base::plan_, base::backend_, base::memory_, base::address_, base::launches_;
  using typename base::action, typename base::launch;

 public:
  /// Throws neap::error as executables of the host do; in addition if the device has too little free memory (the message
  /// states how much there is, and a limit to plan within).
  executable(plan p, std::span<source_binding const> sources, cuda_backend& backend,
             execution_options const& options = {});
  executable(executable const&) = delete;
  executable& operator=(executable const&) = delete;
  ~executable() {
    if (!owns_memory_) return;
    try {
      for (auto const& r : memory_of_step_->residents)
        if (r.comes_back) come_back(r);
    } catch (error const&) {  // the next read of such a tensor throws
    }
  }

  /// A source is somewhere else in the host's memory from now on (another batch). It is copied when a step begins.
  void bind(value_id source, void* memory) {
    auto const s = plan_.graph.storage(source);
    for (auto const& r : residents_)
      if (address_[s] == r.there->address()) throw_error({"executable: bind() of a tensor that stays on the device"});
    for (auto& x : staged_)
      if (x.storage == s) x.host = static_cast<std::byte*>(memory), x.model = nullptr;
  }

  /// Runs one step, and waits for its end. Throws neap::error if an input is not bound, or the runtime refuses a part of
  /// the step.
  void operator()();

  /// A value that is kept, after a step, in the host's memory: the next step overwrites it. Small ones are there; others
  /// are copied at the first call.
  tensor_ref value(value_id v) const;

  /// Where a value that is kept is on the device, until the next step that uses this memory.
  std::byte const* device_value(value_id v) const {
    auto const& g = plan_.graph;
    return address_[g.storage(v)] + g.layout(v).offset * size_of(g.type(v).element);
  }

  /// Weights and states to the model's memory. Throws neap::error if a copy fails.
  void sync() {
    for (auto const& r : memory_of_step_->residents) come_back(r);
  }

  plan const& planned() const { return plan_; }
  /// The end of the highest buffer or workspace that launches were given, in the plan's terms.
  bytes_t high_water_bytes() const { return high_water_; }
  /// On the device.
  std::byte* arena_data() const { return memory_; }
  bytes_t arena_bytes() const { return plan_.arena_bytes - plan_.resident_bytes; }
  /// What was allocated on the device for this plan and all that share its memory, without the scratch of kernels.
  bytes_t device_bytes() const { return memory_of_step_->block->bytes(); }
  bytes_t room(plan const&) const {
    bytes_t small = 0;  // of this plan, which another may have a second time, as its own
    for (auto const& f : memory_of_step_->fed) small += f.bytes;
    return plan_.arena_bytes + std::max<bytes_t>(spare_bytes_ - small, 0);
  }
  void share_memory(execution_options& other) const { other.device_memory = memory_of_step_; }
  /// Whether the last step was replayed from a captured graph.
  bool is_captured() const { return captured_ != nullptr; }

 private:
  struct staged {  // copied in before each step
    storage_id storage;
    std::byte* host;                // null: not bound
    detail::tensor_storage* model;  // where it is, if a model's
    bytes_t offset = 0;             // in the staging memory
    bytes_t bytes = 0;
    bool is_input = false;
    std::byte* at() const { return model ? model->data() : host; }
  };
  struct copy {
    std::byte* device;
    bytes_t offset, bytes;  // in the staging memory, or the returned
  };
  struct returned {  // copied out after each step
    storage_id storage;
    bytes_t offset, bytes;  // in the returned memory
    std::size_t staged;     // where the host has it; none: a kept value
  };
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  using staying = typename detail::cuda_step_memory::staying;
  static void come_back(staying const& r) {
    if (r.storage->is_elsewhere() && r.storage->elsewhere() == r.there) (void)r.storage->data();
  }

  void place(std::span<source_binding const> sources);
  void allocate(bytes_t bytes, bytes_t scratch);
  void require_memory(bytes_t bytes, bytes_t scratch) const;
  void find_copies();
  void find_updates();
  bytes_t scratch_bytes() const;

  void issue();
  void issue(std::uint32_t i, cudaStream_t stream);
  void issue_updates(std::uint32_t i);
  void wait(cudaStream_t stream, std::uint32_t first, std::uint32_t count) {
    for (std::uint32_t w = first; w < first + count; ++w)
      check_cuda(cudaStreamWaitEvent(stream, ended_[plan_.waits[w].transfer].get(), 0), "wait for a transfer");
  }
  static void copy_bytes(void* to, void const* from, bytes_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
    check_cuda(cudaMemcpyAsync(to, from, static_cast<std::size_t>(bytes), kind, stream), "copy");
  }
  bool updates_resident(std::uint32_t i) const {
    auto const& g = plan_.graph;
    for (auto v : g.outputs(plan_.steps[i].op))
      if (g.record(v).alias == alias_kind::update && g.is_resident(g.storage(v))) return true;
    return false;
  }
  std::string step_name(std::uint32_t i) const {
    if (i >= plan_.steps.size()) return "";
    auto const o = plan_.steps[i].op;
    return std::string(plan_.graph.facets(o).name) + " #" + std::to_string(index(o)) + ": ";
  }
  void stage(cudaStream_t stream);
  void capture(cudaStream_t stream);
  [[noreturn]] void fail(error const& e);
  [[noreturn]] void lose(cudaError_t outcome);
  bool is_timed() const { return seconds_ || spans_; }
  void read_times();

  bool uses_graph_;
  bool owns_memory_;
  bytes_t spare_bytes_;  // for plans of larger batches
  std::shared_ptr<detail::cuda_step_memory> memory_of_step_;
  std::vector<staying> residents_;                               // that this plan reads
  std::vector<std::shared_ptr<detail::cuda_resident>> written_;  // those that a step writes
  std::vector<staged> staged_;
  std::vector<copy> copies_in_, copies_out_;
  std::vector<returned> returned_;
  bytes_t staging_bytes_ = 0, returned_bytes_ = 0;
  cuda_pinned_memory staging_, returned_memory_;
  byte_block last_copied_back_;  // as staging_, when all residents were last copied to the device
  std::shared_ptr<cuda_pinned_memory> slots_memory_;
  std::vector<bytes_t> slot_offsets_;
  std::vector<detail::cuda_event> issued_, ended_;  // of each step that is a transfer
  std::vector<std::uint32_t> updates_until_;  // of a step that begins a run of updates: the step after its last; else 0
  std::vector<detail::update_call> calls_;    // of such a run, while it is issued
  detail::cuda_event origin_;                 // the beginning of a run, where steps are timed
  std::vector<detail::cuda_event> times_;     // two of each step, where steps are timed
  detail::cuda_graph_executable captured_;
  void const* captured_scratch_ = nullptr;
  bool capturing_ = false;
  std::uint32_t at_ = 0;  // the step that is issued
  bool updated_ = false;  // a step that writes residents was issued
  mutable std::vector<std::pair<storage_id, byte_block>> values_;
  mutable std::vector<std::size_t> values_of_;  // the step after which each was copied
  std::vector<seconds_t>* seconds_;
  std::vector<step_span>* spans_;
  bytes_t high_water_ = 0;
  std::size_t steps_ = 0;
};

inline executable<cuda_backend>::executable(plan p, std::span<source_binding const> sources, cuda_backend& backend,
                                            execution_options const& options)
    : base(std::move(p), backend),
      uses_graph_(options.graph && !options.step_seconds && !options.step_spans),
      owns_memory_(!options.device_memory),
      spare_bytes_(std::max<bytes_t>(options.sizes.limit - plan_.arena_bytes, 0)),
      memory_of_step_(std::dynamic_pointer_cast<detail::cuda_step_memory>(options.device_memory)),
      seconds_(options.step_seconds),
      spans_(options.step_spans) {
  if (options.watch != anomaly::none)
    throw_error({"executable: execution_options::watch looks at results in the host's memory alone"});
  if (!options.memory.empty())
    throw_error({"executable: the memory is the host's, and the backend computes in a device's memory"});
  if (!owns_memory_ && !memory_of_step_) throw_error({"executable: the memory that is shared is no GPU's"});
  check_cuda(cudaSetDevice(backend.device().number), "choice of a device");
  place(sources);
  base::build();
  find_copies();
  find_updates();
  backend.reserve_scratch(scratch_bytes());
  staging_ = cuda_pinned_memory(staging_bytes_, "batches");
  returned_memory_ = cuda_pinned_memory(returned_bytes_, "results");
  last_copied_back_ = byte_block(static_cast<std::size_t>(std::max<bytes_t>(staging_bytes_, 1)), 64);
  if (staging_bytes_ > 0) std::memset(staging_.data(), 0, static_cast<std::size_t>(staging_bytes_));
  bytes_t slots = 0;
  for (auto const bytes : base::slots_) slot_offsets_.push_back(slots), slots += align_up(bytes, 256);
  if (slots > 0) slots_memory_ = memory_of_step_->slots_of(slots);
  issued_.resize(launches_.size()), ended_.resize(launches_.size());
  for (std::size_t i = 0; i < launches_.size(); ++i)
    if (launches_[i].what == action::store || launches_[i].what == action::load)
      issued_[i] = detail::make_cuda_event(), ended_[i] = detail::make_cuda_event();
  if (!is_timed()) return;
  origin_ = detail::make_cuda_event(true);
  for (std::size_t i = 0; i < 2 * launches_.size(); ++i) times_.push_back(detail::make_cuda_event(true));
}

// Gives every storage of the plan its address. Residents come in the order of the header's picture; the first plan's are
// where they are for plans of all sizes, and what another plan has in addition is copied in as its inputs are.
inline void executable<cuda_backend>::place(std::span<source_binding const> sources) {
  auto const& g = plan_.graph;
  auto const device = backend_->device().number;
  table<storage_id, source_binding const*> binding(g.storage_count(), nullptr);
  for (auto const& s : sources) binding[g.storage(s.source)] = &s;
  std::vector<plan_buffer const*> large, small, rest;
  bool const first = owns_memory_;
  for (auto const& b : plan_.buffers) {
    if (!b.resident) continue;
    auto const* const x = binding[b.storage];
    bool const is_input = g.role(g.record(b.storage).first) == role::input &&
                          !(x && x->storage && memory_of_step_ && memory_of_step_->find(x->storage));
    if (!is_input && !x) continue;  // build() refuses it, if an op reads it
    bool const stays = !is_input && x->storage && g.bytes(b.storage) > detail::small_resident_bytes;
    void const* const key = x && x->storage ? static_cast<void const*>(x->storage) : x ? x->memory : nullptr;
    auto const is_there = [&] {
      return stays ? !!memory_of_step_->find(x->storage) : !!memory_of_step_->find_small(key);
    };
    (is_input || !(first || is_there()) ? rest : stays ? large : small).push_back(&b);
  }
  auto const buffers = plan_.arena_bytes - plan_.resident_bytes;
  auto shared_resident =
      [&](storage_id s) -> std::shared_ptr<detail::cuda_resident> {  // another executable has it there
    auto r = std::dynamic_pointer_cast<detail::cuda_resident>(binding[s]->storage->elsewhere());
    return r && r->device() == device ? r : nullptr;
  };
  bytes_t inputs = 0;
  for (auto const* b : rest) inputs += b->bytes;
  if (first) {
    bytes_t bytes = buffers + inputs + spare_bytes_;
    for (auto const* b : large)
      if (!shared_resident(b->storage)) bytes += b->bytes;
    for (auto const* b : small) bytes += b->bytes;
    memory_of_step_ = std::make_shared<detail::cuda_step_memory>();
    allocate(bytes, scratch_bytes());
  }
  auto& m = *memory_of_step_;
  auto* const block = m.block->data();
  bytes_t at = 0;
  for (auto const* b : large) {
    auto* const storage = binding[b->storage]->storage;
    auto r = first ? shared_resident(b->storage) : m.find(storage);
    bool const own = !r;
    if (own) {
      r = std::make_shared<detail::cuda_resident>(device, block + at, g.bytes(b->storage), m.block);
      storage->place_elsewhere(r);
      at += b->bytes;
    }
    bool const writes = g.record(b->storage).updates > 0;
    if (first) m.residents.push_back({storage, r, own || writes});
    residents_.push_back({storage, r, own || writes});
    address_[b->storage] = r->address();
    if (writes) written_.push_back(r);
  }
  if (first) m.fed_begin = at;
  auto const stage = [&](plan_buffer const& b, bytes_t offset, bool is_input) {
    auto const* const x = binding[b.storage];
    address_[b.storage] = block + offset;
    staged_.push_back({b.storage, x ? static_cast<std::byte*>(x->memory) : nullptr, x ? x->storage : nullptr,
                       offset - m.fed_begin, g.bytes(b.storage), is_input});
  };
  for (auto const* b : small) {
    auto const* const x = binding[b->storage];
    void const* const key = x->storage ? static_cast<void const*>(x->storage) : x->memory;
    if (first) {
      m.fed.push_back({key, at, b->bytes});
      at += b->bytes;
    }
    stage(*b, m.find_small(key)->offset, false);
  }
  if (first) m.inputs_begin = at;
  at = m.inputs_begin;
  for (auto const* b : rest) {
    stage(*b, at, g.role(g.record(b->storage).first) == role::input);
    at += b->bytes;
  }
  if (at + buffers > m.block->bytes())
    throw_error({"executable: the plan needs ", at + buffers,
                 " bytes on the device, and the memory that it shares has ", m.block->bytes()});
  staging_bytes_ = at - m.fed_begin;
  if (staging_bytes_ > 0) copies_in_.push_back({block + m.fed_begin, 0, staging_bytes_});
  base::place_buffers(block + at);
  for (auto const& d : base::donated_) {
    auto const* const x = binding[d.storage];
    auto const bytes = g.bytes(d.storage);
    staging_bytes_ = align_up(staging_bytes_, 256);
    staged_.push_back({d.storage, x ? static_cast<std::byte*>(x->memory) : nullptr, x ? x->storage : nullptr,
                       staging_bytes_, bytes, true});
    copies_in_.push_back({address_[d.storage], staging_bytes_, bytes});
    staging_bytes_ += bytes;
  }
}

inline void executable<cuda_backend>::allocate(bytes_t bytes, bytes_t scratch) {
  require_memory(bytes, scratch - std::min(scratch, backend_->scratch_bytes()));
  memory_of_step_->block = std::make_shared<cuda_device_memory>(bytes, "a plan");
}

inline void executable<cuda_backend>::require_memory(bytes_t bytes, bytes_t scratch) const {
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "free memory");
  auto const there = static_cast<bytes_t>(free);
  if (bytes + scratch <= there) return;
  std::string what = "executable: the plan needs " + std::to_string(bytes) + " bytes";
  if (scratch > 0) what += ", and its kernels " + std::to_string(scratch) + " more,";
  what += " on the device (" + backend_->device().name + "), where " + std::to_string(there) + " are free";
  auto const limit = plan_.arena_bytes - (bytes + scratch - there);
  if (limit >= plan_.lower_bound_bytes && limit > 0)
    what += ": plan within memory_limit{" + std::to_string(limit) + "}";
  else what += ": no plan of this step fits, the least is " + std::to_string(plan_.lower_bound_bytes) + " bytes";
  throw_error({what});
}

inline bytes_t executable<cuda_backend>::scratch_bytes() const {
  bytes_t most = 0;
  auto const& g = plan_.graph;
  plain_vector<tensor_layout> layouts;
  for (auto const& s : plan_.steps) {
    layouts.clear();
    for (auto v : g.inputs(s.op)) layouts.push_back(g.layout(v));
    for (auto v : g.outputs(s.op)) layouts.push_back(g.layout(v));
    auto const all = span_of(std::as_const(layouts));
    auto const inputs = g.inputs(s.op).size();
    most = std::max(most, detail::scratch_bytes(*backend_, g, s.op, {all.first(inputs), all.subspan(inputs)}));
  }
  return most;
}

// What a step writes of the host's residents, and small kept values, are copied out together after each step.
inline void executable<cuda_backend>::find_copies() {
  auto const& g = plan_.graph;
  auto const add = [&](storage_id s, bytes_t bytes, std::size_t of) {
    auto const from = address_[s];
    if (!copies_out_.empty() && of != none) {
      auto& last = copies_out_.back();
      if (auto const gap = from - (last.device + last.bytes); gap >= 0 && gap < 256) {  // one copy with the one before
        returned_.push_back({s, last.offset + (from - last.device), bytes, of});
        last.bytes = from + bytes - last.device;
        returned_bytes_ = last.offset + last.bytes;
        return;
      }
    }
    returned_bytes_ = align_up(returned_bytes_, 256);
    copies_out_.push_back({from, returned_bytes_, bytes});
    returned_.push_back({s, returned_bytes_, bytes, of});
    returned_bytes_ += bytes;
  };
  for (std::size_t k = 0; k < staged_.size(); ++k)
    if (g.is_resident(staged_[k].storage) && g.record(staged_[k].storage).updates > 0)
      add(staged_[k].storage, staged_[k].bytes, k);
  for (auto v : g.kept()) {
    auto const s = g.storage(v);
    bool known = !address_[s] || g.is_resident(s) || g.bytes(s) > detail::small_resident_bytes;
    for (auto const& r : returned_) known = known || r.storage == s;
    if (!known) add(s, g.bytes(s), none);
  }
}

// Neighbouring updates by one kind of optimizer, views between them included, that wait for no transfer and of which none
// touches bytes that another one writes: one launch. Steps that are timed have a launch each.
inline void executable<cuda_backend>::find_updates() {
  auto const& g = plan_.graph;
  auto const n = static_cast<std::uint32_t>(launches_.size());
  updates_until_.assign(n, 0);
  if (is_timed()) return;
  auto const kind = [&](std::uint32_t i) {
    int const row = launches_[i].what == action::compute ? g.facets(plan_.steps[i].op).standard_row : -1;
    return row >= 0 && detail::standard_cuda_updates()[static_cast<std::size_t>(row)] ? row : -1;
  };
  struct range {
    std::byte const *begin, *end;
  };
  std::vector<range> read, written;
  auto const overlaps = [](std::vector<range> const& all, range const& r) {
    return std::any_of(all.begin(), all.end(), [&](range const& x) { return x.begin < r.end && r.begin < x.end; });
  };
  for (std::uint32_t i = 0; i < n; ++i) {
    int const first = kind(i);
    if (first < 0) continue;
    read.clear(), written.clear();
    auto const joins = [&](std::uint32_t j) {
      auto const of = [&](value_id v) {
        auto const s = g.storage(v);
        return range{address_[s], address_[s] + g.bytes(s)};
      };
      bool free = true;
      for (auto v : g.outputs(plan_.steps[j].op)) free = free && !overlaps(written, of(v)) && !overlaps(read, of(v));
      for (auto v : g.inputs(plan_.steps[j].op)) free = free && !overlaps(written, of(v));
      if (!free) return false;
      for (auto v : g.outputs(plan_.steps[j].op)) written.push_back(of(v));
      for (auto v : g.inputs(plan_.steps[j].op)) read.push_back(of(v));
      return true;
    };
    joins(i);
    std::uint32_t last = i;
    for (std::uint32_t j = i + 1; j < n && launches_[j].waits == 0; ++j) {
      if (launches_[j].what == action::view) continue;
      if (kind(j) != first || !joins(j)) break;
      last = j;
    }
    if (last == i) continue;
    updates_until_[i] = last + 1;
    i = last;
  }
}

inline void executable<cuda_backend>::operator()() {
  auto const stream = backend_->stream();
  for (auto const& x : staged_)
    if (!x.model && !x.host && x.bytes > 0) throw_error({"executable: an input is bound to no memory"});
  check_cuda(cudaSetDevice(backend_->device().number), "choice of a device");
  at_ = static_cast<std::uint32_t>(launches_.size());
  updated_ = false;
  high_water_ = std::max(high_water_, plan_.resident_bytes);
  try {
    stage(stream);
    if (uses_graph_) {
      if (!captured_ || captured_scratch_ != backend_->scratch(0)) capture(stream);
      at_ = static_cast<std::uint32_t>(launches_.size());
      check_cuda(cudaGraphLaunch(captured_.get(), stream), "launch of a captured step");
    } else {
      issue();
    }
  } catch (error const& e) { fail(e); }
  for (auto const& r : written_) r->written();
  if (auto const outcome = cudaStreamSynchronize(stream); outcome != cudaSuccess) lose(outcome);
  for (auto const& r : returned_)
    if (r.staged != none)
      std::memcpy(staged_[r.staged].at(), returned_memory_.data() + r.offset, static_cast<std::size_t>(r.bytes));
  ++steps_;
  if (is_timed()) read_times();
}

// Residents to the device, and all that is copied in with the batch to pinned memory.
inline void executable<cuda_backend>::stage(cudaStream_t stream) {
  std::size_t moved = 0;
  for (auto const& r : residents_) moved += r.there->move_here(*r.storage, r.there, stream);
  for (auto const& x : staged_)
    if (x.bytes > 0) std::memcpy(staging_.data() + x.offset, x.at(), static_cast<std::size_t>(x.bytes));
  if (moved == residents_.size() && staging_bytes_ > 0)
    std::memcpy(last_copied_back_.data(), staging_.data(), static_cast<std::size_t>(staging_bytes_));
}

inline void executable<cuda_backend>::capture(cudaStream_t stream) {
  captured_.reset();
  capturing_ = true;
  try {
    captured_ = detail::capture_graph(stream, [&] { issue(); });
  } catch (...) {
    capturing_ = updated_ = false;  // nothing has run
    throw;
  }
  capturing_ = updated_ = false;
  captured_scratch_ = backend_->scratch(0);
}

inline void executable<cuda_backend>::fail(error const& e) {
  auto outcome = cudaSuccess;
  for (auto s : {backend_->to_host_stream(), backend_->to_device_stream(), backend_->stream()})
    if (auto const o = cudaStreamSynchronize(s); o != cudaSuccess) outcome = o;
  cudaGetLastError();
  if (outcome != cudaSuccess) lose(outcome);
  if (updated_)
    for (auto const& r : written_) r->written();
  throw_error({"executable: ", step_name(at_), e.what(),
               updated_ ? "; weights are updated in part" : "; weights are those before the step"});
}

// What was last copied back is the model's, small residents of that time included.
inline void executable<cuda_backend>::lose(cudaError_t outcome) {
  for (auto const& r : residents_)
    if (r.storage->elsewhere() == r.there) r.storage->come_back();
  for (auto const& x : staged_)
    if (x.bytes > 0 && !x.is_input)
      std::memcpy(x.at(), last_copied_back_.data() + x.offset, static_cast<std::size_t>(x.bytes));
  cudaGetLastError();
  throw_error({"executable: a step failed on the device: ", cudaGetErrorString(outcome),
               "; what was there is lost, the model has the data that were last copied back (",
               uses_graph_ ? "execution_options{.graph = false} and " : "",
               "CUDA_LAUNCH_BLOCKING=1 show the operator)"});
}

inline void executable<cuda_backend>::issue() {
  auto const stream = backend_->stream();
  auto const n = static_cast<std::uint32_t>(launches_.size());
  if (is_timed()) check_cuda(cudaEventRecord(origin_.get(), stream), "record of a time");
  for (auto const& c : copies_in_)
    if (c.bytes > 0) copy_bytes(c.device, staging_.data() + c.offset, c.bytes, cudaMemcpyHostToDevice, stream);
  for (at_ = 0; at_ < n; ++at_) issue(at_, stream);
  wait(stream, base::final_wait_, static_cast<std::uint32_t>(plan_.waits.size()) - base::final_wait_);
  for (auto const& c : copies_out_)
    copy_bytes(returned_memory_.data() + c.offset, c.device, c.bytes, cudaMemcpyDeviceToHost, stream);
}

inline void executable<cuda_backend>::issue(std::uint32_t i, cudaStream_t stream) {
  auto const& l = launches_[i];
  if (l.what != action::view) high_water_ = std::max(high_water_, l.top);
  if (l.what == action::compute || l.what == action::view) {
    wait(stream, l.first_wait, l.waits);
    if (l.what == action::view) return;
    if (is_timed()) check_cuda(cudaEventRecord(times_[2 * i].get(), stream), "record of a time");
    updated_ = updated_ || updates_resident(i);
    if (updates_until_[i] > 0) return issue_updates(i);
    base::launch_kernel(l);
    if (is_timed()) check_cuda(cudaEventRecord(times_[2 * i + 1].get(), stream), "record of a time");
    if (capturing_) detail::require_valid_capture(stream);
    return;
  }
  bool const stores = l.what == action::store;
  auto const own = stores ? backend_->to_host_stream() : backend_->to_device_stream();
  check_cuda(cudaEventRecord(issued_[i].get(), stream), "record of a transfer's beginning");
  check_cuda(cudaStreamWaitEvent(own, issued_[i].get(), 0), "wait for the computation");
  wait(own, l.first_wait, l.waits);
  auto* const device = address_[base::moved_storage(i)];
  auto* const host = slots_memory_ ? slots_memory_->data() + slot_offsets_[l.slot] : nullptr;
  if (is_timed()) check_cuda(cudaEventRecord(times_[2 * i].get(), own), "record of a time");
  if (auto const bytes = base::slots_[l.slot]; bytes > 0) {
    if (stores) copy_bytes(host, device, bytes, cudaMemcpyDeviceToHost, own);
    else copy_bytes(device, host, bytes, cudaMemcpyHostToDevice, own);
  }
  if (is_timed()) check_cuda(cudaEventRecord(times_[2 * i + 1].get(), own), "record of a time");
  check_cuda(cudaEventRecord(ended_[i].get(), own), "record of a transfer's end");
}

inline void executable<cuda_backend>::issue_updates(std::uint32_t i) {
  std::span<tensor_ref const> const refs(base::refs_);
  calls_.clear();
  for (std::uint32_t j = i; j < updates_until_[i]; ++j) {
    auto const& l = launches_[j];
    high_water_ = l.what == action::view ? high_water_ : std::max(high_water_, l.top);
    if (l.what == action::compute)
      calls_.push_back(
          {l.attributes, {refs.subspan(l.refs, l.inputs), refs.subspan(l.refs + l.inputs, l.outputs), l.workspace}});
    updated_ = updated_ || updates_resident(j);
  }
  auto const row = static_cast<std::size_t>(plan_.graph.facets(plan_.steps[i].op).standard_row);
  detail::standard_cuda_updates()[row](*backend_, calls_);
  at_ = updates_until_[i] - 1;
  if (capturing_) detail::require_valid_capture(backend_->stream());
}

inline void executable<cuda_backend>::read_times() {
  auto const between = [](detail::cuda_event const& from, detail::cuda_event const& to) {
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, from.get(), to.get()), "time of a step");
    return 1e-3 * static_cast<double>(milliseconds);
  };
  if (seconds_) seconds_->assign(launches_.size(), 0);
  if (spans_) spans_->assign(launches_.size(), {});
  for (std::size_t i = 0; i < launches_.size(); ++i) {
    if (launches_[i].what == action::view) continue;
    auto const &begin = times_[2 * i], &end = times_[2 * i + 1];
    if (seconds_) (*seconds_)[i] = between(begin, end);
    if (spans_) (*spans_)[i] = {between(origin_, begin), between(origin_, end)};
  }
}

inline tensor_ref executable<cuda_backend>::value(value_id v) const {
  auto const& g = plan_.graph;
  auto const s = g.storage(v);
  auto const at = [&](std::byte const* p) { return tensor_ref::place(const_cast<std::byte*>(p), g.layout(v)); };
  for (auto const& r : returned_)
    if (r.storage == s && r.staged == none) return at(returned_memory_.data() + r.offset);
  for (auto const& x : staged_)
    if (x.storage == s && g.is_resident(s)) return at(x.at());
  if (!address_[s]) return at(nullptr);
  std::size_t k = 0;
  while (k < values_.size() && values_[k].first != s) ++k;
  auto const bytes = static_cast<std::size_t>(g.bytes(s));
  if (k == values_.size())
    values_.emplace_back(s, byte_block(std::max<std::size_t>(bytes, 1), 64)), values_of_.push_back(0);
  if (values_of_[k] != steps_ || steps_ == 0) {
    check_cuda(cudaSetDevice(backend_->device().number), "choice of a device");
    check_cuda(cudaMemcpy(values_[k].second.data(), address_[s], bytes, cudaMemcpyDeviceToHost), "copy of a result");
    values_of_[k] = steps_;
  }
  return at(values_[k].second.data());
}

}}  // namespace neap::v0
