// neap::compile for a GPU: a function in eager style runs as planned graphs on the device, from its first call on.
//
//   neap::cuda_backend backend;
//   auto step = neap::compile(train, neap::plan_with(moves, neap::memory_limit{2_GiB}), backend);
//   neap::tensor const loss = step(model, x, y, 0.1);      // captured by shapes, planned, run on the device
//
// All graphs share one arena on the device. Parameters, buffers and states of the arguments stay there between calls, and
// are copied back when they are read or saved, and at the end of the compiled function; other tensors are copied in and out
// by each call. What a graph leaves to later ones of the same call stays on the device, in memory beside the arena, and the
// host copies what it reads of it. A limit of plan_with bounds the peak of each graph by itself: that memory is not counted
// in it, device_bytes() has both. Bits are those of the device's kernels. What the device cannot run is refused, never
// computed on the host. Needs the CUDA toolkit's headers; kernels are in neap/src/cuda.hpp.
//
// A call that updates weights before a read that decides may turn out to need another path: the host copies what such
// weights were.
#pragma once

#include <neap/cuda/backend.hpp>
#include <neap/cuda/executable.hpp>
#include <neap/cuda/resident.hpp>
#include <neap/cuda/step_memory.hpp>
#include <neap/execute/device_function.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <source_location>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

class placed_cuda_graph;

/// The device memory of a compiled function: one arena, and what stays on the device of the arguments of its calls.
class cuda_graph_device final : public graph_device {
 public:
  cuda_graph_device(cuda_backend& backend, execution_options options)
      : backend_(&backend),
        options_(std::move(options)) {}
  ~cuda_graph_device() override {
    carried_.clear();
    for (auto const& s : staying_) {
      auto const storage = s.storage.lock();
      if (!storage || !storage->is_elsewhere() || storage->elsewhere() != s.there) continue;
      try {
        (void)storage->data();
      } catch (error const&) {}  // the next read of such a tensor throws
    }
  }

  std::unique_ptr<device_graph> place(plan p, std::vector<source_binding> const& sources,
                                      std::vector<std::size_t> const& carried) override;
  bool carries(tensor_type const& type) const override { return type.bytes() > small_resident_bytes; }
  void reserve_carried(bytes_t bytes) override;
  carried_value carried(tensor_type const& type, bytes_t offset) override;
  bytes_t device_bytes() const override {
    auto bytes = (arena_ ? arena_->bytes() : 0) + (carried_room_ ? carried_room_->bytes() : 0);
    for (auto const& s : staying_)
      if (!s.storage.expired() && s.there->address() != nullptr) bytes += s.own_bytes;
    return bytes;
  }

 private:
  friend class placed_cuda_graph;
  struct staying {
    std::weak_ptr<tensor_storage> storage;
    std::shared_ptr<cuda_resident> there;
    bytes_t own_bytes;  // 0: in the memory of another one
  };

  /// Makes the arena at least as large. No graph runs meanwhile.
  void grow(bytes_t bytes);
  /// Where these storages are on the device.
  std::vector<std::shared_ptr<cuda_resident>> places_of(std::vector<std::shared_ptr<tensor_storage>> const& storages);

  cuda_backend* backend_;
  execution_options options_;
  struct carried_place {
    bytes_t offset;  // in the room
    carried_value value;
  };

  std::shared_ptr<cuda_device_memory> arena_, carried_room_;
  std::shared_ptr<cuda_pinned_memory> slots_;
  std::vector<staying> staying_;
  std::vector<carried_place> carried_;
  std::mutex mutex_;  // of graphs_: threads drop graphs
  std::vector<placed_cuda_graph*> graphs_;
};

/// A graph, bound to what stays on the device of the arguments of some calls.
class placed_cuda_graph final : public device_graph {
  using runnable = executable<cuda_backend>;

 public:
  placed_cuda_graph(plan p, std::vector<source_binding> const& sources, std::vector<std::size_t> const& carried,
                    cuda_graph_device& in)
      : plan_(std::move(p)),
        in_(&in) {
    auto const& g = plan_.graph;
    table<storage_id, bytes_t> resident(g.storage_count(), 0);
    for (auto const& b : plan_.buffers)
      if (b.resident) resident[b.storage] = b.bytes;
    arena_bytes_ = plan_.arena_bytes - plan_.resident_bytes;
    for (auto const& s : sources) {
      auto const at = g.storage(s.source);
      bool const stays =
          resident[at] > 0 && g.role(g.record(at).first) != role::input && g.bytes(at) > small_resident_bytes;
      sources_.push_back({s.source, stays, s.memory, nullptr});
    }
    for (auto const i : carried)
      if (auto const at = g.storage(sources_[i].value); resident[at] > 0)
        sources_[i].stays = g.bytes(at) > small_resident_bytes;
    for (auto const& b : plan_.buffers)
      if (b.resident &&
          std::ranges::none_of(sources_, [&](auto const& s) { return s.stays && g.storage(s.value) == b.storage; }))
        arena_bytes_ += b.bytes;
    std::scoped_lock const alone(in.mutex_);
    in.graphs_.push_back(this);
  }
  ~placed_cuda_graph() override {
    std::scoped_lock const alone(in_->mutex_);
    std::erase(in_->graphs_, this);
  }

  bytes_t arena_bytes() const { return arena_bytes_; }
  void bind(std::size_t i, std::shared_ptr<tensor_storage> const& storage) override { sources_[i].storage = storage; }
  void bind(std::size_t i, void* memory) override { sources_[i].memory = memory, sources_[i].storage = nullptr; }
  void operator()() override {
    auto& run = bound();
    for (auto const& s : sources_)
      if (!s.stays) run.bind(s.value, s.storage ? s.storage->data() : s.memory);
    try {
      run();
    } catch (...) {
      release();
      throw;
    }
    release();
  }
  tensor_ref value(value_id v) override { return last_->run->value(v); }
  void leave(std::vector<left> const& all) override {
    auto const stream = in_->backend_->stream();
    for (auto const& x : all) {
      auto& to = *x.to.storage;
      auto& place = static_cast<cuda_resident&>(*x.to.there);
      check_cuda(cudaMemcpyAsync(place.address(), last_->run->device_value(x.value),
                                 static_cast<std::size_t>(to.bytes()), cudaMemcpyDeviceToDevice, stream),
                 "copy of a value for a later graph");
      (void)to.data_to_overwrite();  // the host's memory
      to.move_elsewhere(x.to.there);
      place.written();
    }
    if (!all.empty()) check_cuda(cudaStreamSynchronize(stream), "copy of a value for a later graph");
  }

 private:
  friend class cuda_graph_device;
  struct source {
    value_id value;
    bool stays;  // on the device, from run to run
    void* memory;
    std::shared_ptr<tensor_storage> storage;
  };
  /// For storages that stay on the device.
  struct bound_run {
    std::vector<std::weak_ptr<tensor_storage>> storages;
    std::unique_ptr<runnable> run;
    bool is_of(std::vector<source> const& sources) const {
      std::size_t k = 0;
      for (auto const& s : sources)
        if (s.stays && (storages[k].owner_before(s.storage) || s.storage.owner_before(storages[k]))) return false;
        else k += s.stays;
      return true;
    }
    bool is_over() const {
      return std::ranges::any_of(storages, [](auto const& s) { return s.expired(); });
    }
  };
  static constexpr std::size_t max_runs = 4;

  runnable& bound() {
    for (auto& r : runs_)
      if (r->is_of(sources_)) {
        last_ = r.get();
        return *r->run;
      }
    std::erase_if(runs_, [](auto const& r) { return r->is_over(); });
    if (runs_.size() == max_runs) runs_.erase(runs_.begin());
    runs_.push_back(made());
    last_ = runs_.back().get();
    return *last_->run;
  }
  std::unique_ptr<bound_run> made() {
    auto of = std::make_unique<bound_run>();
    in_->grow(arena_bytes_);
    std::vector<std::shared_ptr<tensor_storage>> storages;
    for (auto const& s : sources_)
      if (s.stays) storages.push_back(s.storage), of->storages.push_back(s.storage);
    auto const places = in_->places_of(storages);
    auto memory = std::make_shared<cuda_step_memory>();
    memory->block = in_->arena_, memory->slots = in_->slots_;
    std::vector<source_binding> bindings;
    for (auto const& s : sources_) {
      auto* const storage = s.stays ? s.storage.get() : nullptr;
      if (storage) memory->residents.push_back({storage, places[memory->residents.size()], false});
      bindings.push_back({s.value, storage ? nullptr : s.storage ? s.storage->data() : s.memory, storage});
    }
    auto options = in_->options_;
    options.device_memory = memory;
    of->run = std::make_unique<runnable>(plan_, bindings, *in_->backend_, options);
    in_->slots_ = memory->slots;
    return of;
  }
  /// Arguments live no longer than without this.
  void release() {
    auto const& g = plan_.graph;
    for (auto& s : sources_)
      if (g.role(g.record(g.storage(s.value)).first) != role::constant) s.storage = nullptr;
  }

  plan plan_;
  cuda_graph_device* in_;
  bytes_t arena_bytes_ = 0;
  std::vector<source> sources_;
  std::vector<std::unique_ptr<bound_run>> runs_;
  bound_run* last_ = nullptr;
};

inline std::unique_ptr<device_graph> cuda_graph_device::place(plan p, std::vector<source_binding> const& sources,
                                                              std::vector<std::size_t> const& carried) {
  auto made = std::make_unique<placed_cuda_graph>(std::move(p), sources, carried, *this);
  grow(made->arena_bytes());
  return made;
}

inline void cuda_graph_device::grow(bytes_t bytes) {
  bytes = std::max<bytes_t>(bytes, 256);
  auto const before = arena_ ? arena_->bytes() : 0;
  if (bytes <= before) return;
  check_cuda(cudaSetDevice(backend_->device().number), "choice of a device");
  std::size_t free = 0, total = 0;
  check_cuda(cudaMemGetInfo(&free, &total), "free memory");
  if (auto const there = static_cast<bytes_t>(free) + before; bytes > there)
    throw_error({"compile: a graph needs ", bytes, " bytes on the device beside its weights (", backend_->device().name,
                 "), where ", there, " are free: plan it by plan_with(moves, memory_limit{...})"});
  {
    std::scoped_lock const alone(mutex_);
    for (auto* g : graphs_) g->runs_.clear(), g->last_ = nullptr;
  }
  arena_.reset();
  arena_ = std::make_shared<cuda_device_memory>(bytes, "graphs");
}

inline void cuda_graph_device::reserve_carried(bytes_t bytes) {
  if (bytes <= (carried_room_ ? carried_room_->bytes() : 0)) return;
  carried_.clear();
  {
    std::scoped_lock const alone(mutex_);
    for (auto* g : graphs_) g->runs_.clear(), g->last_ = nullptr;
  }
  carried_room_.reset();
  carried_room_ = std::make_shared<cuda_device_memory>(bytes, "values between graphs");
}

inline carried_value cuda_graph_device::carried(tensor_type const& type, bytes_t offset) {
  for (auto const& c : carried_)
    if (c.offset == offset && c.value.storage->type() == type) return c.value;
  auto storage = std::make_shared<tensor_storage>(type, initialiser{}, role::activation);
  auto there = std::make_shared<cuda_resident>(backend_->device().number, carried_room_->data() + offset,
                                               storage->bytes(), carried_room_);
  storage->place_elsewhere(there);
  carried_.push_back({offset, {storage, there}});
  return carried_.back().value;
}

inline std::vector<std::shared_ptr<cuda_resident>> cuda_graph_device::places_of(
    std::vector<std::shared_ptr<tensor_storage>> const& storages) {
  std::erase_if(staying_, [](auto const& s) { return s.storage.expired(); });
  auto const device = backend_->device().number;
  std::vector<std::shared_ptr<cuda_resident>> places;
  bytes_t bytes = 0;
  for (auto const& s : storages) {
    auto there = std::dynamic_pointer_cast<cuda_resident>(s->elsewhere());
    if (there && there->device() != device) there = nullptr;
    if (!there) bytes += align_up(s->bytes(), 64);
    places.push_back(std::move(there));
  }
  std::shared_ptr<cuda_device_memory> block;
  if (bytes > 0) block = std::make_shared<cuda_device_memory>(bytes, "weights and states");
  bytes_t at = 0;
  for (std::size_t k = 0; k < storages.size(); ++k) {
    bool const is_known = std::ranges::any_of(staying_, [&](auto const& s) { return s.there == places[k]; });
    if (places[k] && is_known) continue;
    bytes_t own = 0;
    if (!places[k]) {
      own = align_up(storages[k]->bytes(), 64);
      places[k] = std::make_shared<cuda_resident>(device, block->data() + at, storages[k]->bytes(), block);
      storages[k]->place_elsewhere(places[k]);
      at += own;
    }
    staying_.push_back({storages[k], places[k], own});
  }
  return places;
}

}  // namespace detail

/// Compiles f for a GPU. `how` plans each captured graph (plan_with); without one, graphs run in the order of the program.
/// Nothing is captured before the first call; `prepare` captures and plans a path before. compile_options::threads is of no
/// effect; `run.graph` false launches operators one by one. The backend outlives the compiled function.
template <class F, detail::graph_planner Plan>
auto compile(F f, Plan how, cuda_backend& backend, compile_options const& options = {},
             std::source_location at = std::source_location::current()) {
  return detail::compile_for_device(std::move(f), std::move(how),
                                    std::make_unique<detail::cuda_graph_device>(backend, options.run), options, at);
}
template <class F>
auto compile(F f, cuda_backend& backend, compile_options const& options = {},
             std::source_location at = std::source_location::current()) {
  return compile(
      std::move(f), [](graph const& g) { return plan_in_order(g); }, backend, options, at);
}

}}  // namespace neap::v0
