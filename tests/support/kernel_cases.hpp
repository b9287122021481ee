// The kernels of the standard set as cases: each makes its operands, and runs kernels on a backend. A case serves every
// backend: the host's, shuffled blocks, the interpreter of PTX.
#pragma once

#include "../backend/testing.hpp"
#include "window_memory.hpp"

#include <neap/backend/kernels/adafactor.hpp>
#include <neap/backend/kernels/arg_max.hpp>
#include <neap/backend/kernels/batch_norm.hpp>
#include <neap/backend/kernels/cross_entropy.hpp>
#include <neap/backend/kernels/embedding.hpp>
#include <neap/backend/kernels/gather.hpp>
#include <neap/backend/kernels/group_norm.hpp>
#include <neap/backend/kernels/layer_norm.hpp>
#include <neap/backend/kernels/optimizer.hpp>
#include <neap/backend/kernels/rms_norm.hpp>
#include <neap/backend/kernels/softmax.hpp>
#include <neap/backend/kernels/sort_positions.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

namespace neap::testing {

/// The extents of a case: rows of `columns`, or for norms of channels [N, rows, columns]. Tensors begin `shift` elements
/// behind an address that is a multiple of 64 bytes. With `specials`, one random element in eight is an infinity, NaN or a
/// zero, and the first four are -inf.
struct case_extents {
  std::int64_t rows, columns, shift = 0;
  bool specials = false;
};

/// The operands of a case, in the order in which they were made. What is unwritten has bytes of 0xcd.
class case_memory {
 public:
  struct place {
    window_memory storage;
    std::size_t bytes, prefix;  // prefix: bytes before the tensor
    bool written, is_work;
    tensor_ref tensor;

    std::byte* data() const { return storage.data(); }
  };
  std::vector<place> places;

  case_memory(case_extents e, random_stream random) : random_(random), shift_(e.shift), specials_(e.specials) {}

  tensor_ref random(dtype t, shape const& s, double low = -2, double high = 2) {
    tensor_ref const x = add(t, s, true);
    neap_test::randomize(x, random_, low, high);
    if (specials_ && is_floating(t)) make_special(x);
    return x;
  }
  tensor_ref zeros(dtype t, shape const& s) {
    tensor_ref const x = add(t, s, true);
    std::memset(x.data, 0, static_cast<std::size_t>(x.count() * size_of(t)));
    return x;
  }
  /// Numbers below `end`, and one in four `other` where that is given.
  tensor_ref numbers(shape const& s, std::int64_t end, std::int64_t other = 0) {
    tensor_ref const x = add(dtype::i64, s, true);
    for (std::int64_t i = 0; i < x.count(); ++i)
      x.as<std::int64_t>()[i] =
          other && random_.below(4) == 0 ? other : std::int64_t{random_.below(static_cast<std::uint32_t>(end))};
    return x;
  }
  tensor_ref unwritten(dtype t, shape const& s) { return add(t, s, false); }
  tensor_ref copy(tensor_ref const& x) {
    tensor_ref const y = add(x.element, x.dims, true);
    std::memcpy(y.data, x.data, static_cast<std::size_t>(x.count() * size_of(x.element)));
    return y;
  }
  void* work(bytes_t bytes) {
    place& p = places.emplace_back(make(static_cast<std::size_t>(bytes)));
    p.is_work = true;
    return p.data();
  }

 private:
  random_stream random_;
  std::int64_t shift_;
  bool specials_;

  void make_special(tensor_ref const& x) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    constexpr double special[] = {infinity, -infinity, std::numeric_limits<double>::quiet_NaN(), 0.0, -0.0};
    auto v = neap_test::values(x);
    for (std::size_t i = 0; i < v.size(); ++i)
      if (i < 4) v[i] = -infinity;
      else if (random_.below(8) == 0) v[i] = special[random_.below(5)];
    neap_test::assign(x, v);
  }
  static place make(std::size_t bytes) { return {window_memory(bytes), bytes, 0, false, false, {}}; }
  tensor_ref add(dtype t, shape const& s, bool written) {
    std::int64_t const before = shift_ * size_of(t);
    place& p = places.emplace_back(make(static_cast<std::size_t>(before + elements(s) * size_of(t))));
    p.prefix = static_cast<std::size_t>(before);
    p.written = written;
    p.tensor = tensor_ref{p.data() + before, t, s, dense_strides(s)};
    return p.tensor;
  }
};

struct softmax_case {
  static constexpr bool same_order = false;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    shape const s{e.rows, e.columns};
    auto const x = m.random(t, s), dy = m.random(t, s), y = m.unwritten(t, s), z = m.unwritten(t, s),
               dx = m.unwritten(t, s), dz = m.unwritten(t, s), in_place = m.copy(x);
    softmax(b, y, x);
    log_softmax(b, z, x);
    softmax(b, in_place, in_place);
    softmax_backward(b, dx, dy, y);
    log_softmax_backward(b, dz, dy, z);
  }
};

struct cross_entropy_case {
  static constexpr bool same_order = false;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    if (e.columns == 0) return;  // there are no classes
    shape const s{e.rows, e.columns};
    dtype const c = computed_in(t);
    auto const x = m.random(t, s), target = m.numbers({e.rows}, e.columns, -100);
    if (e.rows > 0) target.template as<std::int64_t>()[0] = 0;  // the mean is over one row at least
    void* const work = m.work(cross_entropy_workspace({t, s}));
    for (double smoothing : {0.0, 0.1})
      for (auto how : {loss_reduction::mean, loss_reduction::none}) {
        bool const each = how == loss_reduction::none;
        auto const loss = m.unwritten(c, each ? shape{e.rows} : shape{}), saved = m.unwritten(c, {e.rows}),
                   dx = m.unwritten(t, s), g = m.random(c, each ? shape{e.rows} : shape{});
        cross_entropy_forward(b, loss, saved, x, target, how, -100, work, smoothing);
        cross_entropy_backward(b, dx, g, x, saved, target, how, -100, work, smoothing);
      }
    auto const dx = m.copy(x), saved = m.unwritten(c, {e.rows}), loss = m.unwritten(c, {e.rows}),
               g = m.random(c, {e.rows});
    cross_entropy_forward(b, loss, saved, dx, target, loss_reduction::none, -100, work);
    cross_entropy_backward(b, dx, g, dx, saved, target, loss_reduction::none, -100, work);
  }
};

struct mse_case {
  static constexpr bool same_order = false;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    shape const s{e.rows, e.columns};
    auto const x = m.random(t, s), y = m.random(t, s), g = m.random(t, {}), loss = m.unwritten(t, {}),
               dx = m.unwritten(t, s);
    mse_forward(b, loss, x, y, loss_reduction::mean, m.work(64 * 8));
    mse_backward(b, dx, g, x, y, loss_reduction::mean);
  }
};

struct layer_norm_case {
  static constexpr bool same_order = false;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    shape const s{e.rows, e.columns}, w{e.columns}, r{e.rows};
    dtype const c = computed_in(t);
    auto const x = m.random(t, s), dy = m.random(t, s), weight = m.random(t, w), bias = m.random(t, w);
    auto const y = m.unwritten(t, s), mean = m.unwritten(c, r), rstd = m.unwritten(c, r), dx = m.unwritten(t, s),
               dw = m.unwritten(t, w), db = m.unwritten(t, w);
    auto const z = m.unwritten(t, s), r2 = m.unwritten(c, r), dz = m.unwritten(t, s), dv = m.unwritten(t, w);
    auto const plain = m.unwritten(t, s), scaled = m.copy(x), dplain = m.copy(dy);
    void* const work = m.work(layer_norm_backward_workspace({t, s}));
    layer_norm(b, y, mean, rstd, x, weight, bias, 1e-5);
    layer_norm_backward(b, dx, dw, db, dy, x, mean, rstd, weight, work);
    rms_norm(b, z, r2, x, weight, 1e-5);
    rms_norm_backward(b, dz, dv, dy, x, r2, weight, work);
    // Without weight and statistics; with a weight alone, in place; without the parameters' gradients, in place.
    layer_norm(b, plain, {}, {}, x, {}, {}, 1e-5);
    layer_norm(b, scaled, {}, {}, scaled, weight, {}, 1e-5);
    layer_norm_backward(b, dplain, {}, {}, dplain, x, mean, rstd, {}, work);
  }
};

struct group_norm_case {
  static constexpr bool same_order = false;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    shape const s{2, 2 * e.rows, e.columns}, w{2 * e.rows}, r{2, e.rows};
    if (e.rows == 0) return;  // there are no groups
    dtype const c = computed_in(t);
    auto const x = m.random(t, s), dy = m.random(t, s), weight = m.random(t, w), bias = m.random(t, w);
    auto const y = m.unwritten(t, s), mean = m.unwritten(c, r), rstd = m.unwritten(c, r), dx = m.unwritten(t, s),
               dw = m.unwritten(t, w), db = m.unwritten(t, w);
    group_norm(b, y, mean, rstd, x, weight, bias, e.rows, 1e-5);
    group_norm_backward(b, dx, dw, db, dy, x, mean, rstd, weight, e.rows,
                        m.work(group_norm_backward_workspace({t, s})));
  }
};

struct batch_norm_case {
  static constexpr bool same_order = false;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    shape const s{5, e.rows, e.columns}, w{e.rows};  // with one column: planes of single elements
    dtype const c = computed_in(t);
    auto const x = m.random(t, s), dy = m.random(t, s), weight = m.random(t, w), bias = m.random(t, w),
               variance = m.random(c, w, 0.5, 1), running_mean = m.random(c, w),
               running_variance = m.random(c, w, 0.5, 1);
    auto const y = m.unwritten(t, s), mean = m.unwritten(c, w), rstd = m.unwritten(c, w), dx = m.unwritten(t, s),
               dw = m.unwritten(t, w), db = m.unwritten(t, w), dw2 = m.unwritten(t, w), db2 = m.unwritten(t, w),
               z = m.unwritten(t, s), dz = m.unwritten(t, s), v = m.unwritten(t, s);
    void* const work = m.work(batch_norm_workspace({t, s}));
    batch_norm(b, y, mean, rstd, x, weight, bias, 1e-5, running_mean, running_variance);
    batch_norm_backward(b, dx, dw, db, dy, x, mean, rstd, weight, work);
    batch_norm_relu_backward(b, dz, dw2, db2, v, dy, x, mean, rstd, weight, bias, work);
    batch_norm_inference(b, z, x, mean, variance, weight, bias, 1e-5, work);
  }
};

struct embedding_case {
  static constexpr bool same_order = true;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    std::int64_t const n = e.rows > 0 ? 40 : 0;
    auto const table = m.random(t, {e.rows, e.columns}), dy = m.random(t, {n, e.columns}),
               index = m.numbers({n}, e.rows), y = m.unwritten(t, {n, e.columns}),
               dtable = m.unwritten(t, {e.rows, e.columns}), again = m.unwritten(t, {e.rows, e.columns});
    embedding(b, y, table, index);
    embedding_backward(b, dtable, dy, index, m.work(embedding_backward_workspace(e.rows, n)));
    auto const sorted = [](B& backend, position_order const& o) { sort_positions(backend, thrust::cpp::par, o); };
    embedding_backward(b, again, dy, index, m.work(embedding_backward_workspace(e.rows, n)), sorted);
  }
};

struct gather_case {
  static constexpr bool same_order = true;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    shape const s{e.rows, e.columns};
    auto const x = m.random(t, s), index = m.numbers(s, e.columns), whole = m.random(dtype::i64, s, -100, 100),
               picked = m.unwritten(t, s), picked_whole = m.unwritten(dtype::i64, s),
               added = m.zeros(computed_in(t), s);
    gather(b, picked, x, index, 1);
    gather(b, picked_whole, whole, index, 1);
    numbered_sums const sums{added, added.element == dtype::f32 ? m.zeros(dtype::f32, s) : tensor_ref{}};
    scatter_add(b, sums, x, index, 1);
    if (e.columns > 0) {
      arg_max(b, m.unwritten(dtype::i64, {e.rows}), x, 1);
      arg_max(b, m.unwritten(dtype::i64, {e.rows}), whole, 1);
    }
    if (e.rows > 0) arg_max(b, m.unwritten(dtype::i64, {e.columns}), x, 0);
  }
};

struct optimizer_case {
  static constexpr bool same_order = false;
  template <class B>
  void operator()(B& b, case_memory& m, dtype t, case_extents e) const {
    shape const s{e.rows, e.columns};
    dtype const c = computed_in(t);
    auto const g = m.random(t, s), w = m.random(t, s), row = m.random(c, {e.rows}, 0.5, 1),
               column = m.random(c, {e.columns}, 0.5, 1), total = m.zeros(dtype::f64, {1}), scale = m.unwritten(t, {1}),
               v = m.random(t, {e.columns}), dv = m.random(t, {e.columns}), squares = m.random(c, {e.columns}, 0.5, 1);
    void* const sums = m.work(add_sum_of_squares_workspace({t, s}));
    add_sum_of_squares(b, total, g, sums);
    add_sum_of_squares(b, total, w, sums);
    clip_scale(b, scale, total, 0.5);
    adafactor_update(b, w, g, column, row, 3, {}, m.work(adafactor_workspace({t, s})));
    adafactor_update(b, v, dv, squares, {}, 1, {}, m.work(adafactor_workspace({t, {e.columns}})));
  }
};

/// All cases; where same_order, additions have one order on every backend, and results equal bits.
inline constexpr std::tuple<softmax_case, cross_entropy_case, mse_case, layer_norm_case, group_norm_case,
                            batch_norm_case, embedding_case, gather_case, optimizer_case>
    kernel_cases{};

/// Calls f(case, its number) for each.
template <class F>
void for_each_kernel_case(F const& f) {
  std::apply(
      [&](auto const&... one) {
        int number = 0;
        (f(one, number++), ...);
      },
      kernel_cases);
}

/// The first operand that differs from the other memory's, or -1: floating elements by more than `within` (of
/// |difference| / (1 + |expected|)), others, and all where it is 0, in any bit. Workspaces are not compared.
inline int first_difference(case_memory const& got, case_memory const& expected, double within) {
  if (got.places.size() != expected.places.size()) return 0;
  for (std::size_t k = 0; k < got.places.size(); ++k) {
    auto const &a = got.places[k], &b = expected.places[k];
    if (a.is_work) continue;
    bool const equal = within > 0 && is_floating(a.tensor.element)
                           ? neap_test::near(a.tensor, neap_test::values(b.tensor), within)
                           : a.bytes == b.bytes && std::memcmp(a.data(), b.data(), a.bytes) == 0;
    if (!equal) return static_cast<int>(k);
  }
  return -1;
}

}  // namespace neap::testing
