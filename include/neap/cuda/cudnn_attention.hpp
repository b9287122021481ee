// Attention as a graph of operations that cuDNN knows for one fused kernel, forward and backward. Scores and what follows
// from them are virtual tensors. The backward pass writes dq by one product, in place of atomic additions: its bits repeat,
// for scratch memory as large as the scores.
#pragma once

#include <neap/core/tensor_type.hpp>
#include <neap/cuda/attention_library.hpp>
#include <neap/cuda/cudnn_graph.hpp>

#include <array>
#include <cstdint>
#include <span>
#include <utility>

namespace neap { inline namespace v0 { namespace detail {

/// The numbers of tensors that have memory, or a value of the host.
struct cudnn_attention_number {
  static constexpr std::int64_t q = 1, k = 2, v = 3, y = 4, lse = 5, dy = 6, dq = 7, dk = 8, dv = 9, delta = 10,
                                scale = 11, lowest = 12, one = 13;
};

class cudnn_attention_graph {
 public:
  using extents = std::array<std::int64_t, 4>;

  cudnn_attention_graph(cudnn_graph& g, cuda_attention const& a) : g_(g), a_(a) {
    if (a.backward) backward();
    else forward();
  }

 private:
  using number = cudnn_attention_number;
  using object = cudnn_object const;

  void forward() {
    object& scores = masked(scaled(product_of_scores()));
    object& most = rows();
    reduce(CUDNN_REDUCE_TENSOR_MAX, scores, most);
    object& shifted = pointwise(CUDNN_POINTWISE_SUB, square(), scores, &most);
    object& powers = pointwise(CUDNN_POINTWISE_EXP, square(), shifted);
    object& sums = rows();
    reduce(CUDNN_REDUCE_TENSOR_ADD, powers, sums);
    object& logarithms = pointwise(CUDNN_POINTWISE_LOG, rows(), sums);
    pointwise(CUDNN_POINTWISE_ADD, tensor(number::lse, CUDNN_DATA_FLOAT, a_.lse), most, &logarithms);
    object& probabilities = pointwise(CUDNN_POINTWISE_DIV, square(type()), powers, &sums);
    product(probabilities, tensor(number::v, type(), a_.v), tensor(number::y, type(), a_.y));
  }

  void backward() {
    object &dy = tensor(number::dy, type(), a_.dy), &y = tensor(number::y, type(), a_.y);
    object& q = tensor(number::q, type(), a_.q);
    object& transposed_k = tensor(number::k, type(), transposed(a_.k));
    // delta = the sums of dy * y
    auto const& e = a_.y.dims;
    object& products = pointwise(
        CUDNN_POINTWISE_MUL,
        g_.tensor(next_++, CUDNN_DATA_FLOAT, e, extents{e[1] * e[2] * e[3], e[2] * e[3], e[1] * e[3], 1}, true), dy,
        &y);
    object& summed = rows();
    reduce(CUDNN_REDUCE_TENSOR_ADD, products, summed);
    object& delta =
        pointwise(CUDNN_POINTWISE_MUL, g_.tensor(number::delta, CUDNN_DATA_FLOAT, rows_dims(), rows_strides()), summed,
                  &value(number::one));
    // dv = transposed probabilities * dy
    object& scores = square();
    product(q, transposed_k, scores);
    object& shifted =
        pointwise(CUDNN_POINTWISE_SUB, square(), scaled(scores), &tensor(number::lse, CUDNN_DATA_FLOAT, a_.lse));
    object& probabilities = pointwise(CUDNN_POINTWISE_EXP, square(), masked(shifted));
    product(turned(probabilities), dy, tensor(number::dv, type(), a_.dv));
    // dk = transposed gradients of scores * q, dq = those * k
    object& of_probabilities = square();
    product(dy, tensor(number::v, type(), transposed(a_.v)), of_probabilities);
    object& centred = pointwise(CUDNN_POINTWISE_SUB, square(), of_probabilities, &delta);
    object& of_scores = scaled(pointwise(CUDNN_POINTWISE_MUL, square(), centred, &probabilities));
    product(turned(of_scores), q, tensor(number::dk, type(), a_.dk));
    object& k = g_.tensor(next_++, type(), a_.k.dims, a_.k.strides, true);
    reshape(transposed_k, k);
    product(of_scores, k, tensor(number::dq, type(), a_.dq));
  }

  // ---- parts
  object& product_of_scores() {
    object& scores = square();
    product(tensor(number::q, type(), a_.q), tensor(number::k, type(), transposed(a_.k)), scores);
    return scores;
  }
  object& scaled(object& x) { return pointwise(CUDNN_POINTWISE_MUL, square(), x, &value(number::scale)); }
  /// Scores of keys behind the query's are the lowest number.
  object& masked(object& x) {
    if (!a_.causal) return x;
    auto const index = [&](std::int64_t axis) -> object& {
      return pointwise(CUDNN_POINTWISE_GEN_INDEX, square(CUDNN_DATA_INT32), x, nullptr, nullptr, CUDNN_DATA_INT32,
                       axis);
    };
    object &row = index(2), &column = index(3);
    object& seen =
        pointwise(CUDNN_POINTWISE_CMP_GE, square(CUDNN_DATA_BOOLEAN), row, &column, nullptr, CUDNN_DATA_BOOLEAN);
    return pointwise(CUDNN_POINTWISE_BINARY_SELECT, square(), x, &value(number::lowest), &seen);
  }
  /// Rows and columns exchanged, in the element's type.
  object& turned(object& x) {
    auto const [b, h, t, s] = square_dims();
    object& y = g_.tensor(next_++, type(), extents{b, h, s, t}, extents{h * t * s, t * s, 1, s}, true);
    reshape(x, y);
    return y;
  }

  // ---- tensors
  cudnnDataType_t type() const { return cudnn_type(a_.element); }
  extents square_dims() const { return {a_.q.dims[0], a_.q.dims[1], a_.q.dims[2], a_.k.dims[2]}; }
  extents rows_dims() const { return {a_.q.dims[0], a_.q.dims[1], a_.q.dims[2], 1}; }
  extents rows_strides() const { return {a_.q.dims[1] * a_.q.dims[2], a_.q.dims[2], 1, 1}; }
  object& square(cudnnDataType_t t = CUDNN_DATA_FLOAT) {
    auto const d = square_dims();
    return g_.tensor(next_++, t, d, extents{d[1] * d[2] * d[3], d[2] * d[3], d[3], 1}, true);
  }
  object& rows() { return g_.tensor(next_++, CUDNN_DATA_FLOAT, rows_dims(), rows_strides(), true); }
  object& tensor(std::int64_t n, cudnnDataType_t t, library_tensor const& of) {
    return g_.tensor(n, t, of.dims, of.strides);
  }
  static library_tensor transposed(library_tensor t) {
    std::swap(t.dims[2], t.dims[3]), std::swap(t.strides[2], t.strides[3]);
    return t;
  }
  object& value(std::int64_t n) {
    auto*& known = values_[static_cast<std::size_t>(n)];
    constexpr extents ones{1, 1, 1, 1};
    if (!known) known = &g_.tensor(n, CUDNN_DATA_FLOAT, ones, ones, false, true);
    return *known;
  }

  // ---- operations
  object& pointwise(cudnnPointwiseMode_t mode, object& y, object& x, object* b = nullptr, object* t = nullptr,
                    cudnnDataType_t computed = CUDNN_DATA_FLOAT, std::int64_t axis = -1) {
    auto& how = g_.add(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    how.set(CUDNN_ATTR_POINTWISE_MODE, mode).set(CUDNN_ATTR_POINTWISE_MATH_PREC, computed);
    if (axis >= 0) how.set(CUDNN_ATTR_POINTWISE_AXIS, axis);
    g_.finish(how);
    auto& o = g_.operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    o.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, how)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
    if (b) o.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *b);
    if (t) o.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, *t);
    g_.finish(o);
    return y;
  }
  void product(object& a, object& b, object& c) {
    auto& how = g_.add(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    how.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT);
    g_.finish(how);
    auto& o = g_.operation(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    o.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, a)
        .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b)
        .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, c)
        .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, how);
    g_.finish(o);
  }
  void reduce(cudnnReduceTensorOp_t by, object& x, object& y) {
    auto& how = g_.add(CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    how.set(CUDNN_ATTR_REDUCTION_OPERATOR, by).set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT);
    g_.finish(how);
    auto& o = g_.operation(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    o.set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, how)
        .set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x)
        .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
    g_.finish(o);
  }
  void reshape(object& x, object& y) {
    auto& o = g_.operation(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR);
    o.set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, x).set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, y);
    g_.finish(o);
  }

  cudnn_graph& g_;
  cuda_attention const& a_;
  std::int64_t next_ = 100;
  std::array<object*, 16> values_{};
};

}}}  // namespace neap::v0::detail
