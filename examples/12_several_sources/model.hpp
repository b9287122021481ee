// The model of lesson 12, declared for those who use it.
#pragma once

#include <neap/neap.hpp>

struct network {
  neap::nn::linear in{4, 16}, out{16, 1};
  neap::tensor operator()(neap::tensor const& x) const;
};

/// One planned training: the loss after so many steps.
double trained(network& model, int steps);
