// Rewrite rules as constants that read like the algebra they stand for:
//
//   inline constexpr rule distribute("distribute", (c * (a + b)) >> (c * a + c * b));
//   inline constexpr rule one_product("one product", (matmul[s](x, a) + matmul[s](x, b)) >> matmul[s](x, a + b));
//
// a, b, c, d, x, y stand for values; the same letter twice is the same value. An operator with attributes has a slot in
// square brackets: on the left, ops of one slot must have the same attributes, on the right the slot's attributes are
// taken over. Attributes that have to be worked out are a function of the match:
//
//   made<[](match const& m) { return op::concat{m.rank(a) - 1}; }>(a, b)
//
// A condition is a function of the match too, the last argument of a rule. `both(p, q)` are two patterns that must share a
// letter, and two results. `unary[s](x)` is any function of single elements.
//
// A term is a small table, no type of its own: a hundred rules are one matcher's code (mutate/rewrite.hpp).
#pragma once

#include <neap/ir/editor.hpp>
#include <neap/ir/standard_operators.hpp>

#include <array>
#include <cstdint>
#include <string_view>

namespace neap { inline namespace v0 {

class match;

namespace pattern {

inline constexpr int max_nodes = 24, max_letters = 8, max_slots = 5, max_arguments = 4;

/// A letter of a pattern.
struct letter {
  std::uint8_t number;
};
/// A place where the attributes of an op are remembered.
struct slot {
  std::uint8_t number;
};

inline constexpr letter a{0}, b{1}, c{2}, d{3}, x{4}, y{5}, v{6}, w{7};
inline constexpr slot s{0}, t{1}, u{2}, p{3}, q{4};

/// One node of a term.
struct node {
  enum class kind : std::uint8_t {
    letter,     // a value
    operation,  // an op of one operator
    unary,      // an op that is a function of single elements
    any         // an op of one operator with any arguments
  };
  kind is = kind::letter;
  std::uint8_t number = 0;  // of the letter
  std::int8_t slot = -1;    // where the attributes are; -1: any on the left, none or `make` on the right
  std::uint8_t output = 0;
  std::uint8_t arity = 0;
  bool commutes = false;  // its two arguments may change places
  std::uint8_t argument[max_arguments]{};
  operator_facets const* facets = nullptr;
  void (*make)(match const&, void* at) = nullptr;  // writes the attributes
};

/// A pattern, or what replaces it: nodes, arguments before what reads them.
struct term {
  std::array<node, max_nodes> nodes{};
  std::uint8_t count = 0, root = 0;
  std::int8_t second = -1;  // the other root of `both`

  constexpr term() = default;
  constexpr term(letter l) { root = add({.number = l.number}); }

  constexpr std::uint8_t add(node n) {
    if (count == max_nodes) throw "neap: a pattern has too many nodes";
    nodes[count] = n;
    return count++;
  }
  /// The nodes of another term, after these; where its root is now.
  constexpr std::uint8_t append(term const& other) {
    auto const first = count;
    for (std::uint8_t k = 0; k < other.count; ++k) {
      node n = other.nodes[k];
      for (auto& i : n.argument) i = static_cast<std::uint8_t>(i + first);
      add(n);
    }
    return static_cast<std::uint8_t>(first + other.root);
  }
};

template <class... T>
constexpr term apply(node n, T const&... arguments) {
  term r;
  n.arity = sizeof...(T);
  int i = 0;
  ((n.argument[i++] = r.append(term(arguments))), ...);
  r.root = r.add(n);
  return r;
}

/// An operator as a function of terms, with its slot.
template <class Op>
struct function {
  std::int8_t in_slot = -1;
  constexpr function operator[](slot k) const { return {static_cast<std::int8_t>(k.number)}; }
  template <class... T>
  constexpr term operator()(T const&... arguments) const {
    node n{.is = node::kind::operation, .slot = in_slot, .facets = &facets_of<Op>};
    n.commutes = std::is_same_v<Op, op::add> || std::is_same_v<Op, op::mul>;
    return apply(n, arguments...);
  }
  /// An op of any number of arguments, which its condition looks at.
  constexpr term of_any() const {
    term r;
    r.root = r.add({.is = node::kind::any, .slot = in_slot, .facets = &facets_of<Op>});
    return r;
  }
};
struct unary_function {
  std::int8_t in_slot = -1;
  constexpr unary_function operator[](slot k) const { return {static_cast<std::int8_t>(k.number)}; }
  constexpr term operator()(term const& argument) const {
    return apply(node{.is = node::kind::unary, .slot = in_slot}, argument);
  }
};

inline constexpr function<op::matmul> matmul{};
inline constexpr function<op::conv2d> conv2d{};
inline constexpr function<op::concat> concat{};
inline constexpr function<op::slice> slice{};
inline constexpr function<op::split> split{};
inline constexpr function<op::pad> pad{};
inline constexpr function<op::permute> permute{};
inline constexpr function<op::reshape> reshape{};
inline constexpr function<op::broadcast_to> broadcast_to{};
inline constexpr function<op::copy> copy{};
inline constexpr function<op::cast> cast{};
inline constexpr function<op::sum> sum{};
inline constexpr function<op::sum_to> sum_to{};
inline constexpr function<op::mul_scalar> mul_scalar{};
inline constexpr function<op::add_scalar> add_scalar{};
inline constexpr function<op::neg> neg{};
inline constexpr unary_function unary{};

constexpr term operator+(term const& l, term const& r) { return function<op::add>{}(l, r); }
constexpr term operator-(term const& l, term const& r) { return function<op::sub>{}(l, r); }
constexpr term operator*(term const& l, term const& r) { return function<op::mul>{}(l, r); }

/// An op on the right whose attributes are worked out: Make is a function from the match to the operator.
template <auto Make, class... T>
constexpr term made(T const&... arguments) {
  using type = std::remove_cvref_t<decltype(Make(std::declval<match const&>()))>;
  node n{.is = node::kind::operation, .facets = &facets_of<type>};
  n.make = [](match const& m, void* at) { ::new (at) type(Make(m)); };
  return apply(n, arguments...);
}

/// Two patterns, or two results.
constexpr term both(term const& first, term const& second) {
  term r = first;
  r.second = static_cast<std::int8_t>(r.append(second));
  return r;
}

struct sides {
  term from, to;
};
constexpr sides operator>>(term const& from, term const& to) { return {from, to}; }

}  // namespace pattern

/// Where a pattern was found.
class match {
 public:
  op_graph const& graph() const { return *graph_; }
  value_id value(pattern::letter l) const { return letter_[l.number]; }
  tensor_type const& type(pattern::letter l) const { return graph_->type(value(l)); }
  tensor_layout const& layout(pattern::letter l) const { return graph_->layout(value(l)); }
  extents const& dims(pattern::letter l) const { return type(l).dims; }
  int rank(pattern::letter l) const { return type(l).rank(); }
  /// The op of a slot.
  op_id op(pattern::slot k) const { return slot_[k.number]; }
  template <class Op>
  Op const& as(pattern::slot k) const {
    return *graph_->means<Op>(op(k));
  }
  extents const& result_dims(pattern::slot k) const { return graph_->type(graph_->output(op(k))).dims; }
  /// The op at the root.
  op_id root() const { return root_; }
  value_id result() const { return graph_->output(root_); }
  std::span<value_id const> arguments() const { return graph_->inputs(root_); }

 private:
  friend class rule_matcher;
  op_graph const* graph_ = nullptr;
  std::array<value_id, pattern::max_letters> letter_{};
  std::array<op_id, pattern::max_slots> slot_{};
  std::array<op_id, pattern::max_nodes> op_{};  // by node of the pattern; nothing: none
  op_id root_ = nothing<op_id>, second_ = nothing<op_id>;
};

/// A rewrite rule: what is looked for, what it becomes, and when. Promise: both sides are the same for all values, in
/// exact arithmetic, where the condition holds.
struct rule {
  using condition = bool (*)(match const&);
  /// Emits the replacement itself, for rules about any number of arguments: the result, or nothing<value_id>.
  using builder = value_id (*)(match const&, graph_editor&);

  std::string_view name;
  pattern::term from, to;
  condition when = nullptr;
  builder build = nullptr;

  constexpr rule(std::string_view called, pattern::sides const& both, condition only_if = nullptr)
      : name(called),
        from(both.from),
        to(both.to),
        when(only_if) {}
  constexpr rule(std::string_view called, pattern::term const& pattern, builder make)
      : name(called),
        from(pattern),
        build(make) {}
};

}}  // namespace neap::v0
