// The GPU's half, the one file of the program that nvcc compiles: launches of the functors.
#include "unit_rows.hpp"

#include <neap/cuda/launch.cuh>

void run(neap::cuda_backend& b, unit_rows const& op, neap::kernel_arguments const& a) { launch(b, op, a); }
void run(neap::cuda_backend& b, unit_rows_grad const& op, neap::kernel_arguments const& a) { launch(b, op, a); }
