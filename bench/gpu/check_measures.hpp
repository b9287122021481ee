// Parts of gpu_check that measure. Each writes CSV to stdout, and gives the number of rows that are wrong.
#pragma once

#include "check_models.hpp"

#include <cstdio>

namespace neap::bench {

/// The names of the columns, at the first call: a part may go through several sizes of models.
inline void csv_header(char const* columns) {
  static bool const written = std::puts(columns) >= 0;
  (void)written;
}

/// A step's time as simulated and as measured, and the share of swaps that is hidden, at limits 1.0, 0.6 and 0.5. The
/// simulation has the ops' times and the link as measured on this device.
int measure_swaps(model_size size);

/// Kernels that memory bounds, beside the copy bandwidth of this device. The first line on stderr sums them up.
int measure_bandwidth(model_size size);

/// Times and memory of whole steps, without a limit and within 0.5 of what that needs. bench/gpu/torch_steps.py has rows of
/// the same columns for PyTorch.
int measure_steps(model_size size);

/// A compiled training loop beside the planned trainer of the same model: equal bits, and the time of a call.
int measure_compiled(model_size size);

/// What the runtime states of the device.
int list_properties();

}  // namespace neap::bench
