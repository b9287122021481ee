// All kernels in the form that devices run, where that is another one than the host's.
#pragma once

#include <neap/cuda/kernels/copy.cuh>
#include <neap/cuda/kernels/dropout.cuh>
#include <neap/cuda/kernels/elementwise.cuh>
#include <neap/cuda/kernels/fused_operator.cuh>
#include <neap/cuda/kernels/images.cuh>
#include <neap/cuda/kernels/lines.cuh>
#include <neap/cuda/kernels/muon.cuh>
#include <neap/cuda/kernels/picking.cuh>
#include <neap/cuda/kernels/reduce.cuh>
#include <neap/cuda/kernels/update.cuh>
#include <neap/cuda/kernels/update_many.cuh>
#include <neap/ir/operators/kernels/standard.hpp>
