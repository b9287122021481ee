// cuDNN's backend interface on the simulated device: descriptors, graphs of convolutions, or of the operations that attention
// is made of, proposals of algorithms, plans, and their execution by plain loops with f32 sums. Of the algorithms that it proposes some are not deterministic, some round
// operands or transform them, and some need a workspace; one that is run although its notes are worse is noticed by its
// results.
#include "library.hpp"

#include <cudnn.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace neap::testing { namespace {

constexpr char const* properties_text = R"({"deviceName":"simulated"})";

struct object;
using object_ptr = std::shared_ptr<object>;

/// A descriptor of any type: what was set, and, of finished ones, what follows from it.
struct object {
  cudnnBackendDescriptorType_t type{};
  bool finished = false;
  struct values {
    cudnnBackendAttributeType_t type{};
    std::int64_t count = 0;
    std::vector<std::byte> bytes;
  };
  std::map<int, values> attributes;
  std::map<int, std::vector<object_ptr>> parts;
  int engine = 0;  // of engines, their configurations and plans

  template <class T>
  std::vector<T> all(cudnnBackendAttributeName_t which) const {
    auto const it = attributes.find(which);
    if (it == attributes.end()) return {};
    std::vector<T> out(it->second.bytes.size() / sizeof(T));
    std::memcpy(out.data(), it->second.bytes.data(), out.size() * sizeof(T));
    return out;
  }
  template <class T>
  T one(cudnnBackendAttributeName_t which, T otherwise = {}) const {
    auto const it = attributes.find(which);
    if (it != attributes.end() && it->second.bytes.size() >= sizeof(T))
      std::memcpy(&otherwise, it->second.bytes.data(), sizeof(T));
    return otherwise;
  }
  object const* part(cudnnBackendAttributeName_t which) const {
    auto const it = parts.find(which);
    return it == parts.end() || it->second.empty() ? nullptr : it->second.front().get();
  }
};

/// What the program holds.
struct held {
  object_ptr made;
};
object& of(cudnnBackendDescriptor_t d) { return *static_cast<held*>(d)->made; }

int handle_mark = 0;
struct handle_state {
  cudaStream_t stream = nullptr;
} the_handle;
bool is_handle(cudnnHandle_t h) { return h == reinterpret_cast<cudnnHandle_t>(&handle_mark); }

constexpr library_statuses<cudnnStatus_t> statuses{
    CUDNN_STATUS_SUCCESS,       CUDNN_STATUS_NOT_INITIALIZED, CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED,
    CUDNN_STATUS_NOT_SUPPORTED, CUDNN_STATUS_BAD_PARAM,       CUDNN_STATUS_EXECUTION_FAILED};
/// Runs the body of a function of the library: f(simulation&) gives its status.
template <class F>
cudnnStatus_t library_call(char const* function, F&& f) {
  return testing::library_call(function, statuses, f);
}

// ---- tensors
struct tensor_view {
  std::int64_t number = 0;
  cudaDataType type = CUDA_R_32F;
  std::vector<std::int64_t> dims, strides;
  bool is_virtual = false, by_value = false, rounds = false;

  static tensor_view of(object const& o) {
    tensor_view t;
    t.number = o.one<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
    auto const type = o.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE);
    t.type = type == CUDNN_DATA_BFLOAT16 ? CUDA_R_16BF : type == CUDNN_DATA_HALF ? CUDA_R_16F : CUDA_R_32F;
    t.dims = o.all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS);
    t.strides = o.all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES);
    t.is_virtual = o.one<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
    t.by_value = o.one<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
    t.rounds = type == CUDNN_DATA_BFLOAT16 || type == CUDNN_DATA_HALF;
    return t;
  }
  /// f(offset in elements) in the order of indices.
  template <class F>
  void for_each(F const& f) const {
    for (std::int64_t a = 0; a < dims[0]; ++a)
      for (std::int64_t b = 0; b < dims[1]; ++b)
        for (std::int64_t c = 0; c < dims[2]; ++c)
          for (std::int64_t d = 0; d < dims[3]; ++d)
            f(a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3]);
  }
  std::vector<access_range> ranges(void const* at) const {
    std::vector<access_range> out;
    std::uint64_t const size = bytes_of(type);
    for_each([&](std::int64_t offset) {
      auto const first = simulation::address(at) + static_cast<std::uint64_t>(offset) * size;
      if (!out.empty() && out.back().end == first) out.back().end = first + size;
      else out.push_back({first, first + size});
    });
    return out;
  }
};

// ---- operations
struct convolution {
  cudnnBackendDescriptorType_t part{};
  tensor_view x, w, y;
  std::vector<std::int64_t> stride, padding, dilation;

  static bool is(cudnnBackendDescriptorType_t t) {
    return t == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
           t == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
           t == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR;
  }
  static bool read(object const& o, convolution& c) {
    bool const forward = o.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
               data = o.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
    auto const pick = [&](auto a, auto b, auto d) { return forward ? a : data ? b : d; };
    auto const* const x =
        o.part(pick(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X));
    auto const* const w =
        o.part(pick(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW));
    auto const* const y =
        o.part(pick(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY));
    auto const* const conv = o.part(pick(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
                                         CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC));
    auto const alpha = o.one<float>(
                   pick(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA),
                   -1.0f),
               beta = o.one<float>(
                   pick(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
                        CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA),
                   -1.0f);
    if (!x || !w || !y || !conv || alpha != 1 || beta != 0) return false;
    c.part = o.type;
    c.x = tensor_view::of(*x), c.w = tensor_view::of(*w), c.y = tensor_view::of(*y);
    c.stride = conv->all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
    c.padding = conv->all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS);
    c.dilation = conv->all<std::int64_t>(CUDNN_ATTR_CONVOLUTION_DILATIONS);
    if (c.x.type != c.w.type || c.x.type != c.y.type || c.x.dims.size() != 4 || c.w.dims.size() != 4 ||
        c.y.dims.size() != 4)
      return false;
    if (c.x.dims[1] % c.w.dims[1] != 0 || c.w.dims[0] % (c.x.dims[1] / c.w.dims[1]) != 0 ||
        c.y.dims[0] != c.x.dims[0] || c.y.dims[1] != c.w.dims[0])
      return false;
    for (std::size_t i = 0; i < 2; ++i)
      if (c.y.dims[2 + i] !=
          (c.x.dims[2 + i] + 2 * c.padding[i] - (c.w.dims[2 + i] - 1) * c.dilation[i] - 1) / c.stride[i] + 1)
        return false;
    return true;
  }

  /// f(x, w, y): places of elements whose product is a summand.
  template <class F>
  void for_each_product(F const& f) const {
    std::int64_t const ins = w.dims[1], outs = w.dims[0] / (x.dims[1] / ins);
    for (std::int64_t n = 0; n < y.dims[0]; ++n)
      for (std::int64_t o = 0; o < y.dims[1]; ++o)
        for (std::int64_t i = 0; i < y.dims[2]; ++i)
          for (std::int64_t j = 0; j < y.dims[3]; ++j)
            for (std::int64_t r = 0; r < w.dims[2]; ++r)
              for (std::int64_t s = 0; s < w.dims[3]; ++s) {
                std::int64_t const row = i * stride[0] - padding[0] + r * dilation[0],
                                   column = j * stride[1] - padding[1] + s * dilation[1];
                if (row < 0 || row >= x.dims[2] || column < 0 || column >= x.dims[3]) continue;
                for (std::int64_t k = 0; k < ins; ++k)
                  f(n * x.strides[0] + (o / outs * ins + k) * x.strides[1] + row * x.strides[2] + column * x.strides[3],
                    o * w.strides[0] + k * w.strides[1] + r * w.strides[2] + s * w.strides[3],
                    n * y.strides[0] + o * y.strides[1] + i * y.strides[2] + j * y.strides[3]);
              }
  }
};

/// What an operation reads and writes.
struct operands {
  std::vector<object const*> reads;
  object const* write = nullptr;

  static operands of(object const& o) {
    operands out;
    auto const read = [&](cudnnBackendAttributeName_t which) {
      if (auto const* const p = o.part(which)) out.reads.push_back(p);
    };
    switch (o.type) {
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
        read(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X), read(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W);
        out.write = o.part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y);
        break;
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
        read(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY), read(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W);
        out.write = o.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX);
        break;
      case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
        read(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X), read(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY);
        out.write = o.part(CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW);
        break;
      case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
        for (auto const which : {CUDNN_ATTR_OPERATION_POINTWISE_XDESC, CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                                 CUDNN_ATTR_OPERATION_POINTWISE_TDESC})
          read(which);
        out.write = o.part(CUDNN_ATTR_OPERATION_POINTWISE_YDESC);
        break;
      case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR:
        read(CUDNN_ATTR_OPERATION_MATMUL_ADESC), read(CUDNN_ATTR_OPERATION_MATMUL_BDESC);
        out.write = o.part(CUDNN_ATTR_OPERATION_MATMUL_CDESC);
        break;
      case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
        read(CUDNN_ATTR_OPERATION_REDUCTION_XDESC);
        out.write = o.part(CUDNN_ATTR_OPERATION_REDUCTION_YDESC);
        break;
      case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR:
        read(CUDNN_ATTR_OPERATION_RESHAPE_XDESC);
        out.write = o.part(CUDNN_ATTR_OPERATION_RESHAPE_YDESC);
        break;
      default: break;
    }
    return out;
  }
};

/// The elements of tensors, in the order of indices.
class evaluation {
 public:
  std::map<std::int64_t, std::vector<float>> values;
  bool rounds_operands = false;  // of f32, to tf32
  std::int64_t steps = 0;

  void run(object const& o) {
    auto const in = operands::of(o);
    auto const y = tensor_view::of(*in.write);
    auto& to = values[y.number];
    to.assign(count(y), 0.0f);
    if (convolution::is(o.type)) convolve(o, to);
    else if (o.type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR) multiply(in, y, to);
    else if (o.type == CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR) reduce(o, in, y, to);
    else if (o.type == CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR) reshape(in, y, to);
    else pointwise(o, in, y, to);
    if (y.is_virtual && y.rounds)
      for (float& v : to) {
        put_element(&v, y.type, 0, v);
        v = element(&v, y.type, 0);
      }
  }

 private:
  static std::size_t count(tensor_view const& t) {
    std::int64_t n = 1;
    for (auto d : t.dims) n *= d;
    return static_cast<std::size_t>(n);
  }
  static tensor_view dense(tensor_view t) {
    std::int64_t n = 1;
    for (std::size_t i = t.dims.size(); i-- > 0;) t.strides[i] = n, n *= t.dims[i];
    return t;
  }
  static std::size_t place(tensor_view const& t, std::array<std::int64_t, 4> const& at) {
    std::int64_t p = 0;
    for (std::size_t i = 0; i < 4; ++i) p = p * t.dims[i] + (t.dims[i] == 1 ? 0 : at[i]);
    return static_cast<std::size_t>(p);
  }
  template <class F>
  static void each(tensor_view const& t, F const& f) {
    std::array<std::int64_t, 4> at{};
    for (at[0] = 0; at[0] < t.dims[0]; ++at[0])
      for (at[1] = 0; at[1] < t.dims[1]; ++at[1])
        for (at[2] = 0; at[2] < t.dims[2]; ++at[2])
          for (at[3] = 0; at[3] < t.dims[3]; ++at[3]) f(at);
  }

  void convolve(object const& o, std::vector<float>& to) {
    convolution c;
    convolution::read(o, c);
    bool const forward = o.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
               data = o.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR;
    auto const &x = values[c.x.number], &w = values[c.w.number], &y = values[c.y.number];
    auto const rounded = [&](float v) { return rounds_operands ? to_tf32(v) : v; };
    c.x = dense(c.x), c.w = dense(c.w), c.y = dense(c.y);
    c.for_each_product([&](std::int64_t i, std::int64_t j, std::int64_t k) {
      auto const a = static_cast<std::size_t>(i), b = static_cast<std::size_t>(j), d = static_cast<std::size_t>(k);
      if (forward) to[d] += rounded(x[a]) * rounded(w[b]);
      else if (data) to[a] += rounded(y[d]) * rounded(w[b]);
      else to[b] += rounded(x[a]) * rounded(y[d]);
      ++steps;
    });
  }
  void multiply(operands const& in, tensor_view const& c, std::vector<float>& to) {
    auto const a = tensor_view::of(*in.reads[0]), b = tensor_view::of(*in.reads[1]);
    auto const &x = values[a.number], &y = values[b.number];
    std::int64_t const group = c.dims[1] / b.dims[1];
    each(c, [&](std::array<std::int64_t, 4> const& at) {
      float sum = 0;
      for (std::int64_t l = 0; l < a.dims[3]; ++l)
        sum += x[place(a, {at[0], at[1], at[2], l})] * y[place(b, {at[0], at[1] / group, l, at[3]})];
      to[place(c, at)] = sum;
      steps += a.dims[3];
    });
  }
  void reduce(object const& o, operands const& in, tensor_view const& y, std::vector<float>& to) {
    auto const x = tensor_view::of(*in.reads[0]);
    bool const adds =
        o.part(CUDNN_ATTR_OPERATION_REDUCTION_DESC)->one<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR) ==
        CUDNN_REDUCE_TENSOR_ADD;
    if (!adds) std::ranges::fill(to, -INFINITY);
    each(x, [&](std::array<std::int64_t, 4> const& at) {
      float const v = values[x.number][place(x, at)];
      float& r = to[place(y, at)];
      r = adds ? r + v : std::max(r, v);
    });
  }
  void reshape(operands const& in, tensor_view const& y, std::vector<float>& to) {
    auto const x = tensor_view::of(*in.reads[0]);
    std::map<std::int64_t, float> by_memory;
    auto const offset = [](tensor_view const& t, std::array<std::int64_t, 4> const& at) {
      std::int64_t p = 0;
      for (std::size_t i = 0; i < 4; ++i) p += at[i] * t.strides[i];
      return p;
    };
    each(x, [&](auto const& at) { by_memory[offset(x, at)] = values[x.number][place(x, at)]; });
    each(y, [&](auto const& at) { to[place(y, at)] = by_memory.at(offset(y, at)); });
  }
  void pointwise(object const& o, operands const& in, tensor_view const& y, std::vector<float>& to) {
    auto const* const how = o.part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR);
    auto const mode = how->one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
    auto const axis = static_cast<std::size_t>(how->one<std::int64_t>(CUDNN_ATTR_POINTWISE_AXIS));
    std::vector<tensor_view> views;
    for (auto const* r : in.reads) views.push_back(tensor_view::of(*r));
    each(y, [&](std::array<std::int64_t, 4> const& at) {
      auto const value = [&](std::size_t i) { return values[views[i].number][place(views[i], at)]; };
      float& r = to[place(y, at)];
      switch (mode) {
        case CUDNN_POINTWISE_ADD: r = value(0) + value(1); break;
        case CUDNN_POINTWISE_SUB: r = value(0) - value(1); break;
        case CUDNN_POINTWISE_MUL: r = value(0) * value(1); break;
        case CUDNN_POINTWISE_DIV: r = value(0) / value(1); break;
        case CUDNN_POINTWISE_EXP: r = std::exp(value(0)); break;
        case CUDNN_POINTWISE_LOG: r = std::log(value(0)); break;
        case CUDNN_POINTWISE_GEN_INDEX: r = static_cast<float>(at[axis]); break;
        case CUDNN_POINTWISE_CMP_GE: r = value(0) >= value(1); break;
        case CUDNN_POINTWISE_BINARY_SELECT: r = value(2) != 0 ? value(0) : value(1); break;
        default: r = NAN; break;
      }
    });
  }
};

// ---- algorithms
/// What an algorithm is like, in the order of the proposals.
struct algorithm {
  int number;
  bool fallback;  // proposed in that mode alone
  std::vector<cudnnBackendNumericalNote_t> notes;
  std::int64_t workspace;
};
std::vector<algorithm> const& algorithms() {
  static std::vector<algorithm> const all{{1, false, {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC}, 0},
                                          {2, false, {CUDNN_NUMERICAL_NOTE_WINOGRAD}, 64},
                                          {3, false, {CUDNN_NUMERICAL_NOTE_TENSOR_CORE}, 4096},
                                          {4, false, {}, std::int64_t{1} << 40},
                                          {5, true, {}, 256}};
  return all;
}
algorithm const& algorithm_of(object const& o) { return algorithms()[static_cast<std::size_t>(o.engine - 1)]; }

/// What the simulated library takes: convolutions of dense images, attention in 16 bits.
bool takes(object const& graph) {
  auto const it = graph.parts.find(CUDNN_ATTR_OPERATIONGRAPH_OPS);
  if (it == graph.parts.end() || it->second.empty()) return false;
  convolution c;
  if (it->second.size() == 1)
    return convolution::read(*it->second.front(), c) && c.x.strides[3] == 1 && c.y.strides[3] == 1 &&
           c.w.strides[3] == 1;
  for (auto const& op : it->second)
    if (op->type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
      for (auto const* const t : operands::of(*op).reads)
        if (!tensor_view::of(*t).is_virtual && !tensor_view::of(*t).rounds) return false;
  return true;
}

cudnnStatus_t finish(simulation& s, object& o) {
  auto const bad = [&](std::string const& what) {
    s.report("cudnnBackendFinalize: " + what);
    return CUDNN_STATUS_BAD_PARAM;
  };
  switch (o.type) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR: {
      auto const t = tensor_view::of(o);
      if (t.dims.empty() || t.dims.size() != t.strides.size()) return bad("a tensor without extents or strides");
      if (o.one<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT) != 16) return bad("a tensor without alignment");
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      for (auto const a : {CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS,
                           CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_ATTR_CONVOLUTION_DILATIONS})
        if (o.all<std::int64_t>(a).size() != 2) return bad("a convolution without strides, paddings or dilations");
      if (o.one<std::int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) != 2) return bad("a convolution not of two axes");
      if (o.one(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_INT8) != CUDNN_DATA_FLOAT)
        return bad("a convolution with other sums than f32");
      if (o.one(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CONVOLUTION) != CUDNN_CROSS_CORRELATION)
        return bad("a convolution with a flipped filter");
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR: {
      convolution c;
      return convolution::read(o, c) ? CUDNN_STATUS_SUCCESS : bad("operands of a convolution do not fit");
    }
    case CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR: {
      if (auto const h = o.one<cudnnHandle_t>(CUDNN_ATTR_DEVICEPROP_HANDLE); h)
        return is_handle(h) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
      auto const text = o.all<char>(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION);
      return !text.empty() && std::string(text.data()) == properties_text ? CUDNN_STATUS_SUCCESS
                                                                          : CUDNN_STATUS_BAD_PARAM;
    }
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR: {
      auto const* const graph = o.part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
      if (!graph) return bad("proposals for no graph");
      auto const handle = graph->one<cudnnHandle_t>(static_cast<cudnnBackendAttributeName_t>(800));
      if (!is_handle(handle) && !o.part(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP)) return bad("proposals for no device");
      return takes(*graph) ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_NOT_SUPPORTED;
    }
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
      auto const* const config = o.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      if (!config) return bad("a plan of no algorithm");
      o.engine = config->engine;
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR: {
      auto const in = operands::of(o);
      return in.write && !in.reads.empty() ? CUDNN_STATUS_SUCCESS : bad("an operation without operands");
    }
    case CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR: {
      auto const in = operands::of(o);
      if (!in.write || in.reads.size() != 2) return bad("a product without operands");
      auto const a = tensor_view::of(*in.reads[0]).dims, b_dims = tensor_view::of(*in.reads[1]).dims,
                 c = tensor_view::of(*in.write).dims;
      bool const fits = a[3] == b_dims[2] && c[2] == a[2] && c[3] == b_dims[3] && c[1] == a[1] && c[0] == a[0] &&
                        b_dims[0] == a[0] && c[1] % b_dims[1] == 0;
      return fits ? CUDNN_STATUS_SUCCESS : bad("operands of a product do not fit");
    }
    case CUDNN_BACKEND_POINTWISE_DESCRIPTOR:
    case CUDNN_BACKEND_MATMUL_DESCRIPTOR:
    case CUDNN_BACKEND_REDUCTION_DESCRIPTOR:
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR: return CUDNN_STATUS_SUCCESS;
    default: return bad("descriptor " + std::to_string(o.type) + " is not simulated");
  }
}

template <class T>
cudnnStatus_t give(std::vector<T> const& values, std::int64_t room, std::int64_t* count, void* to) {
  if (count) *count = static_cast<std::int64_t>(values.size());
  if (to) std::memcpy(to, values.data(), std::min(values.size(), static_cast<std::size_t>(room)) * sizeof(T));
  return CUDNN_STATUS_SUCCESS;
}
/// Makes the program's descriptor number i another one.
void give_object(void* to, std::int64_t i, object_ptr made) {
  cudnnBackendDescriptor_t d = nullptr;
  std::memcpy(&d, static_cast<std::byte*>(to) + static_cast<std::size_t>(i) * sizeof d, sizeof d);
  made->finished = true;
  static_cast<held*>(d)->made = std::move(made);
}

cudnnStatus_t get(simulation& s, object& o, cudnnBackendAttributeName_t which, std::int64_t room, std::int64_t* count,
                  void* to) {
  switch (which) {
    case CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION: {
      std::string const text = properties_text;
      return give(std::vector<char>(text.c_str(), text.c_str() + text.size() + 1), room, count, to);
    }
    case CUDNN_ATTR_ENGINEHEUR_RESULTS: {
      bool const fallback = o.one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_FALLBACK;
      std::int64_t n = 0;
      for (auto const& a : algorithms())
        if (a.fallback == fallback) {
          if (to && n < room) {
            auto made = std::make_shared<object>();
            made->type = CUDNN_BACKEND_ENGINECFG_DESCRIPTOR;
            made->engine = a.number;
            made->parts[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH] = o.parts[CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH];
            give_object(to, n, std::move(made));
          }
          ++n;
        }
      *count = n;
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINECFG_ENGINE: {
      auto made = std::make_shared<object>();
      made->type = CUDNN_BACKEND_ENGINE_DESCRIPTOR;
      made->engine = o.engine;
      give_object(to, 0, std::move(made));
      *count = 1;
      return CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_ATTR_ENGINE_GLOBAL_INDEX: return give(std::vector<std::int64_t>{o.engine}, room, count, to);
    case CUDNN_ATTR_ENGINE_NUMERICAL_NOTE: return give(algorithm_of(o).notes, room, count, to);
    case CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE:
      return give(std::vector<std::int64_t>{algorithm_of(o).workspace}, room, count, to);
    default: break;
  }
  s.report("cudnnBackendGetAttribute: attribute " + std::to_string(which) + " is not simulated");
  return CUDNN_STATUS_NOT_SUPPORTED;
}

// ---- execution
struct graph_call {
  std::vector<object_ptr> operations;
  std::map<std::int64_t, void*> addresses;
  std::map<std::int64_t, float> by_value;  // read when the call is made
  algorithm const* how = nullptr;
  void* workspace = nullptr;
};

outcome run(simulation& s, graph_call const& call) {
  outcome out;
  std::string const function = "cudnnBackendExecute";
  std::map<std::int64_t, tensor_view> read, written;
  for (auto const& op : call.operations) {
    auto const in = operands::of(*op);
    for (auto const* const o : in.reads)
      if (auto const t = tensor_view::of(*o); !t.is_virtual && !t.by_value && !written.contains(t.number))
        read[t.number] = t;
    if (auto const t = tensor_view::of(*in.write); !t.is_virtual) written[t.number] = t;
  }
  std::vector<access_range> of_workspace;
  if (call.how->workspace)
    of_workspace = {{simulation::address(call.workspace),
                     simulation::address(call.workspace) + static_cast<std::uint64_t>(call.how->workspace)}};
  bool ok = true;
  std::vector<access_range> others;
  auto const get = [&](tensor_view const& t, std::vector<access_range>& list) {
    auto const ranges = t.ranges(call.addresses.at(t.number));
    auto const v = view(s, ranges, function + ": tensor " + std::to_string(t.number));
    ok = ok && v.ok;
    if (overlap(of_workspace, ranges)) s.report(function + ": the workspace overlaps an operand");
    if (overlap(others, ranges)) s.report(function + ": a result overlaps an operand");
    others.insert(others.end(), ranges.begin(), ranges.end());
    list.insert(list.end(), ranges.begin(), ranges.end());
    return std::pair{v, ranges};
  };
  evaluation e;
  e.rounds_operands = std::ranges::count(call.how->notes, CUDNN_NUMERICAL_NOTE_TENSOR_CORE) != 0;
  for (auto const& [number, v] : call.by_value) e.values[number] = {v};
  for (auto const& [number, t] : read) {
    auto const [v, ranges] = get(t, out.reads);
    others.clear();
    if (!v.ok) continue;
    check_written(s, v, ranges, function, "tensor " + std::to_string(number));
    auto& to = e.values[number];
    auto const* const bytes = v.memory.bytes;
    t.for_each([&](std::int64_t place) { to.push_back(element(bytes, t.type, place)); });
  }
  for (auto const& r : out.reads) others.push_back(r);
  std::map<std::int64_t, std::pair<memory_view, std::vector<access_range>>> results;
  for (auto const& [number, t] : written) results[number] = get(t, out.writes);
  auto const scratch = view(s, of_workspace, function + ": the workspace");
  out.writes.insert(out.writes.end(), of_workspace.begin(), of_workspace.end());
  if (!ok || !scratch.ok) {
    out.error = cudaErrorIllegalAddress;
    return out;
  }
  if (scratch.memory.bytes) {  // its contents are the library's
    for (std::int64_t k = 0; k < call.how->workspace; ++k)
      scratch.memory.bytes[k] = static_cast<std::uint8_t>(0xa5 ^ k);
    mark_written(scratch, of_workspace);
  }
  for (auto const& op : call.operations) e.run(*op);
  // An algorithm that transforms its operands has other roundings.
  float const off = std::ranges::count(call.how->notes, CUDNN_NUMERICAL_NOTE_WINOGRAD) ? 1.001f : 1.0f;
  for (auto const& [number, t] : written) {
    auto const& [v, ranges] = results[number];
    auto const& from = e.values[number];
    std::size_t i = 0;
    auto* const bytes = v.memory.bytes;
    t.for_each([&](std::int64_t place) { put_element(bytes, t.type, place, from[i++] * off); });
    mark_written(v, ranges);
  }
  out.seconds = 3e-6 + 2e-14 * static_cast<double>(e.steps);
  return out;
}

}  // namespace

}  // namespace neap::testing

using namespace neap::testing;

extern "C" {

std::size_t cudnnGetVersion() { return CUDNN_VERSION; }
char const* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS: return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED: return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED: return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_EXECUTION_FAILED: return "CUDNN_STATUS_EXECUTION_FAILED";
    default: return "another status of cuDNN";
  }
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* out) {
  return library_call("cudnnCreate", [&](simulation&) {
    the_handle = {};
    *out = reinterpret_cast<cudnnHandle_t>(&handle_mark);
    return CUDNN_STATUS_SUCCESS;
  });
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t) { return CUDNN_STATUS_SUCCESS; }
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  return library_call("cudnnSetStream", [&](simulation& s) {
    if (!is_handle(handle) || !s.stream(stream)) return CUDNN_STATUS_BAD_PARAM;
    the_handle.stream = stream;
    return CUDNN_STATUS_SUCCESS;
  });
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t* out) {
  auto made = std::make_unique<held>();
  made->made = std::make_shared<object>();
  made->made->type = type;
  *out = made.release();
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t d) {
  delete static_cast<held*>(d);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t d, cudnnBackendAttributeName_t which,
                                       cudnnBackendAttributeType_t type, std::int64_t count, void const* values) {
  object& o = of(d);
  if (o.finished || count < 0 || (count > 0 && !values)) return CUDNN_STATUS_BAD_PARAM;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    auto& parts = o.parts[which];
    parts.clear();
    for (std::int64_t i = 0; i < count; ++i) {
      auto const& part = static_cast<held*>(static_cast<cudnnBackendDescriptor_t const*>(values)[i])->made;
      if (!part->finished) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
      parts.push_back(part);
    }
    return CUDNN_STATUS_SUCCESS;
  }
  std::size_t size = 0;
  switch (type) {
    case CUDNN_TYPE_INT64: size = sizeof(std::int64_t); break;
    case CUDNN_TYPE_VOID_PTR: size = sizeof(void*); break;
    case CUDNN_TYPE_HANDLE: size = sizeof(cudnnHandle_t); break;
    case CUDNN_TYPE_BOOLEAN: size = sizeof(bool); break;
    case CUDNN_TYPE_CHAR: size = 1; break;
    default: size = 4; break;  // f32 and enumerations
  }
  auto& a = o.attributes[which];
  a.type = type, a.count = count;
  auto const* const first = static_cast<std::byte const*>(values);
  a.bytes.assign(first, first + static_cast<std::size_t>(count) * size);
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const d, cudnnBackendAttributeName_t which,
                                       cudnnBackendAttributeType_t, std::int64_t room, std::int64_t* count, void* to) {
  return library_call("cudnnBackendGetAttribute", [&](simulation& s) {
    object& o = of(d);
    return o.finished ? get(s, o, which, room, count, to) : CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  });
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t d) {
  return library_call("cudnnBackendFinalize", [&](simulation& s) {
    object& o = of(d);
    if (o.type == CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR) ++s.calls["cuDNN's plans"];
    cudnnStatus_t const status = finish(s, o);
    o.finished = status == CUDNN_STATUS_SUCCESS;
    return status;
  });
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan, cudnnBackendDescriptor_t pack) {
  return library_call("cudnnBackendExecute", [&](simulation& s) {
    object const &p = of(plan), &operands = of(pack);
    if (!is_handle(handle) || !p.finished || !operands.finished) return CUDNN_STATUS_BAD_PARAM;
    auto const numbers = operands.all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
    auto const addresses = operands.all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
    auto* const workspace = operands.one<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
    auto const* const config = p.part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
    auto const* const graph = config->part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH);
    graph_call c{graph->parts.at(CUDNN_ATTR_OPERATIONGRAPH_OPS), {}, {}, &algorithm_of(p), workspace};
    auto const bind = [&](object const& o) {
      auto const t = tensor_view::of(o);
      if (t.is_virtual) return true;
      auto const it = std::ranges::find(numbers, t.number);
      if (it == numbers.end()) {
        s.report("cudnnBackendExecute: no address of tensor " + std::to_string(t.number));
        return false;
      }
      auto* const address = addresses[static_cast<std::size_t>(it - numbers.begin())];
      if (t.by_value) {
        std::memcpy(&c.by_value[t.number], address, sizeof(float));
        return true;
      }
      c.addresses[t.number] = address;
      if (simulation::address(address) % 16 == 0) return true;
      s.report("cudnnBackendExecute: an address is no multiple of 16 bytes");
      return false;
    };
    for (auto const& op : c.operations) {
      auto const in = operands::of(*op);
      for (auto const* const r : in.reads)
        if (!bind(*r)) return CUDNN_STATUS_BAD_PARAM;
      if (!bind(*in.write)) return CUDNN_STATUS_BAD_PARAM;
    }
    if (c.how->workspace && !workspace) {
      s.report("cudnnBackendExecute: no workspace");
      return CUDNN_STATUS_BAD_PARAM;
    }
    stream_state* const stream = s.stream(the_handle.stream);
    if (!stream) return CUDNN_STATUS_BAD_PARAM;
    cudaError_t const e = s.submit(
        *stream, {device_work::library, "cudnnBackendExecute", 0, [&s, call = std::move(c)] { return run(s, call); }});
    return e == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
  });
}

}  // extern "C"
