// Tensors for tests: random values in any element type and layout, read back as doubles.
#pragma once

#include <neap/backend/strided.hpp>
#include <neap/core/philox.hpp>
#include <neap/core/tensor_ref.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

namespace neap_test {

using neap::dtype, neap::shape, neap::extents, neap::tensor_ref;

/// An owned tensor; `ref` may be any view into its bytes.
struct owned {
  std::vector<std::byte> bytes;
  tensor_ref ref;

  owned(dtype t, shape dims, extents strides, std::int64_t storage_elements)
      : bytes(static_cast<std::size_t>(storage_elements * neap::size_of(t)) + 64),
        ref{bytes.data(), t, dims, strides} {}
  explicit owned(dtype t, shape dims) : owned(t, dims, neap::dense_strides(dims), neap::elements(dims)) {}
  owned(owned const& o) : bytes(o.bytes), ref(o.ref) { ref.data = bytes.data() + (o.base() - o.bytes.data()); }
  owned& operator=(owned const&) = delete;
  operator tensor_ref const&() const { return ref; }
  std::byte* base() const { return static_cast<std::byte*>(ref.data); }
};

/// Calls f(offset in elements) in row-major order.
template <class F>
void for_each_offset(tensor_ref const& t, F f) {
  std::int64_t const n = t.count();
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t rest = i, offset = 0;
    for (int axis = t.rank() - 1; axis >= 0; --axis) {
      offset += rest % t.dims[axis] * t.strides[axis];
      rest /= t.dims[axis];
    }
    f(offset);
  }
}

inline std::vector<double> values(tensor_ref const& t) {
  std::vector<double> v;
  neap::with_type(t.element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each_offset(t, [&](std::int64_t at) { v.push_back(neap::detail::convert<double>(t.as<T>()[at])); });
  });
  return v;
}

inline void assign(tensor_ref const& t, std::vector<double> const& v) {
  neap::with_type(t.element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    std::size_t i = 0;
    for_each_offset(t, [&](std::int64_t at) { t.as<T>()[at] = neap::detail::convert<T>(v[i++]); });
  });
}

inline void randomize(tensor_ref const& t, neap::random_stream& r, double low = -2, double high = 2) {
  neap::with_type(t.element, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_each_offset(t, [&](std::int64_t at) {
      t.as<T>()[at] = neap::detail::convert<T>(low + (high - low) * static_cast<double>(r.uniform()));
    });
  });
}

inline owned random_dense(dtype t, shape const& dims, neap::random_stream& r, double low = -2, double high = 2) {
  owned x{t, dims};
  randomize(x, r, low, high);
  return x;
}

/// A random view of the given shape: axes permuted in memory, padded, some broadcast where allowed. With `dense_rows`
/// the last axis stays contiguous.
inline owned random_view(dtype t, shape const& dims, neap::random_stream& r, bool dense_rows = false,
                         bool may_broadcast = true, double low = -2, double high = 2) {
  int const rank = dims.rank();
  std::vector<int> order;
  for (int i = 0; i < rank; ++i) order.push_back(i);
  int const free_axes = dense_rows ? rank - 1 : rank;
  for (int i = free_axes - 1; i > 0; --i)
    std::swap(order[static_cast<std::size_t>(i)], order[r.below(static_cast<std::uint32_t>(i + 1))]);
  extents strides = extents::filled(rank, 0);
  std::int64_t size = 1;
  for (int i = rank - 1; i >= 0; --i) {
    int const axis = order[static_cast<std::size_t>(i)];
    bool const row = dense_rows && axis == rank - 1;
    if (may_broadcast && !row && r.below(5) == 0) continue;
    strides[axis] = size;
    size *= dims[axis] + (row ? 0 : static_cast<std::int64_t>(r.below(2)));
  }
  owned x{t, dims, strides, size + 1};
  randomize(x, r, low, high);
  return x;
}

inline shape random_shape(neap::random_stream& r, int max_axes = 4, std::uint32_t max_extent = 9) {
  shape s;
  int const rank = static_cast<int>(r.below(static_cast<std::uint32_t>(max_axes) + 1));
  for (int i = 0; i < rank; ++i) s.push_back(1 + static_cast<std::int64_t>(r.below(max_extent)));
  return s;
}

/// How close results in an element type are expected to be, relative to the larger magnitudes involved.
inline double tolerance(dtype t) {
  switch (t) {
    case dtype::f64: return 1e-12;
    case dtype::f32: return 3e-6;
    case dtype::bf16: return 1e-2;
    case dtype::f16: return 2e-3;
    default: return 0;
  }
}

/// Every element of `got` is near the expected one: |difference| <= tolerance * (1 + |expected|).
inline bool near(tensor_ref const& got, std::vector<double> const& expected, double within) {
  auto const v = values(got);
  if (v.size() != expected.size()) return false;
  for (std::size_t i = 0; i < v.size(); ++i) {
    if (v[i] == expected[i] || (std::isnan(v[i]) && std::isnan(expected[i]))) continue;  // infinities, too
    if (!(std::fabs(v[i] - expected[i]) <= within * (1 + std::fabs(expected[i])))) return false;
  }
  return true;
}

/// The same bytes in the storage.
inline bool same_bits(owned const& a, owned const& b) { return a.bytes == b.bytes; }

inline constexpr dtype floating_types[] = {dtype::f64, dtype::f32, dtype::bf16, dtype::f16};
inline constexpr dtype all_types[] = {dtype::f64, dtype::f32, dtype::bf16, dtype::f16,
                                      dtype::i64, dtype::i32, dtype::u8,   dtype::boolean};

}  // namespace neap_test
