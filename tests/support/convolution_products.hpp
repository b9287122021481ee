// The products of a convolution, one by one: the definition that kernels are compared with.
#pragma once

#include <neap/backend/kernels/conv2d.hpp>

#include <cstdint>

namespace neap::testing {

/// f(x index, w index, y index) for every product of a convolution of dense tensors.
template <class F>
void convolution_products(shape const& x, shape const& w, shape const& y, conv2d_options const& o, F f) {
  auto const og = w[0] / o.groups;
  for (std::int64_t n = 0; n < y[0]; ++n)
    for (std::int64_t oc = 0; oc < y[1]; ++oc)
      for (std::int64_t i = 0; i < y[2]; ++i)
        for (std::int64_t j = 0; j < y[3]; ++j)
          for (std::int64_t c = 0; c < w[1]; ++c)
            for (std::int64_t a = 0; a < w[2]; ++a)
              for (std::int64_t b = 0; b < w[3]; ++b) {
                auto const r = i * o.stride[0] + a * o.dilation[0] - o.padding[0];
                auto const s = j * o.stride[1] + b * o.dilation[1] - o.padding[1];
                if (r < 0 || r >= x[2] || s < 0 || s >= x[3]) continue;
                auto const ic = oc / og * w[1] + c;
                f(((n * x[1] + ic) * x[2] + r) * x[3] + s, ((oc * w[1] + c) * w[2] + a) * w[3] + b,
                  ((n * y[1] + oc) * y[2] + i) * y[3] + j);
              }
}

}  // namespace neap::testing
