// What an operator is. One struct holds everything about one kind of computation; its facets are
//
//   name         static constexpr std::string_view name
//   attributes   static constexpr auto attributes()    the data members as named fields (only if it has data members)
//   shape rule   void infer(shape_context&) const      types, views and in-place updates of the outputs; model errors
//   dimensions   void relate(dim_context&) const       which axes must be cut together; which are reduced
//   parts        void cut(cut_context const&)          optional: makes the attributes those of a part. Default: they stay
//                                                      as they are, but `dims` that are the first output's follow it
//   gradient     void gradient(gradient_context&) const        optional: absent means "not differentiable", as outputs
//                                                              are whose grad(j) it never reads
//   work         work cost(work_context const&) const          optional: default from the element counts
//   workspace    bytes_t workspace(work_context const&) const  optional: scratch bytes of the kernel; default 0
//   kernel       run(Backend&, Op const&, kernel_arguments const&), a free function found by argument-dependent lookup
//   layouts      static constexpr layouts takes    which layouts of inputs the kernel reads; default: dense ones only.
//                                                  What does not fit is copied before the op
//   precision    static constexpr precision_rule precision     what becomes of inputs in mixed precision. Default of a
//                                                  program's own operator: `full`, its inputs are f32
//
// Flags, all optional and false or zero by default:
//   static constexpr bool elementwise   the outputs may overwrite a dying input of equal size and layout; in its place
//                                       bool is_elementwise() const, if it depends on attributes
//   static constexpr bool random        draws from a counter-based key that is an attribute
//   static constexpr bool f32_or_f64    the host computes it in no other floating types
//   static constexpr bool checks_numbers   the kernel throws for some elements of its inputs. Default of a program's own
//                                          operator: true
//   static constexpr double flops       operations an output element, for the default work
//
// An operator struct is trivially copyable and regular: graphs keep its bytes. facets_of<Op> is the table of all of it
// as function pointers, so that a graph of many kinds is walked without instantiating anything a second time.
#pragma once

#include <neap/core/digest.hpp>
#include <neap/ir/attributes.hpp>
#include <neap/ir/operator_contexts.hpp>
#include <neap/ir/operator_facets.hpp>
#include <neap/ir/standard_set.hpp>

#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

namespace neap { inline namespace v0 {

namespace detail {

template <class Op>
concept has_name = requires {
  { Op::name } -> std::convertible_to<std::string_view>;
};
template <class Op>
concept has_infer = requires(Op const& op, shape_context& c) { op.infer(c); };
template <class Op>
concept has_relate = requires(Op const& op, dim_context& c) { op.relate(c); };
template <class Op>
concept has_gradient = requires(Op const& op, gradient_context& c) { op.gradient(c); };
template <class Op>
concept has_cost = requires(Op const& op, work_context const& c) {
  { op.cost(c) } -> std::same_as<work>;
};
template <class Op>
concept has_workspace = requires(Op const& op, work_context const& c) {
  { op.workspace(c) } -> std::same_as<bytes_t>;
};
template <class Op>
concept has_attributes = requires { Op::attributes(); };
template <class Op>
concept has_cut = requires(Op& op, cut_context const& c) { op.cut(c); };
template <class Op>
concept has_joined = requires { typename Op::joined; };
template <class Op>
concept has_dims = requires(Op& op) {
  { op.dims } -> std::same_as<extents&>;
};

template <class Op>
constexpr bool elementwise_v = false;
template <class Op>
  requires requires { Op::elementwise; }
constexpr bool elementwise_v<Op> = Op::elementwise;
template <class Op>
constexpr bool random_v = false;
template <class Op>
  requires requires { Op::random; }
constexpr bool random_v<Op> = Op::random;
template <class Op>
constexpr double flops_v = 1.0;
template <class Op>
  requires requires { Op::flops; }
constexpr double flops_v<Op> = static_cast<double>(Op::flops);

/// What std::default_initializable says of a class, which costs twenty times as much to compile.
template <class Op>
concept has_default = requires { Op{}; };

template <class Op>
struct attribute_table {
  static constexpr auto fields = Op::attributes();
};

/// What the text form can read as a name.
constexpr bool is_word(std::string_view s) {
  for (char c : s)
    if (!((c >= 'a' && c <= 'z') || c == '_' || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z'))) return false;
  return !s.empty();
}

/// 64 bits of an operator's name, for digests and files.
constexpr std::uint64_t name_digest(std::string_view name) {
  auto const d = digest{}.mix(name);
  return d.low ^ d.high;
}

/// One static_assert a facet, so that the first line of the error says what to write.
template <class Op>
constexpr bool check_operator() {
  static_assert(has_name<Op>, "neap: this operator lacks  static constexpr std::string_view name");
  if constexpr (has_name<Op>)
    static_assert(is_word(Op::name), "neap: an operator's name is of letters, digits and underscores");
  static_assert(__is_trivially_copyable(Op) && has_default<Op>,
                "neap: an operator must be trivially copyable and default constructible (graphs keep its bytes)");
  static_assert(has_infer<Op>, "neap: this operator lacks  void infer(neap::shape_context&) const");
  static_assert(has_relate<Op>, "neap: this operator lacks  void relate(neap::dim_context&) const");
  static_assert(__is_empty(Op) || has_attributes<Op>,
                "neap: this operator has data members but lacks  static constexpr auto attributes()  "
                "returning std::array{neap::field<&Op::member>(\"member\"), ...}");
  return true;
}

/// The operator behind a graph's bytes. An empty one has no bytes there: any object of its type will do.
template <class Op>
Op const& operator_at(void const* bytes) {
  if constexpr (__is_empty(Op)) {
    static constexpr Op it{};
    return it;
  } else {
    return *static_cast<Op const*>(bytes);
  }
}

template <class Backend, class Op>
void run_kernel(Backend& b, void const* op, kernel_arguments const& a) {
  run(b, operator_at<Op>(op), a);
}
template <class Backend, class Op>
constexpr kernel_function<Backend> kernel_or_null() {
  if constexpr (has_kernel<Backend, Op>) return &run_kernel<Backend, Op>;
  else return nullptr;
}

/// Extents that are the first output's.
inline void cut_dims(extents& dims, cut_context const& c) {
  if (!c.out.empty() && c.out_axis[0] >= 0 && dims == c.out[0].type.dims)
    dims[c.out_axis[0]] = c.share(dims[c.out_axis[0]]);
}

/// Standard operators check layouts themselves, in their shape rules.
template <class Op>
constexpr layouts takes_v = is_standard<Op> ? layouts::any : layouts::dense;
template <class Op>
  requires requires { Op::takes; }
constexpr layouts takes_v<Op> = Op::takes;

template <class Op>
constexpr precision_rule precision_v = is_standard<Op> ? precision_use::as_given : precision_use::full;
template <class Op>
  requires requires { Op::precision; }
constexpr precision_rule precision_v<Op> = Op::precision;

/// Whether the facets of standard operators have their kernels, as those of other operators: in header-only programs,
/// which compile the operators that they can reach. Compiled apart, neap/src/kernels.hpp has a table of all kernels.
#if defined(NEAP_SEPARATE_COMPILATION)
inline constexpr bool kernels_by_operator = false;
#else
inline constexpr bool kernels_by_operator = true;
#endif

/// Throws neap::error for what a program's own operator says of outputs, inputs and axes that it has not.
void check_rules(shape_context const& c, void (*relate)(void const*, dim_context&), void const* op);

/// The facets that are functions, of operators as bytes.
template <class Op>
struct facet_functions {
  static bool is_elementwise(void const* op) { return operator_at<Op>(op).is_elementwise(); }
#if defined(__CUDACC__) && !defined(NEAP_SEPARATE_COMPILATION)
  static kernel_function<host_backend>
  kernel();  // nvcc compiles no kernel of the host: a .cpp file of the program has it
#else
  static kernel_function<host_backend> kernel() { return kernel_or_null<host_backend, Op>(); }
#endif
  static void construct(void* at) { ::new (at) Op{}; }
  static void infer(void const* op, shape_context& c) {
    operator_at<Op>(op).infer(c);
    if constexpr (!is_standard<Op>) check_rules(c, &relate, op);
  }
  static void relate(void const* op, dim_context& c) { operator_at<Op>(op).relate(c); }
  static void cut(void* op, cut_context const& c) {
    if constexpr (has_cut<Op>) static_cast<Op*>(op)->cut(c);
    else cut_dims(static_cast<Op*>(op)->dims, c);
  }
  static void gradient(void const* op, gradient_context& c) { operator_at<Op>(op).gradient(c); }
  static work cost(void const* op, work_context const& c) {
    if constexpr (has_cost<Op>) return operator_at<Op>(op).cost(c);
    else return streaming_work(c, flops_v<Op>);
  }
  static bytes_t workspace(void const* op, work_context const& c) { return operator_at<Op>(op).workspace(c); }
  static operator_facets const& joined();
};

template <class Op>
constexpr operator_facets make_facets() {
  static_assert(check_operator<Op>());
  using functions = facet_functions<Op>;
  operator_facets f;
  f.name = Op::name;
  f.name_digest = name_digest(f.name);
  f.size = __is_empty(Op) ? 0 : sizeof(Op);
  f.elementwise = elementwise_v<Op>;
  if constexpr (requires(Op const& op) { op.is_elementwise(); }) f.elementwise_if = &functions::is_elementwise;
  f.random = random_v<Op>;
  if constexpr (requires { Op::f32_or_f64; }) f.f32_or_f64 = Op::f32_or_f64;
  if constexpr (requires { Op::checks_numbers; }) f.checks_numbers = Op::checks_numbers;
  else f.checks_numbers = !is_standard<Op>;
  f.takes = takes_v<Op>;
  f.precision = precision_v<Op>;
  f.standard_row = standard_row<Op>;
  if constexpr (!is_standard<Op> || kernels_by_operator) f.kernel = &functions::kernel;
  f.construct = &functions::construct;
  f.infer = &functions::infer;
  f.relate = &functions::relate;
  if constexpr (has_cut<Op> || has_dims<Op>) f.cut = &functions::cut;
  if constexpr (has_gradient<Op>) f.gradient = &functions::gradient;
  f.cost = &functions::cost;
  if constexpr (has_workspace<Op>) f.workspace = &functions::workspace;
  if constexpr (has_joined<Op>) f.joined = &functions::joined;
  if constexpr (has_attributes<Op>)
    f.attributes = {attribute_table<Op>::fields.data(), attribute_table<Op>::fields.size()};
  return f;
}

#if defined(NEAP_SEPARATE_COMPILATION)
/// The facets of the standard operators, in the order of the set: neap/src.hpp has them.
struct standard_facet_rows {
  operator_facets row[op::standard_list::size];
};
extern standard_facet_rows const standard_facets;

template <class Op>
inline constexpr operator_facets own_facets = make_facets<Op>();
template <class Op>
constexpr operator_facets const& place_of_facets() {
  if constexpr (is_standard<Op>) return standard_facets.row[standard_row<Op>];
  else return own_facets<Op>;
}
#endif

}  // namespace detail

/// The facets of an operator type; one object in the whole program, whose address identifies the type.
#if defined(NEAP_SEPARATE_COMPILATION)
template <class Op>
inline constexpr operator_facets const& facets_of = detail::place_of_facets<Op>();
#else
template <class Op>
inline constexpr operator_facets facets_of = detail::make_facets<Op>();
#endif

template <class Op>
operator_view view_of(Op const& op) {
  return {&facets_of<Op>, &op};
}

template <class Op>
operator_facets const& detail::facet_functions<Op>::joined() {
  return facets_of<typename Op::joined>;
}

/// An operator struct with all required facets.
template <class Op>
concept tensor_operator =
    detail::has_name<Op> && __is_trivially_copyable(Op) && detail::has_default<Op> && detail::has_infer<Op> &&
    detail::has_relate<Op> && (__is_empty(Op) || detail::has_attributes<Op>);

// ---------------------------------------------------------------------------------------------- sets

/// The facets of all operators of a set, in order: `kind` k of a graph's op is row k.
using operator_table = std::span<operator_facets const* const>;

namespace detail {
template <class... Op>
constexpr std::array<operator_facets const*, sizeof...(Op)> addresses_of_facets() {
#if defined(NEAP_SEPARATE_COMPILATION)
  if constexpr (std::is_same_v<type_list<Op...>, op::standard_list>) {
    std::array<operator_facets const*, sizeof...(Op)> all{};
    for (std::size_t k = 0; k < all.size(); ++k) all[k] = &standard_facets.row[k];
    return all;
  } else
#endif
    return {&facets_of<Op>...};
}
}  // namespace detail

/// A named set of operators: struct my_ops : operator_set<add, mul> {}; a name of its own keeps messages short.
template <class... Op>
struct operator_set {
  using list = type_list<Op...>;
  static constexpr std::array<operator_facets const*, sizeof...(Op)> facets = detail::addresses_of_facets<Op...>();
  template <class O>
  static constexpr bool contains = (std::is_same_v<O, Op> || ...);
};

namespace detail {
template <class List, class... More>
struct extended;
template <class... Op, class... More>
struct extended<type_list<Op...>, More...> {
  using type = operator_set<Op..., More...>;
};
}  // namespace detail

/// A set that has all of another one's operators and more: struct my_ops : extend<standard_operators, silu> {};
template <class Set, class... More>
struct extend : detail::extended<typename Set::list, More...>::type {};

/// The table of a graph over a set. In header-only programs, graphs over the standard set begin without one, so that only
/// the operators are compiled that the program can reach.
template <class Set>
constexpr operator_table table_of() {
  if constexpr (detail::kernels_by_operator && std::is_same_v<typename Set::list, op::standard_list>) return {};
  else return operator_table(Set::facets);
}

namespace detail {
/// A table that a graph is made with, as table_of has it.
inline operator_table table_from(operator_table ops) {
  if (kernels_by_operator && ops.size() == op::standard_list::size && ops.front()->standard_row == 0 &&
      ops.back()->standard_row + std::size_t{1} == ops.size())
    return {};
  return ops;
}
}  // namespace detail

/// The row of an operator's facets in a table, or -1.
inline int find_kind(operator_table ops, operator_facets const* f) {
  for (std::size_t k = 0; k < ops.size(); ++k)
    if (ops[k] == f) return static_cast<int>(k);
  return -1;
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/impl/operator.ipp>
#endif
