// What the rules of operators read and declare: shapes, dimensions, work, gradients.
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/id.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/span_of.hpp>
#include <neap/core/tensor_type.hpp>
#include <neap/core/text_part.hpp>
#include <neap/core/units.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

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

/// Where a shape rule reads its inputs and declares its outputs.
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
  void aligned(int input, int output);
  std::span<dim_link const> links() const { return span_of(links_); }
  plain_vector<dim_link> take() && { return std::move(links_); }

 private:
  static tensor_layout const& at(std::span<tensor_layout const> all, int i, char const* what);
  void add(int i, int a, int o, int b, combine how);
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

/// Inputs and outputs' types of an op that is already in a graph.
struct work_context {
  std::span<tensor_layout const> in;
  std::span<tensor_layout const> out;
};

/// What an op has to do: floating-point operations, bytes it reads and writes.
struct work {
  flops_t flops = 0;
  double read = 0, written = 0;  // bytes
};

namespace detail {
/// Bytes that a read or a write of a tensor touches: broadcast axes once.
double touched_bytes(tensor_layout const& l);
/// The work of an operator that reads each input and writes each output once.
work streaming_work(work_context const& c, double flops_per_element);
}  // namespace detail

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

/// What a gradient rule reads, and where it puts the gradients of the op's inputs.
class gradient_context {
 public:
  gradient_context(op_emitter& to, std::span<value_id const> in, std::span<value_id const> out,
                   std::span<value_id const> out_gradient, std::span<bool const> wanted);

  int arity() const { return static_cast<int>(in_.size()); }
  // These throw neap::error for an input or output that the op has not.
  value_id in(int i) const { return in_[checked(i, in_.size(), "input ")]; }
  value_id out(int j) const { return out_[checked(j, out_.size(), "output ")]; }
  /// The gradient that has reached output j; nothing<value_id> if none has. A rule reads those of all outputs that it
  /// differentiates, whatever is wanted: an output whose gradient it does not read has none, and a loss that depends on it
  /// is refused.
  value_id grad(int j = 0);
  /// Whether the gradient of input i is needed.
  bool wants(int i) const { return i < arity() && wanted_[static_cast<std::size_t>(i)]; }
  /// Sets the gradient of input i, of the input's shape.
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
  int unused_gradient() const;

 private:
  static std::size_t checked(int i, std::size_t count, char const* what);
  std::vector<value_id> add(operator_view op, std::initializer_list<value_id> in) {
    return add(op, span_of(in.begin(), in.size()));
  }
  std::vector<value_id> add(operator_view op, std::span<value_id const> in);

  op_emitter& to_;
  std::span<value_id const> in_, out_, out_gradient_;
  std::span<bool const> wanted_;
  std::vector<value_id> gradient_;
  plain_vector<bool> read_;  // of each output: whether grad() was called
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/impl/operator_contexts.ipp>
#endif
