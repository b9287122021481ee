// A table of vectors, looked up by whole numbers.
#pragma once

#include <neap/model/functions.hpp>
#include <neap/model/parameter.hpp>

#include <array>
#include <tuple>

namespace neap::inline v0::nn {

struct embedding {
  parameter weight;  // (rows, width)

  embedding() = default;
  embedding(std::int64_t rows, std::int64_t width, double deviation = 1.0, dtype element = dtype::f32,
            std::source_location at = std::source_location::current()) {
    place_scope const here(at);
    weight = parameter({rows, width}, initialiser::normal(0, deviation), element);
  }

  /// ids (...) of i64 -> (..., width)
  tensor operator()(tensor const& ids, std::source_location at = std::source_location::current()) const {
    place_scope const here(at);
    scope const within(*this);
    return neap::embedding(weight, ids);
  }

  friend auto neap_fields(embedding& self) { return std::tie(self.weight); }
  static constexpr std::array neap_names{"weight"};
};

}  // namespace neap::inline v0::nn
