// A table of vectors, looked up by whole numbers.
#pragma once

#include <neap/model/functions.hpp>
#include <neap/model/parameter.hpp>

#include <array>
#include <tuple>

namespace neap { inline namespace v0 { namespace nn {

struct embedding {
  parameter weight;  // (rows, width)

  embedding() = default;
  embedding(std::int64_t rows, std::int64_t width, double deviation = 1.0, dtype element = dtype::f32,
            std::source_location at = std::source_location::current());

  /// ids (...) of i64 -> (..., width)
  tensor operator()(tensor const& ids, std::source_location at = std::source_location::current()) const;

  friend auto neap_fields(refers_as<embedding> auto& self) { return std::tie(self.weight); }
  static constexpr std::array neap_names{"weight"};
};

}}}  // namespace neap::v0::nn

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/model/nn/impl/embedding.ipp>
#endif
