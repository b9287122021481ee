// Functions without weights as modules, for sequential: activations, dropout, pooling, flatten.
#pragma once

#include <neap/model/functions.hpp>

namespace neap::inline v0::nn {

struct relu {
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    scope const within(*this);
    return neap::relu(x, at);
  }
};
struct gelu {
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    scope const within(*this);
    return neap::gelu(x, at);
  }
};
struct elu {
  double alpha = 1;
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    scope const within(*this);
    return neap::elu(x, alpha, at);
  }
};
struct silu {
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    scope const within(*this);
    return neap::silu(x, at);
  }
};
struct tanh {
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    scope const within(*this);
    return neap::tanh(x, at);
  }
};
struct sigmoid {
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    scope const within(*this);
    return neap::sigmoid(x, at);
  }
};

/// In training each element is zero with probability p, the others are scaled by 1 / (1 - p).
struct dropout {
  double p = 0.5;
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    scope const within(*this);
    return neap::dropout(x, p, at);
  }
};

/// (n, a, b, ...) -> (n, a * b * ...)
struct flatten {
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    scope const within(*this);
    return neap::flatten(x, 1, at);
  }
};

struct max_pool2d {
  std::int64_t size = 2, stride = 2, padding = 0;
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    scope const within(*this);
    return neap::max_pool2d(x, {.window = {size, size}, .stride = {stride, stride}, .padding = {padding, padding}}, at);
  }
};
struct avg_pool2d {
  std::int64_t size = 2, stride = 2, padding = 0;
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    scope const within(*this);
    return neap::avg_pool2d(x, {.window = {size, size}, .stride = {stride, stride}, .padding = {padding, padding}}, at);
  }
};

}  // namespace neap::inline v0::nn
