// Graphs of a compiled function that run one at a time, in one arena: it is as large as the largest of them needs.
#pragma once

#include <neap/core/byte_block.hpp>
#include <neap/execute/executable.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

namespace neap::inline v0::detail {

class bound_graph;

/// Does not shrink.
class shared_arena {
 public:
  std::span<std::byte> memory() const { return {block_.data(), block_.bytes()}; }
  /// Graphs are placed anew where it has to grow: none runs meanwhile. Throws neap::error without memory; the graphs are
  /// then as they were.
  void grow(std::size_t bytes);

 private:
  friend class bound_graph;
  byte_block block_;
  std::mutex mutex_;  // of graphs_: threads drop graphs
  std::vector<bound_graph*> graphs_;
};

/// A planned graph at the beginning of a shared arena.
class bound_graph {
 public:
  using runnable = executable<standard_operators, host_backend>;

  /// `sources` are read in each placement: their memory stays where it is, or is bound before each run.
  bound_graph(plan<graph> p, std::vector<source_binding> sources, host_backend& backend, execution_options options,
              shared_arena& in)
      : sources_(std::move(sources)),
        backend_(&backend),
        options_(std::move(options)),
        arena_(&in) {
    auto const bytes = p.arena_bytes - p.resident_bytes;
    in.grow(static_cast<std::size_t>(bytes));
    run_ = made(std::move(p), in.memory());
    std::scoped_lock const alone(in.mutex_);
    in.graphs_.push_back(this);
  }
  bound_graph(bound_graph const&) = delete;
  bound_graph& operator=(bound_graph const&) = delete;
  ~bound_graph() {
    std::scoped_lock const alone(arena_->mutex_);
    std::erase(arena_->graphs_, this);
  }

  runnable& operator*() { return *run_; }
  runnable* operator->() { return run_.get(); }

 private:
  friend class shared_arena;
  std::unique_ptr<runnable> made(plan<graph> p, std::span<std::byte> memory) {
    auto options = options_;
    if (options.memory.empty() && !memory.empty()) options.memory = memory;
    return std::make_unique<runnable>(std::move(p), sources_, *backend_, options);
  }

  std::vector<source_binding> sources_;
  host_backend* backend_;
  execution_options options_;
  shared_arena* arena_;
  std::unique_ptr<runnable> run_;
};

inline void shared_arena::grow(std::size_t bytes) {
  bytes = static_cast<std::size_t>(align_up(static_cast<bytes_t>(bytes), 64));
  if (bytes <= block_.bytes()) return;
  byte_block larger;
  try {
    larger = byte_block(bytes, 4096);
  } catch (std::bad_alloc const&) { throw_error({"compile: the system does not give ", bytes, " bytes"}); }
  std::scoped_lock const alone(mutex_);
  std::vector<std::unique_ptr<bound_graph::runnable>> placed;
  for (auto* g : graphs_) placed.push_back(g->made(g->run_->planned(), {larger.data(), bytes}));
  for (std::size_t k = 0; k < graphs_.size(); ++k) graphs_[k]->run_ = std::move(placed[k]);
  block_ = std::move(larger);
}

}  // namespace neap::inline v0::detail
