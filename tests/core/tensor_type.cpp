#include <neap/core/tensor_type.hpp>

#include <doctest/doctest.h>

#include <cstdint>

using namespace neap;

static_assert(size_of(dtype::f64) == 8 && size_of(dtype::bf16) == 2 && size_of(dtype::boolean) == 1);
static_assert(is_floating(dtype::f16) && !is_floating(dtype::i64));
static_assert(tensor_type{dtype::f32, {2, 3}}.bytes() == 24 && tensor_type{dtype::f32, {}}.count() == 1);
static_assert(tensor_type{dtype::f32, {2, 0, 3}}.count() == 0);
static_assert(tensor_type{dtype::f32, {2, 3}}.extent(-1) == 3 && tensor_type{dtype::f32, {2, 3}}.extent(0) == 2);
static_assert(dense_strides({2, 3, 4}) == extents{12, 4, 1});
static_assert(tensor_layout::dense({dtype::f32, {2, 3}}).is_dense());
static_assert(tensor_layout{{dtype::f32, {2, 1}}, {1, 77}, 5}.is_dense());  // an axis of one element, an offset
static_assert(!tensor_layout{{dtype::f32, {3, 2}}, {1, 3}, 0}.is_dense());  // transposed
static_assert(tensor_layout::dense({dtype::f32, {3, 0}}).is_dense() &&
              tensor_layout::dense({dtype::f32, {3, 0, 4}}).is_dense());
static_assert(tensor_layout{{dtype::f32, {0, 3}}, {7, 5}, 0}.is_dense() &&  // nothing follows nothing
              tensor_layout{{dtype::f32, {0, 3}}, {7, 5}, 0}.has_dense_rows());
static_assert(!tensor_layout{{dtype::f32, {3, 2}}, {0, 1}, 0}.is_dense());  // broadcast
static_assert(tensor_layout{{dtype::f32, {3, 2}}, {0, 1}, 0}.has_dense_rows());

TEST_CASE("types and shapes say themselves") {
  CHECK(to_string(shape{}) == "[]");
  CHECK(to_string(tensor_type{dtype::bf16, {32, 64}}) == "bf16[32,64]");
}

TEST_CASE("lists change in place and stay comparable") {
  extents e{1, 2, 3};
  e.erase(1);
  CHECK(e == extents{1, 3});
  e.insert(1, 9);
  CHECK(e == extents{1, 9, 3});
  e.insert(0, 7), e.erase(3), e.erase(2), e.erase(1);
  CHECK(e == extents{7});
  CHECK(extents::filled(3, 5) == extents{5, 5, 5});
}

TEST_CASE("too many axes and too many elements are refused") {
  CHECK_THROWS_AS((extents{1, 1, 1, 1, 1, 1, 1, 1, 1}), neap::error);
  CHECK_THROWS_AS((tensor_type{dtype::f32, {INT64_MAX, 2}}.count()), neap::error);
  CHECK_THROWS_AS((tensor_type{dtype::f32, {INT64_MAX}}.bytes()), neap::error);
  CHECK_THROWS_AS(dense_strides({1, INT64_MAX, 2, 2}), neap::error);
}

TEST_CASE("bytes of elements that share a byte are rounded up") {
  static_assert(bits_of(dtype::c128) == 128 && size_of(dtype::c64) == 8 && size_of(dtype::u4) == 1);
  CHECK(bytes_of(dtype::i4, 0) == 0);
  CHECK(bytes_of(dtype::i4, 3) == 2);
  CHECK(bytes_of(dtype::f6e2m3, 4) == 3);
  CHECK(bytes_of(dtype::f6e2m3, 5) == 4);
  CHECK(bytes_of(dtype::u2, 9) == 3);
  CHECK(bytes_of(dtype::u16, 5) == 10);
  CHECK(tensor_type{dtype::u4, {3, 3}}.bytes() == 5);
  CHECK(bytes_of(dtype::i4, INT64_MAX) == INT64_MAX / 2 + 1);
  for (std::size_t t = 0; t < dtype_names.size(); ++t) {
    auto const type = static_cast<dtype>(t);
    CHECK(!(is_integer(type) && is_floating(type)));
    for (std::int64_t n = 0; n < 40; ++n) CHECK(bytes_of(type, n) == (n * bits_of(type) + 7) / 8);
  }
  CHECK(is_floating(dtype::f8e5m2));
  CHECK(is_integer(dtype::u4));
  CHECK(!is_floating(dtype::c64));
}
