// Normalisations: layer norm (Ba et al. 2016), rms norm (Zhang and Sennrich 2019), group norm (Wu and He 2018), and batch
// norm over images, sequences or rows (Ioffe and Szegedy 2015), which keeps running statistics for evaluation.
#pragma once

#include <neap/model/functions.hpp>
#include <neap/model/parameter.hpp>

#include <array>
#include <tuple>

namespace neap { inline namespace v0 { namespace nn {

/// Over the last axis: (x - mean) / sqrt(var + epsilon) * weight + bias.
struct layer_norm {
  parameter weight, bias;  // (width)
  double epsilon = 1e-5;

  layer_norm() = default;
  explicit layer_norm(std::int64_t width, double eps = 1e-5, dtype element = dtype::f32,
                      std::source_location at = std::source_location::current());

  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;
  friend auto neap_fields(refers_as<layer_norm> auto& self) { return std::tie(self.weight, self.bias, self.epsilon); }
  static constexpr std::array neap_names{"weight", "bias", "epsilon"};
  static constexpr bool neap_rest_is_derived = true;  // padding
};

/// Over the last axis: x / sqrt(mean(x^2) + epsilon) * weight.
struct rms_norm {
  parameter weight;  // (width)
  double epsilon = 1e-6;

  rms_norm() = default;
  explicit rms_norm(std::int64_t width, double eps = 1e-6, dtype element = dtype::f32,
                    std::source_location at = std::source_location::current());

  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;
  friend auto neap_fields(refers_as<rms_norm> auto& self) { return std::tie(self.weight, self.epsilon); }
  static constexpr std::array neap_names{"weight", "epsilon"};
  static constexpr bool neap_rest_is_derived = true;  // padding
};

/// Over the channels of each group and all places of an image: (n, c, h, w).
struct group_norm {
  parameter weight, bias;  // (channels)
  std::int64_t groups = 1;
  double epsilon = 1e-5;

  group_norm() = default;
  group_norm(std::int64_t groups_, std::int64_t channels, double eps = 1e-5, dtype element = dtype::f32,
             std::source_location at = std::source_location::current());

  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;
  friend auto neap_fields(refers_as<group_norm> auto& self) {
    return std::tie(self.weight, self.bias, self.groups, self.epsilon);
  }
  static constexpr std::array neap_names{"weight", "bias", "groups", "epsilon"};
  static constexpr bool neap_rest_is_derived = true;  // padding
};

/// Over the batch and all places of images (n, c, h, w), each channel by itself. In training it uses the batch's
/// statistics and moves the running ones towards them in place; under neap::evaluation it uses the running ones. Freezing
/// its weights changes nothing of that, as in other libraries: for a batch norm that trains no more at all, say
/// fixed_statistics, too; gradients still go through it.
struct batch_norm2d {
  parameter weight, bias;                 // (channels)
  buffer running_mean, running_variance;  // (channels)
  double epsilon = 1e-5, momentum = 0.1;
  bool fixed_statistics = false;  // in training, too, the running ones are used, and stay

  batch_norm2d() = default;
  explicit batch_norm2d(std::int64_t channels, double eps = 1e-5, double momentum_ = 0.1, dtype element = dtype::f32,
                        std::source_location at = std::source_location::current());

  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;
  friend auto neap_fields(refers_as<batch_norm2d> auto& self) {
    return std::tie(self.weight, self.bias, self.running_mean, self.running_variance, self.epsilon, self.momentum,
                    self.fixed_statistics);
  }
  static constexpr std::array neap_names{"weight",  "bias",     "running_mean",    "running_variance",
                                         "epsilon", "momentum", "fixed_statistics"};
  static constexpr bool neap_rest_is_derived = true;  // padding
};

/// The same of rows (n, c) and sequences (n, c, l).
struct batch_norm1d : batch_norm2d {
  using batch_norm2d::batch_norm2d;
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;
};

}}}  // namespace neap::v0::nn

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/nn/impl/norm.ipp>
#endif
