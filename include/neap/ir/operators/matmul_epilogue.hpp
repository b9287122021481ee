// A product of matrices and what follows it as one operator: the epilogues that product libraries of GPUs have. So the
// product is not written to memory and read again. On the host, bits are those of the operators one after another: the
// product is rounded to its type before the epilogue reads it. train/fuse_epilogues.hpp puts it into programs.
//
//   bias         y = a b + bias
//   bias_relu    y = relu(a b + bias)
//   bias_gelu    y = gelu(a b + bias), by tanh
//   gelu_grad    y = (a b) * slope of gelu (by tanh) at x
//   sums_of_a    y = a b, and the sums over a's first axis: the gradient of a bias, if a is that of the biased value
//   sums_of_b    likewise of b
//   gelu_grad_sums   as gelu_grad, and the sums over y's rows: the gradient of the bias in front of the gelu
//
// A GPU's library rounds once, after the epilogue: y differs from the host's by rounding.
#pragma once

#include <neap/backend/kernels/reduce.hpp>
#include <neap/ir/operators/fused.hpp>
#include <neap/ir/operators/matmul.hpp>

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace neap::inline v0 {

/// What follows a product. The numbers are an attribute of op::matmul_epilogue.
enum class epilogue : std::int64_t { bias, bias_relu, bias_gelu, gelu_grad, sums_of_a, sums_of_b, gelu_grad_sums };

namespace op {

/// a and b as of matmul; and the bias [n], or x of y's type -> y; with `keeps` also a b + bias, which the activation reads;
/// of sums_of_a and sums_of_b also the sums, a being [k, m] and b [k, n]; of gelu_grad_sums also the sums [n]. No gradient: fused programs have theirs already.
struct matmul_epilogue {
  static constexpr std::string_view name = "matmul_epilogue";
  bool transpose_a = false, transpose_b = false;
  std::int64_t kind = 0;  // an epilogue
  bool keeps = false;     // of bias_relu and bias_gelu

  static constexpr auto attributes() {
    return std::array{field<&matmul_epilogue::transpose_a>("transpose_a"),
                      field<&matmul_epilogue::transpose_b>("transpose_b"), field<&matmul_epilogue::kind>("kind"),
                      field<&matmul_epilogue::keeps>("keeps")};
  }
  static matmul_epilogue of(matmul const& m, epilogue e, bool keeps = false) {
    return {m.transpose_a, m.transpose_b, static_cast<std::int64_t>(e), keeps};
  }
  epilogue follows() const { return static_cast<epilogue>(kind); }
  matmul product() const { return {transpose_a, transpose_b}; }
  /// The operand that is summed; -1: none.
  int summed() const { return follows() == epilogue::sums_of_a ? 0 : follows() == epilogue::sums_of_b ? 1 : -1; }
  bool is_gelu_gradient() const { return follows() == epilogue::gelu_grad || follows() == epilogue::gelu_grad_sums; }
  bool has_sums() const { return summed() >= 0 || follows() == epilogue::gelu_grad_sums; }
  /// What is summed, of a call's inputs and outputs.
  template <class T>
  T const& summed_of(std::span<T const> in, std::span<T const> out) const {
    return summed() >= 0 ? in[static_cast<std::size_t>(summed())] : out[0];
  }
  bool has_activation() const { return follows() == epilogue::bias_relu || follows() == epilogue::bias_gelu; }

  /// The epilogue as steps, whose inputs are the product and the third input. Their results have the product's element
  /// type. Not of sums.
  fused steps(dtype element) const {
    fused_maker make(2);
    if (is_gelu_gradient()) make.add(gelu_grad{true}, element, {0, 1});
    else if (auto const sum = *make.add(add{}, element, {0, 1}); has_activation()) add_activation(make, element, sum);
    return make.made();
  }
  /// The activation alone, of one input.
  fused activation(dtype element) const {
    fused_maker make(1);
    add_activation(make, element, 0);
    return make.made();
  }

  void infer(shape_context& c) const {
    c.require(kind >= 0 && kind <= static_cast<std::int64_t>(epilogue::gelu_grad_sums), "there is no epilogue ", kind);
    c.require(!keeps || has_activation(), "keeps what its activation reads, and has none");
    int const sums = summed(), arity = sums < 0 ? 3 : 2;
    c.require_arity(arity, arity);
    shape_context inner(name, c.inputs().first(2));
    product().infer(inner);
    auto const y = inner.outputs()[0].layout.type;
    if (sums >= 0) {
      c.require(c.in(0).rank() == 2 && c.in(1).rank() == 2, "sums need operands of two axes, was given ", c.in(0).dims,
                " x ", c.in(1).dims);
      c.require(sums == 0 ? transpose_a : !transpose_b, "sums are over the first axis, which of input ", sums,
                " is not the inner one");
    } else if (is_gelu_gradient()) {
      c.require(c.in(2) == y, "types differ, ", c.in(2), " and ", y);
    } else {
      detail::require_same_element(c, 0, 2);
      detail::require_dims(c, 2, {y.dims.back()}, "the bias");
    }
    c.fresh(y);
    if (keeps) c.fresh(y);
    if (sums >= 0) c.fresh(tensor_type{y.element, {c.in(sums).dims[1]}});
    else if (has_sums()) c.fresh(tensor_type{y.element, {y.dims.back()}});
  }
  void relate(dim_context& c) const {
    int const sums = summed();
    if (sums >= 0) {  // the other operand's rows or columns are not cut: each part would have all sums
      c.same(sums, 1, 0, sums);
      c.same(sums, 1, 1, 0);
      return product().relate_sums(c);
    }
    if (has_sums()) {  // rows may be cut, too: their sums are added
      product().relate_result(c, 0);
      c.aligned(2, 0);
      int const rank = c.out(0).rank(), ra = c.in(0).rank(), rb = c.in(1).rank();
      for (int k = 0; k < rank - 1; ++k) c.reduced(2, k, k);
      for (int i : {0, 1})
        for (int k = 0, r = c.in(i).rank(); k < r - 2; ++k)
          if (c.in(i).dims[k] == c.out(0).dims[rank - r + k]) c.reduced(i, k, rank - r + k);
      c.reduced(0, transpose_a ? ra - 1 : ra - 2, rank - 2);
      c.same(1, transpose_b ? rb - 2 : rb - 1, 1, 0), c.same(2, rank - 1, 1, 0);
      return;
    }
    for (int j = 0; j < (keeps ? 2 : 1); ++j) {
      product().relate_result(c, j);
      c.aligned(2, j);
    }
  }
  work cost(work_context const& c) const {
    auto w = detail::streaming_work(c, 0);
    auto const count = static_cast<double>(c.out[0].type.count());
    w.flops = 2.0 * count * static_cast<double>(c.in[0].type.extent(transpose_a ? -2 : -1));
    if (int const sums = summed(); sums >= 0)
      w.flops += static_cast<double>(c.in[static_cast<std::size_t>(sums)].type.count());
    else
      steps(c.out[0].type.element)
          .for_each_step(
              [&](int, fused_step const&, detail::step_operator const& f, void const*) { w.flops += count * f.flops; });
    if (follows() == epilogue::gelu_grad_sums) w.flops += count;
    return w;
  }
  bytes_t workspace(work_context const& c) const {
    bytes_t const of_product = product().workspace(c);
    if (!has_sums()) return of_product;
    return std::max(of_product, neap::sum_to_shape_workspace(summed_of(c.in, c.out).type, c.out[1].type));
  }

 private:
  void add_activation(fused_maker& make, dtype element, int of) const {
    if (follows() == epilogue::bias_relu) make.add(relu{}, element, {of});
    else make.add(gelu{true}, element, {of});
  }
};

namespace detail {
/// The steps in chunks that stay in the first cache: where what the activation reads is kept, it is written in one and the
/// activation reads it there.
template <class C>
void run_epilogue(host_backend& b, matmul_epilogue const& op, kernel_arguments const& a, tensor_ref const& product) {
  dtype const element = product.element;
  tensor_ref const in[]{product, a.in[2]};
  if (!op.keeps)
    return b.parallel_for(product.count(), neap::detail::map_grain,
                          fused_run<C>(op.steps(element), {in, a.out.first(1)}));
  auto const biased = matmul_epilogue::of(op.product(), epilogue::bias).steps(element);
  fused_run<C> const sum(biased, {in, a.out.last(1)}), bent(op.activation(element), {a.out.last(1), a.out.first(1)});
  b.parallel_for(product.count(), neap::detail::map_grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; i += neap::detail::map_chunk) {
      auto const until = std::min(end, i + neap::detail::map_chunk);
      sum(i, until);
      bent(i, until);
    }
  });
}
}  // namespace detail

template <std::same_as<host_backend> Backend>
void run(Backend& b, matmul_epilogue const& op, kernel_arguments const& a) {
  auto const& product = a.out[op.keeps ? 1 : 0];
  neap::matmul(b, a.in[0], a.in[1], product, {op.transpose_a, op.transpose_b, false}, a.workspace);
  if (op.summed() < 0) {
    if (product.element == dtype::f64) detail::run_epilogue<double>(b, op, a, product);
    else detail::run_epilogue<float>(b, op, a, product);
  }
  if (op.has_sums()) neap::sum_to_shape(b, a.out[1], op.summed_of<tensor_ref>(a.in, a.out), a.workspace);
}

}  // namespace op

}  // namespace neap::inline v0
