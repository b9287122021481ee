// Rotary positions (Su et al. 2021): pairs of elements of queries and keys, half a head apart, are turned by angles that
// grow with the token's place, so that their products depend on distances alone.
#pragma once

#include <neap/model/functions.hpp>
#include <neap/model/parameter.hpp>

#include <array>
#include <cmath>
#include <tuple>
#include <vector>

namespace neap { inline namespace v0 { namespace nn {

struct rotary {
  tensor cosine, sine;  // (context, width of a head): constants

  rotary() = default;
  rotary(std::int64_t context, std::int64_t head, double base = 10000,
         std::source_location at = std::source_location::current());

  bool is_empty() const { return cosine.is_empty(); }

  /// x (b, h, t, d): x * cos + (second half, first half) * (-sin, sin)
  tensor operator()(tensor const& x, std::source_location at = std::source_location::current()) const;

  friend auto neap_fields(refers_as<rotary> auto& self) { return std::tie(self.cosine, self.sine); }
  static constexpr std::array neap_names{"cosine", "sine"};
};

}}}  // namespace neap::v0::nn

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/nn/impl/rotary.ipp>
#endif
