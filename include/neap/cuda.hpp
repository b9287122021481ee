// The umbrella for programs that use a GPU: find_package(neap COMPONENTS cuda) and neap::cuda. What runs on the device is
// there in .cu files, the rest in .cpp files as well.
#pragma once

#include <neap/cuda/backend.hpp>
#include <neap/cuda/check.hpp>
#include <neap/cuda/device.hpp>
#include <neap/cuda/device_backend.hpp>
#include <neap/cuda/executable.hpp>
#include <neap/cuda/grid.hpp>
#include <neap/cuda/memory.hpp>
#include <neap/cuda/products.hpp>
#include <neap/cuda/scratch.hpp>

#if defined(__CUDACC__)
#include <neap/cuda/kernels/attention.cuh>
#include <neap/cuda/kernels/conv2d.hpp>
#include <neap/cuda/kernels/gemm.cuh>
#include <neap/cuda/kernels/matmul.hpp>
#include <neap/cuda/kernels/standard.cuh>
#include <neap/cuda/launch.cuh>
#include <neap/cuda/mma.cuh>
#endif
