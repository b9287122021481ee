// A node of PyTorch's as rules read it: its arguments by their places in the schema, and the loops that a rule finds.
#pragma once

#include <neap/ir/operators/movement.hpp>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

namespace neap { inline namespace v0 { namespace io {

/// A node as the table needs it.
struct aten_node {
  std::string_view op;                        // with its overload: "aten.mm.default"
  nlohmann::json const* args = nullptr;       // a list in the schema's order, where "%k" is in[k]; null: unknown
  nlohmann::json const* kwargs = nullptr;     // an object; null: unknown
  std::span<tensor_layout const> in;          // distinct tensors
  std::span<tensor_layout const> out;         // those that it gives
  std::span<int const> outputs;               // for each output of the schema, which of `out`; -1: the node gives none
  std::span<unsigned char const> zeros = {};  // which of `in` hold zeros alone, as far as known
  bool pointwise = false;                     // elementwise after broadcasting, says the file
};

namespace detail {

/// Thrown by a rule that does not understand an argument, caught by aten_links().
struct unsupported_argument {};

/// An axis of an operand (a tensor argument, numbered as the arguments name them) or of an output of the schema.
struct tensor_axis {
  int tensor;  // negative: absent, and passed over
  int axis;
};
using tensor_axes = std::vector<tensor_axis>;

/// What a rule reads and says.
class aten_call {
 public:
  explicit aten_call(aten_node const& n);
  /// Operands are the inputs, whatever the arguments are.
  void take_inputs() {
    operands_.clear();
    for (int k = 0; k < static_cast<int>(n_.in.size()); ++k) operands_.push_back({k, -1});
  }

  // arguments, by their places in the schema; absent ones are null

  nlohmann::json const& argument(int p) const {
    static nlohmann::json const none;
    return n_.args && static_cast<std::size_t>(p) < n_.args->size() ? (*n_.args)[static_cast<std::size_t>(p)] : none;
  }
  bool is_null(int p) const { return argument(p).is_null(); }
  /// How many arguments there are, those of keywords aside.
  std::size_t argument_count() const { return n_.args ? n_.args->size() : 0; }
  /// What a keyword is given; null: nothing.
  nlohmann::json const& keyword(char const* name) const {
    static nlohmann::json const none;
    return n_.kwargs && n_.kwargs->is_object() && n_.kwargs->contains(name) ? (*n_.kwargs)[name] : none;
  }
  bool has_keywords() const { return n_.kwargs && !n_.kwargs->empty(); }
  /// The tensors that the arguments name are the inputs, each once and in their order.
  bool takes_inputs_in_turn() const;
  /// An operand; -1 where it is null.
  int tensor(int p) const;
  /// The operands of a list, -1 for each null in it.
  std::vector<int> tensors(int p) const;
  std::int64_t integer(int p) const;
  std::int64_t integer(int p, std::int64_t otherwise) const { return is_null(p) ? otherwise : integer(p); }
  std::vector<std::int64_t> integers(int p) const;
  bool boolean(int p) const {
    if (!argument(p).is_boolean()) throw unsupported_argument{};
    return argument(p).get<bool>();
  }
  bool boolean(int p, bool otherwise) const { return is_null(p) ? otherwise : boolean(p); }
  static int plain_axis(std::int64_t axis, int rank) {
    if (axis < -rank || axis >= rank) throw unsupported_argument{};
    return static_cast<int>(axis < 0 ? axis + rank : axis);
  }
  int axis(int p, int rank) const { return plain_axis(integer(p), rank); }
  int axis(int p, int rank, std::int64_t otherwise) const { return plain_axis(integer(p, otherwise), rank); }

  // tensors

  int operand_count() const { return static_cast<int>(operands_.size()); }
  int output_count() const { return static_cast<int>(n_.outputs.size()); }
  bool gives(int j) const { return j < output_count() && n_.outputs[static_cast<std::size_t>(j)] >= 0; }
  tensor_layout const& layout(int operand) const {
    if (operand < 0 || operand >= operand_count()) throw unsupported_argument{};
    return n_.in[static_cast<std::size_t>(operands_[static_cast<std::size_t>(operand)].input)];
  }
  extents const& dims(int operand) const { return layout(operand).type.dims; }
  int rank(int operand) const { return dims(operand).rank(); }
  tensor_layout const& out_layout(int j) const {
    if (!gives(j)) throw unsupported_argument{};
    return n_.out[static_cast<std::size_t>(n_.outputs[static_cast<std::size_t>(j)])];
  }
  extents const& out_dims(int j = 0) const { return out_layout(j).type.dims; }
  bool holds_zeros(int operand) const {
    auto const k = static_cast<std::size_t>(operands_[static_cast<std::size_t>(operand)].input);
    return k < n_.zeros.size() && n_.zeros[k];
  }

  // relations

  /// Equal parts of the axes of operands give the equal parts of those of outputs. Outputs that are not named are
  /// combined by `rest`; where that is concat, and the node has such outputs, nothing is said. All extents must be
  /// equal, or else (`in_pieces`) have a common divisor.
  void loop(tensor_axes const& in, tensor_axes const& out, combine rest = combine::concat, bool in_pieces = false);
  /// Axis k of all operands is axis k of all outputs.
  void everywhere(int k);

  /// The loops as links. A tensor that is several operands has one axis cut, which must be that of each of them. What
  /// an input is for that no argument names is not known.
  std::vector<dim_link> dimension_relations() const;

 private:
  struct tensor_use {
    int input;
    int argument;  // -1: a keyword's, or in a list of lists
  };
  struct one_loop {
    tensor_axes in, out;
    combine rest;
    bool has_rest = false;
  };
  static dim_link link(int input, int axis, int output, int out_axis) {
    return {static_cast<std::int16_t>(input), static_cast<std::int16_t>(axis), static_cast<std::int16_t>(output),
            static_cast<std::int16_t>(out_axis)};
  }
  int input_of(int operand) const { return operands_[static_cast<std::size_t>(operand)].input; }
  void note(nlohmann::json const& x, int argument, bool outermost);

  aten_node const& n_;
  std::vector<tensor_use> operands_;
  std::vector<one_loop> loops_;
};

}  // namespace detail

}}}  // namespace neap::v0::io

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/import/impl/aten_call.ipp>
#endif
