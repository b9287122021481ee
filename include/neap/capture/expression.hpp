// Scalars of a captured program as expressions of the tracked values at its start. Each node holds the bits of a C++
// scalar of at most eight bytes and is evaluated by the compiled C++ operation itself, so that conversions, wrapping and
// rounding are the program's. Equal expressions of one tape have equal numbers.
#pragma once

#include <neap/core/number_map.hpp>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

template <class T>
concept tracked_scalar = std::is_arithmetic_v<T> || std::is_enum_v<T>;

template <tracked_scalar T>
std::uint64_t to_bits(T x) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t), "neap: a tracked scalar has at most eight bytes");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &x, sizeof x);
  return bits;
}
template <tracked_scalar T>
T from_bits(std::uint64_t bits) {
  T x{};
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

using scalar_function = std::uint64_t (*)(std::uint64_t a, std::uint64_t b);

struct expression {
  enum class kind : std::uint32_t { constant, scalar, call };
  kind what = kind::constant;
  std::uint32_t a = 0, b = 0;  // of a call: its operands; of a scalar: its number among the tracked scalars
  scalar_function call = nullptr;
  std::uint64_t bits = 0;  // of a constant

  friend bool operator==(expression const&, expression const&) = default;
};

/// O(1) expected for each expression.
class expression_tape {
 public:
  std::uint32_t add(expression const& e);
  std::uint32_t constant(std::uint64_t bits) { return add({expression::kind::constant, 0, 0, nullptr, bits}); }
  std::uint32_t scalar(std::uint32_t k) { return add({expression::kind::scalar, k, 0, nullptr, 0}); }
  std::uint32_t call(scalar_function f, std::uint32_t a, std::uint32_t b);
  std::size_t size() const { return all_.size(); }
  /// A text as a number: where it is. It stays there as long as the tape or a copy of it.
  std::uint64_t text(std::string_view x);
  /// Forgets all but the first n. O(n).
  void truncate(std::size_t n);
  expression const& operator[](std::uint32_t k) const { return all_[k]; }

 private:
  static std::uint64_t key_of(expression const& e);

  std::vector<expression> all_;
  number_map numbers_;
  std::shared_ptr<std::set<std::string, std::less<>>> texts_;
};

/// The values of expressions for one set of scalars. Only what is needed is computed: what a branch guards may be undefined
/// on another path.
class expression_values {
 public:
  expression_values(expression_tape const& tape, std::vector<std::uint64_t> const& scalars);
  std::uint64_t operator()(std::uint32_t k);

 private:
  expression_tape const* tape_;
  std::vector<std::uint64_t> const* scalars_;
  std::vector<std::uint64_t> values_;
  std::vector<bool> known_;
  std::vector<std::uint32_t> open_;
};

}}}  // namespace neap::v0::detail

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/capture/impl/expression.ipp>
#endif
