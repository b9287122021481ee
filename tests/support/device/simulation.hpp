// The simulated device behind the functions of the CUDA runtime: memory, streams, events, captures and graphs.
#pragma once

#include "access_history.hpp"
#include "fat_binary.hpp"
#include "host_memory.hpp"
#include "simulated_device.hpp"
#include "work_queue.hpp"

#include "../ptx/device.hpp"

#include <cuda_runtime_api.h>

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace neap::testing {

/// A kernel of the program: what nvcc registers for it.
struct registered_kernel {
  fat_binary* binary = nullptr;
  std::string symbol;
  std::string name;  // for messages
};
struct registered_variable {
  fat_binary* binary = nullptr;
  std::string name;
  std::size_t bytes = 0;
};
/// Fat binaries, kernels and variables, by the addresses that the program has for them.
struct program_registry {
  std::vector<std::unique_ptr<fat_binary>> binaries;
  std::map<void const*, registered_kernel> kernels;
  std::map<void const*, registered_variable> variables;
};

struct capture;

struct stream_state {
  int number = 0;
  std::uint32_t chain = 0;
  bool blocking = false, legacy = false;
  int priority = 0;
  operation_ptr last;
  std::shared_ptr<capture> in;  // while it is captured
  std::vector<std::size_t> frontier;
  std::uint32_t capture_chain = 0;
};

struct event_state {
  bool timing = true;
  operation_ptr recorded;
  std::shared_ptr<capture> in;  // if it was recorded last in a capture
  std::vector<std::size_t> frontier;
};

struct graph_node {
  std::shared_ptr<work const> what;
  std::vector<std::size_t> after;
  std::uint32_t chain = 0;
};
struct graph_state {
  std::vector<std::shared_ptr<graph_node const>> nodes;
  std::uint32_t chains = 0;
};
struct executable_graph {
  std::vector<std::shared_ptr<graph_node const>> nodes;
  std::vector<std::uint32_t> chains;
  operation_ptr last;
};

/// Streams that are captured into one graph.
struct capture {
  std::uint64_t id = 0;
  std::unique_ptr<graph_state> graph = std::make_unique<graph_state>();
  stream_state* origin = nullptr;
  std::vector<stream_state*> streams;
  cudaStreamCaptureMode mode{};
  std::thread::id thread;
  bool valid = true, ended = false;
};

class simulation {
 public:
  device_options const options;
  ptx::device device;
  host_memory pinned;
  work_queue queue;
  access_history history;
  vector_clock host;  // what the program has waited for
  device_counts counted;
  std::vector<device_operation> operations;
  std::map<std::string, std::size_t, std::less<>> calls;
  std::map<registered_kernel const*, int> dynamic_shared;  // bytes that a kernel may have, where they were set
  int current_device = 0;

  simulation(std::uint64_t seed, device_options const& o) : options(o), legacy_{0, 0, true, true, 0, {}, {}, {}, 0} {
    queue.seed(seed);
    queue.execute = [this](operation& op) { execute(op); };
    host_chain_ = queue.new_chain();
    legacy_.chain = queue.new_chain();
    device.options.instructions = options.instructions;
  }

  /// The current one. Functions of the runtime hold the lock.
  static simulation& current();
  static void replace(std::uint64_t seed, device_options const& o);
  static std::recursive_mutex& lock();
  static program_registry& program();

  // ---- reports
  void report(std::string const& text) {
    if (auto const [it, fresh] = known_faults_.try_emplace(text, faults_.size()); fresh) faults_.push_back({text, 1});
    else ++faults_[it->second].second;
  }
  std::string faults() const {
    std::string out;
    for (auto const& [text, times] : faults_)
      out += text + (times > 1 ? " (" + std::to_string(times) + " times)" : "") + '\n';
    return out;
  }
  std::string races() const {
    std::string out;
    for (auto const& [text, times] : races_)
      out += text + (times > 1 ? " (" + std::to_string(times) + " times)" : "") + '\n';
    return out;
  }
  /// After a fault of a kernel every call fails.
  cudaError_t lost() const { return lost_; }
  void lose(cudaError_t error) {
    if (lost_ == cudaSuccess) lost_ = error;
  }

  // ---- planted failures
  struct planted {
    std::string function;
    std::size_t calls;
    cudaError_t error;
  };
  std::vector<planted> planted_calls;
  struct planted_work {
    device_work kind;
    std::size_t operations;
    cudaError_t error;
  };
  std::vector<planted_work> planted_operations;

  cudaError_t planted_failure(std::string_view function) {
    for (auto it = planted_calls.begin(); it != planted_calls.end(); ++it)
      if (it->function == function && --it->calls == 0) {
        auto const error = it->error;
        planted_calls.erase(it);
        return error;
      }
    return cudaSuccess;
  }

  // ---- memory
  static std::uint64_t address(void const* p) { return reinterpret_cast<std::uintptr_t>(p); }
  static bool of_device(void const* p) {
    return address(p) >> 32 >= ptx::first_buffer_window && address(p) >> 32 < ptx::first_buffer_window + windows;
  }
  /// Windows of addresses that device memory has; the host's memory is elsewhere.
  static constexpr std::uint64_t windows = 1 << 14;

  cudaError_t allocate(void** out, std::size_t bytes) {
    *out = nullptr;
    if (bytes == 0) return cudaSuccess;
    if (counted.memory + bytes > options.memory) return cudaErrorMemoryAllocation;
    auto const made = device.allocate("device memory " + std::to_string(++allocations_), bytes);
    memory_[made.address()] = {made, bytes};
    history.forget({made.address(), made.address() + bytes});
    counted.memory += bytes;
    counted.peak_memory = std::max(counted.peak_memory, counted.memory);
    *out = reinterpret_cast<void*>(made.address());
    return cudaSuccess;
  }
  cudaError_t release(void* p) {
    if (!p) return cudaSuccess;
    auto const it = memory_.find(address(p));
    if (it == memory_.end()) {
      report("cudaFree: " + text_of(p) + " is not the begin of an allocation");
      return cudaErrorInvalidValue;
    }
    synchronise_all();
    device.release(it->second.first);
    counted.memory -= it->second.second;
    memory_.erase(it);
    return cudaSuccess;
  }
  /// The allocation that has this byte: its first address and bytes.
  std::optional<std::pair<std::uint64_t, std::size_t>> allocation_of(void const* p) const {
    auto it = memory_.upper_bound(address(p));
    if (it == memory_.begin()) return std::nullopt;
    --it;
    if (address(p) >= it->first + it->second.second) return std::nullopt;
    return std::pair{it->first, it->second.second};
  }
  static std::string text_of(void const* p) {
    char hex[32];
    std::snprintf(hex, sizeof hex, "0x%llx", static_cast<unsigned long long>(address(p)));
    return hex;
  }
  /// Device memory as bytes and their states; null, and a fault in the name of `what`, if it is not within one region.
  struct device_bytes {
    std::uint8_t *bytes = nullptr, *state = nullptr;
  };
  device_bytes find(void const* p, std::size_t bytes, std::string const& what) {
    ptx::region* const r = device.region_at(address(p));
    auto const offset = static_cast<std::int64_t>(address(p) & 0xffff'ffff) - std::int64_t{ptx::buffer_start};
    if (r && offset >= 0 && static_cast<std::size_t>(offset) + bytes <= r->bytes.size())
      return {r->bytes.data() + offset, r->state.data() + offset};
    report(what + ": " + std::to_string(bytes) + " bytes at " +
           (r ? "offset " + std::to_string(offset) + " of " + r->name + ", which has " + std::to_string(r->bytes.size())
              : text_of(p) + ", which is in no device memory"));
    return {};
  }

  // ---- streams
  stream_state* stream(cudaStream_t s) {
    if (s == nullptr || s == cudaStreamLegacy) return &legacy_;
    if (s == cudaStreamPerThread) return &per_thread();
    auto const it = streams_.find(s);
    return it == streams_.end() ? nullptr : it->second.get();
  }
  cudaStream_t create_stream(bool blocking, int priority) {
    auto made = std::make_unique<stream_state>();
    made->number = ++streams_made_;
    made->chain = queue.new_chain();
    made->blocking = blocking;
    made->priority = priority;
    auto const handle = reinterpret_cast<cudaStream_t>(made.get());
    streams_[handle] = std::move(made);
    return handle;
  }
  cudaError_t destroy_stream(cudaStream_t s) {
    auto const it = streams_.find(s);
    if (it == streams_.end()) return cudaErrorInvalidResourceHandle;
    if (it->second->in) {
      invalidate(*it->second->in);
      auto& list = it->second->in->streams;
      std::erase(list, it->second.get());
      if (it->second->in->origin == it->second.get()) it->second->in->ended = true;
    }
    if (it->second->blocking && it->second->last && !it->second->last->done) left_behind_.push_back(it->second->last);
    streams_.erase(it);
    return cudaSuccess;
  }
  std::size_t stream_count() const { return streams_.size(); }

  /// Issues work: to a stream, or to the graph that the stream is captured into. `made`: the operation, if there is one.
  cudaError_t submit(stream_state& s, work w, operation_ptr* made = nullptr) {
    auto what = std::make_shared<work const>(std::move(w));
    if (s.in) {
      if (!s.in->valid) return cudaErrorStreamCaptureInvalidated;
      auto node = std::make_shared<graph_node>();
      node->what = std::move(what);
      node->after = s.frontier;
      node->chain = s.capture_chain;
      s.in->graph->nodes.push_back(std::move(node));
      s.frontier = {s.in->graph->nodes.size() - 1};
      return cudaSuccess;
    }
    if (cudaError_t const e = legacy_in_capture(s)) return e;
    operation_ptr const op = add(std::move(what), s, 0, s.chain, dependences(s));
    s.last = op;
    if (made) *made = op;
    queue.progress();
    return cudaSuccess;
  }
  /// An operation that only orders others, behind the stream's last and one more.
  operation_ptr mark(stream_state& s, operation_ptr const& behind = nullptr) {
    auto after = dependences(s);
    after.push_back(behind);
    return s.last = queue.add(nullptr, s.chain, after, host);
  }
  /// The legacy default stream waits for blocking streams: not while one of them is captured.
  cudaError_t legacy_in_capture(stream_state const& s) {
    if (!s.legacy) return cudaSuccess;
    cudaError_t e = cudaSuccess;
    for (auto const& c : captures_)
      for (stream_state const* other : c->streams)
        if (other->blocking) {
          invalidate(*c);
          e = cudaErrorStreamCaptureImplicit;
        }
    return e;
  }

  // ---- synchronisation
  cudaError_t wait(operation_ptr const& op) {
    ++counted.synchronisations;
    if (op) {
      queue.run_until(*op);
      host.join(op->known);
    }
    open_pinned();
    return lost_;
  }
  cudaError_t synchronise_all() {
    ++counted.synchronisations;
    queue.run_all();
    legacy_.last = nullptr;
    left_behind_.clear();
    for (auto const& p : everything_) host.join(p);
    open_pinned();
    return lost_;
  }

  // ---- events
  event_state* event(cudaEvent_t e) {
    auto const it = events_.find(e);
    return it == events_.end() ? nullptr : it->second.get();
  }
  cudaEvent_t create_event(bool timing) {
    auto made = std::make_unique<event_state>();
    made->timing = timing;
    auto const handle = reinterpret_cast<cudaEvent_t>(made.get());
    events_[handle] = std::move(made);
    return handle;
  }
  bool destroy_event(cudaEvent_t e) { return events_.erase(e) != 0; }
  std::size_t event_count() const { return events_.size(); }

  cudaError_t record(event_state& e, stream_state& s) {
    if (s.in) {
      if (!s.in->valid) return cudaErrorStreamCaptureInvalidated;
      e.in = s.in;
      e.frontier = s.frontier;
      e.recorded = nullptr;
      return cudaSuccess;
    }
    if (cudaError_t const failed = legacy_in_capture(s)) return failed;
    e.in = nullptr;
    e.recorded = mark(s);
    return cudaSuccess;
  }
  cudaError_t wait_for(stream_state& s, event_state& e) {
    if (e.in) {
      if (e.in->ended) return cudaErrorCapturedEvent;
      if (!e.in->valid) return cudaErrorStreamCaptureInvalidated;
      if (s.in && s.in != e.in) {
        invalidate(*s.in);
        invalidate(*e.in);
        return cudaErrorStreamCaptureMerge;
      }
      if (s.legacy) {
        invalidate(*e.in);
        return cudaErrorStreamCaptureImplicit;
      }
      if (!s.in) join(s, e.in);
      for (auto const n : e.frontier)
        if (std::ranges::find(s.frontier, n) == s.frontier.end()) s.frontier.push_back(n);
      return cudaSuccess;
    }
    if (s.in) {
      if (!s.in->valid) return cudaErrorStreamCaptureInvalidated;
      if (!e.recorded) return cudaSuccess;
      invalidate(*s.in);
      return cudaErrorStreamCaptureIsolation;
    }
    if (!e.recorded) return cudaSuccess;
    if (cudaError_t const failed = legacy_in_capture(s)) return failed;
    mark(s, e.recorded);
    return cudaSuccess;
  }

  // ---- capture
  void join(stream_state& s, std::shared_ptr<capture> const& c) {
    s.in = c;
    s.frontier.clear();
    s.capture_chain = c->graph->chains++;
    c->streams.push_back(&s);
  }
  cudaError_t begin_capture(stream_state& s, cudaStreamCaptureMode mode) {
    if (s.legacy) return cudaErrorStreamCaptureUnsupported;
    if (s.in) return cudaErrorIllegalState;
    auto c = std::make_shared<capture>();
    c->id = ++captures_made_;
    c->origin = &s;
    c->mode = mode;
    c->thread = std::this_thread::get_id();
    captures_.push_back(c);
    join(s, c);
    return cudaSuccess;
  }
  cudaError_t end_capture(stream_state& s, cudaGraph_t* out) {
    *out = nullptr;
    if (!s.in) return cudaErrorIllegalState;
    auto const c = s.in;
    if (c->mode != cudaStreamCaptureModeRelaxed && c->thread != std::this_thread::get_id())
      return cudaErrorStreamCaptureWrongThread;
    if (c->origin != &s) {
      invalidate(*c);
      return cudaErrorStreamCaptureUnmatched;
    }
    bool const joined = all_joined(*c);
    for (stream_state* const member : c->streams) {
      member->in = nullptr;
      member->frontier.clear();
    }
    c->ended = true;
    std::erase(captures_, c);
    if (!c->valid) return cudaErrorStreamCaptureInvalidated;
    if (!joined) return cudaErrorStreamCaptureUnjoined;
    auto const handle = reinterpret_cast<cudaGraph_t>(c->graph.get());
    graphs_[handle] = std::move(c->graph);
    *out = handle;
    return cudaSuccess;
  }
  /// What could not be part of a graph: it ends the captures that forbid it.
  cudaError_t forbidden_in_capture() {
    cudaError_t e = cudaSuccess;
    for (auto const& c : captures_) {
      if (c->mode == cudaStreamCaptureModeRelaxed) continue;
      if (c->mode == cudaStreamCaptureModeThreadLocal && c->thread != std::this_thread::get_id()) continue;
      invalidate(*c);
      e = cudaErrorStreamCaptureUnsupported;
    }
    return e;
  }
  static void invalidate(capture& c) { c.valid = false; }

  // ---- graphs
  graph_state* graph(cudaGraph_t g) {
    auto const it = graphs_.find(g);
    return it == graphs_.end() ? nullptr : it->second.get();
  }
  bool destroy_graph(cudaGraph_t g) { return graphs_.erase(g) != 0; }
  executable_graph* executable(cudaGraphExec_t g) {
    auto const it = executables_.find(g);
    return it == executables_.end() ? nullptr : it->second.get();
  }
  cudaGraphExec_t instantiate(graph_state const& g) {
    auto made = std::make_unique<executable_graph>();
    made->nodes = g.nodes;
    for (std::uint32_t k = 0; k < g.chains; ++k) made->chains.push_back(queue.new_chain());
    auto const handle = reinterpret_cast<cudaGraphExec_t>(made.get());
    executables_[handle] = std::move(made);
    return handle;
  }
  bool destroy_executable(cudaGraphExec_t g) { return executables_.erase(g) != 0; }
  std::size_t graph_count() const { return graphs_.size(); }
  std::size_t executable_count() const { return executables_.size(); }

  cudaError_t launch(executable_graph& g, stream_state& s) {
    if (s.in) {
      report("cudaGraphLaunch: into a captured stream, which is not simulated");
      invalidate(*s.in);
      return cudaErrorNotSupported;
    }
    if (cudaError_t const e = legacy_in_capture(s)) return e;
    ++counted.graph_launches;
    operation_ptr const head = mark(s, g.last);  // launches of one executable graph follow one another
    std::vector<operation_ptr> made, after;
    std::vector<operation_ptr> tails{head};
    std::vector<bool> has_follower(g.nodes.size(), false);
    for (auto const& node : g.nodes) {
      after = {head};
      for (auto const n : node->after) {
        after.push_back(made[n]);
        has_follower[n] = true;
      }
      made.push_back(add(node->what, s, counted.graph_launches, g.chains[node->chain], after));
    }
    for (std::size_t n = 0; n < made.size(); ++n)
      if (!has_follower[n]) tails.push_back(made[n]);
    g.last = s.last = queue.add(nullptr, s.chain, tails, host);
    queue.progress();
    return cudaSuccess;
  }

  // ---- the program's accesses of pinned memory
  /// The program has accessed this byte, which it may not. False if that is no page of pinned memory that is closed.
  bool accessed_by_program(std::uintptr_t at, bool writes) {
    if (!pinned.find(reinterpret_cast<void const*>(at))) return false;
    bool closed = false;
    std::uintptr_t const page = host_memory::first_of_page(at);
    for (auto const& f : in_flight_) {
      closed = closed || (f.bytes.begin < page + host_memory::page() && page < f.bytes.end);
      if (at < f.bytes.begin || at >= f.bytes.end || !(writes || f.writes) || in_host_function_) continue;
      report_race("the program " + std::string(writes ? "writes " : "reads ") + place_of(at) + ", which ", f.operation,
                  f.writes);
    }
    pinned.protect(page, page + 1, PROT_READ | PROT_WRITE);
    opened_.insert(page);
    return closed;
  }
  /// Closes again what the program has opened by an access.
  void close_pinned() {
    for (auto const page : std::exchange(opened_, {})) close_page(page);
  }

  /// An access by the program itself, which happens now.
  void host_access(access_range bytes, bool writes, std::string const& name) {
    point p = queue.next_point(host_chain_);
    operations.push_back({device_work::host_function, name, -1, 0, bytes.end - bytes.begin, 0});
    p.operation = static_cast<std::uint32_t>(operations.size());
    host.join(p);
    note(bytes, writes, p, host);
  }

 private:
  std::uint32_t host_chain_ = 0;
  stream_state legacy_;
  std::optional<stream_state> per_thread_;
  std::map<cudaStream_t, std::unique_ptr<stream_state>> streams_;
  std::map<cudaEvent_t, std::unique_ptr<event_state>> events_;
  std::map<cudaGraph_t, std::unique_ptr<graph_state>> graphs_;
  std::map<cudaGraphExec_t, std::unique_ptr<executable_graph>> executables_;
  std::vector<std::shared_ptr<capture>> captures_;
  std::vector<operation_ptr> left_behind_;  // by streams that were destroyed
  std::map<std::uint64_t, std::pair<ptx::buffer, std::size_t>> memory_;
  std::vector<point> everything_;  // the last operation of each chain
  int streams_made_ = 0;
  std::size_t allocations_ = 0, executed_ = 0;
  std::uint64_t captures_made_ = 0;
  cudaError_t lost_ = cudaSuccess;
  std::array<double, 3> engine_free_{};  // kernels, copies to the device, copies from it

  struct transfer_in_flight {
    access_range bytes;
    bool writes = false;
    point operation;
  };
  std::vector<transfer_in_flight> in_flight_;  // that use pinned memory
  std::set<std::uintptr_t> opened_;            // pages
  bool in_host_function_ = false;

  std::map<std::string, std::size_t> known_faults_, known_races_;
  std::vector<std::pair<std::string, std::size_t>> faults_, races_;

  stream_state& per_thread() {
    if (!per_thread_) {
      per_thread_.emplace();
      per_thread_->number = ++streams_made_;
      per_thread_->chain = queue.new_chain();
      per_thread_->blocking = true;
    }
    return *per_thread_;
  }

  std::vector<operation_ptr> dependences(stream_state const& s) {
    std::vector<operation_ptr> after{s.last};
    if (s.legacy) {
      for (auto const& [handle, other] : streams_)
        if (other->blocking) after.push_back(other->last);
      if (per_thread_) after.push_back(per_thread_->last);
      after.insert(after.end(), left_behind_.begin(), left_behind_.end());
    } else if (s.blocking) {
      after.push_back(legacy_.last);
    }
    return after;
  }

  operation_ptr add(std::shared_ptr<work const> what, stream_state const& s, std::size_t graph, std::uint32_t chain,
                    std::span<operation_ptr const> after) {
    operations.push_back({what->kind, what->name, s.number, graph, what->bytes, 0});
    auto op = queue.add(std::move(what), chain, after, host);
    op->number = operations.size();
    op->when.operation = static_cast<std::uint32_t>(op->number);
    if (everything_.size() <= chain) everything_.resize(chain + 1);
    everything_[chain] = op->when;
    for (bool const writes : {false, true})
      for (auto const& bytes : writes ? op->what->pinned_writes : op->what->pinned_reads) {
        in_flight_.push_back({bytes, writes, op->when});
        close(bytes);
      }
    return op;
  }

  void close(access_range bytes) {
    for (auto page = host_memory::first_of_page(bytes.begin); page < bytes.end; page += host_memory::page())
      close_page(page);
  }
  /// What operations in flight leave of a page to the program.
  void close_page(std::uintptr_t page) {
    int allowed = PROT_READ | PROT_WRITE;
    for (auto const& f : in_flight_)
      if (f.bytes.begin < page + host_memory::page() && page < f.bytes.end) allowed &= f.writes ? PROT_NONE : PROT_READ;
    pinned.protect(page, page + 1, allowed);
  }
  /// Opens what the program has waited for.
  void open_pinned() {
    std::set<std::uintptr_t> pages;
    std::erase_if(in_flight_, [&](transfer_in_flight const& f) {
      if (!host.covers(f.operation)) return false;
      for (auto page = host_memory::first_of_page(f.bytes.begin); page < f.bytes.end; page += host_memory::page())
        pages.insert(page);
      return true;
    });
    for (auto const page : pages) close_page(page);
  }

  void execute(operation& op) {
    if (lost_ != cudaSuccess) return;
    for (auto it = planted_operations.begin(); it != planted_operations.end(); ++it)
      if (it->kind == op.what->kind && --it->operations == 0) {
        lose(it->error);
        planted_operations.erase(it);
        return;
      }
    in_host_function_ = op.what->kind == device_work::host_function;
    outcome const r = op.what->run();
    in_host_function_ = false;
    operations[op.number - 1].position = ++executed_;
    count(op.what->kind);
    double& engine = engine_free_[op.what->kind == device_work::copy_to_device ? 1
                                  : op.what->kind == device_work::copy_to_host ? 2
                                                                               : 0];
    engine = op.finished = std::max(op.finished, engine) + r.seconds;
    for (auto const& bytes : r.reads) note(bytes, false, op.when, op.known);
    for (auto const& bytes : r.writes) note(bytes, true, op.when, op.known);
    if (r.error != cudaSuccess && !options.keep_running) lose(r.error);
  }
  void count(device_work kind) {
    switch (kind) {
      case device_work::kernel: ++counted.kernels; break;
      case device_work::fill: ++counted.fills; break;
      case device_work::host_function:
      case device_work::library: break;
      default: ++counted.copies;
    }
  }

  void note(access_range bytes, bool writes, point p, vector_clock const& known) {
    auto const found = [&](point const& earlier, bool wrote, access_range where) {
      std::string const does = (writes ? " writes " : " reads ") + place_of(where.begin) + ", which ";
      report_race(name_of(p, true) + does, earlier, wrote, name_of(p, false) + does);
    };
    if (writes) history.write(bytes, p, known, found);
    else history.read(bytes, p, known, found);
  }
  /// "the later one reads ..., which" and the earlier one. `same`: the same without numbers of operations: the same two
  /// in other launches of a graph are no other race.
  void report_race(std::string const& later, point const& earlier, bool wrote, std::string const& same = {}) {
    auto const text = [&](std::string const& start, bool numbers) {
      return start + name_of(earlier, numbers) + (wrote ? " writes" : " reads") + ": nothing orders the two";
    };
    if (auto const [it, fresh] = known_races_.try_emplace(text(same.empty() ? later : same, false), races_.size());
        fresh)
      races_.push_back({text(later, true), 1});
    else ++races_[it->second].second;
  }
  std::string name_of(point const& p, bool numbers) const {
    device_operation const& o = operations[p.operation - 1];
    if (o.stream < 0) return "the program (" + o.name + ")";
    std::string const where = o.graph ? "graph" + (numbers ? " launch " + std::to_string(o.graph) : "")
                                      : "stream " + std::to_string(o.stream);
    return o.name + " (" + (numbers ? "operation " + std::to_string(p.operation) + ", " : "") + where + ")";
  }
  std::string place_of(std::uint64_t at) {
    if (of_device(reinterpret_cast<void const*>(at))) {
      ptx::region const* const r = device.region_at(at);
      return "byte " + std::to_string((at & 0xffff'ffff) - ptx::buffer_start) + " of " + (r ? r->name : "?");
    }
    auto const* const b = pinned.find(reinterpret_cast<void const*>(at));
    return b ? "byte " + std::to_string(at - address(b->begin)) + " of pinned memory at " + text_of(b->begin)
             : "host memory at " + text_of(reinterpret_cast<void const*>(at));
  }

  /// Whether the work of all streams of a capture precedes the end of its first stream.
  static bool all_joined(capture const& c) {
    std::set<std::size_t> before;
    std::vector<std::size_t> open = c.origin->frontier;
    while (!open.empty()) {
      auto const n = open.back();
      open.pop_back();
      if (!before.insert(n).second) continue;
      auto const& after = c.graph->nodes[n]->after;
      open.insert(open.end(), after.begin(), after.end());
    }
    for (stream_state const* const s : c.streams)
      for (auto const n : s->frontier)
        if (!before.contains(n)) return false;
    return true;
  }
};

}  // namespace neap::testing
