// The bodies of <neap/import/aten_links.hpp>.
#pragma once

#include <neap/import/aten_links.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/ir/operators/movement.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include <nlohmann/json.hpp>

namespace neap { inline namespace v0 { namespace io {

namespace detail::aten {

NEAP_FUNC void pointwise(aten_call& c) {
  c.take_inputs();
  if (!c.gives(0)) return;
  int const rank = c.out_dims().rank();
  for (int k = 0; k < rank; ++k) {
    tensor_axes in, out;
    for (int o = 0; o < c.operand_count(); ++o) {
      int const a = c.rank(o) - rank + k;
      if (c.rank(o) > rank) throw unsupported_argument{};
      if (a >= 0 && (c.dims(o)[a] != 1 || c.out_dims()[k] == 1)) in.push_back({o, a});
    }
    for (int j = 0; j < c.output_count(); ++j) {
      if (c.gives(j) && c.out_dims(j).rank() != rank) throw unsupported_argument{};
      out.push_back({j, k});
    }
    c.loop(in, out);
  }
}

// ---- views and moves

/// view(x, size) and its like, squeezed and unsqueezed ones among them.
NEAP_FUNC void view(aten_call& c) {
  if (c.layout(0).type.count() != c.out_layout(0).type.count()) throw unsupported_argument{};
  neap::op::detail::each_reshaped_axis(c.dims(0), c.out_dims(), [&](int i, int j) {
    c.loop({{0, i}}, {{0, j}}, combine::concat, true);
  });
}
/// squeeze(x, dim) of one axis or a list: a part of extent 1 of an axis that it names would be squeezed.
NEAP_FUNC void squeeze(aten_call& c) {
  if (c.is_null(1)) throw unsupported_argument{};
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
NEAP_FUNC void drops_axis(aten_call& c, int but) {
  for (int k = 0; k < c.rank(0); ++k) {
    tensor_axes out;
    for (int j = 0; j < c.output_count(); ++j) out.push_back({j, k - (k > but)});
    if (k != but) c.loop({{0, k}}, out);
  }
}
/// The axes of all operands, and `added`, which they have not.
NEAP_FUNC void adds_axis(aten_call& c, int added) {
  for (int k = 0; k < c.rank(0); ++k) {
    tensor_axes in;
    for (int o = 0; o < c.operand_count(); ++o) in.push_back({o, k});
    c.loop(in, {{0, k + (k >= added)}});
  }
}
/// All axes, of all operands and outputs, but one.
NEAP_FUNC void all_axes_but(aten_call& c, int but) {
  for (int k = 0; k < c.rank(0); ++k)
    if (k != but) c.everywhere(k);
}
NEAP_FUNC void leading_axes(aten_call& c, int but_last) {
  for (int k = 0; k < c.rank(0) - but_last; ++k) c.everywhere(k);
}
NEAP_FUNC void permuted(aten_call& c, std::vector<std::int64_t> const& axes) {
  if (static_cast<int>(axes.size()) != c.rank(0)) throw unsupported_argument{};
  for (int k = 0; k < c.rank(0); ++k)
    c.loop({{0, c.plain_axis(axes[static_cast<std::size_t>(k)], c.rank(0))}}, {{0, k}});
}
NEAP_FUNC void permute(aten_call& c) { permuted(c, c.integers(1)); }
NEAP_FUNC void transposed(aten_call& c, int a, int b) {
  for (int k = 0; k < c.rank(0); ++k) c.loop({{0, k}}, {{0, k == a ? b : k == b ? a : k}});
}
NEAP_FUNC void transpose(aten_call& c) { transposed(c, c.axis(1, c.rank(0)), c.axis(2, c.rank(0))); }
NEAP_FUNC void t(aten_call& c) {
  if (c.rank(0) == 2) transposed(c, 0, 1);
  else transposed(c, 0, 0);
}
/// Whether [start, stop) with a step, at arguments p to p + 2, is all of an axis, and so is that of a part.
NEAP_FUNC bool is_all(aten_call& c, int p, std::int64_t extent) {
  return c.integer(p + 2, 1) == 1 && (c.integer(p, 0) == 0 || c.integer(p) <= -extent) &&
         c.integer(p + 1, INT64_MAX) >= extent;
}
/// slice(x, dim, start, end, step).
NEAP_FUNC void slice(aten_call& c) {
  int const k = c.axis(1, c.rank(0), 0);
  all_axes_but(c, is_all(c, 2, c.dims(0)[k]) ? -1 : k);
}
/// slice_backward(g, input_sizes, dim, start, end, step).
NEAP_FUNC void slice_backward(aten_call& c) {
  int const k = c.axis(2, c.rank(0));
  all_axes_but(c, is_all(c, 3, c.out_dims()[k]) ? -1 : k);
}
/// slice_scatter(x, src, dim, start, end, step).
NEAP_FUNC void slice_scatter(aten_call& c) {
  int const k = c.axis(2, c.rank(0), 0);
  all_axes_but(c, is_all(c, 3, c.out_dims()[k]) ? -1 : k);
}
NEAP_FUNC void select(aten_call& c) { drops_axis(c, c.axis(1, c.rank(0))); }
/// select_backward(g, input_sizes, dim, index).
NEAP_FUNC void select_backward(aten_call& c) { adds_axis(c, c.axis(2, c.out_dims().rank())); }
NEAP_FUNC void unbind(aten_call& c) { drops_axis(c, c.axis(1, c.rank(0), 0)); }
NEAP_FUNC void split(aten_call& c) { all_axes_but(c, c.axis(2, c.rank(0), 0)); }
NEAP_FUNC void cat(aten_call& c) { all_axes_but(c, c.axis(1, c.rank(0), 0)); }
NEAP_FUNC void stack(aten_call& c) { adds_axis(c, c.axis(1, c.out_dims().rank(), 0)); }
/// repeat(x, repeats).
NEAP_FUNC void repeat(aten_call& c) {
  auto const times = c.integers(1);
  int const added = c.out_dims().rank() - c.rank(0);
  if (static_cast<int>(times.size()) != c.out_dims().rank() || added < 0) throw unsupported_argument{};
  for (int k = 0; k < c.rank(0); ++k)
    if (times[static_cast<std::size_t>(k) + static_cast<std::size_t>(added)] == 1) c.loop({{0, k}}, {{0, k + added}});
}
/// roll(x, shifts, dims); without dims it rolls all elements as one row.
NEAP_FUNC void roll(aten_call& c) {
  if (c.is_null(2)) return;
  unsigned rolled = 0;
  for (auto a : c.integers(2)) rolled |= 1u << c.plain_axis(a, c.rank(0));
  for (int k = 0; rolled != 0 && k < c.rank(0); ++k)
    if (!(rolled >> k & 1u)) c.everywhere(k);
}
/// constant_pad_nd(x, pad, value): pad has two numbers for each axis, from the last on.
NEAP_FUNC void pad(aten_call& c) {
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
NEAP_FUNC void as_strided(aten_call& c) {
  auto const &x = c.layout(0), &y = c.out_layout(0);
  if (!x.is_dense() || !y.is_dense() || x.offset != y.offset || x.type.count() != y.type.count()) return;
  outermost(x.type.dims, y.type.dims, [&](int i, int j) { c.loop({{0, i}}, {{0, j}}, combine::concat, true); });
}
/// as_strided_scatter(x, src, size, stride, storage_offset), where src overwrites all of x in its order.
NEAP_FUNC void as_strided_scatter(aten_call& c) {
  tensor_layout src{c.layout(1).type, {}, 0};
  for (auto s : c.integers(3)) {
    if (src.strides.rank() == max_rank) throw unsupported_argument{};
    src.strides.push_back(s);
  }
  if (src.strides.rank() != src.type.rank() || !src.is_dense() ||
      c.integer(4, c.layout(0).offset) != c.layout(0).offset)
    return;
  if (!c.layout(0).is_dense() || c.layout(0).type.count() != src.type.count()) return;
  outermost(c.dims(0), src.type.dims, [&](int i, int j) { c.loop({{0, i}, {1, j}}, {{0, i}}, combine::concat, true); });
}
NEAP_FUNC void triangle(aten_call& c) { leading_axes(c, 2); }

// ---- products

/// a [M, K] b [K, N], with `batch` axes in front of each; `bias` broadcasts to the result.
NEAP_FUNC void product(aten_call& c, int a, int b, int bias, int batch) {
  int const m = batch, n = batch + 1;
  if (c.rank(a) != n + 1 || c.rank(b) != n + 1) throw unsupported_argument{};
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
NEAP_FUNC void mm(aten_call& c) { product(c, c.tensor(0), c.tensor(1), -1, 0); }
NEAP_FUNC void bmm(aten_call& c) { product(c, c.tensor(0), c.tensor(1), -1, 1); }
NEAP_FUNC void addmm(aten_call& c) { product(c, c.tensor(1), c.tensor(2), c.tensor(0), 0); }
NEAP_FUNC void baddbmm(aten_call& c) { product(c, c.tensor(1), c.tensor(2), c.tensor(0), 1); }

/// convolution(x, w, bias, stride, padding, dilation, transposed, output_padding, groups). The number of groups is an
/// argument, so that channels are cut only where there is one.
NEAP_FUNC void convolution(aten_call& c) {
  int const x = c.tensor(0), w = c.tensor(1), bias = c.tensor(2);
  bool const back = c.boolean(6);
  if (c.rank(x) != c.rank(w) || c.rank(x) != c.out_dims().rank()) throw unsupported_argument{};
  c.loop({{x, 0}}, {{0, 0}});
  if (c.integer(8) != 1) return;
  c.loop({{w, back ? 1 : 0}, {bias, 0}}, {{0, 1}});
  if (bias < 0) c.loop({{x, 1}, {w, back ? 0 : 1}}, {}, combine::sum);
}
/// convolution_backward(g, x, w, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, mask) ->
/// gradients of x, w, bias.
NEAP_FUNC void convolution_backward(aten_call& c) {
  int const g = c.tensor(0), x = c.tensor(1), w = c.tensor(2);
  bool const back = c.boolean(7);
  if (c.rank(x) != c.rank(w) || c.rank(x) != c.rank(g)) throw unsupported_argument{};
  c.loop({{g, 0}, {x, 0}}, {{0, 0}}, combine::sum);
  if (c.integer(9) != 1) return;
  int const out = back ? 1 : 0;                                             // w's axis of the channels of g
  c.loop({{g, 1}, {w, out}}, {{1, out}, {2, 0}}, combine::sum);             // x gets something from every channel of g
  c.loop({{x, 1}, {w, 1 - out}}, {{0, 1}, {1, 1 - out}}, combine::concat);  // the bias has nothing to do with x
}

// ---- normalisation

/// native_layer_norm(x, normalized_shape, w, b, eps) -> y, mean, rstd.
NEAP_FUNC void layer_norm(aten_call& c) {
  int const x = c.tensor(0), rows = c.rank(x) - static_cast<int>(c.integers(1).size());
  for (int k = 0; k < rows; ++k) c.loop({{x, k}}, {{0, k}, {1, k}, {2, k}});
}
/// native_layer_norm_backward(g, x, normalized_shape, mean, rstd, w, b, mask) -> gradients of x, w, b.
NEAP_FUNC void layer_norm_backward(aten_call& c) {
  int const g = c.tensor(0), x = c.tensor(1), mean = c.tensor(3), rstd = c.tensor(4);
  int const rows = c.rank(x) - static_cast<int>(c.integers(2).size());
  for (int k = 0; k < rows; ++k) c.loop({{g, k}, {x, k}, {mean, k}, {rstd, k}}, {{0, k}}, combine::sum);
}
/// Axis 1 of x-like tensors [N, C, ...] and the only one of vectors [C].
NEAP_FUNC void channels(aten_call& c) {
  tensor_axes in, out;
  for (int o = 0; o < c.operand_count(); ++o) in.push_back({o, c.rank(o) > 1});
  for (int j = 0; j < c.output_count(); ++j)
    if (c.gives(j)) out.push_back({j, c.out_dims(j).rank() > 1});
  c.loop(in, out);
}
/// native_batch_norm_backward(g, x, w, running_mean, running_var, save_mean, save_rstd, train, eps, mask) -> gradients
/// of x, w, b. In training the statistics are those of the whole batch.
NEAP_FUNC void batch_norm_backward(aten_call& c) {
  channels(c);
  if (!c.boolean(7)) c.loop({{c.tensor(0), 0}, {c.tensor(1), 0}}, {{0, 0}}, combine::sum);
}
/// native_group_norm(x, w, b, N, C, HxW, groups, eps) -> y, mean, rstd. The number of groups is an argument.
NEAP_FUNC void group_norm(aten_call& c) { c.loop({{c.tensor(0), 0}}, {{0, 0}, {1, 0}, {2, 0}}); }
/// native_group_norm_backward(g, x, mean, rstd, w, N, C, HxW, groups, mask) -> gradients of x, w, b.
NEAP_FUNC void group_norm_backward(aten_call& c) {
  c.loop({{c.tensor(0), 0}, {c.tensor(1), 0}, {c.tensor(2), 0}, {c.tensor(3), 0}}, {{0, 0}}, combine::sum);
}

// ---- along one axis, and reductions

/// softmax(x, dim, half_to_float).
NEAP_FUNC void softmax(aten_call& c) { all_axes_but(c, c.axis(1, c.rank(0))); }
/// softmax_backward_data(g, y, dim, dtype).
NEAP_FUNC void softmax_backward(aten_call& c) { all_axes_but(c, c.axis(2, c.rank(0))); }
/// topk(x, k, dim).
NEAP_FUNC void topk(aten_call& c) { all_axes_but(c, c.axis(2, c.rank(0), -1)); }

/// (x, dims, keepdim); no dims: all.
NEAP_FUNC void reduction(aten_call& c, combine how) {
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
NEAP_FUNC void sum(aten_call& c) { reduction(c, combine::sum); }
NEAP_FUNC void mean(aten_call& c) { reduction(c, combine::mean); }

// ---- picking

/// embedding(table, indices, ...).
NEAP_FUNC void embedding(aten_call& c) {
  int const table = c.tensor(0), index = c.tensor(1);
  for (int k = 0; k < c.rank(index); ++k) c.loop({{index, k}}, {{0, k}});
  c.loop({{table, 1}}, {{0, c.rank(index)}});
}
/// embedding_dense_backward(g, indices, rows, padding_idx, scale_grad_by_freq): with the last, how often an index comes in
/// all of them counts.
NEAP_FUNC void embedding_backward(aten_call& c) {
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
      if (element != dtype::i64 && element != dtype::i32) throw unsupported_argument{};
      first = first < 0 ? k : first, last = k, ++count;
      rank = std::max(rank, c.rank(i));
    }
    if (count == 0 || static_cast<int>(index.size()) > c.rank(x)) throw unsupported_argument{};
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
NEAP_FUNC void index(aten_call& c) {
  int const x = c.tensor(0);
  auto const by = c.tensors(1);
  indexing const at(c, x, by);
  if (at.rank() != c.out_dims().rank()) throw unsupported_argument{};
  for (int k = 0; k < c.rank(x); ++k)
    if (int const a = at.axes[static_cast<std::size_t>(k)]; a >= 0) c.loop({{x, k}}, {{0, a}});
  for (int b = 0; b < at.block.rank(); ++b) c.loop(at.of_block(c, by, b), {{0, at.first_axis + b}});
}
/// index_put(x, indices, values, accumulate): values broadcast to x[indices]. What is added to zeros is a sum of parts.
NEAP_FUNC void index_put(aten_call& c) {
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
NEAP_FUNC void gather(aten_call& c) {
  int const x = c.tensor(0), index = c.tensor(2), dim = c.axis(1, c.rank(x));
  if (c.rank(index) != c.rank(x)) throw unsupported_argument{};
  for (int k = 0; k < c.rank(x); ++k)
    if (k == dim) c.loop({{index, k}}, {{0, k}});
    else if (c.dims(x)[k] == c.dims(index)[k]) c.loop({{x, k}, {index, k}}, {{0, k}});
}
/// scatter(x, dim, index, src): src a tensor or a number.
NEAP_FUNC void scatter(aten_call& c) {
  int const x = c.tensor(0), index = c.tensor(2), dim = c.axis(1, c.rank(x));
  auto const& src = c.argument(3);
  int const from = src.is_number() ? -1 : c.tensor(3);
  if (src.is_null() || c.rank(index) != c.rank(x) || (from >= 0 && c.rank(from) != c.rank(x)))
    throw unsupported_argument{};
  for (int k = 0; k < c.rank(x); ++k)
    if (k != dim && c.dims(x)[k] == c.dims(index)[k] && (from < 0 || c.dims(from)[k] == c.dims(index)[k]))
      c.loop({{x, k}, {index, k}, {from, k}}, {{0, k}});
}

// ---- images

/// Poolings of [..., H, W] and their gradients: places in a plane are counted within it.
NEAP_FUNC void planes(aten_call& c) { leading_axes(c, 2); }

// ---- attention

/// Batches, and heads where keys have as many as queries.
NEAP_FUNC void heads(aten_call& c, std::initializer_list<int> in, std::initializer_list<int> out, combine rest) {
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
NEAP_FUNC void attention(aten_call& c) {
  if (c.boolean(5, false)) return;  // return_debug_mask
  heads(c, {c.tensor(0), c.tensor(1), c.tensor(2)}, {0, 1}, combine::same);
}
/// _scaled_dot_product_flash_attention_backward(g, q, k, v, y, logsumexp, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p,
/// is_causal, rng_state, unused).
NEAP_FUNC void attention_backward(aten_call& c) {
  if (c.tensor(6) >= 0 || c.tensor(7) >= 0) return;  // of sequences that lie one after another
  heads(c, {c.tensor(0), c.tensor(1), c.tensor(2), c.tensor(3), c.tensor(4), c.tensor(5)}, {0, 1, 2}, combine::concat);
}

// ---- losses. Reduction: 0 none, 1 the mean, 2 the sum.

/// nll_loss_forward(x, target, w, reduction, ignore_index) -> loss, total weight. The mean's divisor is the weight of all
/// rows that count, which is not known of a part.
NEAP_FUNC void nll_loss(aten_call& c) {
  int const x = c.tensor(0), target = c.tensor(1);
  if (c.rank(x) == 2 && c.integer(3) == 2) c.loop({{x, 0}, {target, 0}}, {}, combine::sum);
}
/// nll_loss_backward(g, x, target, w, reduction, ignore_index, total_weight): the divisor is given.
NEAP_FUNC void nll_loss_backward(aten_call& c) {
  int const g = c.tensor(0), x = c.tensor(1), target = c.tensor(2);
  if (c.rank(x) == 2) c.loop({{x, 0}, {target, 0}, {c.integer(4) == 0 ? g : -1, 0}}, {{0, 0}});
}
/// mse_loss(x, y, reduction).
NEAP_FUNC void mse_loss(aten_call& c) {
  auto const reduction = c.integer(2, 1);
  if (reduction < 0 || reduction > 2 || c.dims(0) != c.dims(1)) throw unsupported_argument{};
  if (reduction == 0) return pointwise(c);
  for (int k = 0; k < c.rank(0); ++k) c.loop({{0, k}, {1, k}}, {}, reduction == 1 ? combine::mean : combine::sum);
}
/// mse_loss_backward(g, x, y, reduction): the mean's divisor is the number of elements, which are fewer in a part.
NEAP_FUNC void mse_loss_backward(aten_call& c) {
  if (c.integer(3) == 0 || c.integer(3) == 2) pointwise(c);
}

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
    {"arange.default", no_relations},
    {"arange.start", no_relations},
    {"arange.start_step", no_relations},
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
    {"empty.memory_format", no_relations},
    {"eq.Scalar", pointwise},
    {"eq.Tensor", pointwise},
    {"erf.default", pointwise},
    {"exp.default", pointwise},
    {"expand.default", pointwise},
    {"fill.Scalar", pointwise},
    {"full.default", no_relations},
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
    {"new_zeros.default", no_relations},
    {"nll_loss_backward.default", nll_loss_backward},
    {"nll_loss_forward.default", nll_loss},
    {"ones.default", no_relations},
    {"permute.default", permute},
    {"pow.Tensor_Scalar", pointwise},
    {"reciprocal.default", pointwise},
    {"relu.default", pointwise},
    {"repeat.default", repeat},
    {"reshape.default", view},
    {"roll.default", roll},
    {"rsqrt.default", pointwise},
    {"scalar_tensor.default", no_relations},
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
    {"zeros.default", no_relations},
});
static_assert(std::ranges::is_sorted(table, {}, &row::op));

NEAP_FUNC std::span<row const> rows() { return table; }

NEAP_FUNC row const* find(std::string_view op) {
  if (!op.starts_with("aten.")) return nullptr;
  op.remove_prefix(5);
  auto const at = std::ranges::lower_bound(table, op, {}, &row::op);
  return at != table.end() && at->op == op ? &*at : nullptr;
}

}  // namespace detail::aten

NEAP_FUNC std::vector<dim_link> aten_links(aten_node const& n) {
  auto const* row = detail::aten::find(n.op);
  if (!row && !n.pointwise) return {};
  try {
    detail::aten_call c(n);
    (row ? row->relate : detail::aten::pointwise)(c);
    return c.dimension_relations();
  } catch (detail::unsupported_argument const&) { return {}; }
}

NEAP_FUNC bool aten_makes_zeros(aten_node const& n) {
  if (n.op == "aten.new_zeros.default" || n.op == "aten.zeros.default") return true;
  if (n.op != "aten.full.default" && n.op != "aten.full_like.default") return false;
  return n.args && n.args->is_array() && n.args->size() > 1 && (*n.args)[1].is_number() && (*n.args)[1] == 0;
}

}}}  // namespace neap::v0::io
