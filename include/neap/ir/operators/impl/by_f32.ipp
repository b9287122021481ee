// The bodies of <neap/ir/operators/by_f32.hpp>.
#pragma once

#include <neap/ir/operators/by_f32.hpp>

#include <neap/core/element.hpp>
#include <neap/core/separate_compilation.hpp>

#include <algorithm>

namespace neap { inline namespace v0 { namespace op::detail {

NEAP_FUNC widened_arguments::widened_arguments(std::span<tensor_layout const> in, std::span<tensor_layout const> out,
                                               shared_arguments shared)
    : shared_(shared) {
  for (auto const& l : in) add(l.type, true);
  for (auto const& l : out) add(l.type, false);
  find_groups();
  for (std::size_t i = 0; i < count_; ++i) {
    auto const& l = i < inputs_ ? in[i] : out[i - inputs_];
    layouts_[i] = neap::is_low(l.type.element) ? tensor_layout::dense(of_group(i, group_)) : l;
    if (has_samples(i)) layouts_[i].type.dims[0] = group_;
  }
}

NEAP_FUNC widened_arguments::widened_arguments(kernel_arguments const& a, shared_arguments shared) : shared_(shared) {
  for (auto const& t : a.in) add({t.element, t.dims}, true);
  for (auto const& t : a.out) add({t.element, t.dims}, false);
  find_groups();
}

NEAP_FUNC work_context widened_arguments::context() const {
  auto const all = span_of(layouts_.data(), count_);
  return {all.first(inputs_), all.subspan(inputs_)};
}

NEAP_FUNC void widened_arguments::add(tensor_type const& t, bool input) {
  if (count_ == most) throw_error({"an operator by way of f32 takes at most ", most, " tensors"});
  types_[count_++] = t;
  if (input) ++inputs_;
}

NEAP_FUNC tensor_type widened_arguments::of_group(std::size_t i, std::int64_t samples) const {
  tensor_type t{dtype::f32, types_[i].dims};
  if (has_samples(i)) t.dims[0] = samples;
  return t;
}

NEAP_FUNC void widened_arguments::find_groups() {
  bytes_t sample = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    if (!has_samples(i)) continue;
    samples_ = types_[i].dims[0];
    if (neap::is_low(types_[i].element)) sample += of_group(i, 1).bytes();
  }
  group_ = std::clamp<std::int64_t>(group_bytes / std::max<bytes_t>(sample, 1), 1, std::max<std::int64_t>(samples_, 1));
  for (std::size_t i = 0; i < count_; ++i) {
    places_[i] = bytes_;
    if (neap::is_low(types_[i].element)) bytes_ += align_up(of_group(i, group_).bytes(), 64);
  }
}

NEAP_FUNC bytes_t widened_workspace(work_context const& c, shared_arguments shared) {
  return widened_workspace(c, shared, [](work_context const&) { return bytes_t{0}; });
}

}}}  // namespace neap::v0::op::detail
