// Graphs of a compiled function that run one at a time, in one arena: it is as large as the largest of them needs.
#pragma once

#include <neap/core/byte_block.hpp>
#include <neap/execute/executable.hpp>

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

class bound_graph;

/// Does not shrink.
class shared_arena {
 public:
  std::span<std::byte> memory() const { return {block_.data(), block_.bytes()}; }
  /// No graph runs meanwhile. Throws neap::error without memory; everything is then as it was.
  void grow(std::size_t bytes) {
    bytes = static_cast<std::size_t>(align_up(static_cast<bytes_t>(bytes), 64));
    if (bytes <= block_.bytes()) return;
    try {
      block_ = byte_block(bytes, 4096);
    } catch (std::bad_alloc const&) { throw_error({"compile: the system does not give ", bytes, " bytes"}); }
  }

 private:
  byte_block block_;
};

/// A planned graph at the beginning of a shared arena.
class bound_graph {
 public:
  using runnable = executable<host_backend>;

  /// `sources` are read in each placement: their memory stays where it is, or is bound before each run.
  bound_graph(plan p, std::vector<source_binding> sources, host_backend& backend, execution_options options,
              shared_arena& in)
      : sources_(std::move(sources)),
        backend_(&backend),
        options_(std::move(options)),
        arena_(&in) {
    in.grow(static_cast<std::size_t>(p.arena_bytes - p.resident_bytes));
    place(std::move(p));
  }

  /// Placed anew where the arena has grown since: not while another graph runs.
  runnable& operator*() {
    if (arena_->memory().data() != in_.data()) place(run_->planned());
    return *run_;
  }
  runnable* operator->() { return &**this; }

 private:
  void place(plan p) {
    auto const memory = arena_->memory();
    auto options = options_;
    if (options.memory.empty() && !memory.empty()) options.memory = memory;
    run_ = std::make_unique<runnable>(std::move(p), sources_, *backend_, options);
    in_ = memory;
  }

  std::vector<source_binding> sources_;
  host_backend* backend_;
  execution_options options_;
  shared_arena* arena_;
  std::span<std::byte> in_;  // the arena's memory, as it was placed
  std::unique_ptr<runnable> run_;
};

}}}  // namespace neap::v0::detail
