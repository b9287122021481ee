// Convolutions of images (n, c, h, w) and of sequences (n, c, l), and their transposes, which go from the result's extents
// back to the input's and so enlarge by their stride. For images the options are pairs of numbers, (rows, columns):
// conv2d(x, w, b, {.stride = {2, 2}, .padding = {1, 1}}). A sequence is an image of one row.
#pragma once

#include <neap/ir/operators/conv2d.hpp>
#include <neap/model/functions/elementwise.hpp>
#include <neap/model/functions/movement.hpp>

#include <string>

namespace neap { inline namespace v0 {

struct conv1d_form {
  std::int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
};
struct conv_transpose2d_form {
  extents stride{1, 1}, padding{0, 0}, output_padding{0, 0}, dilation{1, 1};
  std::int64_t groups = 1;
};
struct conv_transpose1d_form {
  std::int64_t stride = 1, padding = 0, output_padding = 0, dilation = 1, groups = 1;
};

/// x (n, c, h, w), weight (o, c / groups, kh, kw), bias (o) or empty -> (n, o, h', w')
tensor conv2d(tensor const& x, tensor const& weight, tensor const& bias, op::conv2d how = {},
              std::source_location at = std::source_location::current());

/// x (n, c, l), weight (o, c / groups, k), bias (o) or empty -> (n, o, l')
tensor conv1d(tensor const& x, tensor const& weight, tensor const& bias, conv1d_form how = {},
              std::source_location at = std::source_location::current());

struct conv3d_form {
  extents stride{1, 1, 1}, padding{0, 0, 0}, dilation{1, 1, 1};  // of planes, rows and columns
  std::int64_t groups = 1;
};

/// x (n, c, d, h, w), weight (o, c / groups, kd, kh, kw), bias (o) or empty -> (n, o, d', h', w'). A convolution of images:
/// those of one result plane, kd of them, are the channels of one image, so x is copied kd times over (which a plan may
/// compute again rather than keep).
tensor conv3d(tensor const& x, tensor const& weight, tensor const& bias, conv3d_form const& how = {},
              std::source_location at = std::source_location::current());

namespace detail {
/// A transposed convolution along the axes of x behind the second: one or two, and `how` has a number for each.
tensor conv_transpose(std::string const& who, tensor const& x, tensor const& weight, tensor const& bias,
                      conv_transpose2d_form how, std::source_location at);
}  // namespace detail

/// x (n, c, h, w), weight (c, o / groups, kh, kw), bias (o) or empty -> (n, o, h', w') with
/// h' = (h - 1) stride + (kh - 1) dilation + 1 - 2 padding + output_padding. conv2d of the same options takes h' back to
/// h, for any output_padding below the stride; the forward of one is the gradient of the other.
tensor conv_transpose2d(tensor const& x, tensor const& weight, tensor const& bias,
                        conv_transpose2d_form const& how = {},
                        std::source_location at = std::source_location::current());
/// x (n, c, l), weight (c, o / groups, k), bias (o) or empty -> (n, o, l'), likewise.
tensor conv_transpose1d(tensor const& x, tensor const& weight, tensor const& bias, conv_transpose1d_form how = {},
                        std::source_location at = std::source_location::current());

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/functions/impl/convolution.ipp>
#endif
