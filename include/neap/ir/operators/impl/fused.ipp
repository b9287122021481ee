// The bodies of <neap/ir/operators/fused.hpp>.
#pragma once

#include <neap/ir/operators/fused.hpp>

#include <neap/backend/kernels/batch_norm.hpp>
#include <neap/backend/kernels/group_norm.hpp>
#include <neap/backend/kernels/layer_norm.hpp>
#include <neap/backend/kernels/reduce.hpp>
#include <neap/backend/kernels/rms_norm.hpp>
#include <neap/core/separate_compilation.hpp>

#include <algorithm>

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC bool fused::is_gradient() const {
  return (middle >= anchor::layer_norm_grad && middle <= anchor::log_softmax_grad) ||
         middle == anchor::batch_norm_grad || middle == anchor::batch_norm_relu_grad ||
         middle == anchor::group_norm_grad;
}

NEAP_FUNC int fused::statistics() const {
  if (middle == anchor::rms_norm || middle == anchor::rms_norm_grad) return 1;
  return is_of_channels() || middle == anchor::layer_norm || middle == anchor::layer_norm_grad ? 2 : 0;
}

NEAP_FUNC int fused::results(int arity) const {
  if (sums != product_sums::none) return whole_results() + 1;
  if (!is_norm_gradient()) return whole_results() + statistics();
  if (middle == anchor::batch_norm_relu_grad) return whole_results() + (gives_result ? 3 : 2);
  return whole_results() + (others(arity) > 1 + statistics() ? statistics() : 0);  // those of scale and shift
}

NEAP_FUNC std::string fused::fault_of_anchor(std::size_t arity) const {
  if (middle < anchor::sum || middle > anchor::none)
    return neap::detail::text_of({"there is no anchor ", static_cast<std::int64_t>(middle)});
  fused plain;
  with_anchor([&](auto const& op) { plain = of(op); });
  if (eps != plain.eps || groups != plain.groups || gives_result != plain.gives_result || keepdim != plain.keepdim ||
      transpose_a != plain.transpose_a || transpose_b != plain.transpose_b || axes != plain.axes || dims != plain.dims)
    return "it has an attribute that its anchor has not";
  if (sums < product_sums::none || sums > product_sums::of_result || (sums != product_sums::none && !is_product()))
    return "it has sums of no product";
  if (!has_anchor())
    return epilogue == element_program{} && whole_results() == 1
               ? ""
               : "it has no anchor, and goes on from one or keeps what it reads";
  if (prologue.empty() && (prologue.inputs > 0 || keeps_x)) return "it makes no x, and has inputs for it or keeps it";
  if (epilogue.empty() && (epilogue.inputs > 0 || keeps_y || keeps_step))
    return "it goes on from no y, and has inputs for it or keeps it";
  auto const operands = others(static_cast<int>(arity));
  if (operands < 0 || operands >= max_operands)
    return neap::detail::text_of(
        {"its programs are of ", prologue_inputs(), " and ", epilogue_inputs(), " inputs, got ", arity});
  if (is_reduction() && (prologue.empty() || !epilogue.empty())) return "a reduction has steps before it alone";
  if (!is_product()) return prologue.empty() && epilogue.empty() ? "it has no steps" : "";
  if (!prologue.empty() || keeps_y || epilogue.empty() != (summed() >= 0))
    return "a product has steps after it, or sums of an operand";
  return "";
}

NEAP_FUNC std::string fused::fault(std::size_t arity) const {
  if (auto wrong = fault_of_anchor(arity); !wrong.empty()) return wrong;
  if (!has_anchor()) return prologue.fault(arity);
  if (!prologue.empty())
    if (auto const wrong = prologue.fault(prologue.inputs); !wrong.empty()) return "prologue: " + wrong;
  if (epilogue.empty()) return {};
  if (auto const wrong = epilogue.fault(epilogue.inputs); !wrong.empty()) return "epilogue: " + wrong;
  bool const bends = epilogue.step_count == 2 && detail::step_at(epilogue.last().row)->arguments == 1;
  return keeps_step && (!is_product() || sums != product_sums::none || !bends)
             ? "it keeps what its activation reads, and has none"
             : "";
}

NEAP_FUNC element_program fused::first_step() const {
  element_program p(epilogue.inputs);
  epilogue.for_each_step([&](int k, element_step const& s, detail::step_operator const& f, void const* bytes) {
    std::array<int, element_step::max_operands> operands{};
    std::copy(s.operands.begin(), s.operands.end(), operands.begin());
    if (k == 0) p.add(s.row, bytes, s.element, std::span(operands).first(static_cast<std::size_t>(f.arguments)));
  });
  return p;
}

NEAP_FUNC element_program fused::second_step() const {
  element_program p(1);
  int const x = 0;
  epilogue.for_each_step([&](int k, element_step const& s, detail::step_operator const&, void const* bytes) {
    if (k == 1) p.add(s.row, bytes, s.element, {&x, 1});
  });
  return p;
}

NEAP_FUNC void fused::infer(shape_context& c) const {
  auto const wrong = fault(static_cast<std::size_t>(c.arity()));
  c.require(wrong.empty(), wrong);
  if (!has_anchor()) return prologue.infer(c);
  auto const in = c.inputs();
  auto const first = static_cast<std::size_t>(prologue_inputs()),
             end = first + static_cast<std::size_t>(others(c.arity()));
  plain_vector<tensor_layout> of_anchor{in[0]}, of_epilogue;
  if (!prologue.empty()) {
    shape_context made("fused: prologue", in.first(first));
    prologue.infer(made);
    of_anchor[0] = made.outputs()[0].layout;
  }
  auto const x = of_anchor[0].type;
  c.require(!is_reduction() || is_floating(x.element), "its steps make ", x, ", which is of no floating type");
  for (auto i = first; i < end; ++i) of_anchor.push_back(in[i]);
  plain_vector<tensor_type> made_by_anchor;
  with_anchor([&](auto const& f) {
    std::string const who = "fused: " + std::string(std::decay_t<decltype(f)>::name);
    shape_context made(who, {of_anchor.data(), of_anchor.size()});
    f.infer(made);
    for (auto const& o : made.outputs()) made_by_anchor.push_back(o.layout.type);
  });
  auto const y = made_by_anchor[0];
  if (!epilogue.empty()) {
    of_epilogue.push_back(tensor_layout::dense(y));
    for (auto i = end; i < in.size(); ++i) of_epilogue.push_back(in[i]);
    shape_context made("fused: epilogue", {of_epilogue.data(), of_epilogue.size()});
    epilogue.infer(made);
    auto const& z = made.outputs()[0].layout.type;
    c.require(z == y && (!keeps_step || epilogue.step(0).element == y.element), "its epilogue makes ", z, " of ", y);
  }
  c.fresh(y);
  if (keeps_x) c.fresh(x);
  if (keeps_y) c.fresh(y);
  if (keeps_step) c.fresh(y);
  for (std::size_t j = 1; j < made_by_anchor.size(); ++j) c.fresh(made_by_anchor[j]);
  if (sums != product_sums::none) infer_sums(c, y);
}

NEAP_FUNC void fused::infer_sums(shape_context& c, tensor_type const& z) const {
  int const k = summed();
  if (k < 0) return c.fresh(tensor_type{z.element, {z.dims.back()}});
  c.require(c.in(0).rank() == 2 && c.in(1).rank() == 2, "sums need operands of two axes, got ", c.in(0).dims, " x ",
            c.in(1).dims);
  c.require(k == 0 ? transpose_a : !transpose_b, "sums are over the first axis, which of input ", k,
            " is not the inner one");
  c.fresh(tensor_type{z.element, {c.in(k).dims[1]}});
}

}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op {

namespace detail {
/// The shape that `count` operands broadcast to together, dims_of(i) being the i-th one's.
template <class Dims>
shape broadcast_of(std::size_t count, Dims const& dims_of) {
  shape whole;
  for (std::size_t i = 0; i < count; ++i)
    if (int const rank = dims_of(i).rank(); rank > whole.rank()) whole = extents::filled(rank, 1);
  for (std::size_t i = 0; i < count; ++i) {
    shape const& own = dims_of(i);
    for (int k = 0, missing = whole.rank() - own.rank(); k < own.rank(); ++k)
      if (own[k] != 1) whole[missing + k] = own[k];
  }
  return whole;
}
}  // namespace detail

NEAP_FUNC tensor_type fused::x_type(std::span<tensor_layout const> in) const {
  return {prologue.last().element,
          detail::broadcast_of(in.size(), [&](std::size_t i) -> shape const& { return in[i].type.dims; })};
}

NEAP_FUNC tensor_type fused::x_type(std::span<tensor_ref const> in) const {
  return {prologue.last().element,
          detail::broadcast_of(in.size(), [&](std::size_t i) -> shape const& { return in[i].dims; })};
}

NEAP_FUNC std::array<bool, max_rank> fused::reduces(shape const& x) const {
  std::array<bool, max_rank> all{};
  if (middle == anchor::sum_to) {
    neap::detail::broadcast_axes(x, dims, all.data());
  } else {
    detail::reduced_axes const marked(axes, x.rank());
    std::copy_n(marked.at, max_rank, all.begin());
  }
  return all;
}

NEAP_FUNC neap::reduction fused::kind() const {
  return middle == anchor::mean         ? neap::reduction::mean
         : middle == anchor::max_reduce ? neap::reduction::max
         : middle == anchor::min_reduce ? neap::reduction::min
                                        : neap::reduction::sum;
}

NEAP_FUNC void fused::relate(dim_context& c) const {
  if (is_reduction()) relate_reduction(c);
  else if (is_of_rows()) relate_rows(c);
  else if (is_of_channels()) relate_channels(c);
  else if (is_product()) relate_product(c);
  else detail::relate_all_aligned(c);
}

NEAP_FUNC void fused::relate_reduction(dim_context& c) const {
  auto const whole = detail::broadcast_of(static_cast<std::size_t>(c.arity()), [&](std::size_t i) -> shape const& {
    return c.in(static_cast<int>(i)).dims;
  });
  auto const reduced = reduces(whole);
  bool const by_dims = middle == anchor::sum_to;
  auto const how = kind() == neap::reduction::mean  ? combine::mean
                   : kind() == neap::reduction::max ? combine::max
                   : kind() == neap::reduction::min ? combine::min
                                                    : combine::sum;
  for (int k = 0, y = by_dims ? c.out(0).rank() - whole.rank() : 0, n = 0; k < whole.rank(); ++k) {
    bool const reduces_k = reduced[static_cast<std::size_t>(k)];
    for (int i = 0; i < c.arity(); ++i) {
      int const own = k - (whole.rank() - c.in(i).rank());
      if (own < 0 || c.in(i).dims[own] != whole[k]) continue;
      if (reduces_k) c.reduced(i, own, n, how);
      else c.same(i, own, 0, y);
      if (keeps_x) c.same(i, own, 1, k);
    }
    n += reduces_k;
    y += by_dims || keepdim || !reduces_k;
  }
}

NEAP_FUNC void fused::relate_rows(dim_context& c) const {
  int const rank = c.out(0).rank(), whole = whole_results(), first = prologue_inputs(), count = others(c.arity());
  bool const adds_up = is_norm_gradient();
  auto const row_axis = [&](int i, int axis, int k) {
    for (int j = 0; j < whole; ++j) c.same(i, axis, j, k);
    for (int j = whole; j < c.output_count() && !adds_up; ++j) c.same(i, axis, j, k);
    if (adds_up && whole < c.output_count()) c.reduced(i, axis, k);
  };
  auto const broadcast = [&](int i) {
    int const behind = rank - c.in(i).rank();
    for (int k = std::max(0, behind); k + 1 < rank; ++k)
      if (c.in(i).dims[k - behind] == c.out(0).dims[k]) row_axis(i, k - behind, k);
  };
  for (int i = 0; i < first; ++i) broadcast(i);
  // Gradients read rows and their statistics, and then a scale; norms have scale and shift alone.
  for (int i = 0; is_gradient() && i < std::min(count, 1 + statistics()); ++i)
    for (int k = 0; k + 1 < rank; ++k) row_axis(first + i, k, k);
  for (int i = first + count; i < c.arity(); ++i) broadcast(i);
}

// Batch norms are cut along channels, group norms along samples. Beside whole tensors, the anchor has statistics
// [N, groups], which samples cut, and statistics and vectors [C], which channels cut.
NEAP_FUNC void fused::relate_channels(dim_context& c) const {
  auto const& whole = c.out(0).dims;
  int const cut = is_of_groups() ? 0 : 1, first = prologue_inputs(), end = first + others(c.arity());
  auto const axis_of = [&](int i) {
    int const rank = c.in(i).rank(), behind = whole.rank() - rank;
    if (i < first || i >= end) return cut - behind;
    if (is_of_groups()) return rank > 1 ? 0 : -1;
    return rank > 1 ? 1 : 0;
  };
  for (int i = 0; i < c.arity(); ++i) {
    int const axis = axis_of(i);
    bool const of_anchor = i >= first && i < end;
    if (axis < 0 || (!of_anchor && c.in(i).dims[axis] != whole[cut])) continue;
    bool summed = false;  // over samples: the gradients of a group norm's scale and shift
    for (int j = 0; j < c.output_count(); ++j)
      if (c.out(j).rank() > 1) c.same(i, axis, j, cut);
      else if (is_of_groups()) summed = true;
      else c.same(i, axis, j, 0);
    if (summed) c.reduced(i, axis, 0);
  }
}

NEAP_FUNC void fused::relate_product(dim_context& c) const {
  auto const product = anchor_as<matmul>();
  if (int const k = summed();
      k >= 0) {  // the other operand's rows or columns are not cut: each part would have all sums
    c.same(k, 1, 0, k);
    c.same(k, 1, 1, 0);
    return product.relate_sums(c);
  }
  int const whole = whole_results(), rank = c.out(0).rank();
  for (int j = 0; j < whole; ++j) {
    product.relate_result(c, j);
    for (int i = 2; i < c.arity(); ++i) c.aligned(i, j);
  }
  if (sums == product_sums::none) return;
  for (int i = 2; i < c.arity(); ++i)  // rows may be cut, too: their sums are added
    for (int k = 0, r = c.in(i).rank(); k < r; ++k)
      if (int const of_z = rank - r + k; c.in(i).dims[k] != c.out(0).dims[of_z]) continue;
      else if (of_z == rank - 1) c.same(i, k, whole, 0);
      else c.reduced(i, k, of_z);
  int const ra = c.in(0).rank(), rb = c.in(1).rank();
  for (int i : {0, 1})
    for (int k = 0, r = c.in(i).rank(); k < r - 2; ++k)
      if (c.in(i).dims[k] == c.out(0).dims[rank - r + k]) c.reduced(i, k, rank - r + k);
  c.reduced(0, transpose_a ? ra - 1 : ra - 2, rank - 2);
  c.same(1, transpose_b ? rb - 2 : rb - 1, whole, 0);
}

}}}  // namespace neap::v0::op

namespace neap { inline namespace v0 { namespace op {

NEAP_FUNC work fused::cost(work_context const& c) const {
  double flops = prologue.flops() + epilogue.flops();
  if (!is_reduction() && !is_product()) {
    with_anchor([&](auto const& f) { flops += neap::detail::flops_v<std::decay_t<decltype(f)>>; });
    return detail::streaming_work(c, flops);
  }
  auto w = detail::streaming_work(c, 0);
  if (is_reduction()) {
    w.flops = (1 + flops) * static_cast<double>(x_type(c.in).count());
    return w;
  }
  auto const count = static_cast<double>(c.out[0].type.count());
  w.flops = 2.0 * count * static_cast<double>(c.in[0].type.extent(transpose_a ? -2 : -1)) + count * flops;
  if (sums != product_sums::none) w.flops += static_cast<double>(summed_of(c.in, c.out).type.count());
  return w;
}

NEAP_FUNC bytes_t fused::workspace(work_context const& c) const {
  auto const& z = c.out[0].type;
  if (is_product()) {
    bytes_t const of_product = anchor_as<matmul>().workspace(c);
    if (sums == product_sums::none) return of_product;
    return std::max(of_product, neap::sum_to_shape_workspace(summed_of(c.in, c.out).type, c.out.back().type));
  }
  if (is_reduction()) {
    auto const x = x_type(c.in);
    return neap::detail::reduce_bytes(x, z.element, reduces(x.dims).data());
  }
  if (!is_norm_gradient()) return 0;
  if (middle == anchor::group_norm_grad) return neap::group_norm_backward_workspace(z);
  if (is_of_channels()) return neap::batch_norm_workspace(z);
  if (static_cast<int>(c.out.size()) == whole_results()) return 0;
  return statistics() == 2 ? neap::layer_norm_backward_workspace(z) : neap::rms_norm_backward_workspace(z);
}

namespace detail {

NEAP_FUNC fused_operands::fused_operands(fused const& op, kernel_arguments const& a) {
  auto const first = static_cast<std::size_t>(op.prologue_inputs()),
             end = first + static_cast<std::size_t>(op.others(static_cast<int>(a.in.size())));
  prologue_in = a.in.first(first);
  auto const& y = a.out[op.keeps_y ? (op.keeps_x ? 2 : 1) : op.keeps_step ? 1 : 0];
  anchor_in[0] = op.prologue.empty() ? a.in[0] : op.keeps_x ? a.out[1] : y;
  for (auto i = first; i < end; ++i) anchor_in[operands++] = a.in[i];
  anchor_out[0] = epilogue_in[0] = y;
  for (auto j = static_cast<std::size_t>(op.whole_results()); j < a.out.size(); ++j) anchor_out[results++] = a.out[j];
  for (std::size_t i = end, k = 1; i < a.in.size(); ++i) epilogue_in[k++] = a.in[i];
}

NEAP_FUNC kernel_arguments fused_operands::middle(void* workspace) const& {
  return {std::span(anchor_in).first(operands), std::span(anchor_out).first(results), workspace};
}

NEAP_FUNC kernel_arguments fused_operands::epilogue(fused const& op, kernel_arguments const& a) const& {
  return {std::span(epilogue_in).first(static_cast<std::size_t>(op.epilogue_inputs())), a.out.first(1)};
}

}  // namespace detail

}}}  // namespace neap::v0::op
