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

#include <neap/ir/operators/fused.hpp>
#include <neap/ir/operators/matmul.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace neap { inline namespace v0 {

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
  static matmul_epilogue of(matmul const& m, epilogue e, bool keeps = false);
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
  fused steps(dtype element) const;
  /// The activation alone, of one input.
  fused activation(dtype element) const;

  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  work cost(work_context const& c) const;
  bytes_t workspace(work_context const& c) const;

 private:
  void add_activation(fused_maker& make, dtype element, int of) const;
};

template <std::same_as<host_backend> Backend>
void run(Backend& b, matmul_epilogue const& op, kernel_arguments const& a);

}  // namespace op

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/matmul_epilogue.ipp>
#endif
