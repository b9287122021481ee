// What the elements of values are, in a prime field instead of in floating-point numbers: so that two ways to compute
// something can be compared without a tolerance. Sums, products and whatever only moves elements are computed as they
// are; every other function, 1 / x too, is a keyed hash of what it reads, so that two results agree where the
// arguments do. Given values are free variables: their elements are keyed hashes of a name and a place.
//
// Two values are compared at all places. They are cut into cells (ir/index_cells.hpp) at whose places they are one
// formula of elements whose places are linear forms, and a cell is evaluated once, its free variables being hashes of
// the forms. Equal formulas are equal at each place of the cell. Nothing is computed but what is compared, and what
// that needs.
//
// The prime and the key are drawn. Formulas of degree d that differ agree with a chance of at most 1.2 d / 2^60 over
// the key (Schwartz 1980; TASO, SOSP'19, verifies its rules so). Constants that differ agree modulo at most 35 d of
// the 2.7e16 primes that are drawn from. d counts constants as factors too and is at most 1024, else the comparison
// gives up: two values that differ are found to be equal with a chance below 2^-38. This holds against an author who knows this
// code and not the key, if SipHash under a secret key is a random function.
//
// Beside its value each element has four more figures, for rewrites that are right over the reals and wrong in floating
// point:
//
// - its strict value: the same without signs, and 0 as a factor a free variable. Two formulas that are equal so have
//   the same products with the same factors: neither adds what it subtracts later, (y + m) - m for y. They differ by
//   rounding alone, relative to the sum of the products' magnitudes, which is one and the same (Higham, Accuracy and
//   Stability of Numerical Algorithms, 3.1).
// - its zeros: the terms of the strict value in which a 0 that an operator puts in is a factor of a free variable. Such
//   a 0 is what triangle and pad write, and a sum without terms. As an addend it changes nothing; times an infinity it
//   is no number, so that neither x times an identity matrix is x, nor is a masked product that of what is masked. One
//   exception: zeros by which the kernel of a convolution is enlarged on all sides (a rule of the library does it) are
//   no factors of the image there, and a plan with them may have NaN where the original has none.
// - the signs of its zeros: the sign of the 0 that it is where all free variables are 0, and where all are -0. Sums,
//   differences and negations of elements keep it: x + 0 is not x, and b - a not -(a - b). A product has no such sign: a
//   rewrite that takes products apart may change that of a zero.
// - its magnitude, where all free variables are 1: no intermediate result may lie far above or below the range of the
//   other formula's (within_magnitudes).
//
// A cast to a type that has all numbers of the old one and back changes nothing; one to another type is a hash. What
// was computed in a narrow type and then widened is not what was computed in the wide one.
//
// Operators with a formula have a rule: ir/field/elementwise.hpp, movement.hpp and sums.hpp. All others are hashed, so a
// new operator needs none.
#pragma once

#include <neap/ir/field/evaluator.hpp>
#include <neap/ir/graph.hpp>

#include <cstdint>

namespace neap { inline namespace v0 {

/// Elements of a graph's values. Every source that is read must be given.
class field_values : public detail::field_evaluator {
 public:
  /// `most`: how many elements are worked out in all before it gives up.
  field_values(op_graph const& g, given_values const& given, field_comparison& shared, std::int64_t most = 4'000'000)
      : field_evaluator(g, given, shared, most) {}

  /// Whether all requested values could be computed: there was no source without a name, and not too much to do.
  explicit operator bool() const { return is_good(); }

  /// The element of v at a place, an index an axis.
  field_number at(value_id v, extents const& place) { return at_alone(v, place).value; }

  /// Whether value x of one graph and y of another, or the same, have the same elements at every place, whatever the
  /// given values are, for all but an unlucky draw of the secret (see above). a and b share a comparison. Takes what
  /// evaluating one element of each cell takes.
  static field_answer compare(field_values& a, value_id x, field_values& b, value_id y) {
    return compare_values(a, x, b, y);
  }
  /// Whether no result that a worked out lies 1024 times above or below those of b, given values being 1; of type f16,
  /// whose range is small, 16 times.
  static bool within_magnitudes(field_values const& a, field_values const& b) {
    return field_arithmetic::within_magnitudes(a, b);
  }

 private:
  detail::field_rule const& rule_for(operator_facets const& f, bool floating) const override;
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/impl/field_values.ipp>
#endif
