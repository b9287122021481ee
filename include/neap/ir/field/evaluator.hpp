// Elements of a graph's values at places of a cell, and what the rules of operators read to work them out.
// ir/field_values.hpp has the rules together, and says what all this is for.
#pragma once

#include <neap/core/number_map.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/ir/field/element.hpp>
#include <neap/ir/graph.hpp>
#include <neap/ir/index_cells.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace neap { inline namespace v0 {

/// Which values of a graph are given, and by what names.
class given_values {
 public:
  virtual ~given_values() = default;
  /// Whether v is given; its name then.
  virtual bool given(value_id v, digest& name) const = 0;
  /// What an op of the graph computes.
  virtual operator_view meaning(op_graph const& g, op_id o) const { return g.meaning(o); }
};

enum class field_answer : std::uint8_t { same, different, too_large };

namespace detail {
class field_evaluator;
}

/// What the evaluators of a comparison share: the secret, the cell at hand, and which arguments of hashed functions are
/// equal.
class field_comparison {
 public:
  explicit field_comparison(field_secret const& secret) : secret_(secret) {}
  field_secret const& secret() const { return secret_; }

 private:
  friend class detail::field_evaluator;
  struct argument {
    detail::field_evaluator* of;
    value_id v;
    digest sample;
  };
  field_secret const& secret_;
  index_frame* frame_ = nullptr;
  std::uint32_t frames_ = 0;
  plain_vector<argument> arguments_;  // one of each class of equal values
};

namespace detail {

/// An element of an op's result: the place in the result, and the operator's attributes.
struct field_request {
  op_id op;
  value_id result;
  index_place const& place;
  void const* bytes;

  template <class Op>
  Op const& as() const {
    return operator_at<Op>(bytes);
  }
};

/// How the elements of an operator's results are made of those of its arguments.
struct field_rule {
  enum flag : std::uint8_t {
    moves = 1,          // is an argument's element or a constant, which is not kept: to make it again costs nothing
    keeps_kernels = 2,  // an element of a kernel is one of the result's, at the same place in the kernel
    any_type = 4,       // holds for whole numbers and truths too; else these are hashed
    by_place = 8,       // results are functions of the arguments at the same place: so are hashes of them
  };
  int row;  // of the operator in the table of standard ones; -1: of several
  std::uint8_t flags;
  field_element (*of)(field_evaluator&, field_request const&) = nullptr;
  /// Of an arithmetic operator, in place of `of`: of its attributes and arguments.
  field_element (*arithmetic)(field_arithmetic&, void const* bytes, field_element const* x) = nullptr;

  bool has(flag f) const { return (flags & f) != 0; }
};

/// Where a coordinate lies: in [0, n), not in it, or that depends on the place in the cell.
enum class coordinate_range : std::uint8_t { inside, outside, varies };

class field_evaluator : public field_arithmetic {
 public:
  field_evaluator(op_graph const& g, given_values const& given, field_comparison& shared, std::int64_t most)
      : field_arithmetic(shared.secret()),
        g_(g),
        given_(given),
        shared_(shared),
        left_(most),
        known_(g.value_count(), 0),
        names_(g.value_count()) {}
  virtual ~field_evaluator() = default;

  /// Whether all elements could be worked out so far: there was no source without a name, and not too much to do.
  bool is_good() const { return left_ > 0; }
  field_element give_up();
  /// Whether answers still mean something.
  bool goes_on() const { return left_ > 0 && !(frame() && frame()->is_cut()); }

  op_graph const& graph() const { return g_; }
  std::span<value_id const> inputs(op_id o) const { return g_.inputs(o); }
  extents const& dims(value_id v) const { return g_.type(v).dims; }
  bool is_given(value_id v);
  operator_view meaning(op_id o) const;
  template <class Op>
  Op const* means(op_id o) const {
    return as_operator<Op>(meaning(o));
  }

  /// The element of v at a place of the cell at hand.
  field_element at(value_id v, index_place const& place);
  /// The same at a place of a value that v is broadcast to.
  field_element broadcast(value_id v, index_place const& place) { return at(v, in_broadcast(dims(v), place)); }
  field_element argument(op_id o, std::size_t i, index_place const& place) { return broadcast(g_.inputs(o)[i], place); }
  /// A result of which no more is known than that it is a function of the arguments at the same place.
  field_element hashed_by_place(field_request const& r);
  /// The same of the arguments at all places.
  field_element hashed(field_request const& r);

  /// The sum of f(place) over the places of some axes, the others standing.
  template <class F>
  field_element sum_over(extents const& dims, index_place place, bool const* reduced, F const& f);

  // Places. Coordinates that vary are linear forms of the cell's variables: what depends on more asks for a cut of the
  // cell, after which goes_on() is false.
  index_frame* frame() const { return shared_.frame_; }
  /// The place of a reshape's argument.
  index_place unlinear(extents const& to, extents const& from, index_place const& place);
  /// -1: below the bound, 1: not below, 0: that depends on the place.
  int side(coordinate x, std::int64_t bound) const {
    return x.form == 0 ? (x.at < bound ? -1 : 1) : frame()->side(x, bound);
  }
  coordinate_range in_range(coordinate x, std::int64_t n) const;
  coordinate scaled_by(coordinate x, std::int64_t by) const {
    return x.form == 0 ? coordinate{x.at * by, 0} : frame()->scaled(x, by);
  }
  /// The place of a broadcast argument.
  static index_place in_broadcast(extents const& dims, index_place const& place);

  /// A hash of an operator, its attributes, and which of its outputs is meant.
  sip_hash operator_key(std::string_view name, std::size_t output, std::span<attribute_field const> attributes,
                        void const* bytes) const;

 protected:
  static field_answer compare_values(field_evaluator& a, value_id x, field_evaluator& b, value_id y);
  /// The element at a place without a cell.
  field_element at_alone(value_id v, extents const& place);
  /// The rule of an operator on results of this type.
  virtual field_rule const& rule_for(operator_facets const& f, bool floating) const = 0;

 private:
  static constexpr std::size_t max_cells = 20'000;
  static constexpr int max_depth = 1000;  // ops behind one another, for the machine's stack is finite

  struct linear_place {
    std::int64_t n;
    std::uint64_t tag;
  };
  linear_place linear(value_id v, index_place const& place) const;
  field_rule const& rule_of(op_id o);
  field_element computed(op_id o, value_id v, index_place const& p);
  digest key_of(field_request const& r);
  /// Which of the values requested before an argument equals, or a new number. Two places distinguish most; those that
  /// agree there are compared whole.
  std::uint64_t class_of(value_id v);

  struct known_element {
    std::uint64_t check;  // the other half of the key
    field_element is;
  };
  op_graph const& g_;
  given_values const& given_;
  field_comparison& shared_;
  std::int64_t left_;
  int depth_ = 0;
  table<value_id, std::uint8_t> known_;  // 0: unknown, 1: made by an op, 2: given
  table<value_id, digest> names_;
  table<value_id, digest> keys_;
  table<value_id, std::uint64_t> classes_;
  table<op_id, field_rule const*> rules_;
  number_map rows_;  // elements worked out, by value and place
  plain_vector<known_element> memory_;
};

/// Of operators of which no more is known.
inline constexpr field_rule hashed_rule{-1, field_rule::any_type,
                                        [](field_evaluator& e, field_request const& r) { return e.hashed(r); }};
inline constexpr field_rule by_place_rule{
    -1, field_rule::any_type, [](field_evaluator& e, field_request const& r) { return e.hashed_by_place(r); }};

template <class F>
field_element field_evaluator::sum_over(extents const& dims, index_place place, bool const* reduced, F const& f) {
  std::int64_t n = 1;
  for (int a = 0; a < dims.rank(); ++a)
    if (reduced[a]) place[a] = {}, n *= dims[a];
  if (n == 0) return zero();
  field_element s;
  for (std::int64_t i = 0; i < n && goes_on(); ++i) {
    s = sum(s, f(place));
    for (int a = dims.rank() - 1; a >= 0; --a) {
      if (!reduced[a]) continue;
      if (++place[a].at < dims[a]) break;
      place[a] = {};
    }
  }
  return s;
}

}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/field/impl/evaluator.ipp>
#endif
