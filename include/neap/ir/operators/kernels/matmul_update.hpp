// The kernels of <neap/ir/operators/matmul_update.hpp>.
#pragma once

#include <neap/ir/operators/matmul_update.hpp>

#include <neap/backend/gemm.hpp>
#include <neap/backend/kernels/matmul.hpp>
#include <neap/ir/operators/kernels/update.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

namespace neap { inline namespace v0 { namespace op {

namespace detail {

template <class Make, class Update>
void weight_product::for_each_part(kernel_arguments const& a, Make const& make, Update const& update) const {
  auto s = neap::detail::matmul_plan::of(a.in[1], a.in[2], dense_gradient(a), {transpose_a, transpose_b, false}).each;
  auto const cut = cut_of(s, a.in[1].element);
  s.ldc = cut.rows ? s.n : cut.length;
  int const axis = cut.rows ? 0 : 1;
  for (std::int64_t i = 0; i < cut.count; ++i) {
    auto const begin = cut.begin(i);
    auto gradient = dense_gradient(a);
    gradient.dims[axis] = cut.end(s, i) - begin;
    gradient.strides[0] = s.ldc;
    make(s, cut, i);
    update_part(a, gradient, axis, begin, update);
  }
}

template <class Update>
void weight_product::update_part(kernel_arguments const& a, tensor_ref const& gradient, int axis, std::int64_t begin,
                                 Update const& update) {
  std::array<tensor_ref, max_inputs> part;  // w, gradient, states...
  std::size_t n = 0;
  for (std::size_t i = 0; i < a.in.size(); ++i) {
    if (i == 1) part[n++] = gradient;
    if (i == 1 || i == 2) continue;
    auto t = a.in[i];
    if (t.dims == a.in[0].dims) {
      t.data = t.as<std::byte>() + begin * t.strides[axis] * size_of(t.element);
      t.dims[axis] = gradient.dims[axis];
    }
    part[n++] = t;
  }
  std::span<tensor_ref const> const inputs(part.data(), n);
  update({inputs, inputs, nullptr});
}

}  // namespace detail

template <std::same_as<host_backend> Backend, class Update>
void run(Backend& b, matmul_update<Update> const& op, kernel_arguments const& a) {
  auto const product = op.product();
  product.for_each_part(
      a, [&](gemm_shape const& s, gemm_parts const& cut, std::int64_t i) { product.make_on_host(b, a, s, cut, i); },
      [&](kernel_arguments const& part) { run(b, op.update, part); });
}

}}}  // namespace neap::v0::op
