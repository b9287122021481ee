// Two-dimensional convolution of [N, C, H, W] and its two gradients. The shift is an optional third input rather than a
// broadcast addition: the kernel starts its sums from it, so that neither time nor a second tensor is spent on it.
// Convolution is linear in each of x and w, so each of the three operators has the other two as its gradients; the gradient
// to the input, taken by itself, is the transposed convolution.
#pragma once

#include <neap/core/kernel_options.hpp>
#include <neap/ir/operators/by_f32.hpp>
#include <neap/ir/operators/reduction.hpp>
#include <neap/ir/operators/threads.hpp>

#include <concepts>

namespace neap { inline namespace v0 { namespace op {

namespace detail {
template <class Op>
conv2d_options options_of(Op const& o) {
  return {{o.stride[0], o.stride[1]}, {o.padding[0], o.padding[1]}, {o.dilation[0], o.dilation[1]}, o.groups};
}
work conv2d_work(work_context const& c, tensor_type const& y, tensor_type const& w);
#define NEAP_CONV2D_ATTRIBUTES(...)                                                                                   \
  extents stride{1, 1}, padding{0, 0}, dilation{1, 1}; /* rows, columns */                                            \
  std::int64_t groups = 1;                                                                                            \
  static constexpr auto attributes() {                                                                                \
    return std::array{field<&self::stride>("stride"), field<&self::padding>("padding"),                               \
                      field<&self::dilation>("dilation"), field<&self::groups>("groups") __VA_OPT__(, ) __VA_ARGS__}; \
  }                                                                                                                   \
  void require_attributes(shape_context& c) const {                                                                   \
    c.require(stride.rank() == 2 && padding.rank() == 2 && dilation.rank() == 2,                                      \
              "stride, padding and dilation take two numbers each, for rows and columns");                            \
  }

/// The shape of the result; the error for what does not fit has the operator's name.
shape conv2d_result(shape_context& c, shape const& x, shape const& w, conv2d_options const& o);
}  // namespace detail

/// dy, w -> dx, whose shape is `dims`.
struct conv2d_grad_input {
  static constexpr std::string_view name = "conv2d_grad_input";
  static constexpr precision_rule precision = precision_use::reduced;
  using self = conv2d_grad_input;
  static constexpr detail::shared_arguments weight_of_all{.inputs = 2};
  extents dims;
  NEAP_CONV2D_ATTRIBUTES(field<&self::dims>("dims"))
  void infer(shape_context& c) const {
    c.require_arity(2, 2);
    require_attributes(c);
    detail::require_floating(c, 0);
    detail::require_same_element(c, 0, 1);
    c.require(detail::conv2d_result(c, dims, c.in(1).dims, detail::options_of(*this)) == c.in(0).dims, "the gradient ",
              c.in(0).dims, " is not that of ", dims, " with filter ", c.in(1).dims);
    c.fresh(tensor_type{c.in(0).element, dims});
  }
  void relate(dim_context& c) const;
  work cost(work_context const& c) const { return detail::conv2d_work(c, c.in[0].type, c.in[1].type); }
  bytes_t workspace(work_context const& c) const;
  void gradient(gradient_context& c) const;
};
/// x, dy -> dw, whose shape is `dims`.
struct conv2d_grad_weight {
  static constexpr std::string_view name = "conv2d_grad_weight";
  static constexpr precision_rule precision = precision_use::reduced;
  using self = conv2d_grad_weight;
  static constexpr detail::shared_arguments sums_of_all{.outputs = true};
  extents dims;
  NEAP_CONV2D_ATTRIBUTES(field<&self::dims>("dims"))
  void infer(shape_context& c) const {
    c.require_arity(2, 2);
    require_attributes(c);
    detail::require_floating(c, 0);
    detail::require_same_element(c, 0, 1);
    c.require(detail::conv2d_result(c, c.in(0).dims, dims, detail::options_of(*this)) == c.in(1).dims, "the gradient ",
              c.in(1).dims, " is not that of ", c.in(0).dims, " with filter ", dims);
    c.fresh(tensor_type{c.in(0).element, dims});
  }
  void relate(dim_context& c) const;
  work cost(work_context const& c) const { return detail::conv2d_work(c, c.in[1].type, c.out[0].type); }
  bytes_t workspace(work_context const& c) const;
  void gradient(gradient_context& c) const;
};
/// x [N, C, H, W], w [O, C / groups, KH, KW], [b [O]] -> y [N, O, OH, OW].
struct conv2d {
  static constexpr std::string_view name = "conv2d";
  static constexpr precision_rule precision = precision_use::reduced;
  using self = conv2d;
  static constexpr detail::shared_arguments weight_of_all{.inputs = 6};  // and the shift
  NEAP_CONV2D_ATTRIBUTES()
  void infer(shape_context& c) const {
    c.require_arity(2, 3);
    require_attributes(c);
    detail::require_floating(c, 0);
    detail::require_same_element(c, 0, 1);
    shape const y = detail::conv2d_result(c, c.in(0).dims, c.in(1).dims, detail::options_of(*this));
    if (c.arity() == 3) {
      detail::require_same_element(c, 0, 2);
      detail::require_dims(c, 2, {y[1]}, "the shift");
    }
    c.fresh(tensor_type{c.in(0).element, y});
  }
  void relate(dim_context& c) const;
  work cost(work_context const& c) const { return detail::conv2d_work(c, c.out[0].type, c.in[1].type); }
  bytes_t workspace(work_context const& c) const;
  void gradient(gradient_context& c) const;
};
#undef NEAP_CONV2D_ATTRIBUTES

template <std::same_as<host_backend> Backend>
void run(Backend& b, conv2d const& op, kernel_arguments const& a);
template <std::same_as<host_backend> Backend>
void run(Backend& b, conv2d_grad_input const& op, kernel_arguments const& a);
template <std::same_as<host_backend> Backend>
void run(Backend& b, conv2d_grad_weight const& op, kernel_arguments const& a);

}}}  // namespace neap::v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/conv2d.ipp>
#endif
