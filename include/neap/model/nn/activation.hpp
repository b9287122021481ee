// Functions without weights as modules, for sequential: activations, dropout, pooling, flatten.
#pragma once

#include <neap/model/functions.hpp>

namespace neap { inline namespace v0 { namespace nn {

struct relu {
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;
};
struct gelu {
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;
};
struct elu {
  double alpha = 1;
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;
};
struct silu {
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;
};
struct tanh {
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;
};
struct sigmoid {
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;
};

/// In training each element is zero with probability p, the others are scaled by 1 / (1 - p).
struct dropout {
  double p = 0.5;
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;
};

/// (n, a, b, ...) -> (n, a * b * ...)
struct flatten {
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;
};

struct max_pool2d {
  std::int64_t size = 2, stride = 2, padding = 0;
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;
};
struct avg_pool2d {
  std::int64_t size = 2, stride = 2, padding = 0;
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;
};

}}}  // namespace neap::v0::nn

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/nn/impl/activation.ipp>
#endif
