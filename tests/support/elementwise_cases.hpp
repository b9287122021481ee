// Cases (kernel_cases.hpp) of elementwise kernels: maps of all functors, and maps, copies, fills and triangles of operands
// of all layouts and element types.
#pragma once

#include "elementwise_functors.hpp"
#include "kernel_cases.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace neap::testing {

/// A functor with numbers that are none of 0 and 1.
template <class F>
F sample_functor() {
  using namespace neap::detail;
  if constexpr (std::is_same_v<F, sgd_step>) return {0.1, 0.01};
  else if constexpr (std::is_same_v<F, momentum_step>) return {0.1, 0.9, 0.2, 0.01, true};
  else if constexpr (std::is_same_v<F, lion_step>) return {0.1, 0.9, 0.99, 0.01};
  else if constexpr (std::is_same_v<F, adam_step>) return {0.9, 0.999, 1e-8, 0.02, 0.99, 0.1, 2};
  else if constexpr (std::is_same_v<F, muon_blend>) return {0.95, true};
  else if constexpr (std::is_same_v<F, muon_step>) return {0.99, 0.1};
  else if constexpr (std::is_same_v<F, times_number>) return {0.3};
  else if constexpr (std::is_same_v<F, op::add_scalar>) return {0.3};
  else if constexpr (std::is_same_v<F, op::mul_scalar>) return {0.3};
  else if constexpr (std::is_same_v<F, op::pow_scalar>) return {1.7};
  else if constexpr (std::is_same_v<F, op::pow_scalar_grad>) return {1.7};
  else if constexpr (std::is_same_v<F, op::clamp>) return {-0.5, 1.5};
  else if constexpr (std::is_same_v<F, op::grad_of<op::clamp>>) return F{op::clamp{-0.5, 1.5}};
  else if constexpr (std::is_same_v<F, op::elu>) return {0.7};
  else if constexpr (std::is_same_v<F, op::grad_of<op::elu>>) return F{op::elu{0.7}};
  else if constexpr (std::is_same_v<F, op::detail::running_average>) return {0.1, 1e-5, 1.1};
  else if constexpr (std::is_same_v<F, squared_error_slope>) return {0.3};
  else return F{};
}

template <class F, int Inputs, int Outputs>
struct functor_case {
  static constexpr bool same_order = false;
  double low, high;

  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    shape const s{e.rows, e.columns};
    std::array<tensor_ref, Inputs> in;
    std::array<tensor_ref, Outputs> out;
    for (auto& x : in) x = m.random(t, s, low, high);
    for (auto& y : out) y = m.unwritten(t, s);
    [&]<std::size_t... I>(std::index_sequence<I...>) {
      map(b, sample_functor<F>(), out, in[I]...);
    }(std::make_index_sequence<Inputs>{});
  }
};

/// Calls f(case, the functor's name) for every functor.
template <class F>
void for_each_functor_case(F const& f) {
  using namespace neap::detail;
#define NEAP_CASE(functor, inputs, outputs, low, high) f(functor_case<functor, inputs, outputs>{low, high}, #functor);
  NEAP_MAPPED_FUNCTORS(NEAP_CASE)
#undef NEAP_CASE
}

inline tensor_ref transposed(tensor_ref x) {
  std::swap(x.dims[0], x.dims[1]);
  std::swap(x.strides[0], x.strides[1]);
  return x;
}

inline constexpr dtype all_elements[] = {dtype::f64, dtype::f32, dtype::bf16, dtype::f16,
                                         dtype::i64, dtype::i32, dtype::u8,   dtype::boolean};

/// Maps of one operation an element: bits are the host's.
struct layouts_case {
  static constexpr bool same_order = true;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    using neap::op::add;
    shape const s{e.rows, e.columns}, back{e.columns, e.rows}, twice{e.rows, 2 * e.columns};
    auto const x = m.random(t, s), y = m.random(t, s), of_columns = m.random(t, {e.columns}),
               of_rows = m.random(t, {e.rows, 1}), one = m.random(t, {}), x_back = m.random(t, back),
               wide = m.random(t, twice);
    auto const yes = m.random(dtype::boolean, s, -1, 1);
    auto const to = [&](dtype of) { return m.unwritten(of, s); };
    map(b, add{}, to(t), x, y);
    map(b, add{}, to(t), x, of_columns);
    map(b, add{}, to(t), of_rows, x);
    map(b, add{}, to(t), of_rows, of_columns);
    map(b, add{}, to(t), x, one);
    map(b, add{}, to(t), one, one);
    map(b, add{}, to(t), x, transposed(x_back));
    map(b, add{}, transposed(m.unwritten(t, back)), x, transposed(x_back));
    map(b, add{}, to(t), x, slice_view(wide, 1, 0, e.columns));
    map(b, add{}, to(t), x, slice_view(wide, 1, e.columns, e.columns));
    map(b, add{}, to(t), x, slice_view(wide, 1, 0, e.columns, 2));
    map(b, add{}, to(dtype::f32), x, slice_view(m.random(dtype::f16, twice), 1, e.columns, e.columns));
    map(b, add{}, to(dtype::f16), m.random(dtype::bf16, s), m.random(dtype::f32, s));
    auto const part = slice_view(m.copy(wide), 1, 1, e.columns);
    map(b, add{}, part, part, x);
    auto const in_place = m.copy(x);
    map(b, add{}, in_place, in_place, y);
    where(b, to(t), yes, x, y);
    where(b, to(t), yes, x, one);
    map(b, op::greater{}, to(dtype::boolean), x, y);
    map(b, op::less{}, to(dtype::f32), x, m.random(dtype::u8, s, 0, 3));
    // three axes that do not join
    shape const deep{2, e.rows, e.columns};
    auto const z = m.random(t, deep), of_planes = m.random(t, {2, 1, e.columns});
    map(b, add{}, m.unwritten(t, deep), z, of_planes);
    map(b, add{}, m.unwritten(t, deep), of_planes, of_rows);
  }
};

/// Casts between all types; sums in f64 and of integers.
struct types_case {
  static constexpr bool same_order = true;
  template <class B>
  void operator()(B& b, case_memory& m, dtype, case_extents e) const {
    shape const s{e.rows, e.columns};
    for (dtype from : all_elements) {
      auto const x = m.random(from, s, from == dtype::u8 ? 0 : -20, 20);
      for (dtype to : all_elements) cast(b, m.unwritten(to, s), x);
      map(b, op::add{}, m.unwritten(from, s), x, m.random(from, s, 0, 20));
      map(b, op::add{}, m.unwritten(dtype::f64, s), x, m.random(dtype::f64, s));
      where(b, m.unwritten(from, s), m.random(dtype::boolean, s, -1, 1), x, m.random(from, {}, 0, 20));
    }
  }
};

struct copy_case {
  static constexpr bool same_order = true;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    for (dtype element : {t, dtype::f64, dtype::u8}) {
      shape const s{e.rows, e.columns}, back{e.columns, e.rows}, deep{2, e.rows, e.columns};
      auto const x = m.random(element, s, 0, 20);
      copy(b, m.unwritten(element, s), x);
      copy(b, transposed(m.unwritten(element, back)), x);
      copy(b, m.unwritten(element, back), transposed(x));
      copy(b, m.unwritten(element, deep), x);
      copy(b, m.unwritten(element, s), m.random(element, {e.rows, 1}, 0, 20));
      copy(b, m.unwritten(element, s), m.random(element, {}, 0, 20));
      auto const z = m.random(element, deep, 0, 20);
      for (extents const& order : {extents{1, 0, 2}, extents{2, 1, 0}, extents{0, 2, 1}}) {
        tensor_ref y = z;
        for (int k = 0; k < 3; ++k)
          y.dims[k] = z.dims[static_cast<int>(order[k])], y.strides[k] = z.strides[static_cast<int>(order[k])];
        copy(b, m.unwritten(element, y.dims), y);
      }
      auto const joined = m.unwritten(element, {e.rows, 2 * e.columns});
      copy_into(b, joined, 1, 0, x);
      copy_into(b, joined, 1, e.columns, x);
      if (e.columns > 0) {
        auto const cut = m.unwritten(element, {e.rows, (e.columns + 1) / 2});
        copy_slice(b, cut, x, 1, 0, 2);
      }
      pad(b, m.unwritten(element, {e.rows + 3, e.columns + 2}), x, {1, 2}, 3);
      fill(b, m.unwritten(element, s), 7);
      auto const zero_behind = m.copy(x);
      if (e.columns > 1) fill(b, slice_view(zero_behind, 1, 1, e.columns - 1), 0);
      triangle(b, m.unwritten(element, s), x, 1, true);
      triangle(b, m.unwritten(element, deep), z, -1, false);
      auto const in_place = m.copy(x);
      triangle(b, in_place, in_place, 0, false);
    }
  }
};

}  // namespace neap::testing
