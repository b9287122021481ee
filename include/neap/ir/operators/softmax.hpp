// Softmax and its logarithm over the last axis. Their gradients read the results, not the arguments.
#pragma once

#include <neap/ir/operators/binary.hpp>
#include <neap/ir/operators/movement.hpp>

namespace neap { inline namespace v0 { namespace op {

namespace detail {
/// Facets of a function of whole rows of N tensors of one type.
template <int N>
struct row_function {
  static constexpr bool elementwise = true;  // a row is read before it is written
  void infer(shape_context& c) const {
    c.require_arity(N, N);
    require_floating(c, 0);
    require_rank(c, 0, 1, "the input");
    for (int i = 0; i < N; ++i) {
      require_same_type(c, 0, i);
      require_dense_rows(c, i);
    }
    c.fresh(c.in(0));
  }
  void relate(dim_context& c) const {
    for (int i = 0; i < N; ++i) relate_leading(c, i, 0, 1);
  }
};
/// The sum of each row, with an axis of extent 1.
value_id sum_of_rows(gradient_context& c, value_id v);
}  // namespace detail

/// g, y -> dx.
struct softmax_grad : detail::row_function<2> {
  static constexpr std::string_view name = "softmax_grad";
  static constexpr double flops = 4;
  void gradient(gradient_context& c) const;
};
struct softmax : detail::row_function<1> {
  static constexpr std::string_view name = "softmax";
  static constexpr double flops = 12;
  void gradient(gradient_context& c) const { c.give(0, c.emit(softmax_grad{}, {dense_rows(c, c.grad()), c.out(0)})); }
};
/// g, y -> dx.
struct log_softmax_grad : detail::row_function<2> {
  static constexpr std::string_view name = "log_softmax_grad";
  static constexpr double flops = 12;
  void gradient(gradient_context& c) const;
};
struct log_softmax : detail::row_function<1> {
  static constexpr std::string_view name = "log_softmax";
  static constexpr precision_rule precision = precision_use::full;
  static constexpr double flops = 12;
  void gradient(gradient_context& c) const;
};

template <class Backend>
void run(Backend& b, softmax const&, kernel_arguments const& a);
template <class Backend>
void run(Backend& b, log_softmax const&, kernel_arguments const& a);
template <class Backend>
void run(Backend& b, softmax_grad const&, kernel_arguments const& a);
template <class Backend>
void run(Backend& b, log_softmax_grad const&, kernel_arguments const& a);

}}}  // namespace neap::v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/softmax.ipp>
#endif
