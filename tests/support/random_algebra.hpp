// Random small graphs of operators that rules are about: sums and products that share terms, products of matrices that
// share a factor, convolutions, views of all kinds, concats, scales, casts, updates of weights in place.
#pragma once

#include <neap/core/philox.hpp>

#include "graph_maker.hpp"

#include <algorithm>

namespace neap::testing {

class random_algebra {
 public:
  explicit random_algebra(std::uint64_t seed) : draw_(seed, 31) {}

  graph make(std::uint32_t ops) {
    for (int i = 0; i < 3; ++i) pool_.push_back(m_.in({2, 3}));
    pool_.push_back(m_.in({3, 3}));
    weights_.push_back(m_.weight({3, 3})), weights_.push_back(m_.weight({3, 3})), weights_.push_back(m_.weight({3, 2}));
    for (auto w : weights_) pool_.push_back(w);
    for (std::uint32_t i = 0; i < ops; ++i) add();
    if (coin(2)) update();
    std::uint32_t kept = 0;
    for (std::size_t i = pool_.size(); i-- > 0 && kept < 4;)
      if (!is_read(pool_[i]) && made(pool_[i]) && !m_.in_source(pool_[i])) m_.keep(pool_[i]), ++kept;
    if (kept == 0) m_.keep(tanh(pool_.back()));
    return m_.done();
  }

 private:
  std::uint32_t below(std::uint32_t n) { return draw_.below(n); }
  bool coin(std::uint32_t one_in) { return below(one_in) == 0; }
  expr pick() {
    auto const n = static_cast<std::uint32_t>(pool_.size());
    return coin(2) ? pool_[below(n)] : pool_[n - 1 - below(std::min(n, 4u))];
  }
  shape dims(expr e) const { return m_.dims(e); }
  int rank(expr e) const { return dims(e).rank(); }
  expr like(expr e) {
    for (int i = 0; i < 12; ++i)
      if (auto const x = pick(); dims(x) == dims(e)) return x;
    return coin(2) ? e : push(m_.in(dims(e)));
  }
  expr of_rank(int r) {
    for (int i = 0; i < 12; ++i)
      if (auto const x = pick(); rank(x) == r) return x;
    shape s;
    for (int k = 0; k < r; ++k) s.push_back(2 + below(2));
    return push(m_.in(s));
  }
  expr factor(std::int64_t rows) {
    for (int i = 0; i < 12; ++i)
      if (auto const x = coin(2) ? weights_[below(static_cast<std::uint32_t>(weights_.size()))] : pick();
          rank(x) == 2 && dims(x)[0] == rows)
        return x;
    return push(m_.weight({rows, 2 + below(2)}));
  }
  expr push(expr e) {
    pool_.push_back(e);
    return e;
  }
  bool made(expr e) const { return std::find(results_.begin(), results_.end(), e.v) != results_.end(); }
  bool is_read(expr e) const { return std::find(read_.begin(), read_.end(), e.v) != read_.end(); }
  /// A kernel takes dense rows here: views are copied now and then.
  expr dense(expr e) { return coin(3) ? copied(e) : e; }

  void add() {
    try {
      auto const e = next();
      results_.push_back(e.v);
      push(e);
    } catch (error const&) {  // a layout that a kernel does not take
    }
  }
  expr read(expr e) {
    read_.push_back(e.v);
    return e;
  }
  expr next() {
    auto const x = read(pick());
    auto const d = dims(x);
    int const r = d.rank();
    int const axis = r > 0 ? static_cast<int>(below(static_cast<std::uint32_t>(r))) : 0;
    switch (below(26)) {
      case 0:
      case 1: return x + read(like(x));
      case 2:
      case 3: return x * read(like(x));
      case 4: return x - read(like(x));
      case 5: {
        auto const c = read(like(x)), y = read(like(x));
        return coin(2) ? c * (x + y) : c * x + c * y;
      }
      case 6: return -x;
      case 7: return (coin(2) ? 0.5 : 0.25) * x;
      case 8: return 2.0 + x;
      case 9:
      case 10:
      case 11: {
        auto const a = read(of_rank(2));
        auto const b = read(factor(dims(a)[1]));
        return mm(a, b);
      }
      case 12: {
        auto const a = read(of_rank(2));
        return mm(a, read(factor(dims(a)[1]))) + mm(a, read(factor(dims(a)[1])));
      }
      case 13: {
        extents axes;
        for (int k = 0; k < r; ++k) axes.push_back(k);
        if (r > 1) std::swap(axes[r - 1], axes[r - 2]);
        return permuted(x, axes);
      }
      case 14: return reshaped(dense(x), {elements(d)});
      case 15:
        if (r == 0) return tanh(x);
        return reshaped(dense(x), r == 1 ? extents{1, d[0]} : extents{elements(d) / d.back(), d.back()});
      case 16:
        if (r == 0) return tanh(x);
        return cut(x, axis, below(2) % static_cast<std::uint32_t>(d[axis]), d[axis]);
      case 17:
        if (r == 0) return tanh(x);
        return cat(axis, {x, read(like(x))});
      case 18: {
        if (r == 0) return tanh(x);
        auto const k = 1 + below(static_cast<std::uint32_t>(d[axis]));
        auto const joined = cat(axis, {x, tanh(x)});
        return cut(joined, axis, 0, k);
      }
      case 19: return r == 0 ? tanh(x) : padded(x, axis, below(2), 1);
      case 20: return r == 0 ? tanh(x) : summed(x, {axis});
      case 21: return r == 0 ? tanh(x) : summed_to(x, {d.back()});
      case 22: {
        shape s = d;
        s.insert(0, 2);
        return s.rank() > 4 ? tanh(x) : broadcast(x, s);
      }
      case 23: {
        auto const image = m_.in({1, 2, 4, 4}), k = m_.weight({2, 2, 3, 3}), l = m_.weight({2, 2, 1, 1});
        auto const y = conv(image, k, 1), z = conv(image, l, 0);
        return coin(2) ? cat(1, {y, z}) : y + 0.5 * z;
      }
      case 24: return copied(x);
      default: return tanh(x);
    }
  }
  /// A weight that others read is written in place; its old value is not read by ops that come later.
  void update() {
    auto const w = weights_[below(static_cast<std::uint32_t>(weights_.size()))];
    auto const g = like(w);
    if (g.v == w.v || std::find(weights_.begin(), weights_.end(), g) != weights_.end()) return;
    try {
      m_.keep(summed(descended(w, read(copied(g))), {0}));
    } catch (error const&) {}
  }

  random_stream draw_;
  maker m_;
  std::vector<expr> pool_, weights_;
  std::vector<value_id> results_, read_;
};

}  // namespace neap::testing
