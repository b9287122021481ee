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
#include <neap/core/error.hpp>
#include <neap/core/id.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/span_of.hpp>
#include <neap/core/tensor_ref.hpp>
#include <neap/core/tensor_type.hpp>
#include <neap/core/units.hpp>
#include <neap/ir/element_program.hpp>
#include <neap/ir/standard_set.hpp>

#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace neap { inline namespace v0 {

// ---------------------------------------------------------------------------------------------- attributes

/// An attribute's value as the text form, the digest and the reports see it.
using attribute_value = std::variant<bool, std::int64_t, double, dtype, extents, element_program>;

namespace detail {
/// How a data member lies in memory.
enum class member_form : std::uint8_t {
  boolean,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  f32,
  f64,
  element,
  dims,
  program
};

template <class T>
constexpr member_form form_of() {
  if constexpr (std::is_enum_v<T> && !std::is_same_v<T, dtype>) {
    return form_of<std::underlying_type_t<T>>();
  } else if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    constexpr int size = sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 2 : sizeof(T) == 4 ? 4 : 6;
    return static_cast<member_form>(static_cast<int>(member_form::i8) + size + (std::is_signed_v<T> ? 0 : 1));
  } else {
    constexpr bool known = std::is_same_v<T, bool> || std::is_same_v<T, float> || std::is_same_v<T, double> ||
                           std::is_same_v<T, dtype> || std::is_same_v<T, extents> || std::is_same_v<T, element_program>;
    static_assert(known, "neap: an attribute is a bool, an integer, an enumeration, float, double, dtype or extents");
    return std::is_same_v<T, bool>      ? member_form::boolean
           : std::is_same_v<T, float>   ? member_form::f32
           : std::is_same_v<T, double>  ? member_form::f64
           : std::is_same_v<T, dtype>   ? member_form::element
           : std::is_same_v<T, extents> ? member_form::dims
                                        : member_form::program;
  }
}

template <class T>
T read_member(void const* at) {
  T x;
  std::memcpy(&x, at, sizeof(T));
  return x;
}
template <class T>
void write_member(void* at, std::int64_t value) {
  auto const x = static_cast<T>(value);
  std::memcpy(at, &x, sizeof(T));
}
}  // namespace detail

/// A named data member of an operator.
struct attribute_field {
  std::string_view name;
  void* (*at)(void* op);  // where the member is
  detail::member_form form;

  attribute_value get(void const* op) const;
  /// Throws std::bad_variant_access if the type differs.
  void set(void* op, attribute_value const& v) const;
};

namespace detail {
template <class M>
struct member_of;
template <class C, class T>
struct member_of<T C::*> {
  using object = C;
  using type = T;
};
template <auto Member>
void* member_at(void* op) {
  return &(static_cast<typename member_of<decltype(Member)>::object*>(op)->*Member);
}
}  // namespace detail

/// The field for a member: `field<&matmul::transpose_a>("transpose_a")`. Members may be bool, integers, enumerations,
/// float, double, dtype, extents or element_program.
template <auto Member>
constexpr attribute_field field(std::string_view name) {
  return {name, &detail::member_at<Member>, detail::form_of<typename detail::member_of<decltype(Member)>::type>()};
}

// ---------------------------------------------------------------------------------------------- shape rule

enum class alias_kind : std::uint8_t {
  fresh,   // a storage of its own
  view,    // other elements, or another order of them, of an input's storage; costs nothing
  update,  // the next version of an input's storage, written in place
};

/// One output, as its shape rule gave it.
struct output_rule {
  tensor_layout layout;
  alias_kind alias = alias_kind::fresh;
  int of = -1;  // the input whose storage it lies in, for views and updates; of a fresh one, the input that the op
                // overwrites: the storage is at that one's address, which ends (op_graph::overwrites); -1: none
  bytes_t bytes = -1;  // of a fresh storage on the device; negative: as many as the layout needs
};

/// Where a shape rule reads its inputs and says its outputs.
class shape_context {
 public:
  shape_context(std::string_view op, std::span<tensor_layout const> in) : op_(op), in_(in) {}

  int arity() const { return static_cast<int>(in_.size()); }
  /// Throws neap::error if there is no input i.
  tensor_layout const& layout(int i) const {
    if (i < 0 || i >= arity()) no_input(i);
    return in_[static_cast<std::size_t>(i)];
  }
  tensor_type const& in(int i) const { return layout(i).type; }

  /// A new dense output.
  void fresh(tensor_type const& t) { out_.push_back({tensor_layout::dense(t), alias_kind::fresh, -1}); }
  /// A new output whose axes lie in another order in memory; the strides are those of a permuted dense tensor.
  void fresh(tensor_layout const& l) { out_.push_back({l, alias_kind::fresh, -1}); }
  /// The same in a storage of another size than the layout needs, if `bytes` is not negative.
  void fresh(tensor_layout const& l, bytes_t bytes) { out_.push_back({l, alias_kind::fresh, -1, bytes}); }
  /// A new output outside the device: its storage takes no device bytes.
  void off_device(tensor_layout const& l) { out_.push_back({l, alias_kind::fresh, -1, 0}); }
  /// An output that is a view of input `of`.
  void view(int of, tensor_layout const& l) { out_.push_back({l, alias_kind::view, of}); }
  /// An output that is input `of`, updated in place.
  void update(int of) { out_.push_back({layout(of), alias_kind::update, of}); }

  /// Throws neap::error("op: message") unless `condition`; message parts are text, numbers, types, shapes, at most
  /// eight. Not a template of the parts' types: a literal's type holds its length, so each would be another one.
  using part = detail::text_part;
  void require(bool condition, part a, part b = {}, part c = {}, part d = {}, part e = {}, part f = {}, part g = {},
               part h = {}) const {
    if (!condition) fail({a, b, c, d, e, f, g, h});
  }
  void require_arity(int least, int most) const;

  /// Which inputs must be copied because the kernel cannot read their layouts, as bits; an op whose outputs are all views
  /// reads nothing. Throws if one of them is written in place or looked at, which a copy cannot stand for.
  template <class Fits>
  std::uint64_t misfits(Fits const& reads) const {
    bool computes = false;
    for (auto const& o : outputs()) computes = computes || o.alias != alias_kind::view;
    std::uint64_t bits = 0;
    for (int i = 0; computes && i < arity(); ++i) {
      if (reads(layout(i))) continue;
      for (auto const& o : outputs())
        require(o.of != i, "input ", i, ", which it writes or looks at, must be dense, got ", in(i), " with strides ",
                layout(i).strides);
      require(i < 64, "input ", i, " must be dense");
      bits |= std::uint64_t{1} << i;
    }
    return bits;
  }

  /// An update's kernel reads an element before it overwrites that element, not before it overwrites others: throws if
  /// an input looks at what is overwritten otherwise than element by element. `same(i, j)`: inputs i and j lie in one
  /// storage.
  template <class F>
  void require_updates_apart(F const& same) const {
    for (auto const& o : outputs())
      for (int i = 0; o.alias == alias_kind::update && o.of >= 0 && i < arity(); ++i)
        require(i == o.of || layout(i) == layout(o.of) || !same(i, o.of) || layout(i).is_apart_from(layout(o.of)),
                "input ", i, " is another view of what is overwritten; copy it first");
  }

  std::span<tensor_layout const> inputs() const { return in_; }
  std::span<output_rule const> outputs() const { return span_of(out_); }

 private:
  [[noreturn]] void no_input(int i) const;
  [[noreturn]] void fail(std::initializer_list<part> parts) const;

  std::string_view op_;
  std::span<tensor_layout const> in_;
  plain_vector<output_rule> out_;
};

/// Inputs and outputs' types of an op that is already in a graph.
struct work_context {
  std::span<tensor_layout const> in;
  std::span<tensor_layout const> out;
};

// ---------------------------------------------------------------------------------------------- dimensions

/// How partial results along a cut axis make the whole. `same`: each of them is the whole already, as the state of random
/// draws is; ops of the same part may read it.
enum class combine : std::uint8_t { concat, sum, max, min, mean, same };

/// One statement of a shape's structure. `output >= 0`: axis `in_axis` of input `input` is axis `out_axis` of output
/// `output`. `output < 0`: it is reduced, as reduce axis number `out_axis` of the op (inputs that share the number are
/// cut together), and every output that is not linked otherwise is combined by `how`.
struct dim_link {
  std::int16_t input = 0, in_axis = 0, output = 0, out_axis = 0;
  combine how = combine::concat;
};

/// Where an operator says its dimension relations. What it does not say cannot be cut.
class dim_context {
 public:
  dim_context(std::span<tensor_layout const> in, std::span<tensor_layout const> out) : in_(in), out_(out) {}
  int arity() const { return static_cast<int>(in_.size()); }
  int output_count() const { return static_cast<int>(out_.size()); }
  tensor_type const& in(int i) const { return at(in_, i, "input ").type; }
  tensor_type const& out(int j) const { return at(out_, j, "output ").type; }

  void same(int input, int in_axis, int output, int out_axis) {
    add(input, in_axis, output, out_axis, combine::concat);
  }
  void reduced(int input, int in_axis, int k, combine how = combine::sum) { add(input, in_axis, -1, k, how); }
  /// Axes of input and output are the same, aligned from the last axis, where the extents are equal.
  void aligned(int input, int output) {
    auto const& a = in(input).dims;
    auto const& b = out(output).dims;
    for (int i = a.rank() - 1, j = b.rank() - 1; i >= 0 && j >= 0; --i, --j)
      if (a[i] == b[j]) same(input, i, output, j);
  }
  std::span<dim_link const> links() const { return span_of(links_); }
  plain_vector<dim_link> take() && { return std::move(links_); }

 private:
  static tensor_layout const& at(std::span<tensor_layout const> all, int i, char const* what) {
    if (i < 0 || static_cast<std::size_t>(i) >= all.size())
      throw_error({"its relate() asks for ", what, i, ", which it has not"});
    return all[static_cast<std::size_t>(i)];
  }
  void add(int i, int a, int o, int b, combine how) {
    links_.push_back({static_cast<std::int16_t>(i), static_cast<std::int16_t>(a), static_cast<std::int16_t>(o),
                      static_cast<std::int16_t>(b), how});
  }
  std::span<tensor_layout const> in_, out_;
  plain_vector<dim_link> links_;
};

/// How an op is cut into parts, for its operator to say what attributes a part has.
struct cut_context {
  std::span<tensor_layout const> in, out;           // of the whole op
  std::span<std::int32_t const> in_axis, out_axis;  // along which each is cut; -1: it is whole in every part
  std::int64_t from = 0, to = 1, of = 1;            // a part has from / of to `to` / of of each extent that is cut
  /// How much of n is before the part, and how much it has; n is a multiple of `of`.
  std::int64_t before(std::int64_t n) const { return n / of * from; }
  std::int64_t share(std::int64_t n) const { return n / of * (to - from); }
};

// ---------------------------------------------------------------------------------------------- work

/// What an op has to do: floating-point operations, bytes it reads and writes.
struct work {
  flops_t flops = 0;
  double read = 0, written = 0;  // bytes
};

// ---------------------------------------------------------------------------------------------- gradient

struct operator_facets;

/// An operator of any kind, borrowed: its facets and its bytes.
struct operator_view {
  operator_facets const* facets = nullptr;
  void const* bytes = nullptr;
};

/// What adds ops to a graph, or computes them at once: the graph editor and the eager tape are emitters, so that one
/// gradient rule serves both.
class op_emitter {
 public:
  virtual ~op_emitter() = default;
  /// Adds an op; its outputs.
  virtual std::vector<value_id> emit(operator_view op, std::span<value_id const> inputs) = 0;
  virtual tensor_layout layout_of(value_id v) const = 0;
};

template <class Op>
operator_view view_of(Op const& op);

/// Where a gradient rule finds the op's values and gives the gradients of its inputs.
class gradient_context {
 public:
  gradient_context(op_emitter& to, std::span<value_id const> in, std::span<value_id const> out,
                   std::span<value_id const> out_gradient, std::span<bool const> wanted);

  int arity() const { return static_cast<int>(in_.size()); }
  // These throw neap::error for an input or output that the op has not.
  value_id in(int i) const { return in_[checked(i, in_.size(), "input ")]; }
  value_id out(int j) const { return out_[checked(j, out_.size(), "output ")]; }
  /// The gradient that has reached output j; nothing<value_id> if none has. A rule asks for those of all outputs that it
  /// differentiates, whatever is wanted: an output that it does not ask for has no gradient, and a loss that depends on it
  /// is refused.
  value_id grad(int j = 0) {
    asked_[checked(j, out_.size(), "output ")] = true;
    return out_gradient_[static_cast<std::size_t>(j)];
  }
  /// Whether the gradient of input i is needed.
  bool wants(int i) const { return i < arity() && wanted_[static_cast<std::size_t>(i)]; }
  /// Gives the gradient of input i; its shape is that of the input.
  void give(int i, value_id g) { gradient_[checked(i, in_.size(), "input ")] = g; }

  tensor_type type(value_id v) const { return to_.layout_of(v).type; }
  tensor_layout layout(value_id v) const { return to_.layout_of(v); }
  /// Adds an op; its first output.
  template <class Op>
  value_id emit(Op const& op, std::initializer_list<value_id> in) {
    return add(view_of(op), in).front();
  }
  /// Adds an op; its outputs.
  template <class Op>
  std::vector<value_id> emit_all(Op const& op, std::initializer_list<value_id> in) {
    return add(view_of(op), in);
  }
  template <class Op>
  std::vector<value_id> emit_all(Op const& op, std::span<value_id const> in) {
    return add(view_of(op), in);
  }
  std::vector<value_id> emit_all(operator_view op, std::span<value_id const> in) { return add(op, in); }

  std::span<value_id const> gradients() const { return span_of(gradient_); }
  /// The first output whose gradient is there but unread; -1 if there is none.
  int unused_gradient() const {
    for (std::size_t j = 0; j < asked_.size(); ++j)
      if (!asked_[j] && out_gradient_[j] != nothing<value_id>) return static_cast<int>(j);
    return -1;
  }

 private:
  static std::size_t checked(int i, std::size_t count, char const* what) {
    if (i < 0 || static_cast<std::size_t>(i) >= count)
      throw_error({"its gradient rule speaks of ", what, i, ", which it has not"});
    return static_cast<std::size_t>(i);
  }
  std::vector<value_id> add(operator_view op, std::initializer_list<value_id> in) {
    return add(op, span_of(in.begin(), in.size()));
  }
  std::vector<value_id> add(operator_view op, std::span<value_id const> in);

  op_emitter& to_;
  std::span<value_id const> in_, out_, out_gradient_;
  std::span<bool const> wanted_;
  std::vector<value_id> gradient_;
  plain_vector<bool> asked_;
};

// ---------------------------------------------------------------------------------------------- facets

class host_backend;

/// A backend has a kernel for an operator: run(backend, op, arguments) is found by argument-dependent lookup.
template <class Backend, class Op>
concept has_kernel = requires(Backend& b, Op const& op, kernel_arguments const& a) { run(b, op, a); };

/// Runs an operator's kernel: run(backend, operator struct, arguments).
template <class Backend>
using kernel_function = void (*)(Backend&, void const*, kernel_arguments const&);

/// Layouts of inputs that a kernel can read.
enum class layouts : std::uint8_t {
  dense,  // elements follow one another in row-major order
  rows,   // those of each row of the last axis do
  any,    // any strides, 0 (broadcast) included
};

/// Whether a kernel that takes `t` can read an input of this layout.
inline bool fits(layouts t, tensor_layout const& l) {
  return t == layouts::any || (t == layouts::rows ? l.has_dense_rows() : l.is_dense());
}

/// What mixed precision (model/precision.hpp) does to an operator's floating inputs. "Low" is bf16 or f16.
enum class precision_use : std::uint8_t {
  as_given,  // nothing: views, copies, casts, updates in place
  common,    // where one input is low, those of f32 are cast to it
  reduced,   // those of f32 are cast to the low type
  full,      // low ones are cast to f32
  rows,      // nothing; f32 outputs are cast to the low type: what is picked from a table, not the table
  of_first,  // f32 and low ones are cast to the type of the first input, which the operator writes
};
struct precision_rule {
  precision_use use = precision_use::as_given;
  std::uint32_t kept = 0;  // bits: inputs that stay as they are all the same
  constexpr precision_rule(precision_use u = precision_use::as_given, std::uint32_t kept_inputs = 0)
      : use(u),
        kept(kept_inputs) {}
};

struct operator_facets {
  std::string_view name;
  std::uint32_t size = 0;  // bytes of attributes in a graph
  bool elementwise = false, random = false, f32_or_f64 = false, checks_numbers = false;
  bool (*elementwise_if)(void const*) = nullptr;  // null: `elementwise`, whatever the attributes
  layouts takes = layouts::any;
  precision_rule precision;
  int standard_row = -1;                                // where it stands among the standard operators; -1: not there
  kernel_function<host_backend> (*kernel)() = nullptr;  // on the host; null for standard operators (model/kernels.hpp)
  void (*construct)(void* at) = nullptr;                // default attributes
  void (*infer)(void const*, shape_context&) = nullptr;
  void (*relate)(void const*, dim_context&) = nullptr;
  void (*cut)(void*, cut_context const&) = nullptr;  // null: a part has the attributes of the whole
  void (*gradient)(void const*, gradient_context&) = nullptr;
  work (*cost)(void const*, work_context const&) = nullptr;
  bytes_t (*workspace)(void const*, work_context const&) = nullptr;
  operator_facets const& (*joined)() =
      nullptr;  // Op::joined: does this one's work and a neighbour's; null: there is none
  std::span<attribute_field const> attributes;

  bool is_elementwise(void const* op) const { return elementwise_if ? elementwise_if(op) : elementwise; }
};

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

/// Bytes that a read or a write of a tensor touches: broadcast axes once.
inline double touched_bytes(tensor_layout const& l) {
  double n = static_cast<double>(size_of(l.type.element));
  for (int i = 0; i < l.type.rank(); ++i)
    if (l.strides[i] != 0) n *= static_cast<double>(l.type.dims[i]);
  return n;
}

work streaming_work(work_context const& c, double flops_per_element);

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
