// All functions on tensors.
#pragma once

#include <neap/model/functions/attention.hpp>
#include <neap/model/functions/comparison.hpp>
#include <neap/model/functions/convolution.hpp>
#include <neap/model/functions/einsum.hpp>
#include <neap/model/functions/elementwise.hpp>
#include <neap/model/functions/images.hpp>
#include <neap/model/functions/losses.hpp>
#include <neap/model/functions/matrix.hpp>
#include <neap/model/functions/movement.hpp>
#include <neap/model/functions/picking.hpp>
#include <neap/model/functions/random.hpp>
#include <neap/model/functions/reduction.hpp>
#include <neap/model/functions/rows.hpp>
