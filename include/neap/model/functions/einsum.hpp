// Sums of products by Einstein's convention: einsum("bqd,bkd->bqk", {q, k}). Operands are taken one after another: axes
// that nothing later needs are summed, and what two operands share is a matrix product, or an elementwise one where nothing
// is summed. A letter that stands twice in an operand means its diagonal; ... stands for axes that broadcast.
#pragma once

#include <neap/model/functions/matrix.hpp>
#include <neap/model/functions/reduction.hpp>

#include <algorithm>
#include <concepts>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

namespace neap { inline namespace v0 {

namespace detail {

/// One contraction: parsed, checked and run.
class einsum_run {
 public:
  einsum_run(std::string_view equation, std::vector<tensor> const& in, std::source_location at);
  tensor run();

 private:
  using labels = std::vector<int>;  // a letter, or -1 - k: axis k of ..., counted from the last
  struct term {
    tensor x;
    detail::einsum_run::labels labels;  // of its axes, each once
  };

  [[noreturn]] void refuse(std::string const& why) const;
  static std::string name(int label) { return label < 0 ? "..." : std::string(1, static_cast<char>(label)); }
  static bool has(labels const& l, int label) { return std::find(l.begin(), l.end(), label) != l.end(); }
  static int place(labels const& l, int label);

  // ------------------------------------------------------------------ the equation

  static constexpr int dots = 0;  // stands for the axes of ... until their number is known

  labels parsed(std::string_view text) const;
  void parse(std::size_t operands);
  /// A tensor with one label an axis: ... is spelt out, and of labels that stand twice the diagonal is taken.
  term term_of(tensor x, labels const& given, std::size_t i);
  /// x with axis k the diagonal of axes k and j > k.
  tensor diagonal(tensor const& x, int k, int j, std::size_t i) const;
  void require_output();
  std::int64_t size_of(int label) const;
  /// Axes of extent 1 that other operands stretch are no axes of this one.
  void drop_stretched(term& t) const;

  // ------------------------------------------------------------------ the sums

  /// Whether the result or an operand from number `next` on has the label.
  bool is_needed(int label, std::size_t next) const;
  /// Without the axes that neither later operands need nor `other`.
  term summed(term t, std::size_t next, term const* other = nullptr) const;
  /// t's axes in the order of `groups`, each group one axis.
  tensor grouped(term const& t, std::initializer_list<labels const*> groups) const;
  bool is_dense(term const& t, std::initializer_list<labels const*> groups) const;
  term product(term a, term const& b, std::size_t next) const;

  std::string_view equation_;
  std::source_location at_;
  std::vector<labels> inputs_;
  labels output_;
  bool is_explicit_ = false;
  int max_dots_ = 0;
  std::vector<std::pair<int, std::int64_t>> sizes_;  // of each label
  std::vector<term> terms_;
};

}  // namespace detail

/// The sum of products of the operands' elements that the equation describes, over all axes that the result has not:
///
///   einsum("ij,jk->ik", {a, b})        a matrix product
///   einsum("bhqd,bhkd->bhqk", {q, k})  attention's scores
///   einsum("...ii->...i", {x})         diagonals
///   einsum("i,j", {x, y})              without ->: the axes that stand once, in the order of the alphabet
///
/// Extents of 1 stretch. Operands are multiplied from left to right, so their order decides what it costs. Throws
/// neap::error for an equation that is none, or does not fit the operands.
tensor einsum(std::string_view equation, std::vector<tensor> const& operands,
              std::source_location at = std::source_location::current());
/// The same of operands in a row: einsum("ij,jk->ik", a, b).
template <std::same_as<tensor> T>
tensor einsum(std::string_view equation, T const& a, std::source_location at = std::source_location::current()) {
  return einsum(equation, std::vector<tensor>{a}, at);
}
template <std::same_as<tensor> T>
tensor einsum(std::string_view equation, T const& a, T const& b,
              std::source_location at = std::source_location::current()) {
  return einsum(equation, std::vector<tensor>{a, b}, at);
}
template <std::same_as<tensor> T>
tensor einsum(std::string_view equation, T const& a, T const& b, T const& c,
              std::source_location at = std::source_location::current()) {
  return einsum(equation, std::vector<tensor>{a, b, c}, at);
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/functions/impl/einsum.ipp>
#endif
