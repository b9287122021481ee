// How PyTorch's operators may be cut: the dimension relations of imported aten nodes, one row of a table for each operator.
// A row's function reads the node's arguments and says loops: "these axes of inputs are these axes of outputs", and how
// the other outputs of parts make the whole. What it says is true of the operator on equal parts with the same other
// arguments, but for those that are a shape, which follow the outputs, and those that say where a tensor begins in its
// storage (as_strided's), which are the part's own; what is not known to be true is not said, and arguments of a form
// that is not known give no relations at all.
//
// Random draws (dropout) are related like any element: a part draws its share of what the whole would draw. Where an
// operator gives its random state beside its result, every part gives the same.
#pragma once

#include <neap/ir/operators/movement.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
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
struct odd_argument {};

/// An axis of an operand (a tensor argument, numbered as the arguments name them) or of an output of the schema.
struct tensor_axis {
  int tensor;  // negative: absent, and passed over
  int axis;
};
using tensor_axes = std::vector<tensor_axis>;

/// What a rule reads and says.
class aten_call {
 public:
  explicit aten_call(aten_node const& n) : n_(n) {
    if (n.args && !n.args->is_null()) {
      if (!n.args->is_array()) throw odd_argument{};
      for (std::size_t p = 0; p < n.args->size(); ++p) note((*n.args)[p], static_cast<int>(p), true);
    }
    if (n.kwargs) note(*n.kwargs, -1, false);
  }
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
  bool takes_inputs_in_turn() const {
    for (std::size_t k = 0; k < operands_.size(); ++k)
      if (operands_[k].input != static_cast<int>(k)) return false;
    return operands_.size() == n_.in.size();
  }
  /// An operand; -1 where it is null.
  int tensor(int p) const {
    if (is_null(p)) return -1;
    auto const all = tensors(p);
    if (all.size() != 1 || argument(p).is_array()) throw odd_argument{};
    return all[0];
  }
  /// The operands of a list, -1 for each null in it.
  std::vector<int> tensors(int p) const {
    std::vector<int> all;
    auto const& a = argument(p);
    for (int o = 0; o < operand_count(); ++o)
      if (operands_[static_cast<std::size_t>(o)].argument == p) all.push_back(o);
    if (!a.is_array()) return all;
    std::vector<int> row;
    std::size_t next = 0;
    for (auto const& x : a) {
      if (!x.is_null() && next == all.size()) throw odd_argument{};
      row.push_back(x.is_null() ? -1 : all[next++]);
    }
    if (next != all.size()) throw odd_argument{};
    return row;
  }
  std::int64_t integer(int p) const {
    auto const& a = argument(p);
    if (!a.is_number_integer() || (a.is_number_unsigned() && a.get<std::uint64_t>() > INT64_MAX)) throw odd_argument{};
    return a.get<std::int64_t>();
  }
  std::int64_t integer(int p, std::int64_t otherwise) const { return is_null(p) ? otherwise : integer(p); }
  std::vector<std::int64_t> integers(int p) const {
    auto const& a = argument(p);
    if (!a.is_array()) throw odd_argument{};
    std::vector<std::int64_t> all;
    for (auto const& x : a) {
      if (!x.is_number_integer() || (x.is_number_unsigned() && x.get<std::uint64_t>() > INT64_MAX))
        throw odd_argument{};
      all.push_back(x.get<std::int64_t>());
    }
    return all;
  }
  bool boolean(int p) const {
    if (!argument(p).is_boolean()) throw odd_argument{};
    return argument(p).get<bool>();
  }
  bool boolean(int p, bool otherwise) const { return is_null(p) ? otherwise : boolean(p); }
  static int plain_axis(std::int64_t axis, int rank) {
    if (axis < -rank || axis >= rank) throw odd_argument{};
    return static_cast<int>(axis < 0 ? axis + rank : axis);
  }
  int axis(int p, int rank) const { return plain_axis(integer(p), rank); }
  int axis(int p, int rank, std::int64_t otherwise) const { return plain_axis(integer(p, otherwise), rank); }

  // tensors

  int operand_count() const { return static_cast<int>(operands_.size()); }
  int output_count() const { return static_cast<int>(n_.outputs.size()); }
  bool gives(int j) const { return j < output_count() && n_.outputs[static_cast<std::size_t>(j)] >= 0; }
  tensor_layout const& layout(int operand) const {
    if (operand < 0 || operand >= operand_count()) throw odd_argument{};
    return n_.in[static_cast<std::size_t>(operands_[static_cast<std::size_t>(operand)].input)];
  }
  extents const& dims(int operand) const { return layout(operand).type.dims; }
  int rank(int operand) const { return dims(operand).rank(); }
  tensor_layout const& out_layout(int j) const {
    if (!gives(j)) throw odd_argument{};
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
  void loop(tensor_axes const& in, tensor_axes const& out, combine rest = combine::concat, bool in_pieces = false) {
    one_loop l{{}, {}, rest};
    std::int64_t extent = -1;
    auto const meet = [&](extents const& d, int axis) {
      if (axis < 0 || axis >= d.rank()) throw odd_argument{};
      if (extent >= 0 && extent != d[axis] && !in_pieces) throw odd_argument{};
      extent = in_pieces && extent >= 0 ? std::min(extent, d[axis]) : d[axis];
    };
    for (auto const& x : in)
      if (x.tensor >= 0) meet(dims(x.tensor), x.axis), l.in.push_back(x);
    for (auto const& x : out)
      if (gives(x.tensor)) meet(out_dims(x.tensor), x.axis), l.out.push_back(x);
    for (int j = 0; j < output_count(); ++j)
      l.has_rest |= gives(j) && std::none_of(l.out.begin(), l.out.end(), [&](auto const& x) { return x.tensor == j; });
    if (extent > 1 && !l.in.empty() && !(l.has_rest && rest == combine::concat)) loops_.push_back(std::move(l));
  }
  /// Axis k of all operands is axis k of all outputs.
  void everywhere(int k) {
    tensor_axes in, out;
    for (int o = 0; o < operand_count(); ++o) in.push_back({o, k});
    for (int j = 0; j < output_count(); ++j) out.push_back({j, k});
    loop(in, out);
  }

  /// The loops as links. A tensor that is several operands has one axis cut, which must be that of each of them. What
  /// an input is for that no argument names is not known.
  std::vector<dim_link> links() const {
    std::vector<dim_link> all;
    for (int k = 0; k < static_cast<int>(n_.in.size()); ++k)
      if (std::none_of(operands_.begin(), operands_.end(), [&](auto const& u) { return u.input == k; })) return all;
    int reduced = 0;
    for (auto const& l : loops_) {
      bool agrees = true;
      for (auto const& x : l.in)
        for (int o = 0; o < operand_count(); ++o)
          if (input_of(o) == input_of(x.tensor))
            agrees &=
                std::any_of(l.in.begin(), l.in.end(), [&](auto const& y) { return y.tensor == o && y.axis == x.axis; });
      if (!agrees) continue;
      for (std::size_t a = 0; a < l.in.size(); ++a) {
        int const input = input_of(l.in[a].tensor);
        bool said = false;
        for (std::size_t b = 0; b < a; ++b) said |= input_of(l.in[b].tensor) == input;
        if (said) continue;
        for (auto const& y : l.out)
          all.push_back(link(input, l.in[a].axis, n_.outputs[static_cast<std::size_t>(y.tensor)], y.axis));
        if (l.has_rest) all.push_back(link(input, l.in[a].axis, -1, reduced)), all.back().how = l.rest;
      }
      reduced += l.has_rest;
    }
    return all;
  }

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
  void note(nlohmann::json const& x, int argument, bool outermost) {
    if (x.is_array() || x.is_object())
      for (auto const& y : x) note(y, outermost ? argument : -1, false);
    if (!x.is_string()) return;
    auto const& text = x.get_ref<std::string const&>();
    if (text.size() < 2 || text.size() > 8 || text[0] != '%') return;
    int k = 0;
    for (std::size_t i = 1; i < text.size(); ++i) {
      if (text[i] < '0' || text[i] > '9') return;
      k = 10 * k + (text[i] - '0');
    }
    if (static_cast<std::size_t>(k) >= n_.in.size()) throw odd_argument{};
    operands_.push_back({k, argument});
  }

  aten_node const& n_;
  std::vector<tensor_use> operands_;
  std::vector<one_loop> loops_;
};

/// The rules. c: the call; letters and names are those of PyTorch's schemas.
namespace aten {

/// Makes a tensor of nothing, or only of a shape; or nothing about it is true of parts.
inline void nothing_said(aten_call&) {}

/// Elementwise after broadcasting: aligned from the last axis; an axis of extent 1 is there for all elements.
inline void pointwise(aten_call& c) {
  c.take_inputs();
  if (!c.gives(0)) return;
  int const rank = c.out_dims().rank();
  for (int k = 0; k < rank; ++k) {
    tensor_axes in, out;
    for (int o = 0; o < c.operand_count(); ++o) {
      int const a = c.rank(o) - rank + k;
      if (c.rank(o) > rank) throw odd_argument{};
      if (a >= 0 && (c.dims(o)[a] != 1 || c.out_dims()[k] == 1)) in.push_back({o, a});
    }
    for (int j = 0; j < c.output_count(); ++j) {
      if (c.gives(j) && c.out_dims(j).rank() != rank) throw odd_argument{};
      out.push_back({j, k});
    }
    c.loop(in, out);
  }
}

// ---- views and moves

/// view(x, size) and its like, squeezed and unsqueezed ones among them.
inline void view(aten_call& c) {
  if (c.layout(0).type.count() != c.out_layout(0).type.count()) throw odd_argument{};
  neap::op::detail::each_reshaped_axis(c.dims(0), c.out_dims(), [&](int i, int j) {
    c.loop({{0, i}}, {{0, j}}, combine::concat, true);
  });
}
/// squeeze(x, dim) of one axis or a list: a part of extent 1 of an axis that it names would be squeezed.
inline void squeeze(aten_call& c) {
  if (c.is_null(1)) throw odd_argument{};
  auto const named = c.argument(1).is_array() ? c.integers(1) : std::vector{c.integer(1)};
  unsigned bits = 0;
  for (auto a : named)
    if (c.rank(0) > 0) bits |= 1u << c.plain_axis(a, c.rank(0));
  int j = 0;
  for (int i = 0; i < c.rank(0); ++i) {
    bool const is_named = bits >> i & 1u;
    if (!is_named) c.loop({{0, i}}, {{0, j}});
    if (!is_named || c.dims(0)[i] != 1) ++j;
  }
}
/// The axes of x but `but`, which the result has not.
inline void drops_axis(aten_call& c, int but) {
  for (int k = 0; k < c.rank(0); ++k) {
    tensor_axes out;
    for (int j = 0; j < c.output_count(); ++j) out.push_back({j, k - (k > but)});
    if (k != but) c.loop({{0, k}}, out);
  }
}
/// The axes of all operands, and `added`, which they have not.
inline void adds_axis(aten_call& c, int added) {
  for (int k = 0; k < c.rank(0); ++k) {
    tensor_axes in;
    for (int o = 0; o < c.operand_count(); ++o) in.push_back({o, k});
    c.loop(in, {{0, k + (k >= added)}});
  }
}
/// All axes, of all operands and outputs, but one.
inline void all_axes_but(aten_call& c, int but) {
  for (int k = 0; k < c.rank(0); ++k)
    if (k != but) c.everywhere(k);
}
inline void leading_axes(aten_call& c, int but_last) {
  for (int k = 0; k < c.rank(0) - but_last; ++k) c.everywhere(k);
}
inline void permuted(aten_call& c, std::vector<std::int64_t> const& axes) {
  if (static_cast<int>(axes.size()) != c.rank(0)) throw odd_argument{};
  for (int k = 0; k < c.rank(0); ++k)
    c.loop({{0, c.plain_axis(axes[static_cast<std::size_t>(k)], c.rank(0))}}, {{0, k}});
}
inline void permute(aten_call& c) { permuted(c, c.integers(1)); }
inline void transposed(aten_call& c, int a, int b) {
  for (int k = 0; k < c.rank(0); ++k) c.loop({{0, k}}, {{0, k == a ? b : k == b ? a : k}});
}
inline void transpose(aten_call& c) { transposed(c, c.axis(1, c.rank(0)), c.axis(2, c.rank(0))); }
inline void t(aten_call& c) {
  if (c.rank(0) == 2) transposed(c, 0, 1);
  else transposed(c, 0, 0);
}
/// Whether [start, stop) with a step, at arguments p to p + 2, is all of an axis, and so is that of a part.
inline bool is_all(aten_call& c, int p, std::int64_t extent) {
  return c.integer(p + 2, 1) == 1 && (c.integer(p, 0) == 0 || c.integer(p) <= -extent) &&
         c.integer(p + 1, INT64_MAX) >= extent;
}
/// slice(x, dim, start, end, step).
inline void slice(aten_call& c) {
  int const k = c.axis(1, c.rank(0), 0);
  all_axes_but(c, is_all(c, 2, c.dims(0)[k]) ? -1 : k);
}
/// slice_backward(g, input_sizes, dim, start, end, step).
inline void slice_backward(aten_call& c) {
  int const k = c.axis(2, c.rank(0));
  all_axes_but(c, is_all(c, 3, c.out_dims()[k]) ? -1 : k);
}
/// slice_scatter(x, src, dim, start, end, step).
inline void slice_scatter(aten_call& c) {
  int const k = c.axis(2, c.rank(0), 0);
  all_axes_but(c, is_all(c, 3, c.out_dims()[k]) ? -1 : k);
}
inline void select(aten_call& c) { drops_axis(c, c.axis(1, c.rank(0))); }
/// select_backward(g, input_sizes, dim, index).
inline void select_backward(aten_call& c) { adds_axis(c, c.axis(2, c.out_dims().rank())); }
inline void unbind(aten_call& c) { drops_axis(c, c.axis(1, c.rank(0), 0)); }
inline void split(aten_call& c) { all_axes_but(c, c.axis(2, c.rank(0), 0)); }
inline void cat(aten_call& c) { all_axes_but(c, c.axis(1, c.rank(0), 0)); }
inline void stack(aten_call& c) { adds_axis(c, c.axis(1, c.out_dims().rank(), 0)); }
/// repeat(x, repeats).
inline void repeat(aten_call& c) {
  auto const times = c.integers(1);
  int const added = c.out_dims().rank() - c.rank(0);
  if (static_cast<int>(times.size()) != c.out_dims().rank() || added < 0) throw odd_argument{};
  for (int k = 0; k < c.rank(0); ++k)
    if (times[static_cast<std::size_t>(k) + static_cast<std::size_t>(added)] == 1) c.loop({{0, k}}, {{0, k + added}});
}
/// roll(x, shifts, dims); without dims it rolls all elements as one row.
inline void roll(aten_call& c) {
  if (c.is_null(2)) return;
  unsigned rolled = 0;
  for (auto a : c.integers(2)) rolled |= 1u << c.plain_axis(a, c.rank(0));
  for (int k = 0; rolled != 0 && k < c.rank(0); ++k)
    if (!(rolled >> k & 1u)) c.everywhere(k);
}
/// constant_pad_nd(x, pad, value): pad has two numbers for each axis, from the last on.
inline void pad(aten_call& c) {
  auto const pad = c.integers(1);
  for (int k = 0; k < c.rank(0); ++k) {
    auto const at = 2 * static_cast<std::size_t>(c.rank(0) - 1 - k);
    if (at + 1 >= pad.size() || (pad[at] == 0 && pad[at + 1] == 0)) c.everywhere(k);
  }
}
/// The leading axes of a dense tensor and of it in other extents, for operators whose strides are arguments: these stay
/// what they are where the outermost axis is cut, and only there.
template <class F>
void outermost(extents const& a, extents const& b, F const& say) {
  bool first = true;
  neap::op::detail::each_reshaped_axis(a, b, [&](int i, int j) {
    if (first) say(i, j);
    first = false;
  });
}
/// as_strided(x, size, stride, storage_offset), where it is a reshape.
inline void as_strided(aten_call& c) {
  auto const &x = c.layout(0), &y = c.out_layout(0);
  if (!x.is_dense() || !y.is_dense() || x.offset != y.offset || x.type.count() != y.type.count()) return;
  outermost(x.type.dims, y.type.dims, [&](int i, int j) { c.loop({{0, i}}, {{0, j}}, combine::concat, true); });
}
/// as_strided_scatter(x, src, size, stride, storage_offset), where src overwrites all of x in its order.
inline void as_strided_scatter(aten_call& c) {
  tensor_layout src{c.layout(1).type, {}, 0};
  for (auto s : c.integers(3)) {
    if (src.strides.rank() == max_rank) throw odd_argument{};
    src.strides.push_back(s);
  }
  if (src.strides.rank() != src.type.rank() || !src.is_dense() ||
      c.integer(4, c.layout(0).offset) != c.layout(0).offset)
    return;
  if (!c.layout(0).is_dense() || c.layout(0).type.count() != src.type.count()) return;
  outermost(c.dims(0), src.type.dims, [&](int i, int j) { c.loop({{0, i}, {1, j}}, {{0, i}}, combine::concat, true); });
}
inline void triangle(aten_call& c) { leading_axes(c, 2); }

// ---- products

/// a [M, K] b [K, N], with `batch` axes in front of each; `bias` broadcasts to the result.
inline void product(aten_call& c, int a, int b, int bias, int batch) {
  int const m = batch, n = batch + 1;
  if (c.rank(a) != n + 1 || c.rank(b) != n + 1) throw odd_argument{};
  auto const of_bias = [&](int k) {
    if (bias < 0) return tensor_axis{-1, 0};
    int const at = c.rank(bias) - (n + 1) + k;
    return tensor_axis{at >= 0 && c.dims(bias)[at] != 1 ? bias : -1, at};
  };
  for (int k = 0; k < batch; ++k) c.loop({{a, k}, {b, k}, of_bias(k)}, {{0, k}});
  c.loop({{a, m}, of_bias(m)}, {{0, m}});
  c.loop({{b, n}, of_bias(n)}, {{0, n}});
  if (bias < 0) c.loop({{a, n}, {b, m}}, {}, combine::sum);  // else each part would add it
}
inline void mm(aten_call& c) { product(c, c.tensor(0), c.tensor(1), -1, 0); }
inline void bmm(aten_call& c) { product(c, c.tensor(0), c.tensor(1), -1, 1); }
inline void addmm(aten_call& c) { product(c, c.tensor(1), c.tensor(2), c.tensor(0), 0); }
inline void baddbmm(aten_call& c) { product(c, c.tensor(1), c.tensor(2), c.tensor(0), 1); }

/// convolution(x, w, bias, stride, padding, dilation, transposed, output_padding, groups). The number of groups is an
/// argument, so that channels are cut only where there is one.
inline void convolution(aten_call& c) {
  int const x = c.tensor(0), w = c.tensor(1), bias = c.tensor(2);
  bool const back = c.boolean(6);
  if (c.rank(x) != c.rank(w) || c.rank(x) != c.out_dims().rank()) throw odd_argument{};
  c.loop({{x, 0}}, {{0, 0}});
  if (c.integer(8) != 1) return;
  c.loop({{w, back ? 1 : 0}, {bias, 0}}, {{0, 1}});
  if (bias < 0) c.loop({{x, 1}, {w, back ? 0 : 1}}, {}, combine::sum);
}
/// convolution_backward(g, x, w, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask) ->
/// gradients of x, w, bias.
inline void convolution_backward(aten_call& c) {
  int const g = c.tensor(0), x = c.tensor(1), w = c.tensor(2);
  bool const back = c.boolean(7);
  if (c.rank(x) != c.rank(w) || c.rank(x) != c.rank(g)) throw odd_argument{};
  c.loop({{g, 0}, {x, 0}}, {{0, 0}}, combine::sum);
  if (c.integer(9) != 1) return;
  int const out = back ? 1 : 0;                                             // w's axis of the channels of g
  c.loop({{g, 1}, {w, out}}, {{1, out}, {2, 0}}, combine::sum);             // x gets something from every channel of g
  c.loop({{x, 1}, {w, 1 - out}}, {{0, 1}, {1, 1 - out}}, combine::concat);  // the bias has nothing to do with x
}

// ---- normalisation

/// native_layer_norm(x, normalized_shape, w, b, eps) -> y, mean, rstd.
inline void layer_norm(aten_call& c) {
  int const x = c.tensor(0), rows = c.rank(x) - static_cast<int>(c.integers(1).size());
  for (int k = 0; k < rows; ++k) c.loop({{x, k}}, {{0, k}, {1, k}, {2, k}});
}
/// native_layer_norm_backward(g, x, normalized_shape, mean, rstd, w, b, mask) -> gradients of x, w, b.
inline void layer_norm_backward(aten_call& c) {
  int const g = c.tensor(0), x = c.tensor(1), mean = c.tensor(3), rstd = c.tensor(4);
  int const rows = c.rank(x) - static_cast<int>(c.integers(2).size());
  for (int k = 0; k < rows; ++k) c.loop({{g, k}, {x, k}, {mean, k}, {rstd, k}}, {{0, k}}, combine::sum);
}
/// Axis 1 of x-like tensors [N, C, ...] and the only one of vectors [C].
inline void channels(aten_call& c) {
  tensor_axes in, out;
  for (int o = 0; o < c.operand_count(); ++o) in.push_back({o, c.rank(o) > 1});
  for (int j = 0; j < c.output_count(); ++j)
    if (c.gives(j)) out.push_back({j, c.out_dims(j).rank() > 1});
  c.loop(in, out);
}
/// native_batch_norm_backward(g, x, w, running_mean, running_var, save_mean, save_rstd, train, eps, mask) -> gradients
/// of x, w, b. In training the statistics are those of the whole batch.
inline void batch_norm_backward(aten_call& c) {
  channels(c);
  if (!c.boolean(7)) c.loop({{c.tensor(0), 0}, {c.tensor(1), 0}}, {{0, 0}}, combine::sum);
}
/// native_group_norm(x, w, b, N, C, HxW, groups, eps) -> y, mean, rstd. The number of groups is an argument.
inline void group_norm(aten_call& c) { c.loop({{c.tensor(0), 0}}, {{0, 0}, {1, 0}, {2, 0}}); }
/// native_group_norm_backward(g, x, mean, rstd, w, N, C, HxW, groups, mask) -> gradients of x, w, b.
inline void group_norm_backward(aten_call& c) {
  c.loop({{c.tensor(0), 0}, {c.tensor(1), 0}, {c.tensor(2), 0}, {c.tensor(3), 0}}, {{0, 0}}, combine::sum);
}

// ---- along one axis, and reductions

/// softmax(x, dim, half_to_float).
inline void softmax(aten_call& c) { all_axes_but(c, c.axis(1, c.rank(0))); }
/// softmax_backward_data(g, y, dim, dtype).
inline void softmax_backward(aten_call& c) { all_axes_but(c, c.axis(2, c.rank(0))); }
/// topk(x, k, dim).
inline void topk(aten_call& c) { all_axes_but(c, c.axis(2, c.rank(0), -1)); }

/// (x, dims, keepdim); no dims: all.
inline void reduction(aten_call& c, combine how) {
  unsigned bits = 0;
  if (!c.is_null(1))
    for (auto a : c.argument(1).is_array() ? c.integers(1) : std::vector{c.integer(1)})
      if (c.rank(0) > 0) bits |= 1u << c.plain_axis(a, c.rank(0));
  if (bits == 0) bits = ~0u;
  bool const keep = c.boolean(2, false);
  int j = 0;
  for (int k = 0; k < c.rank(0); ++k)
    if (bits >> k & 1u) {
      c.loop({{0, k}}, {}, how);
      j += keep;
    } else {
      c.loop({{0, k}}, {{0, j++}});
    }
}
inline void sum(aten_call& c) { reduction(c, combine::sum); }
inline void mean(aten_call& c) { reduction(c, combine::mean); }

// ---- picking

/// embedding(table, indices, ...).
inline void embedding(aten_call& c) {
  int const table = c.tensor(0), index = c.tensor(1);
  for (int k = 0; k < c.rank(index); ++k) c.loop({{index, k}}, {{0, k}});
  c.loop({{table, 1}}, {{0, c.rank(index)}});
}
/// embedding_dense_backward(g, indices, rows, padding_idx, scale_grad_by_freq): with the last, how often an index comes in
/// all of them counts.
inline void embedding_backward(aten_call& c) {
  int const g = c.tensor(0), index = c.tensor(1);
  bool const counts = c.boolean(4);
  for (int k = 0; !counts && k < c.rank(index); ++k) c.loop({{g, k}, {index, k}}, {}, combine::sum);
  c.loop({{g, c.rank(index)}}, {{0, 1}});
}

/// Which axes of x[indices] come from where. A list of index tensors, null for ":"; they broadcast to one block of axes,
/// which stands where the first of them is if they stand side by side, and in front if not.
struct indexing {
  int first_axis = 0;     // of the block in the result
  extents block;          // its extents
  std::vector<int> axes;  // for each axis of x, its axis in the result; -1: indexed

  indexing(aten_call& c, int x, std::vector<int> const& index) {
    int count = 0, first = -1, last = -1, rank = 0;
    for (int k = 0; k < static_cast<int>(index.size()); ++k) {
      int const i = index[static_cast<std::size_t>(k)];
      if (i < 0) continue;
      auto const element = c.layout(i).type.element;  // a mask picks as many as it holds
      if (element != dtype::i64 && element != dtype::i32) throw odd_argument{};
      first = first < 0 ? k : first, last = k, ++count;
      rank = std::max(rank, c.rank(i));
    }
    if (count == 0 || static_cast<int>(index.size()) > c.rank(x)) throw odd_argument{};
    block = extents::filled(rank, 1);
    for (int i : index)
      for (int a = 0; i >= 0 && a < c.rank(i); ++a)
        if (c.dims(i)[a] != 1) block[rank - c.rank(i) + a] = c.dims(i)[a];
    bool const together = last - first + 1 == count;
    first_axis = together ? first : 0;
    for (int k = 0, plain = 0; k < c.rank(x); ++k) {
      bool const indexed = k < static_cast<int>(index.size()) && index[static_cast<std::size_t>(k)] >= 0;
      axes.push_back(indexed ? -1 : plain < first_axis ? plain : plain + rank);
      plain += !indexed;
    }
  }
  int rank() const {
    return block.rank() + static_cast<int>(std::count_if(axes.begin(), axes.end(), [](int a) { return a >= 0; }));
  }
  /// The axes of index tensors that are axis b of the block.
  tensor_axes of_block(aten_call& c, std::vector<int> const& index, int b) const {
    tensor_axes all;
    for (int i : index) {
      if (i < 0) continue;
      int const a = c.rank(i) - block.rank() + b;
      if (a >= 0 && c.dims(i)[a] != 1) all.push_back({i, a});
    }
    return all;
  }
};
/// index(x, indices).
inline void index(aten_call& c) {
  int const x = c.tensor(0);
  auto const by = c.tensors(1);
  indexing const at(c, x, by);
  if (at.rank() != c.out_dims().rank()) throw odd_argument{};
  for (int k = 0; k < c.rank(x); ++k)
    if (int const a = at.axes[static_cast<std::size_t>(k)]; a >= 0) c.loop({{x, k}}, {{0, a}});
  for (int b = 0; b < at.block.rank(); ++b) c.loop(at.of_block(c, by, b), {{0, at.first_axis + b}});
}
/// index_put(x, indices, values, accumulate): values broadcast to x[indices]. What is added to zeros is a sum of parts.
inline void index_put(aten_call& c) {
  int const x = c.tensor(0), v = c.tensor(2);
  auto const by = c.tensors(1);
  indexing const at(c, x, by);
  auto const of_values = [&](int axis) {
    int const a = c.rank(v) - at.rank() + axis;
    return tensor_axis{a >= 0 && c.dims(v)[a] != 1 ? v : -1, a};
  };
  for (int k = 0; k < c.rank(x); ++k)
    if (int const a = at.axes[static_cast<std::size_t>(k)]; a >= 0) c.loop({{x, k}, of_values(a)}, {{0, k}});
  if (!c.boolean(3, false) || !c.holds_zeros(x)) return;
  for (int b = 0; b < at.block.rank(); ++b) {
    auto in = at.of_block(c, by, b);
    in.push_back(of_values(at.first_axis + b));
    c.loop(in, {}, combine::sum);
  }
}
/// gather(x, dim, index).
inline void gather(aten_call& c) {
  int const x = c.tensor(0), index = c.tensor(2), dim = c.axis(1, c.rank(x));
  if (c.rank(index) != c.rank(x)) throw odd_argument{};
  for (int k = 0; k < c.rank(x); ++k)
    if (k == dim) c.loop({{index, k}}, {{0, k}});
    else if (c.dims(x)[k] == c.dims(index)[k]) c.loop({{x, k}, {index, k}}, {{0, k}});
}
/// scatter(x, dim, index, src): src a tensor or a number.
inline void scatter(aten_call& c) {
  int const x = c.tensor(0), index = c.tensor(2), dim = c.axis(1, c.rank(x));
  auto const& src = c.argument(3);
  int const from = src.is_number() ? -1 : c.tensor(3);
  if (src.is_null() || c.rank(index) != c.rank(x) || (from >= 0 && c.rank(from) != c.rank(x))) throw odd_argument{};
  for (int k = 0; k < c.rank(x); ++k)
    if (k != dim && c.dims(x)[k] == c.dims(index)[k] && (from < 0 || c.dims(from)[k] == c.dims(index)[k]))
      c.loop({{x, k}, {index, k}, {from, k}}, {{0, k}});
}

// ---- images

/// Poolings of [..., H, W] and their gradients: places in a plane are counted within it.
inline void planes(aten_call& c) { leading_axes(c, 2); }

// ---- attention

/// Batches, and heads where keys have as many as queries.
inline void heads(aten_call& c, std::initializer_list<int> in, std::initializer_list<int> out, combine rest) {
  for (int k = 0; k < 2; ++k) {
    tensor_axes a, b;
    bool equal = true;
    for (int o : in) equal &= c.rank(o) >= 3 && c.dims(o)[k] == c.dims(*in.begin())[k], a.push_back({o, k});
    for (int j : out) b.push_back({j, k});
    if (equal) c.loop(a, b, rest);
  }
}
/// _scaled_dot_product_flash_attention(q, k, v, dropout_p, is_causal, ...) -> y, logsumexp, cum_seq_q, cum_seq_k, max_q,
/// max_k, rng_state, unused, debug_attn_mask (of no elements).
inline void attention(aten_call& c) {
  if (c.boolean(5, false)) return;  // return_debug_mask
  heads(c, {c.tensor(0), c.tensor(1), c.tensor(2)}, {0, 1}, combine::same);
}
/// _scaled_dot_product_flash_attention_backward(g, q, k, v, y, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p,
/// is_causal, rng_state, unused).
inline void attention_backward(aten_call& c) {
  if (c.tensor(6) >= 0 || c.tensor(7) >= 0) return;  // of sequences that lie one after another
  heads(c, {c.tensor(0), c.tensor(1), c.tensor(2), c.tensor(3), c.tensor(4), c.tensor(5)}, {0, 1, 2}, combine::concat);
}

// ---- losses. Reduction: 0 none, 1 the mean, 2 the sum.

/// nll_loss_forward(x, target, w, reduction, ignore_index) -> loss, total weight. The mean's divisor is the weight of all
/// rows that count, which is not known of a part.
inline void nll_loss(aten_call& c) {
  int const x = c.tensor(0), target = c.tensor(1);
  if (c.rank(x) == 2 && c.integer(3) == 2) c.loop({{x, 0}, {target, 0}}, {}, combine::sum);
}
/// nll_loss_backward(g, x, target, w, reduction, ignore_index, total_weight): the divisor is given.
inline void nll_loss_backward(aten_call& c) {
  int const g = c.tensor(0), x = c.tensor(1), target = c.tensor(2);
  if (c.rank(x) == 2) c.loop({{x, 0}, {target, 0}, {c.integer(4) == 0 ? g : -1, 0}}, {{0, 0}});
}
/// mse_loss(x, y, reduction).
inline void mse_loss(aten_call& c) {
  auto const reduction = c.integer(2, 1);
  if (reduction < 0 || reduction > 2 || c.dims(0) != c.dims(1)) throw odd_argument{};
  if (reduction == 0) return pointwise(c);
  for (int k = 0; k < c.rank(0); ++k) c.loop({{0, k}, {1, k}}, {}, reduction == 1 ? combine::mean : combine::sum);
}
/// mse_loss_backward(g, x, y, reduction): the mean's divisor is the number of elements, which are fewer in a part.
inline void mse_loss_backward(aten_call& c) {
  if (c.integer(3) == 0 || c.integer(3) == 2) pointwise(c);
}

struct row {
  std::string_view op;  // without "aten."
  void (*relate)(aten_call&);
};
/// By name. Operators that files flag as pointwise need no row; those with one are listed, so that a file's flag is not
/// needed.
inline constexpr std::array table = std::to_array<row>({
    {"_adaptive_avg_pool2d.default", planes},
    {"_adaptive_avg_pool2d_backward.default", planes},
    {"_log_softmax.default", softmax},
    {"_log_softmax_backward_data.default", softmax_backward},
    {"_native_batch_norm_legit_functional.default", channels},
    {"_scaled_dot_product_flash_attention.default", attention},
    {"_scaled_dot_product_flash_attention_backward.default", attention_backward},
    {"_softmax.default", softmax},
    {"_softmax_backward_data.default", softmax_backward},
    {"_to_copy.default", pointwise},
    {"_unsafe_index.Tensor", index},
    {"_unsafe_index_put.default", index_put},
    {"_unsafe_view.default", view},
    {"abs.default", pointwise},
    {"add.Scalar", pointwise},
    {"add.Tensor", pointwise},
    {"addmm.default", addmm},
    {"alias.default", pointwise},
    {"arange.default", nothing_said},
    {"arange.start", nothing_said},
    {"arange.start_step", nothing_said},
    {"as_strided.default", as_strided},
    {"as_strided_scatter.default", as_strided_scatter},
    {"baddbmm.default", baddbmm},
    {"bernoulli.p", pointwise},
    {"bitwise_and.Tensor", pointwise},
    {"bitwise_not.default", pointwise},
    {"bitwise_or.Tensor", pointwise},
    {"bmm.default", bmm},
    {"cat.default", cat},
    {"clamp.default", pointwise},
    {"clone.default", pointwise},
    {"constant_pad_nd.default", pad},
    {"convolution.default", convolution},
    {"convolution_backward.default", convolution_backward},
    {"copy.default", pointwise},
    {"cos.default", pointwise},
    {"detach.default", pointwise},
    {"div.Scalar", pointwise},
    {"div.Tensor", pointwise},
    {"embedding.default", embedding},
    {"embedding_dense_backward.default", embedding_backward},
    {"empty.memory_format", nothing_said},
    {"eq.Scalar", pointwise},
    {"eq.Tensor", pointwise},
    {"erf.default", pointwise},
    {"exp.default", pointwise},
    {"expand.default", pointwise},
    {"fill.Scalar", pointwise},
    {"full.default", nothing_said},
    {"full_like.default", pointwise},
    {"gather.default", gather},
    {"ge.Scalar", pointwise},
    {"gelu.default", pointwise},
    {"gelu_backward.default", pointwise},
    {"gt.Scalar", pointwise},
    {"index.Tensor", index},
    {"index_put.default", index_put},
    {"le.Scalar", pointwise},
    {"le.Tensor", pointwise},
    {"lift_fresh_copy.default", pointwise},
    {"log.default", pointwise},
    {"logical_and.default", pointwise},
    {"logical_not.default", pointwise},
    {"lt.Scalar", pointwise},
    {"masked_fill.Scalar", pointwise},
    {"max_pool2d_with_indices.default", planes},
    {"max_pool2d_with_indices_backward.default", planes},
    {"maximum.default", pointwise},
    {"mean.default", mean},
    {"mean.dim", mean},
    {"minimum.default", pointwise},
    {"mm.default", mm},
    {"mse_loss.default", mse_loss},
    {"mse_loss_backward.default", mse_loss_backward},
    {"mul.Scalar", pointwise},
    {"mul.Tensor", pointwise},
    {"native_batch_norm_backward.default", batch_norm_backward},
    {"native_dropout.default", pointwise},
    {"native_dropout_backward.default", pointwise},
    {"native_group_norm.default", group_norm},
    {"native_group_norm_backward.default", group_norm_backward},
    {"native_layer_norm.default", layer_norm},
    {"native_layer_norm_backward.default", layer_norm_backward},
    {"ne.Scalar", pointwise},
    {"neg.default", pointwise},
    {"new_zeros.default", nothing_said},
    {"nll_loss_backward.default", nll_loss_backward},
    {"nll_loss_forward.default", nll_loss},
    {"ones.default", nothing_said},
    {"permute.default", permute},
    {"pow.Tensor_Scalar", pointwise},
    {"reciprocal.default", pointwise},
    {"relu.default", pointwise},
    {"repeat.default", repeat},
    {"reshape.default", view},
    {"roll.default", roll},
    {"rsqrt.default", pointwise},
    {"scalar_tensor.default", nothing_said},
    {"scatter.src", scatter},
    {"scatter.value", scatter},
    {"select.int", select},
    {"select_backward.default", select_backward},
    {"sigmoid.default", pointwise},
    {"sigmoid_backward.default", pointwise},
    {"silu.default", pointwise},
    {"silu_backward.default", pointwise},
    {"sin.default", pointwise},
    {"slice.Tensor", slice},
    {"slice_backward.default", slice_backward},
    {"slice_scatter.default", slice_scatter},
    {"split.Tensor", split},
    {"split_with_sizes.default", split},
    {"sqrt.default", pointwise},
    {"squeeze.dim", squeeze},
    {"squeeze.dims", squeeze},
    {"stack.default", stack},
    {"sub.Tensor", pointwise},
    {"sum.default", sum},
    {"sum.dim_IntList", sum},
    {"t.default", t},
    {"tanh.default", pointwise},
    {"tanh_backward.default", pointwise},
    {"threshold_backward.default", pointwise},
    {"topk.default", topk},
    {"transpose.int", transpose},
    {"tril.default", triangle},
    {"triu.default", triangle},
    {"unbind.int", unbind},
    {"unsqueeze.default", view},
    {"view.default", view},
    {"where.self", pointwise},
    {"zeros.default", nothing_said},
});
static_assert(std::ranges::is_sorted(table, {}, &row::op));

inline row const* find(std::string_view op) {
  if (!op.starts_with("aten.")) return nullptr;
  op.remove_prefix(5);
  auto const at = std::ranges::lower_bound(table, op, {}, &row::op);
  return at != table.end() && at->op == op ? &*at : nullptr;
}

}  // namespace aten
}  // namespace detail

/// How a node may be cut; nothing where it is not known. O(uses of tensors * axes).
inline std::vector<dim_link> aten_links(aten_node const& n) {
  auto const* row = detail::aten::find(n.op);
  if (!row && !n.pointwise) return {};
  try {
    detail::aten_call c(n);
    (row ? row->relate : detail::aten::pointwise)(c);
    return c.links();
  } catch (detail::odd_argument const&) { return {}; }
}

/// Whether a node makes tensors of zeros alone, as far as its operator and arguments tell.
inline bool aten_makes_zeros(aten_node const& n) {
  if (n.op == "aten.new_zeros.default" || n.op == "aten.zeros.default") return true;
  if (n.op != "aten.full.default" && n.op != "aten.full_like.default") return false;
  return n.args && n.args->is_array() && n.args->size() > 1 && (*n.args)[1].is_number() && (*n.args)[1] == 0;
}

}}}  // namespace neap::v0::io
