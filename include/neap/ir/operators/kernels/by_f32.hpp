// Kernels on groups of samples in f32 (<neap/ir/operators/by_f32.hpp>).
#pragma once

#include <neap/ir/operators/by_f32.hpp>

#include <neap/backend/kernels/elementwise.hpp>
#include <neap/core/element.hpp>
#include <neap/core/span_of.hpp>

#include <algorithm>

namespace neap { inline namespace v0 { namespace op::detail {

template <class Backend, class Kernel>
void widened_arguments::run(Backend& b, kernel_arguments const& a, Kernel const& kernel) const {
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

/// Runs kernel(arguments, whether it adds to the outputs), which computes in f32, by groups of samples.
template <class Backend, class Kernel>
void run_widened(Backend& b, kernel_arguments const& a, shared_arguments shared, Kernel const& kernel) {
  widened_arguments(a, shared).run(b, a, kernel);
}

}}}  // namespace neap::v0::op::detail
