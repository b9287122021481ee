// The kernels of <neap/ir/operators/multinomial.hpp>.
#pragma once

#include <neap/ir/operators/multinomial.hpp>

#include <neap/backend/kernels/multinomial.hpp>

#include <cstdint>

namespace neap { inline namespace v0 { namespace op {

template <class Backend>
void run(Backend& b, multinomial const& op, kernel_arguments const& a) {
  neap::multinomial(b, a.out[0], a.in[0], static_cast<std::uint64_t>(op.key),
                    static_cast<std::uint64_t>(*a.in[1].as<std::int64_t const>()), op.replacement, op.first,
                    a.workspace);
}

}}}  // namespace neap::v0::op
