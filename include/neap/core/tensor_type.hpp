// What a tensor is: element type, extents, and where its elements lie in their storage (layout). Shapes have rank 0 to
// 8 and live in place, so that types are plain values that kernels, graphs and nvcc can copy.
#pragma once

#include <neap/core/config.hpp>
#include <neap/core/error.hpp>
#include <neap/core/units.hpp>

#include <array>
#include <cstdint>
#include <initializer_list>
#include <source_location>
#include <span>
#include <string>
#include <string_view>

namespace neap { inline namespace v0 {

/// Element types. Those from i16 on appear in imported graphs only: no kernel computes in them. Floating types of 8 and
/// fewer bits are named by the bits of exponent and mantissa; fnuz: without infinities and negative zero.
enum class dtype : std::uint8_t {
  f64,
  f32,
  bf16,
  f16,
  i64,
  i32,
  u8,
  boolean,
  i16,
  i8,
  u64,
  u32,
  u16,
  c64,
  c128,
  c32,
  f8e4m3,
  f8e5m2,
  f8e4m3fnuz,
  f8e5m2fnuz,
  f8e8m0,
  f6e2m3,
  f6e3m2,
  f4e2m1,
  i4,
  u4,
  i2,
  u2
};

inline constexpr std::array<std::string_view, 28> dtype_names{
    "f64",    "f32",    "bf16",   "f16",    "i64",  "i32", "u8",     "bool",   "i16",        "i8",
    "u64",    "u32",    "u16",    "c64",    "c128", "c32", "f8e4m3", "f8e5m2", "f8e4m3fnuz", "f8e5m2fnuz",
    "f8e8m0", "f6e2m3", "f6e3m2", "f4e2m1", "i4",   "u4",  "i2",     "u2"};

constexpr std::string_view name_of(dtype t) { return dtype_names[static_cast<std::size_t>(t)]; }

/// Bits of one element. Elements of fewer than 8 bits are packed: two of i4 take a byte.
NEAP_HD constexpr int bits_of(dtype t) {
  switch (t) {
    case dtype::c128: return 128;
    case dtype::f64:
    case dtype::i64:
    case dtype::u64:
    case dtype::c64: return 64;
    case dtype::f32:
    case dtype::i32:
    case dtype::u32:
    case dtype::c32: return 32;
    case dtype::bf16:
    case dtype::f16:
    case dtype::i16:
    case dtype::u16: return 16;
    case dtype::u8:
    case dtype::boolean:
    case dtype::i8:
    case dtype::f8e4m3:
    case dtype::f8e5m2:
    case dtype::f8e4m3fnuz:
    case dtype::f8e5m2fnuz:
    case dtype::f8e8m0: return 8;
    case dtype::f6e2m3:
    case dtype::f6e3m2: return 6;
    case dtype::f4e2m1:
    case dtype::i4:
    case dtype::u4: return 4;
    case dtype::i2:
    case dtype::u2: return 2;
  }
  return 0;
}

/// Bytes of one element by itself, rounded up.
NEAP_HD constexpr bytes_t size_of(dtype t) { return (bits_of(t) + 7) / 8; }

/// Whether several elements share a byte.
constexpr bool is_packed(dtype t) { return bits_of(t) < 8; }

/// Bytes of `n` elements in a row, rounded up; throws on overflow.
constexpr bytes_t bytes_of(dtype t, std::int64_t n) {
  if (!is_packed(t)) return checked_mul(n, size_of(t));
  return n / 8 * bits_of(t) + (n % 8 * bits_of(t) + 7) / 8;
}

/// Whole numbers and truth values.
constexpr bool is_integer(dtype t) {
  return (t >= dtype::i64 && t <= dtype::u16) || (t >= dtype::i4 && t <= dtype::u2);
}

/// Real numbers with a fraction.
constexpr bool is_floating(dtype t) { return t <= dtype::f16 || (t >= dtype::f8e4m3 && t <= dtype::f4e2m1); }

namespace detail {
/// Whether an element type has this number: a floating type has all (rounded), others have whole ones in their range.
bool has_number(dtype t, double x);
}  // namespace detail

inline constexpr int max_rank = 8;

/// A short list of integers with value semantics: extents, strides, axes. Unused places are zero, so that equality and
/// hashing may look at all of them.
class extents {
 public:
  constexpr extents() = default;
  constexpr extents(std::initializer_list<std::int64_t> list,
                    std::source_location at = std::source_location::current()) {
    if (list.size() > max_rank) throw_error(at, {too_long});
    for (auto x : list) push_back(x);
  }
  constexpr explicit extents(std::span<std::int64_t const> list) {
    for (auto x : list) push_back(x);
  }
  /// `n` copies of `x`.
  static constexpr extents filled(int n, std::int64_t x) {
    extents e;
    for (int i = 0; i < n; ++i) e.push_back(x);
    return e;
  }

  NEAP_HD constexpr int rank() const { return rank_; }
  NEAP_HD constexpr std::int64_t operator[](int axis) const { return at_[axis]; }
  NEAP_HD constexpr std::int64_t& operator[](int axis) { return at_[axis]; }
  NEAP_HD constexpr std::int64_t back() const { return at_[rank_ - 1]; }
  constexpr void push_back(std::int64_t x) {
    if (rank_ == max_rank) throw_error({too_long});
    at_[rank_++] = x;
  }
  constexpr void erase(int axis) {
    for (int i = axis; i + 1 < rank_; ++i) at_[i] = at_[i + 1];
    at_[--rank_] = 0;
  }
  constexpr void insert(int axis, std::int64_t x) {
    push_back(0);
    for (int i = rank_ - 1; i > axis; --i) at_[i] = at_[i - 1];
    at_[axis] = x;
  }
  NEAP_HD constexpr std::int64_t const* begin() const { return at_; }
  NEAP_HD constexpr std::int64_t const* end() const { return at_ + rank_; }
  constexpr bool empty() const { return rank_ == 0; }
  friend constexpr bool operator==(extents const& a, extents const& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.at_[i] != b.at_[i]) return false;
    return true;
  }

 private:
  static constexpr char const* too_long = "tensors of more than 8 axes are not supported";
  std::int64_t at_[max_rank]{};
  std::int32_t rank_ = 0;
};

using shape = extents;

/// The number of elements, 1 for rank 0; throws on overflow.
constexpr std::int64_t elements(shape const& s) {
  std::int64_t n = 1;
  for (auto x : s) n = checked_mul(n, x);
  return n;
}

/// "[32,64]".
std::string to_string(extents const& s);

struct tensor_type {
  dtype element = dtype::f32;
  shape dims;

  constexpr int rank() const { return dims.rank(); }
  /// Extent of an axis; negative axes count from the end.
  constexpr std::int64_t extent(int axis) const { return dims[axis < 0 ? axis + dims.rank() : axis]; }
  constexpr std::int64_t count() const { return elements(dims); }
  constexpr bytes_t bytes() const { return bytes_of(element, count()); }
  friend constexpr bool operator==(tensor_type const&, tensor_type const&) = default;
};

/// "f32[32,64]".
std::string to_string(tensor_type const& t);

/// Strides, in elements, of a dense row-major tensor.
constexpr extents dense_strides(shape const& s) {
  extents strides = extents::filled(s.rank(), 1);
  for (int i = s.rank() - 2; i >= 0; --i) strides[i] = checked_mul(strides[i + 1], s[i + 1] > 0 ? s[i + 1] : 1);
  return strides;
}

/// A type and where its elements lie in its storage: element i of axis k is `strides[k]` elements further, the first is
/// at `offset`. Broadcast axes have stride 0.
struct tensor_layout {
  tensor_type type;
  extents strides;          // in elements, one an axis
  std::int64_t offset = 0;  // in elements, from the start of the storage

  static constexpr tensor_layout dense(tensor_type t) { return {t, dense_strides(t.dims), 0}; }

  /// Elements follow one another in row-major order (axes of extent 1 may have any stride; the offset may be anything).
  /// No elements always do.
  constexpr bool is_dense() const {
    std::int64_t expected = 1;
    for (int i = type.rank() - 1; i >= 0; --i) {
      if (type.dims[i] == 1) continue;
      if (strides[i] != expected) return has_no_elements();
      expected *= type.dims[i];
    }
    return true;
  }
  constexpr bool has_no_elements() const {
    for (auto x : type.dims)
      if (x == 0) return true;
    return false;
  }
  /// The elements of the last axis follow one another: what row kernels need.
  constexpr bool has_dense_rows() const {
    return type.rank() == 0 || type.dims.back() == 1 || strides[type.rank() - 1] == 1 || has_no_elements();
  }
  /// In one storage, all elements of one lie before those of the other, or there are none. (Views that interleave, as
  /// two columns of a matrix do, are not distinguished.)
  constexpr bool is_apart_from(tensor_layout const& o) const {
    return has_no_elements() || o.has_no_elements() || last() < o.offset || o.last() < offset;
  }
  friend constexpr bool operator==(tensor_layout const&, tensor_layout const&) = default;

 private:
  constexpr std::int64_t last() const {  // where the last element lies; there is one
    std::int64_t at = offset;
    for (int i = 0; i < type.rank(); ++i) at += (type.dims[i] - 1) * strides[i];
    return at;
  }
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/core/impl/tensor_type.ipp>
#endif
