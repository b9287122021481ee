// Samples of whole numbers: classes, tokens.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/model/tensor.hpp>

#include <cstdint>
#include <vector>

namespace neap::testing {

/// A tensor of i64 in [0, below), drawn by a seed.
inline tensor whole_numbers(shape const& s, std::uint64_t seed, std::uint32_t below) {
  random_stream r(seed);
  std::vector<std::int64_t> v;
  for (std::int64_t i = 0; i < elements(s); ++i) v.push_back(r.below(below));
  return tensor::from(v, s);
}

}  // namespace neap::testing
