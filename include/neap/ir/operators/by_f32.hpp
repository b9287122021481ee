// Kernels of f32 as kernels of bf16 and f16. Operators on samples (images, sequences) do not join them, so some samples at
// a time are widened to f32 in the op's workspace, the kernel runs on them, and what it made is rounded once. The
// workspace is some MiB, or one sample where that is larger; the shapes alone decide, so results have the same bits on
// any number of threads. Sums over samples (gradients of weights) go on in f32 from one group of samples to the next.
#pragma once

#include <neap/backend/kernels/elementwise.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/operator.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace neap::inline v0::op::detail {

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
  void run(Backend& b, kernel_arguments const& a, Kernel const& kernel) const {
    auto* const memory = static_cast<std::byte*>(a.workspace);
    auto const given = [&](std::size_t i) -> tensor_ref const& { return i < inputs_ ? a.in[i] : a.out[i - inputs_]; };
    auto const is_wide = [&](std::size_t i) { return given(i).data && neap::is_low(given(i).element); };
    std::array<tensor_ref, most> now;
    for (std::int64_t begin = 0; begin < samples_ || begin == 0; begin += group_) {
      std::int64_t const count = std::min(group_, samples_ - begin);
      auto const slice = [&](std::size_t i) {
        auto t = given(i);
        if (!t.data || !has_samples(i)) return t;
        t.data = static_cast<std::byte*>(t.data) + begin * t.strides[0] * size_of(t.element);
        t.dims[0] = count;
        return t;
      };
      for (std::size_t i = 0; i < count_; ++i) {
        now[i] = slice(i);
        if (!is_wide(i)) continue;
        auto const type = of_group(i, count);
        now[i] = {memory + places_[i], dtype::f32, type.dims, dense_strides(type.dims)};
        if (i < inputs_ && (has_samples(i) || begin == 0)) neap::cast(b, now[i], slice(i));
      }
      auto const all = span_of(now.data(), count_);
      kernel(kernel_arguments{all.first(inputs_), all.subspan(inputs_), memory + bytes_}, begin > 0);
      for (std::size_t i = inputs_; i < count_; ++i)
        if (is_wide(i) && (has_samples(i) || begin + group_ >= samples_)) neap::cast(b, slice(i), now[i]);
    }
  }

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

/// Runs kernel(arguments, whether it adds to the outputs), which computes in f32, by groups of samples.
template <class Backend, class Kernel>
void run_widened(Backend& b, kernel_arguments const& a, shared_arguments shared, Kernel const& kernel) {
  widened_arguments(a, shared).run(b, a, kernel);
}
/// Bytes of workspace of an op on bf16 or f16; `own(context)` are those of its kernel on f32.
template <class Own>
bytes_t widened_workspace(work_context const& c, shared_arguments shared, Own const& own) {
  widened_arguments const w(c.in, c.out, shared);
  return w.bytes() + own(w.context());
}
bytes_t widened_workspace(work_context const& c, shared_arguments shared = {});
}  // namespace neap::inline v0::op::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/by_f32.ipp>
#endif
