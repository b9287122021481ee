// Softmax and its logarithm over the last axis. Their gradients read the results, not the arguments.
#pragma once

#include <neap/backend/kernels/softmax.hpp>
#include <neap/ir/operators/binary.hpp>
#include <neap/ir/operators/movement.hpp>

namespace neap::inline v0::op {

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
inline value_id sum_of_rows(gradient_context& c, value_id v) {
  shape dims = c.type(v).dims;
  dims[dims.rank() - 1] = 1;
  return reduced_to(c, v, dims);
}
}  // namespace detail

/// g, y -> dx.
struct softmax_grad : detail::row_function<2> {
  static constexpr std::string_view name = "softmax_grad";
  static constexpr double flops = 4;
  void gradient(gradient_context& c) const {  // of y (g - sum(g y))
    value_id const h = dense_rows(c, c.grad()), g = c.in(0), y = c.in(1);
    if (c.wants(0)) c.give(0, c.emit(softmax_grad{}, {h, y}));
    if (!c.wants(1)) return;
    value_id const own = detail::difference(c, g, detail::sum_of_rows(c, detail::product(c, g, y)));
    value_id const others = detail::product(c, g, detail::sum_of_rows(c, detail::product(c, h, y)));
    c.give(1, detail::difference(c, detail::product(c, h, own), others));
  }
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
  void gradient(gradient_context& c) const {  // of g - e^y sum(g)
    value_id const h = c.grad(), weighted = detail::product(c, h, c.emit(exp{}, {c.in(1)}));
    if (c.wants(0)) c.give(0, detail::difference(c, h, detail::sum_of_rows(c, weighted)));
    if (c.wants(1)) c.give(1, c.emit(neg{}, {detail::product(c, weighted, detail::sum_of_rows(c, c.in(0)))}));
  }
};
struct log_softmax : detail::row_function<1> {
  static constexpr std::string_view name = "log_softmax";
  static constexpr precision_rule precision = precision_use::full;
  static constexpr double flops = 12;
  void gradient(gradient_context& c) const {
    c.give(0, c.emit(log_softmax_grad{}, {dense_rows(c, c.grad()), c.out(0)}));
  }
};

template <class Backend>
void run(Backend& b, softmax const&, kernel_arguments const& a) {
  neap::softmax(b, a.out[0], a.in[0]);
}
template <class Backend>
void run(Backend& b, log_softmax const&, kernel_arguments const& a) {
  neap::log_softmax(b, a.out[0], a.in[0]);
}
template <class Backend>
void run(Backend& b, softmax_grad const&, kernel_arguments const& a) {
  neap::softmax_backward(b, a.out[0], a.in[0], a.in[1]);
}
template <class Backend>
void run(Backend& b, log_softmax_grad const&, kernel_arguments const& a) {
  neap::log_softmax_backward(b, a.out[0], a.in[0], a.in[1]);
}

}  // namespace neap::inline v0::op
