// The kernels of <neap/ir/operators/dropout.hpp>.
#pragma once

#include <neap/ir/operators/dropout.hpp>

#include <neap/backend/kernels/dropout.hpp>

#include <cstdint>

namespace neap { inline namespace v0 { namespace op {

template <class Backend>
void run(Backend& b, dropout const& op, kernel_arguments const& a) {
  neap::dropout(b, a.out[0], a.in[0], static_cast<std::uint64_t>(op.key),
                static_cast<std::uint64_t>(*a.in[1].as<std::int64_t const>()), op.p, {}, op.first);
}

template <class Backend>
void run(Backend& b, dropout_grad const& op, kernel_arguments const& a) {
  run(b, dropout{op.p, op.key, op.first}, a);
}

}}}  // namespace neap::v0::op
