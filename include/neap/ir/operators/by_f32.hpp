// Kernels of f32 as kernels of bf16 and f16. Operators on samples (images, sequences) do not join them, so some samples at
// a time are widened to f32 in the op's workspace, the kernel runs on them, and what it made is rounded once. The
// workspace is some MiB, or one sample where that is larger; the shapes alone decide, so results have the same bits on
// any number of threads. Sums over samples (gradients of weights) go on in f32 from one group of samples to the next.
#pragma once

#include <neap/core/tensor_type.hpp>
#include <neap/core/units.hpp>
#include <neap/ir/operator.hpp>

#include <array>
#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 { namespace op::detail {

/// Which arguments have samples along axis 0: all but these.
struct shared_arguments {
  std::uint32_t inputs = 0;  // a bit an input: the same for all samples
  bool outputs = false;      // they are sums over the samples
};

/// The arguments of such an op for a group of samples, in f32. Those that are not bf16 or f16 are as they were. Allocates
/// nothing.
class widened_arguments {
 public:
  static constexpr std::size_t most = 12;                   // inputs and outputs
  static constexpr bytes_t group_bytes = bytes_t{1} << 20;  // of the widened samples, about

  widened_arguments(std::span<tensor_layout const> in, std::span<tensor_layout const> out, shared_arguments shared);
  widened_arguments(kernel_arguments const& a, shared_arguments shared);

  /// The layouts of a group.
  work_context context() const;
  bytes_t bytes() const { return bytes_; }

  /// Calls kernel(arguments of a group, whether it adds to the outputs) for all groups in turn.
  template <class Backend, class Kernel>
  void run(Backend& b, kernel_arguments const& a, Kernel const& kernel) const;

 private:
  void add(tensor_type const& t, bool input);
  bool has_samples(std::size_t i) const { return i < inputs_ ? !(shared_.inputs >> i & 1) : !shared_.outputs; }
  tensor_type of_group(std::size_t i, std::int64_t samples) const;
  void find_groups();

  shared_arguments shared_;
  std::size_t inputs_ = 0, count_ = 0;
  std::array<tensor_type, most> types_;
  std::array<tensor_layout, most> layouts_;
  std::array<bytes_t, most> places_{};
  std::int64_t samples_ = 0, group_ = 1;
  bytes_t bytes_ = 0;
};

/// Bytes of workspace of an op on bf16 or f16; `own(context)` are those of its kernel on f32.
template <class Own>
bytes_t widened_workspace(work_context const& c, shared_arguments shared, Own const& own) {
  widened_arguments const w(c.in, c.out, shared);
  return w.bytes() + own(w.context());
}
bytes_t widened_workspace(work_context const& c, shared_arguments shared = {});
}}}  // namespace neap::v0::op::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/by_f32.ipp>
#endif
