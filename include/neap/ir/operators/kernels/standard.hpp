// The kernels of the standard operators, all of them.
#pragma once

#include <neap/ir/operators/kernels/attention.hpp>
#include <neap/ir/operators/kernels/binary.hpp>
#include <neap/ir/operators/kernels/channel_norm.hpp>
#include <neap/ir/operators/kernels/common.hpp>
#include <neap/ir/operators/kernels/conv2d.hpp>
#include <neap/ir/operators/kernels/dropout.hpp>
#include <neap/ir/operators/kernels/fused.hpp>
#include <neap/ir/operators/kernels/image.hpp>
#include <neap/ir/operators/kernels/loss.hpp>
#include <neap/ir/operators/kernels/matmul.hpp>
#include <neap/ir/operators/kernels/matmul_update.hpp>
#include <neap/ir/operators/kernels/movement.hpp>
#include <neap/ir/operators/kernels/multinomial.hpp>
#include <neap/ir/operators/kernels/parts.hpp>
#include <neap/ir/operators/kernels/picking.hpp>
#include <neap/ir/operators/kernels/reduction.hpp>
#include <neap/ir/operators/kernels/row_norm.hpp>
#include <neap/ir/operators/kernels/softmax.hpp>
#include <neap/ir/operators/kernels/split.hpp>
#include <neap/ir/operators/kernels/unary.hpp>
#include <neap/ir/operators/kernels/update.hpp>
