// The bodies of <neap/model/functions/convolution.hpp>.
#pragma once

#include <neap/model/functions/convolution.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC tensor conv2d(tensor const& x, tensor const& weight, tensor const& bias, op::conv2d how,
                        std::source_location at) {
  place_scope const here(at, "conv2d");
  tensor const image = contiguous(x);
  if (bias.is_empty()) return apply(how, {image, weight});
  return apply(how, {image, weight, bias});
}

NEAP_FUNC tensor conv1d(tensor const& x, tensor const& weight, tensor const& bias, conv1d_form how,
                        std::source_location at) {
  place_scope const here(at, "conv1d");
  detail::require_rank(x, 3, "conv1d: takes (batch, channels, length)", at);
  detail::require_rank(weight, 3, "conv1d: the filter takes (filters, channels of a group, length)", at);
  auto const refuse = [&](char const* why) {
    throw_error(context_access::place(at),
                {"conv1d: ", why, ", ", x.shape(), " with filter ", weight.shape(), " and groups ", how.groups});
  };
  if (how.groups < 1 || weight.size(0) % how.groups != 0 || x.size(1) % how.groups != 0 ||
      x.size(1) / how.groups != weight.size(1))
    refuse("channels do not fit the groups");
  if (how.stride < 1 || how.dilation < 1 || how.padding < 0)
    refuse("stride and dilation must be positive, padding not negative");
  if (weight.size(2) < 1 || (x.size(2) + 2 * how.padding - 1) / how.dilation < weight.size(2) - 1)
    refuse("the filter is larger than the padded input, or has no length");
  tensor const y = conv2d(
      unsqueeze(x, 2), unsqueeze(weight, 2), bias,
      {.stride = {1, how.stride}, .padding = {0, how.padding}, .dilation = {1, how.dilation}, .groups = how.groups});
  return squeeze(y, 2);
}

NEAP_FUNC tensor conv3d(tensor const& x, tensor const& weight, tensor const& bias, conv3d_form const& how,
                        std::source_location at) {
  place_scope const here(at, "conv3d");
  detail::require_rank(x, 5, "conv3d: takes (batch, channels, planes, rows, columns)", at);
  detail::require_rank(weight, 5, "conv3d: the filter takes (filters, channels of a group, planes, rows, columns)", at);
  auto const refuse = [&](std::string const& why) {
    throw_error(context_access::place(at),
                {"conv3d: ", why, ", ", x.shape(), " with filter ", weight.shape(), " and groups ", how.groups});
  };
  for (auto const* each : {&how.stride, &how.padding, &how.dilation})
    if (each->rank() != 3) refuse("options take three numbers each, for planes, rows and columns");
  if (how.groups < 1 || weight.size(0) % how.groups != 0 || x.size(1) % how.groups != 0 ||
      x.size(1) / how.groups != weight.size(1))
    refuse("channels do not fit the groups");
  auto const stride = how.stride[0], padding = how.padding[0], dilation = how.dilation[0], taps = weight.size(2);
  for (int k = 0; k < 3; ++k) {
    if (how.stride[k] < 1 || how.dilation[k] < 1 || how.padding[k] < 0)
      refuse("stride and dilation must be positive, padding not negative");
    if (weight.size(2 + k) < 1 || (x.size(2 + k) + 2 * how.padding[k] - 1) / how.dilation[k] < weight.size(2 + k) - 1 ||
        x.size(2 + k) + 2 * how.padding[k] < 1)
      refuse("the filter is larger than the padded input, or has no extent");
  }
  auto const reach = (taps - 1) * dilation, depth = x.size(2) + 2 * padding, planes = (depth - reach - 1) / stride + 1;
  // Whole steps of `stride` planes, of which tap k reads one each: (n, c, steps, stride, h, w)
  auto const steps = std::max((depth + stride - 1) / stride, reach / stride + planes);
  auto const behind = steps * stride - x.size(2) - padding;
  tensor padded = x;
  if (padding > 0 || behind > 0) padded = pad(padded, 2, padding, std::max<std::int64_t>(behind, 0));
  auto const h = x.size(3), w = x.size(4);
  tensor const by_steps = reshape(padded, {x.size(0), x.size(1), steps, stride, h, w});
  std::vector<tensor> seen;  // (n, planes, c, 1, h, w) each
  for (std::int64_t k = 0; k < taps; ++k) {
    auto const first = k * dilation / stride, phase = k * dilation % stride;
    seen.push_back(permute(slice(slice(by_steps, 2, first, first + planes), 3, phase, phase + 1), {0, 2, 1, 3, 4, 5}));
  }
  tensor const images =
      reshape(seen.size() == 1 ? seen.front() : concat(seen, 3), {x.size(0) * planes, x.size(1) * taps, h, w});
  tensor const filter = reshape(weight, {weight.size(0), weight.size(1) * taps, weight.size(3), weight.size(4)});
  tensor const y = conv2d(images, filter, bias,
                          {.stride = {how.stride[1], how.stride[2]},
                           .padding = {how.padding[1], how.padding[2]},
                           .dilation = {how.dilation[1], how.dilation[2]},
                           .groups = how.groups});
  return permute(reshape(y, {x.size(0), planes, y.size(1), y.size(2), y.size(3)}), {0, 2, 1, 3, 4});
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC tensor conv_transpose(std::string const& who, tensor const& x, tensor const& weight, tensor const& bias,
                                conv_transpose2d_form how, std::source_location at) {
  auto const refuse = [&](std::string const& why) {
    throw_error(context_access::place(at), {who, ": ", why, ", ", x.type(), " with filter ", weight.type()});
  };
  if (weight.rank() != x.rank()) refuse("the filter needs as many axes as the input");
  if (!detail::may_meet(weight.element(), x.element())) refuse("element types differ");
  if (how.groups < 1 || x.size(1) % how.groups != 0)
    refuse(std::to_string(how.groups) + " groups do not divide the channels");
  if (weight.size(0) != x.size(1)) refuse("the filter does not take the input's channels");
  shape dims{x.size(0), weight.size(1) * how.groups};
  if (!bias.is_empty() && bias.shape() != shape{dims[1]})
    refuse("the shift must have shape " + to_string(shape{dims[1]}) + ", got " + to_string(bias.shape()));
  int const axes = x.rank() - 2;
  for (auto const* each : {&how.stride, &how.padding, &how.output_padding, &how.dilation})
    if (each->rank() != axes) refuse("options take two numbers each, for rows and columns");
  for (int k = 0; k < axes; ++k) {
    auto const stride = how.stride[k], padding = how.padding[k], dilation = how.dilation[k],
               more = how.output_padding[k];
    if (stride < 1 || dilation < 1 || padding < 0) refuse("stride and dilation must be positive, padding not negative");
    if (more < 0 || more >= stride)
      refuse("output_padding must be at least 0 and less than the stride " + std::to_string(stride) + ", not " +
             std::to_string(more));
    std::int64_t whole = 0;
    with_place(at, [&] {
      whole = checked_add(checked_mul(x.size(2 + k) - 1, stride), checked_mul(weight.size(2 + k) - 1, dilation));
      whole = checked_add(whole, 1 + more);
    });
    if (x.size(2 + k) < 1 || weight.size(2 + k) < 1 || whole / 2 < padding || whole - 2 * padding < 1)
      refuse("nothing is left beside a padding of " + std::to_string(padding));
    dims.push_back(whole - 2 * padding);
  }

  auto const by_rows = [&](tensor const& t) { return axes == 1 ? unsqueeze(t, 2) : t; };
  if (axes == 1) {
    dims.insert(2, 1);
    how.stride.insert(0, 1), how.padding.insert(0, 0), how.dilation.insert(0, 1);
  }
  tensor y = apply(op::conv2d_grad_input{dims, how.stride, how.padding, how.dilation, how.groups},
                   {by_rows(contiguous(x)), by_rows(weight)});
  if (!bias.is_empty()) y = y + reshape(bias, {dims[1], 1, 1});
  return axes == 1 ? squeeze(y, 2) : y;
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC tensor conv_transpose2d(tensor const& x, tensor const& weight, tensor const& bias,
                                  conv_transpose2d_form const& how, std::source_location at) {
  place_scope const here(at, "conv_transpose2d");
  detail::require_rank(x, 4, "conv_transpose2d: takes (batch, channels, rows, columns)", at);
  return detail::conv_transpose("conv_transpose2d", x, weight, bias, how, at);
}

NEAP_FUNC tensor conv_transpose1d(tensor const& x, tensor const& weight, tensor const& bias, conv_transpose1d_form how,
                                  std::source_location at) {
  place_scope const here(at, "conv_transpose1d");
  detail::require_rank(x, 3, "conv_transpose1d: takes (batch, channels, length)", at);
  return detail::conv_transpose("conv_transpose1d", x, weight, bias,
                                {{how.stride}, {how.padding}, {how.output_padding}, {how.dilation}, how.groups}, at);
}

}}  // namespace neap::v0
