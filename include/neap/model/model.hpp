// The model DSL: tensors, functions on them, modules. The zoo's models are included one by one: neap/model/zoo/gpt.hpp.
#pragma once

#include <neap/model/functions.hpp>
#include <neap/model/nn/activation.hpp>
#include <neap/model/nn/attention.hpp>
#include <neap/model/nn/conv1d.hpp>
#include <neap/model/nn/conv2d.hpp>
#include <neap/model/nn/conv3d.hpp>
#include <neap/model/nn/conv_transpose.hpp>
#include <neap/model/nn/embedding.hpp>
#include <neap/model/nn/grouped_query_attention.hpp>
#include <neap/model/nn/linear.hpp>
#include <neap/model/nn/mixture_of_experts.hpp>
#include <neap/model/nn/norm.hpp>
#include <neap/model/nn/recurrent.hpp>
#include <neap/model/nn/rotary.hpp>
#include <neap/model/nn/sequential.hpp>
#include <neap/model/nn/transformer.hpp>
#include <neap/model/parameters.hpp>
#include <neap/model/pins.hpp>
#include <neap/model/program.hpp>
