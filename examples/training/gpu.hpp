// The GPU that a training program uses: its backend, figures of the device, and the link to the host as measured.
#pragma once

#include <neap/cuda.hpp>
#include <neap/cuda/measure.hpp>

#include "training.hpp"

#include <algorithm>
#include <cstdio>
#include <source_location>

namespace training {

struct gpu {
  neap::cuda_backend backend{0, std::source_location{}};  // throws neap::error where there is no GPU
  neap::roofline figures = neap::figures_of(backend);
  swap_link link{};

  gpu() {
    auto const rates = neap::measure_link(backend, neap::bytes_t{16} << 20, 5);
    rates.apply(figures);
    link = {std::min(rates.to_host_both, rates.to_device_both), false};
    std::printf("%s; link %.1f GB/s to the host and %.1f GB/s back at once\n", backend.description().c_str(),
                1e-9 * rates.to_host_both, 1e-9 * rates.to_device_both);
  }
};

}  // namespace training
