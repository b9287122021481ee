// Swapping: `store` moves a tensor to the host's side (a spill file on the host backend, pinned memory beside a GPU),
// `load` brings it back. Their values compute nothing: load(store(x)) is x, bit for bit. The stored value lies outside
// the device: it has a storage of no device bytes. `wait` makes the computations after it begin no earlier than a store has
// ended, so that they may have the bytes that it has taken away: a limit then holds however slow the link is.
#pragma once

#include <neap/ir/operator.hpp>

namespace neap { inline namespace v0 { namespace op {

/// x -> handle. The handle's type is x's, its storage is on the host's side (0 device bytes).
struct store {
  static constexpr std::string_view name = "store";
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { c.aligned(0, 0); }
  work cost(work_context const& c) const { return {0, detail::touched_bytes(c.in[0]), 0}; }
};

/// handle -> the same handle, of a store that has ended: computations that come later in the order wait for it. Takes no
/// time of its own. (A stream's wait for an event, as a value that a load reads.)
struct wait {
  static constexpr std::string_view name = "wait";
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { c.aligned(0, 0); }
  work cost(work_context const&) const { return {0, 0, 0}; }
};

/// handle -> x, in a storage of its own on the device.
struct load {
  static constexpr std::string_view name = "load";
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { c.aligned(0, 0); }
  work cost(work_context const& c) const { return {0, 0, detail::touched_bytes(c.out[0])}; }
};

}}}  // namespace neap::v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/transfer.ipp>
#endif
