// Convolutions and attention by cuDNN (neap::cudnn in CMake, where it is installed):
//
//   neap::cuda_backend backend;
//   auto const library = std::make_shared<neap::cudnn>(backend.device());
//   backend.use_convolutions(library);
//   backend.use_attention(library);
//
// Each of them is planned once, when an executable is made; a step plans nothing. Of the algorithms that the library
// proposes, the first is taken that gives the same bits each time, adds in f32, and transforms nothing (no Winograd, no FFT).
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/units.hpp>
#include <neap/cuda/attention_library.hpp>
#include <neap/cuda/convolutions.hpp>
#include <neap/cuda/cudnn_attention.hpp>
#include <neap/cuda/cudnn_graph.hpp>
#include <neap/cuda/device.hpp>

#include <cudnn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

struct cudnn_options {
  bool tf32 = false;                     // f32 on tensor cores, with operands rounded to 10 bits of mantissa
  bytes_t scratch = bytes_t{512} << 20;  // the most that an operation may take of the backend's scratch memory
};

class cudnn final : public cuda_convolution_library, public cuda_attention_library {
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
    generation_ = device.major;
    place_ = "cuDNN " + std::to_string(cudnnGetVersion()) + " on " + device.name;
  }
  /// Plans for a device that is elsewhere, of which properties() had this text; runs nothing.
  explicit cudnn(std::string const& properties, cudnn_options const& options = {},
                 std::source_location at = std::source_location::current())
      : options_(options) {
    check_version(at);
    device_.emplace(properties, at);
    constexpr std::string_view version = "\"deviceVer\":";  // 900: compute capability 9.0
    if (auto const i = properties.find(version); i != properties.npos)
      generation_ = std::atoi(properties.c_str() + i + version.size()) / 100;
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
    require_plan(p, text_of(c), at);
    detail::check_cudnn(cudnnSetStream(handle_.get(), stream), "a stream", at);
    constexpr std::array<std::int64_t, 3> numbers{number_of_x, number_of_w, number_of_y};
    std::array<void*, 3> const addresses{x, w, y};
    detail::check_cudnn(detail::run_cudnn_plan(handle_.get(), p, numbers, addresses, scratch), text_of(c), at);
  }

  /// By the library: f16 and bf16, if it has an algorithm. Gradients of as many heads of keys as of queries.
  cuda_library_way way(cuda_attention const& a) override {
    if (a.element != dtype::f16 && a.element != dtype::bf16) return {false, "cuDNN's attention is of f16 and bf16"};
    for (auto const* t : {&a.q, &a.k, &a.v})
      for (auto n : t->dims)
        if (n == 0) return {false, "the attention has no elements"};
    if (a.backward) {
      if (a.q.dims[1] != a.k.dims[1]) return {false, "cuDNN's gradients are of as many heads of keys as of queries"};
      if (a.q.dims[2] == 1 && a.k.dims[2] == 1) return {false, "cuDNN's gradients are of more than one key"};
      if (generation_ > 9) return {false, "cuDNN's gradients repeat their bits up to compute capability 9.0"};
      if (auto const v = cudnnGetVersion(); v == 91000 || v == 91001)
        return {false, "attention's gradients of cuDNN 9.10.0 and 9.10.1 have faults"};
    }
    auto const& p = found(a);
    return {p.object != nullptr, p.reason};
  }
  bytes_t scratch_bytes(cuda_attention const& a) override {
    return way(a).by_library ? found(a).scratch + bytes_of_delta(a) : 0;
  }
  /// Throws neap::error if the library refuses the call.
  void run(cudaStream_t stream, cuda_attention const& a, cuda_attention_operands const& at, void* scratch) override {
    auto const here = std::source_location::current();
    auto const& p = found(a);
    require_plan(p, text_of(a), here);
    detail::check_cudnn(cudnnSetStream(handle_.get(), stream), "a stream", here);
    using number = detail::cudnn_attention_number;
    float scale = a.scale, lowest = -std::numeric_limits<float>::infinity(), one = 1;
    auto* const workspace = scratch ? static_cast<std::byte*>(scratch) + bytes_of_delta(a) : nullptr;
    std::vector<std::int64_t> numbers{number::q, number::k, number::v, number::y, number::lse, number::scale};
    std::vector<void*> addresses{at.q, at.k, at.v, at.y, at.lse, &scale};
    auto const add = [&](std::int64_t n, void* address) { numbers.push_back(n), addresses.push_back(address); };
    if (a.causal) add(number::lowest, &lowest);
    if (a.backward) {
      add(number::dy, at.dy), add(number::dq, at.dq), add(number::dk, at.dk), add(number::dv, at.dv);
      add(number::delta, scratch), add(number::one, &one);
    }
    detail::check_cudnn(detail::run_cudnn_plan(handle_.get(), p, numbers, addresses, workspace), text_of(a), here);
  }

  /// How many operations were planned.
  int plans() const { return static_cast<int>(convolutions_.size() + attentions_.size()); }

  /// All plans, as text: the library and the device in the first line, then a CSV table.
  std::string text() const {
    std::string out = "# " + place_ + "\noperation,algorithm,scratch bytes,result\n";
    auto const add = [&](auto const& plans) {
      for (auto const& [what, p] : plans)
        out += '"' + text_of(what) + "\"," + std::to_string(p.engine) + ',' + std::to_string(p.scratch) + ",\"" +
               (p.object ? "ok" : std::string(p.reason)) + "\"\n";
    };
    add(convolutions_), add(attentions_);
    return out;
  }

 private:
  static constexpr std::int64_t number_of_x = 1, number_of_w = 2, number_of_y = 3;

  static void check_version(std::source_location at) {
    if (cudnnGetVersion() < 90800)
      throw_error(at, {"cudnn: version ", cudnnGetVersion(), " of the library, 90800 or newer is needed"});
  }

  void require_plan(detail::cudnn_plan const& p, std::string const& what, std::source_location at) const {
    if (!p.object) throw_error(at, {"cudnn: ", what, ": ", p.reason});
    if (!handle_) throw_error(at, {"cudnn: ", what, ": planned for a device that is not here"});
  }

  template <class What, class Plans>
  detail::cudnn_plan const& found_in(Plans& plans, What const& what) const {
    auto const it = plans.find(what);
    return it != plans.end() ? it->second : plans.emplace(what, plan(what)).first->second;
  }
  detail::cudnn_plan const& found(cuda_convolution const& c) { return found_in(convolutions_, c); }
  detail::cudnn_plan const& found(cuda_attention const& a) { return found_in(attentions_, a); }

  /// The backward pass has the sums of dy * y in front of the library's scratch memory.
  static bytes_t bytes_of_delta(cuda_attention const& a) {
    return a.backward ? align_up(a.q.dims[0] * a.q.dims[1] * a.q.dims[2] * 4, 256) : 0;
  }
  detail::cudnn_plan plan(cuda_attention const& a) const {
    detail::cudnn_graph g;
    detail::cudnn_attention_graph(g, a);
    return g.plan(*device_, {true, options_.scratch});
  }
  static std::string text_of(cuda_attention const& a) {
    auto const list = [](library_tensor const& t) {
      std::string out;
      for (auto n : t.dims) {
        out += out.empty() ? '[' : ',';
        out += std::to_string(n);
      }
      return out + ']';
    };
    return std::string(name_of(a.element)) + (a.causal ? " causal" : "") +
           (a.backward ? " attention gradient" : " attention") + " of " + list(a.q) + ", " + list(a.k) + " and " +
           list(a.v);
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
  int generation_ = 0;  // the device's compute capability, the first number
  detail::cudnn_handle handle_;
  std::optional<detail::cudnn_device> device_;
  std::string place_;
  std::map<cuda_convolution, detail::cudnn_plan> convolutions_;
  std::map<cuda_attention, detail::cudnn_plan> attentions_;
};

}}  // namespace neap::v0
