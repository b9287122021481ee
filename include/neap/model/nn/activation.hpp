// Functions without weights as modules, for sequential: activations, dropout, pooling, flatten.
#pragma once

#include <neap/model/functions.hpp>

namespace neap::inline v0::nn {

struct relu {
  template <class Backend = host_backend>
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    return neap::relu<Backend>(x, at);
  }
};
struct gelu {
  template <class Backend = host_backend>
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    return neap::gelu<Backend>(x, at);
  }
};
struct silu {
  template <class Backend = host_backend>
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    return neap::silu<Backend>(x, at);
  }
};
struct tanh {
  template <class Backend = host_backend>
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    return neap::tanh<Backend>(x, at);
  }
};
struct sigmoid {
  template <class Backend = host_backend>
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    return neap::sigmoid<Backend>(x, at);
  }
};

/// In training each element is zero with probability p, the others are scaled by 1 / (1 - p).
struct dropout {
  double p = 0.5;
  template <class Backend = host_backend>
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    return neap::dropout<Backend>(x, p, at);
  }
};

/// (n, a, b, ...) -> (n, a * b * ...)
struct flatten {
  template <class Backend = host_backend>
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    return neap::flatten<Backend>(x, 1, at);
  }
};

struct max_pool2d {
  std::int64_t size = 2, stride = 2, padding = 0;
  template <class Backend = host_backend>
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    return neap::max_pool2d<Backend>(
        x, {.window = {size, size}, .stride = {stride, stride}, .padding = {padding, padding}}, at);
  }
};
struct avg_pool2d {
  std::int64_t size = 2, stride = 2, padding = 0;
  template <class Backend = host_backend>
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const {
    return neap::avg_pool2d<Backend>(
        x, {.window = {size, size}, .stride = {stride, stride}, .padding = {padding, padding}}, at);
  }
};

}  // namespace neap::inline v0::nn
