// Matrices with one side of a diagonal set to zero.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/backend/kernels/copy.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace neap { inline namespace v0 {

/// out = in with zeros below a diagonal of its last two axes (upper), or above it. Diagonal d holds the elements (i, i + d).
/// What is set to zero is not computed with: a NaN there is gone. out is dense and may lie exactly on in.
template <class Backend>
void triangle(Backend& b, tensor_ref const& out, tensor_ref const& in, std::int64_t diagonal, bool upper) {
  if constexpr (device_backend<Backend>) {
    triangle_on_device(b, out, in, diagonal, upper);  // cuda/kernels/copy.cuh
  } else {
    if (out.data != in.data) copy(b, out, in);
    if (out.count() == 0) return;
    std::int64_t const rows = out.extent(-2), columns = out.extent(-1), size = size_of(out.element);
    // Diagonals beyond the corners are like those behind them.
    std::int64_t const d = std::clamp(diagonal, -rows - 1, columns + 1);
    auto* const y = static_cast<std::byte*>(out.data);
    b.parallel_for(out.count() / columns, (16383 + columns) / columns, [=](std::int64_t begin, std::int64_t end) {
      for (std::int64_t r = begin; r < end; ++r) {
        std::int64_t const i = r % rows;
        std::int64_t const first = upper ? 0 : std::clamp<std::int64_t>(i + d + 1, 0, columns);
        std::int64_t const last = upper ? std::clamp<std::int64_t>(i + d, 0, columns) : columns;
        std::memset(y + (r * columns + first) * size, 0, static_cast<std::size_t>((last - first) * size));
      }
    });
  }
}

}}  // namespace neap::v0
