// Kernels along an axis on a device: running sums, the largest element's place, the k largest, and places drawn by weights.
// A block does a line. All but running sums of lines whose elements follow one another give the host's bits (drawn places
// without replacement: but for weights' logarithms that are equal to rounding).
#pragma once

#include <neap/backend/device_backend.hpp>
#include <neap/cuda/grid.hpp>
#include <neap/cuda/kernels/index_space.cuh>
#include <neap/ir/operators/kernels/multinomial.hpp>
#include <neap/ir/operators/kernels/picking.hpp>
#include <neap/ir/operators/kernels/reduction.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 {

namespace detail {

/// The lines along an axis of tensors of one shape.
template <int Operands>
struct axis_lines {
  index_space<Operands> starts;
  std::int64_t length;
  std::int64_t stride[Operands];  // bytes

  axis_lines(shape const& dims, int axis, tensor_ref const* const (&x)[Operands]) : length(dims[axis]) {
    tensor_ref others[Operands];
    tensor_ref const* at[Operands];
    for (int k = 0; k < Operands; ++k) {
      others[k] = *x[k];
      stride[k] = x[k]->strides[axis] * size_of(x[k]->element);
      others[k].dims.erase(axis), others[k].strides.erase(axis);
      at[k] = &others[k];
    }
    starts = index_space<Operands>(others[0].dims, at);
  }
};

/// Running sums in C of lines, a thread a line, one element after another.
template <class C>
struct sum_columns {
  static constexpr bool whole_blocks = true;
  static constexpr std::int64_t chunk = cuda_block_threads;
  axis_lines<2> x;
  bool reverse;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::int64_t const first = b.id * chunk, left = x.starts.count - first;
    sum_columns const* const self = this;
    b.each(left < chunk ? left : chunk, [self, first](std::int64_t i) {
      axis_lines<2> const& lines = self->x;
      std::byte* at[2];
      lines.starts.place(first + i, at);
      C sum = 0;
      for (std::int64_t k = 0; k < lines.length; ++k) {
        std::int64_t const place = self->reverse ? lines.length - 1 - k : k;
        sum += load_element<C>(at[0] + place * lines.stride[0], lines.starts.element[0]);
        store_element(at[1] + place * lines.stride[1], lines.starts.element[1], sum);
      }
    });
  }
};

/// The same, a block a line: as many elements at once as it has threads.
template <class C>
struct sum_lines {
  static constexpr bool scans = true;  // takes inclusive_sum, which the host's block has not
  axis_lines<2> x;
  bool reverse;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::byte* at[2];
    x.starts.place(b.id, at);
    constexpr std::int64_t threads = Block::threads;
    C before = 0;
    for (std::int64_t k = 0; k < x.length; k += threads) {
      std::int64_t const n = x.length - k < threads ? x.length - k : threads;
      std::int64_t const first = reverse ? x.length - 1 - k : k, step = reverse ? -1 : 1;
      C own = 0;
      b.each(n, [&](std::int64_t i) {
        own = load_element<C>(at[0] + (first + step * i) * x.stride[0], x.starts.element[0]);
      });
      C const sum = before + b.inclusive_sum(own);
      b.each(n, [&](std::int64_t i) {
        store_element(at[1] + (first + step * i) * x.stride[1], x.starts.element[1], sum);
      });
      before += b.reduce(own, sum_op{});
    }
  }
};

/// arg_max_lines (backend/kernels/arg_max.hpp) of types that are compared as C.
template <class C>
struct arg_max_loaded {
  axis_lines<1> x;
  std::int64_t* out;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    std::byte* at[1];
    x.starts.place(b.id, at);
    std::byte const* const line = at[0];
    std::int64_t const step = x.stride[0], behind = x.length;
    dtype const element = x.starts.element[0];
    C const top = b.reduce_each(
        behind, lowest_of<C>, [=](std::int64_t i) { return load_element<C>(line + i * step, element); }, max_op{});
    bool const is_nan = top != top;
    std::int64_t const place = b.reduce_each(
        behind, behind,
        [=](std::int64_t i) {
          C const v = load_element<C>(line + i * step, element);
          return (is_nan ? v != v : v == top) ? i : behind;
        },
        min_op{});
    std::int64_t* const to = out + b.id;
    b.once([=] { *to = place; });
  }
};

/// A place and what it is ranked by; of equals the lower place is ahead.
template <class Rank>
struct place_by_rank {
  Rank rank;
  std::int64_t place;
  NEAP_HD bool is_ahead(place_by_rank const& other) const {
    return rank > other.rank || (rank == other.rank && place < other.place);
  }
};
struct ahead_op {
  template <class T>
  NEAP_HD T operator()(T const& a, T const& b) const {
    return b.is_ahead(a) ? b : a;
  }
};

/// The k first of a line, one after another: each is the first of those that are behind the one before.
template <class C>
struct topk_lines {
  axis_lines<1> x;
  axis_lines<2> out;  // values, places
  std::int64_t k;
  bool largest;
  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    using one = place_by_rank<std::int64_t>;
    std::byte *at[1], *to[2];
    x.starts.place(b.id, at);
    out.starts.place(b.id, to);
    std::byte const* const line = at[0];
    std::int64_t const step = x.stride[0];
    dtype const element = x.starts.element[0];
    bool const up = largest;
    one last{0, -1};
    for (std::int64_t j = 0; j < k; ++j) {
      one const before = last;
      last = b.reduce_each(
          x.length, one{INT64_MIN, INT64_MAX},
          [=](std::int64_t i) {
            std::int64_t const rank = rank_of(load_element<C>(line + i * step, element));
            one const here{up ? rank : ~rank, i};
            return j == 0 || before.is_ahead(here) ? here : one{INT64_MIN, INT64_MAX};
          },
          ahead_op{});
      std::int64_t const place = last.place;
      topk_lines const* const self = this;
      b.once([self, &to, line, step, place, j, element] {
        auto const& o = self->out;
        store_element(to[0] + j * o.stride[0], o.starts.element[0], load_element<C>(line + place * step, element));
        *reinterpret_cast<std::int64_t*>(to[1] + j * o.stride[1]) = place;
      });
    }
  }
};

/// Draws of multinomial (backend/kernels/multinomial.hpp), a row a block. Weights that are no finite numbers above 0 have
/// no chance (the host refuses them); where too few have one, the first others follow.
struct multinomial_rows {
  std::byte const* weights;
  dtype element;
  std::int64_t size, classes, drawn, first;
  std::uint64_t key;
  std::int64_t const* step;
  bool replacement;
  std::int64_t* out;

  template <class Block>
  NEAP_HD void operator()(Block& b) const {
    multinomial_rows const* const self = this;
    std::int64_t const row = b.id;
    std::int64_t* const to = out + row * drawn;
    if (replacement) {
      // All threads add the weights in the host's order.
      b.each(drawn, [self, row, to](std::int64_t j) {
        double sum = 0;
        for (std::int64_t i = 0; i < self->classes; ++i) sum += self->weight(row, i);
        double const wanted = self->draw(row * self->drawn + j + self->first * self->drawn) * sum;
        double before = 0;
        std::int64_t place = -1, last = 0;
        for (std::int64_t i = 0; i < self->classes && place < 0; ++i) {
          double const w = self->weight(row, i);
          if (w > 0) last = i;
          before += w;
          if (before > wanted) place = i;
        }
        to[j] = place < 0 ? last : place;
      });
      return;
    }
    using one = place_by_rank<double>;  // by arrivals, the first highest
    one last{0, -1};
    for (std::int64_t j = 0; j < drawn; ++j) {
      one const before = last;
      last = b.reduce_each(
          classes, one{-infinity_of<double>, INT64_MAX},
          [self, row, j, before](std::int64_t i) {
            double const w = self->weight(row, i);
            double const u = self->draw((self->first + row) * self->classes + i);
            one const here{w > 0 ? ::log1p(-u) / w : -infinity_of<double>, i};
            return j == 0 || before.is_ahead(here) ? here : one{-infinity_of<double>, INT64_MAX};
          },
          ahead_op{});
      std::int64_t const place = last.place;
      b.once([to, j, place] { to[j] = place; });
    }
  }

 private:
  NEAP_HD double weight(std::int64_t row, std::int64_t i) const {
    double const w = load_element<double>(weights + (row * classes + i) * size, element);
    return w > 0 && w < infinity_of<double> ? w : 0;
  }
  NEAP_HD double draw(std::int64_t i) const {
    return unit_double(key, static_cast<std::uint64_t>(*step), static_cast<std::uint64_t>(i));
  }
};

}  // namespace detail

namespace op {

template <device_backend B>
void run(B& b, cumsum const& op, kernel_arguments const& a) {
  tensor_ref const &x = a.in[0], &y = a.out[0];
  if (x.count() == 0) return;
  int const axis = detail::plain_axis(op.axis, x.rank());
  neap::detail::axis_lines<2> const lines(x.dims, axis, {&x, &y});
  // Lines side by side are as many threads' work.
  bool const columns = axis != x.rank() - 1 || lines.length <= 8;
  auto const run = [&](auto tag) {
    using C = typename decltype(tag)::type;
    if (columns) {
      neap::detail::sum_columns<C> const k{lines, op.reverse};
      launch_in_chunks(b, lines.starts.count, k);
    } else {
      b.launch(lines.starts.count, neap::detail::sum_lines<C>{lines, op.reverse}, lines.length);
    }
  };
  if (is_floating(x.element)) run(type_tag<double>{});
  else run(type_tag<std::int64_t>{});
}

template <device_backend B>
void run(B& b, arg_max const& op, kernel_arguments const& a) {
  tensor_ref const& x = a.in[0];
  int const axis = detail::plain_axis(op.axis, x.rank());
  switch (x.element) {
    case dtype::f64:
    case dtype::f32:
    case dtype::i64: break;
    default:
      auto const run = [&](auto tag) {
        neap::detail::arg_max_loaded<typename decltype(tag)::type> const k{{x.dims, axis, {&x}},
                                                                           a.out[0].as<std::int64_t>()};
        b.launch(k.x.starts.count, k, k.x.length);
      };
      return is_floating(x.element) ? run(type_tag<float>{}) : run(type_tag<std::int64_t>{});
  }
  tensor_ref starts = x;  // lines as rows of one element: the axis is walked by its stride
  std::int64_t const length = x.dims[axis], stride = x.strides[axis], lines = x.count() / length;
  starts.dims.erase(axis), starts.strides.erase(axis);
  starts.dims.push_back(1), starts.strides.push_back(1);
  auto const rows = neap::detail::rows_of(starts, x.element, "arg_max");
  auto const run = [&](auto tag) {
    using kernel = neap::detail::arg_max_lines<typename decltype(tag)::type>;
    b.launch(lines, kernel{rows, a.out[0].as<std::int64_t>(), length, stride}, length);
  };
  if (x.element == dtype::f64) run(type_tag<double>{});
  else if (x.element == dtype::f32) run(type_tag<float>{});
  else run(type_tag<std::int64_t>{});
}

template <device_backend B>
void run(B& b, topk const& op, kernel_arguments const& a) {
  tensor_ref const &x = a.in[0], &values = a.out[0], &places = a.out[1];
  if (values.count() == 0) return;
  int const axis = detail::plain_axis(op.axis, x.rank());
  auto const run = [&](auto tag) {
    neap::detail::topk_lines<typename decltype(tag)::type> const k{
        {x.dims, axis, {&x}}, {values.dims, axis, {&values, &places}}, op.k, op.largest};
    b.launch(k.x.starts.count, k, k.x.length);
  };
  if (is_floating(x.element)) run(type_tag<double>{});
  else run(type_tag<std::int64_t>{});
}

template <device_backend B>
void run(B& b, multinomial const& op, kernel_arguments const& a) {
  tensor_ref const& x = a.in[0];
  std::int64_t const classes = x.extent(-1);
  neap::detail::multinomial_rows const k{static_cast<std::byte const*>(x.data),
                                         x.element,
                                         size_of(x.element),
                                         classes,
                                         op.count,
                                         op.first,
                                         static_cast<std::uint64_t>(op.key),
                                         a.in[1].as<std::int64_t const>(),
                                         op.replacement,
                                         a.out[0].as<std::int64_t>()};
  b.launch(classes > 0 ? x.count() / classes : 0, k, classes);
}

}  // namespace op

}}  // namespace neap::v0
