// Pooling and resizing of images [N, C, H, W]. Planes do not depend on one another, so samples and channels may be cut.
#pragma once

#include <neap/core/kernel_options.hpp>
#include <neap/ir/operators/by_f32.hpp>
#include <neap/ir/operators/movement.hpp>

#include <concepts>

namespace neap { inline namespace v0 { namespace op {

namespace detail {
void require_images(shape_context& c, int i);
void relate_planes(dim_context& c);
template <class Op>
pool2d_options pool_of(Op const& o) {
  pool2d_options p{{o.window[0], o.window[1]}, {o.stride[0], o.stride[1]}, {o.padding[0], o.padding[1]}, true};
  if constexpr (requires { o.count_padding; }) p.count_padding = o.count_padding;
  return p;
}
shape pool_result(shape_context& c, shape const& x, pool2d_options const& o);
void require_windows(shape_context& c, extents const& window, extents const& stride, extents const& padding);
/// Those of f32 and f64 need none.
bytes_t images_workspace(work_context const& c);
bool resizable(shape const& dims, shape const& small);
interpolate_options resize_options(bool bilinear, bool align_corners);
}  // namespace detail

/// g, the places of the maxima -> dx of the shape `dims`.
struct max_pool2d_grad {
  static constexpr std::string_view name = "max_pool2d_grad";
  extents dims, window{2, 2}, stride{2, 2}, padding{0, 0};
  static constexpr auto attributes() {
    return std::array{field<&max_pool2d_grad::dims>("dims"), field<&max_pool2d_grad::window>("window"),
                      field<&max_pool2d_grad::stride>("stride"), field<&max_pool2d_grad::padding>("padding")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_planes(c); }
  bytes_t workspace(work_context const& c) const { return detail::images_workspace(c); }
};
/// The largest element of each window (rows, columns), and its place there, which the gradient reads instead of x.
struct max_pool2d {
  static constexpr std::string_view name = "max_pool2d";
  static constexpr double flops = 4;
  extents window{2, 2}, stride{2, 2}, padding{0, 0};
  static constexpr auto attributes() {
    return std::array{field<&max_pool2d::window>("window"), field<&max_pool2d::stride>("stride"),
                      field<&max_pool2d::padding>("padding")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const;
  bytes_t workspace(work_context const& c) const { return detail::images_workspace(c); }
  void gradient(gradient_context& c) const;
};

/// g -> dx of the shape `dims`.
struct avg_pool2d_grad {
  static constexpr std::string_view name = "avg_pool2d_grad";
  extents dims, window{2, 2}, stride{2, 2}, padding{0, 0};
  bool count_padding = true;
  static constexpr auto attributes() {
    return std::array{field<&avg_pool2d_grad::dims>("dims"), field<&avg_pool2d_grad::window>("window"),
                      field<&avg_pool2d_grad::stride>("stride"), field<&avg_pool2d_grad::padding>("padding"),
                      field<&avg_pool2d_grad::count_padding>("count_padding")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_planes(c); }
  bytes_t workspace(work_context const& c) const { return detail::images_workspace(c); }
  void gradient(gradient_context& c) const;
};
/// The mean of each window.
struct avg_pool2d {
  static constexpr std::string_view name = "avg_pool2d";
  static constexpr double flops = 4;
  extents window{2, 2}, stride{2, 2}, padding{0, 0};
  bool count_padding = true;  // the divisor is the whole window, else what of it lies inside
  static constexpr auto attributes() {
    return std::array{field<&avg_pool2d::window>("window"), field<&avg_pool2d::stride>("stride"),
                      field<&avg_pool2d::padding>("padding"), field<&avg_pool2d::count_padding>("count_padding")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_planes(c); }
  bytes_t workspace(work_context const& c) const { return detail::images_workspace(c); }
  void gradient(gradient_context& c) const;
};

/// g -> dx of the shape `dims`.
struct adaptive_avg_pool2d_grad {
  static constexpr std::string_view name = "adaptive_avg_pool2d_grad";
  extents dims;
  static constexpr auto attributes() { return std::array{field<&adaptive_avg_pool2d_grad::dims>("dims")}; }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_planes(c); }
  bytes_t workspace(work_context const& c) const { return detail::images_workspace(c); }
  void gradient(gradient_context& c) const;
};
/// The mean of each of out_h x out_w nearly equal parts of a plane; 1 x 1 is global pooling.
struct adaptive_avg_pool2d {
  static constexpr std::string_view name = "adaptive_avg_pool2d";
  std::int64_t out_h = 1, out_w = 1;
  static constexpr auto attributes() {
    return std::array{field<&adaptive_avg_pool2d::out_h>("out_h"), field<&adaptive_avg_pool2d::out_w>("out_w")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_planes(c); }
  bytes_t workspace(work_context const& c) const { return detail::images_workspace(c); }
  work cost(work_context const& c) const;
  void gradient(gradient_context& c) const;
};

/// g -> dx of the shape `dims`.
struct interpolate_grad {
  static constexpr std::string_view name = "interpolate_grad";
  static constexpr double flops = 8;
  extents dims;
  bool bilinear = false, align_corners = false;
  static constexpr auto attributes() {
    return std::array{field<&interpolate_grad::dims>("dims"), field<&interpolate_grad::bilinear>("bilinear"),
                      field<&interpolate_grad::align_corners>("align_corners")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_planes(c); }
  bytes_t workspace(work_context const& c) const { return detail::images_workspace(c); }
  void gradient(gradient_context& c) const;
};
/// Images resized to out_h x out_w, nearest or bilinear.
struct interpolate {
  static constexpr std::string_view name = "interpolate";
  static constexpr double flops = 8;
  std::int64_t out_h = 1, out_w = 1;
  bool bilinear = false, align_corners = false;
  static constexpr auto attributes() {
    return std::array{field<&interpolate::out_h>("out_h"), field<&interpolate::out_w>("out_w"),
                      field<&interpolate::bilinear>("bilinear"), field<&interpolate::align_corners>("align_corners")};
  }
  void infer(shape_context& c) const;
  void relate(dim_context& c) const { detail::relate_planes(c); }
  bytes_t workspace(work_context const& c) const { return detail::images_workspace(c); }
  void gradient(gradient_context& c) const;
};

template <std::same_as<host_backend> Backend>
void run(Backend& b, max_pool2d const& op, kernel_arguments const& given);
template <std::same_as<host_backend> Backend>
void run(Backend& b, max_pool2d_grad const& op, kernel_arguments const& given);
template <std::same_as<host_backend> Backend>
void run(Backend& b, avg_pool2d const& op, kernel_arguments const& given);
template <std::same_as<host_backend> Backend>
void run(Backend& b, avg_pool2d_grad const& op, kernel_arguments const& given);
template <std::same_as<host_backend> Backend>
void run(Backend& b, adaptive_avg_pool2d const&, kernel_arguments const& given);
template <std::same_as<host_backend> Backend>
void run(Backend& b, adaptive_avg_pool2d_grad const&, kernel_arguments const& given);
template <std::same_as<host_backend> Backend>
void run(Backend& b, interpolate const& op, kernel_arguments const& given);
template <std::same_as<host_backend> Backend>
void run(Backend& b, interpolate_grad const& op, kernel_arguments const& given);

}}}  // namespace neap::v0::op

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/operators/impl/image.ipp>
#endif
