// How far two results of f64 are from each other.
#pragma once

#include "plain_run.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace neap::testing {

/// The greatest difference between numbers of f64 at one place, in parts of the greatest number; infinite where one is not
/// a number.
inline double difference(std::vector<block> const& a, std::vector<block> const& b) {
  double most = 0, large = 1e-30;
  for (std::size_t i = 0; i < a.size(); ++i)
    for (bytes_t k = 0; k < a[i].bytes() / 8; ++k) {
      auto const x = reinterpret_cast<double const*>(a[i].data())[k],
                 y = reinterpret_cast<double const*>(b[i].data())[k];
      if (std::isnan(x) != std::isnan(y)) return INFINITY;
      if (!std::isnan(x)) most = std::max(most, std::abs(x - y)), large = std::max(large, std::abs(x));
    }
  return most / large;
}

}  // namespace neap::testing
