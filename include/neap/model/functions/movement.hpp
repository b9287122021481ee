// Functions that move elements: views share the data of what they look at and cost nothing; the others copy.
#pragma once

#include <neap/ir/operators/movement.hpp>
#include <neap/ir/operators/split.hpp>
#include <neap/ir/operators/update.hpp>
#include <neap/model/apply.hpp>

#include <cmath>
#include <vector>

namespace neap { inline namespace v0 {

/// x itself if its elements follow one another in row-major order, else a copy whose elements do.
tensor contiguous(tensor const& x, std::source_location at = std::source_location::current());
/// x in another element type; x itself if it has it already.
tensor cast(tensor const& x, dtype to, std::source_location at = std::source_location::current());
/// A tensor of its own with the elements of x, dense; gradients go through it. What writes x in place later leaves it
/// alone.
tensor copy(tensor const& x, std::source_location at = std::source_location::current());
namespace detail {
/// Whether two tensors look at one memory.
bool share_memory(tensor const& a, tensor const& b, std::source_location at);
}  // namespace detail
/// Writes x into the memory of `to`, a tensor of the same type: how a model carries numbers to its next step, in a
/// neap::buffer. Reads of `to`, and of views of it, are of x from here on, and no gradient goes through them; gradients
/// of what was read before are of what was there then. x may be another view of `to`.
void assign(tensor const& to, tensor const& x, std::source_location at = std::source_location::current());

/// Other extents, of as many elements; one extent may be -1: whatever is left. A view where x is dense.
tensor reshape(tensor const& x, shape dims, std::source_location at = std::source_location::current());
/// Axes from `first` on as one.
tensor flatten(tensor const& x, std::int64_t first = 0, std::source_location at = std::source_location::current());
/// A view whose axis k is x's axis axes[k].
tensor permute(tensor const& x, extents axes, std::source_location at = std::source_location::current());
/// A view with two axes exchanged.
tensor transpose(tensor const& x, std::int64_t a = -2, std::int64_t b = -1,
                 std::source_location at = std::source_location::current());
/// A view of the part [start, stop) of an axis; negative numbers count from its end.
tensor slice(tensor const& x, std::int64_t axis, std::int64_t start, std::int64_t stop,
             std::source_location at = std::source_location::current());
/// A view of one place of an axis, which is then gone.
tensor select(tensor const& x, std::int64_t axis, std::int64_t i,
              std::source_location at = std::source_location::current());
namespace detail {
tensor first_place(tensor const& x, std::int64_t i, std::source_location at);
}  // namespace detail
/// Views of equal parts of an axis, one after another. Throws neap::error if it does not divide.
std::vector<tensor> split(tensor const& x, std::int64_t parts, std::int64_t axis = 0,
                          std::source_location at = std::source_location::current());
/// Views with an axis of extent 1 more, or less.
tensor unsqueeze(tensor const& x, std::int64_t axis, std::source_location at = std::source_location::current());
tensor squeeze(tensor const& x, std::int64_t axis, std::source_location at = std::source_location::current());
/// A view in a larger shape: missing leading axes and axes of extent 1 repeat.
tensor broadcast_to(tensor const& x, shape const& dims, std::source_location at = std::source_location::current());
/// One after another along an axis.
tensor concat(std::vector<tensor> const& parts, std::int64_t axis = 0,
              std::source_location at = std::source_location::current());
/// One beside another along a new axis: parts of one shape; the axis counts in the result.
tensor stack(std::vector<tensor> const& parts, std::int64_t axis = 0,
             std::source_location at = std::source_location::current());
/// `before` and `after` elements of `value` around an axis.
tensor pad(tensor const& x, std::int64_t axis, std::int64_t before, std::int64_t after, double value = 0,
           std::source_location at = std::source_location::current());
/// x with zeros above a diagonal of the last two axes; diagonal d holds the elements (i, i + d). A NaN above it is
/// gone.
tensor tril(tensor const& x, std::int64_t diagonal = 0, std::source_location at = std::source_location::current());
/// x with zeros below a diagonal.
tensor triu(tensor const& x, std::int64_t diagonal = 0, std::source_location at = std::source_location::current());
/// start, start + step, ... up to but without stop, as a tensor that is the same in every step.
tensor arange(double start, double stop, double step = 1, dtype element = dtype::i64,
              std::source_location at = std::source_location::current());
tensor arange(std::int64_t stop, dtype element = dtype::i64, std::source_location at = std::source_location::current());
/// `count` numbers from start to stop, both included, at equal distances; each is rounded once.
tensor linspace(double start, double stop, std::int64_t count, dtype element = dtype::f32,
                std::source_location at = std::source_location::current());
/// x so many times along each axis, one after another: repeat(x, {2, 1}). Missing leading axes are new ones.
tensor repeat(tensor const& x, extents const& times, std::source_location at = std::source_location::current());
/// rows x columns (no columns: as many as rows) with 1 on the diagonal, else 0.
tensor eye(std::int64_t rows, std::int64_t columns = -1, dtype element = dtype::f32,
           std::source_location at = std::source_location::current());
/// A tensor of one value, made anew: in a trace, by an op.
tensor fill(shape const& dims, double value, dtype element = dtype::f32,
            std::source_location at = std::source_location::current());

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/functions/impl/movement.ipp>
#endif
