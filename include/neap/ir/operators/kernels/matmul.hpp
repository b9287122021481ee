// The kernels of <neap/ir/operators/matmul.hpp>.
#pragma once

#include <neap/ir/operators/matmul.hpp>

#include <neap/backend/kernels/matmul.hpp>

#include <concepts>

namespace neap { inline namespace v0 { namespace op {

template <std::same_as<host_backend> Backend>
void run(Backend& b, matmul const& op, kernel_arguments const& a) {
  neap::matmul(b, a.in[0], a.in[1], a.out[0], {op.transpose_a, op.transpose_b, false}, a.workspace);
}

}}}  // namespace neap::v0::op
