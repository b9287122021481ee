// Convolutions by cuDNN (neap::cudnn in CMake, where it is installed):
//
//   neap::cuda_backend backend;
//   backend.use_convolutions(std::make_shared<neap::cudnn>(backend.device()));
//
// Each convolution is planned once, when an executable is made; a step plans nothing. Of the algorithms that the library
// proposes, the first is taken that gives the same bits each time, adds in f32, and transforms nothing (no Winograd, no FFT).
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/units.hpp>
#include <neap/cuda/convolutions.hpp>
#include <neap/cuda/cudnn_graph.hpp>
#include <neap/cuda/device.hpp>

#include <cudnn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>

namespace neap::inline v0 {

struct cudnn_options {
  bool tf32 = false;                     // f32 on tensor cores, with operands rounded to 10 bits of mantissa
  bytes_t scratch = bytes_t{512} << 20;  // the most that a convolution may take of the backend's scratch memory
};

class cudnn final : public cuda_convolution_library {
 public:
  /// Throws neap::error, in one line, where the library cannot be used: without a driver or a device, or too old.
  explicit cudnn(cuda_device const& device, cudnn_options const& options = {},
                 std::source_location at = std::source_location::current())
      : options_(options) {
    check_version(at);
    cudnnHandle_t made = nullptr;
    detail::check_cudnn(cudnnCreate(&made), "no handle of the library", at);
    handle_.reset(made);
    device_.emplace(made);
    place_ = "cuDNN " + std::to_string(cudnnGetVersion()) + " on " + device.name;
  }
  /// Plans for a device that is elsewhere, of which properties() had this text; runs nothing.
  explicit cudnn(std::string const& properties, cudnn_options const& options = {},
                 std::source_location at = std::source_location::current())
      : options_(options) {
    check_version(at);
    device_.emplace(properties, at);
    place_ = "cuDNN " + std::to_string(cudnnGetVersion()) + " for a device's properties";
  }

  /// The device's properties as text, for plans on a machine without it.
  std::string properties() const { return device_->properties(); }

  /// By the library: f32, f16 and bf16 with elements, if it has an algorithm that keeps to the options.
  cuda_library_way way(cuda_convolution const& c) override {
    if (c.element != dtype::f32 && c.element != dtype::f16 && c.element != dtype::bf16)
      return {false, "cuDNN is used for f32, f16 and bf16"};
    for (auto const* t : {&c.x, &c.w, &c.y})
      for (auto n : t->dims)
        if (n == 0) return {false, "the convolution has no elements"};
    auto const& p = found(c);
    return {p.object != nullptr, p.reason};
  }
  bytes_t scratch_bytes(cuda_convolution const& c) override { return way(c).by_library ? found(c).scratch : 0; }

  /// Throws neap::error if the library refuses the call.
  void run(cudaStream_t stream, cuda_convolution const& c, void* x, void* w, void* y, void* scratch) override {
    auto const at = std::source_location::current();
    auto const& p = found(c);
    if (!p.object) throw_error(at, {"cudnn: ", text_of(c), ": ", p.reason});
    if (!handle_) throw_error(at, {"cudnn: ", text_of(c), ": planned for a device that is not here"});
    detail::check_cudnn(cudnnSetStream(handle_.get(), stream), "a stream", at);
    constexpr std::array<std::int64_t, 3> numbers{number_of_x, number_of_w, number_of_y};
    std::array<void*, 3> const addresses{x, w, y};
    detail::check_cudnn(detail::run_cudnn_plan(handle_.get(), p, numbers, addresses, scratch), text_of(c), at);
  }

  /// How many convolutions were planned.
  int plans() const { return static_cast<int>(plans_.size()); }

  /// All plans, as text: the library and the device in the first line, then a CSV table.
  std::string text() const {
    std::string out = "# " + place_ + "\nconvolution,algorithm,scratch bytes,result\n";
    for (auto const& [c, p] : plans_)
      out += '"' + text_of(c) + "\"," + std::to_string(p.engine) + ',' + std::to_string(p.scratch) + ",\"" +
             (p.object ? "ok" : std::string(p.reason)) + "\"\n";
    return out;
  }

 private:
  static constexpr std::int64_t number_of_x = 1, number_of_w = 2, number_of_y = 3;

  static void check_version(std::source_location at) {
    if (cudnnGetVersion() < 90800)
      throw_error(at, {"cudnn: version ", cudnnGetVersion(), " of the library, 90800 or newer is needed"});
  }

  detail::cudnn_plan const& found(cuda_convolution const& c) {
    auto const it = plans_.find(c);
    return it != plans_.end() ? it->second : plans_.emplace(c, plan(c)).first->second;
  }

  detail::cudnn_plan plan(cuda_convolution const& c) const {
    detail::cudnn_graph g;
    auto const type = detail::cudnn_type(c.element);
    auto const& x = g.tensor(number_of_x, type, c.x.dims, c.x.strides);
    auto const& w = g.tensor(number_of_w, type, c.w.dims, c.w.strides);
    auto const& y = g.tensor(number_of_y, type, c.y.dims, c.y.strides);
    auto& conv = g.add(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
    conv.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2})
        .set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT)
        .set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION)
        .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, c.padding)
        .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, c.padding)
        .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, c.dilation)
        .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, c.stride);
    g.finish(conv);
    struct names {
      cudnnBackendDescriptorType_t type;
      cudnnBackendAttributeName_t x, w, y, conv, alpha, beta;
    };
    static constexpr names all[] = {
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA},
        {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA}};
    auto const& n = all[static_cast<int>(c.part)];
    auto& o = g.operation(n.type);
    o.set(n.x, x).set(n.w, w).set(n.y, y).set(n.conv, conv).set(n.alpha, 1.0f).set(n.beta, 0.0f);
    g.finish(o);
    return g.plan(*device_, {options_.tf32 || c.element != dtype::f32, options_.scratch});
  }

  static std::string text_of(cuda_convolution const& c) {
    static constexpr char const* parts[] = {"convolution", "input gradient", "weight gradient"};
    auto const list = [](auto const& numbers) {
      std::string out;
      for (auto n : numbers) {
        out += out.empty() ? '[' : ',';
        out += std::to_string(n);
      }
      return out + ']';
    };
    return std::string(name_of(c.element)) + ' ' + parts[static_cast<int>(c.part)] + " of " + list(c.x.dims) + " and " +
           list(c.w.dims) + ", stride " + list(c.stride) + ", padding " + list(c.padding) + ", dilation " +
           list(c.dilation);
  }

  cudnn_options options_;
  detail::cudnn_handle handle_;
  std::optional<detail::cudnn_device> device_;
  std::string place_;
  std::map<cuda_convolution, detail::cudnn_plan> plans_;
};

}  // namespace neap::inline v0
