#include <neap/backend/kernels/copy.hpp>

#include "testing.hpp"

#include <doctest/doctest.h>

using namespace neap;
using namespace neap_test;

TEST_CASE("copies between random views keep every element") {
  random_stream r{1};
  host_backend one{1}, many{3};
  for (int round = 0; round < 400; ++round) {
    dtype const t = all_types[round % 8];
    shape const s = round % 50 == 0 ? shape{3, 130, 77} : round % 51 == 0 ? shape{40000} : random_shape(r, 5);
    auto x = random_view(t, s, r, false, true, 0, 100), y = random_view(t, s, r, false, false);
    copy(round % 2 ? one : many, y, x);
    CHECK(values(x) == values(y));
    fill(many, y, 1);
    for (double v : values(y)) CHECK(v == 1);
  }
}

TEST_CASE("transposes") {
  random_stream r{2};
  host_backend b{2};
  for (dtype t : {dtype::f64, dtype::f32, dtype::bf16, dtype::u8}) {
    auto x = random_dense(t, {5, 67, 100, 3}, r, 0, 100);
    for (auto order : {extents{0, 1, 3, 2}, extents{0, 2, 1, 3}, extents{3, 2, 1, 0}, extents{1, 3, 0, 2}}) {
      tensor_ref view = x;
      for (int i = 0; i < 4; ++i) view.dims[i] = x.ref.dims[static_cast<int>(order[i])];
      for (int i = 0; i < 4; ++i) view.strides[i] = x.ref.strides[static_cast<int>(order[i])];
      owned y{t, view.dims};
      copy(b, y, view);
      CHECK(values(view) == values(y));
    }
  }
}

TEST_CASE("broadcasts, pieces, slices, padding") {
  random_stream r{3};
  host_backend b{2};
  auto row = random_dense(dtype::f32, {6}, r), column = random_dense(dtype::f32, {4, 1}, r);
  owned y{dtype::f32, {4, 6}};
  copy(b, y, row);
  for (std::size_t i = 0; i < 24; ++i) CHECK(values(y)[i] == values(row)[i % 6]);
  copy(b, y, column);
  for (std::size_t i = 0; i < 24; ++i) CHECK(values(y)[i] == values(column)[i / 6]);
  CHECK_THROWS_AS(copy(b, y, random_dense(dtype::f32, {5}, r)), error);

  auto left = random_dense(dtype::f32, {4, 2}, r), right = random_dense(dtype::f32, {4, 4}, r);
  copy_into(b, y, 1, 0, left);
  copy_into(b, y, -1, 2, right);
  owned back{dtype::f32, {4, 4}}, every{dtype::f32, {4, 3}};
  copy_slice(b, back, y, 1, 2);
  CHECK(same_bits(back, right));
  copy_slice(b, every, y, 1, 1, 2);
  for (std::size_t i = 0; i < 12; ++i) CHECK(values(every)[i] == values(y)[i / 3 * 6 + 1 + i % 3 * 2]);

  owned padded{dtype::f32, {7, 9}};
  pad(b, padded, y, {1, 2}, 0.5);
  for (std::size_t i = 0; i < 7; ++i)
    for (std::size_t j = 0; j < 9; ++j) {
      bool const inside = i >= 1 && i < 5 && j >= 2 && j < 8;
      CHECK(values(padded)[i * 9 + j] == (inside ? values(y)[(i - 1) * 6 + j - 2] : 0.5));
    }
  owned cropped{dtype::f32, {2, 3}};
  pad(b, cropped, y, {-1, -2}, 9);
  for (std::size_t i = 0; i < 6; ++i) CHECK(values(cropped)[i] == values(y)[(i / 3 + 1) * 6 + 2 + i % 3]);
}
