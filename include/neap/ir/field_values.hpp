// What the elements of values are, in a prime field instead of in floating-point numbers: so that two ways to compute
// something can be compared without a tolerance. Sums, products, quotients and whatever only moves elements are computed as
// they are; every other function is a keyed hash of what it reads, so that two results agree where the arguments do.
// Values that are given are free variables: their elements are hashes of a name and a place.
//
// Nothing is computed but the elements that are asked for, and what these need. Two values of up to some hundred elements
// are compared whole, larger ones at corners and random places: polynomials of degree d that differ agree at a random
// point of the field with a chance of d / 2^61 (Schwartz 1980; TASO, SOSP'19, verifies its rules, MAGIS none).
//
// A cast to a type that has all numbers of the old one changes nothing; one to another type is a hash.
#pragma once

#include <neap/core/number_map.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/ir/graph.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/ir/stored.hpp>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>

namespace neap::inline v0 {

/// The integers modulo 2^61 - 1.
struct field_number {
  static constexpr std::uint64_t prime = (std::uint64_t{1} << 61) - 1;
  std::uint64_t n = 0;

  static constexpr field_number of(std::uint64_t x) { return {x % prime}; }
  static constexpr field_number of(digest d) { return of(d.low ^ (d.high << 1)); }
  /// The number that a finite floating-point number is exactly; of others a hash.
  static field_number of(double x) {
    if (!std::isfinite(x)) return of(digest{}.mix(std::bit_cast<std::uint64_t>(x)));
    int e = 0;
    auto const m = static_cast<std::int64_t>(std::ldexp(std::frexp(std::abs(x), &e), 53));
    int const shift = ((e - 53) % 61 + 61) % 61;  // 2^61 is 1
    auto const r = of(static_cast<std::uint64_t>(m)) * field_number{std::uint64_t{1} << shift};
    return x < 0 ? field_number{} - r : r;
  }
  friend constexpr field_number operator+(field_number a, field_number b) {
    auto const s = a.n + b.n;
    return {s >= prime ? s - prime : s};
  }
  friend constexpr field_number operator-(field_number a, field_number b) {
    return {a.n >= b.n ? a.n - b.n : a.n + prime - b.n};
  }
  friend constexpr field_number operator*(field_number a, field_number b) {
    auto const x = static_cast<uint128>(a.n) * b.n;
    auto const s = static_cast<std::uint64_t>(x & prime) + static_cast<std::uint64_t>(x >> 61);
    return {s >= prime ? s - prime : s};
  }
  /// 1 / x; of 0 it is 0.
  friend constexpr field_number inverse(field_number x) {
    field_number y{1};
    for (auto e = prime - 2; e; e >>= 1, x = x * x)
      if (e & 1) y = y * x;
    return y;
  }
  friend constexpr bool operator==(field_number, field_number) = default;
};

/// Which values of a graph are given, and by what names.
class given_values {
 public:
  virtual ~given_values() = default;
  /// Whether v is given; its name then.
  virtual bool given(value_id v, digest& name) const = 0;
  /// What an op of the graph computes.
  virtual operator_view meaning(op_graph const& g, op_id o) const { return g.meaning(o); }
};

/// Elements of a graph's values. Every source that is asked for must be given.
class field_values {
 public:
  /// `most`: how many elements are worked out in all before it gives up.
  field_values(op_graph const& g, given_values const& given, std::int64_t most = 4'000'000)
      : g_(g),
        given_(given),
        left_(most),
        known_(g.value_count(), 0),
        names_(g.value_count()) {}

  /// Whether all that was asked for could be answered: there was no source without a name, and not too much to do.
  explicit operator bool() const { return left_ > 0; }

  /// The element of v at a place, an index an axis.
  field_number at(value_id v, extents const& place) {
    if (--left_ <= 0) return {};
    if (is_given(v)) return field_number::of(names_[v].mix(static_cast<std::uint64_t>(linear(v, place))));
    auto const o = g_.producer(v);
    if (o == nothing<op_id>) return give_up();
    if (moves_only(o)) return compute(o, v, place);
    auto const key = std::uint64_t{index(v)} << 40 ^ static_cast<std::uint64_t>(linear(v, place));
    if (auto const row = rows_.find(key); row != number_map::none) return memory_[row];
    auto const x = compute(o, v, place);
    rows_.add(key, static_cast<std::uint32_t>(memory_.size()));
    memory_.push_back(x);
    return x;
  }

  /// A hash of v's elements; of a large v of some of them.
  digest fingerprint(value_id v) {
    if (is_given(v)) return names_[v];
    digest d{};
    for_samples(g_.type(v).dims, most_whole, [&](extents const& place) {
      d = d.mix(at(v, place).n);
      return left_ > 0;
    });
    return d;
  }

  static constexpr std::int64_t most_whole = 256;  // elements of a value that is looked at whole
  static constexpr int samples = 16;               // of a larger one

  /// Calls f(place) for all places of a shape of at most `whole` elements, else for corners and random ones, until f says
  /// false; what it said last. Equal shapes have equal samples.
  template <class F>
  static bool for_samples(extents const& dims, std::int64_t whole, F const& f) {
    auto const n = elements(dims);
    extents place = extents::filled(dims.rank(), 0);
    if (n <= whole) {
      for (std::int64_t i = 0; i < n; ++i) {
        if (!f(place)) return false;
        step(place, dims);
      }
      return true;
    }
    digest draw{};
    for (int k = 0; k < samples; ++k) {
      for (int a = 0; a < dims.rank(); ++a) {
        draw = draw.mix(static_cast<std::uint64_t>(dims[a]));
        auto const kind = draw.low >> 60;
        place[a] = kind < 3 || k == 0   ? 0
                   : kind < 6 || k == 1 ? dims[a] - 1
                                        : static_cast<std::int64_t>(draw.high % static_cast<std::uint64_t>(dims[a]));
      }
      if (!f(place)) return false;
    }
    return true;
  }

 private:
  enum class kind : std::uint8_t {
    unknown,
    hashed,
    scalar,
    add,
    sub,
    mul,
    div,
    neg,
    square,
    reciprocal,
    add_scalar,
    mul_scalar,
    copy,
    load,
    cast,
    reshape,
    permute,
    slice,
    split,
    pad,
    concat,
    broadcast_to,
    fill,
    sum,
    mean,
    sum_to,
    triangle,
    matmul,
    conv2d,
    conv2d_grad_input,
    conv2d_grad_weight,
    place,
    combine_into,
    accumulate
  };
  /// Operators whose results are functions of the elements at one place.
  template <class... Op>
  static constexpr auto scalar_rows(type_list<Op...>) {
    return std::array{
        (op::scalar_operator<Op> || std::is_same_v<Op, op::where> || requires { typename Op::gradient_op; })...};
  }
  operator_view meaning(op_id o) const {
    auto const& f = g_.facets(o);
    return &f == &facets_of<op::opaque> ? given_.meaning(g_, o) : g_.view(o);
  }
  template <class Op>
  Op const* means(op_id o) const {
    return detail::as_operator<Op>(meaning(o));
  }
  kind kind_of(op_id o) {
    auto& k = known_kinds_.empty() ? (known_kinds_.assign(g_.op_count(), kind::unknown), known_kinds_[index(o)])
                                   : known_kinds_[index(o)];
    if (k != kind::unknown) return k;
    static constexpr auto scalars = scalar_rows(op::standard_list{});
    auto const& f = *meaning(o).facets;
    k = f.standard_row >= 0 && scalars[static_cast<std::size_t>(f.standard_row)] && !f.random ? kind::scalar
                                                                                              : kind::hashed;
    struct row {
      operator_facets const* facets;
      kind is;
    };
    static row const rows[] = {{&facets_of<op::add>, kind::add},
                               {&facets_of<op::sub>, kind::sub},
                               {&facets_of<op::mul>, kind::mul},
                               {&facets_of<op::div>, kind::div},
                               {&facets_of<op::neg>, kind::neg},
                               {&facets_of<op::square>, kind::square},
                               {&facets_of<op::reciprocal>, kind::reciprocal},
                               {&facets_of<op::add_scalar>, kind::add_scalar},
                               {&facets_of<op::mul_scalar>, kind::mul_scalar},
                               {&facets_of<op::copy>, kind::copy},
                               {&facets_of<op::store>, kind::scalar},
                               {&facets_of<op::wait>, kind::scalar},
                               {&facets_of<op::load>, kind::load},
                               {&facets_of<op::cast>, kind::cast},
                               {&facets_of<op::reshape>, kind::reshape},
                               {&facets_of<op::permute>, kind::permute},
                               {&facets_of<op::slice>, kind::slice},
                               {&facets_of<op::split>, kind::split},
                               {&facets_of<op::pad>, kind::pad},
                               {&facets_of<op::concat>, kind::concat},
                               {&facets_of<op::broadcast_to>, kind::broadcast_to},
                               {&facets_of<op::fill>, kind::fill},
                               {&facets_of<op::sum>, kind::sum},
                               {&facets_of<op::mean>, kind::mean},
                               {&facets_of<op::sum_to>, kind::sum_to},
                               {&facets_of<op::triangle>, kind::triangle},
                               {&facets_of<op::matmul>, kind::matmul},
                               {&facets_of<op::conv2d>, kind::conv2d},
                               {&facets_of<op::conv2d_grad_input>, kind::conv2d_grad_input},
                               {&facets_of<op::conv2d_grad_weight>, kind::conv2d_grad_weight},
                               {&facets_of<op::place>, kind::place},
                               {&facets_of<op::combine_into>, kind::combine_into},
                               {&facets_of<op::accumulate>, kind::accumulate}};
    for (auto const& r : rows)
      if (r.facets == &f) k = r.is;
    // What floating-point operators do to whole numbers and truths is another matter.
    bool const exact = k == kind::copy || k == kind::load || (k >= kind::reshape && k <= kind::fill) ||
                       k == kind::place || k == kind::triangle;
    if (!exact && k != kind::scalar && k != kind::hashed && !is_floating(g_.type(g_.output(o)).element)) {
      bool const elementwise = k <= kind::cast;
      k = elementwise ? kind::scalar : kind::hashed;
    }
    return k;
  }
  bool moves_only(op_id o) {
    auto const k = kind_of(o);
    return k == kind::copy || k == kind::load || k == kind::fill || k == kind::concat || k == kind::pad ||
           (k >= kind::reshape && k <= kind::split) || k == kind::broadcast_to;
  }

  bool is_given(value_id v) {
    if (!known_[v]) known_[v] = given_.given(v, names_[v]) ? 2 : 1;
    return known_[v] == 2;
  }
  field_number give_up() {
    left_ = 0;
    return {};
  }

  static void step(extents& place, extents const& dims) {
    for (int a = dims.rank() - 1; a >= 0 && ++place[a] == dims[a]; --a) place[a] = 0;
  }
  static std::int64_t linear(extents const& dims, extents const& place) {
    std::int64_t n = 0;
    for (int a = 0; a < dims.rank(); ++a) n = n * dims[a] + place[a];
    return n;
  }
  std::int64_t linear(value_id v, extents const& place) const { return linear(g_.type(v).dims, place); }
  static extents unlinear(extents const& dims, std::int64_t n) {
    extents place = extents::filled(dims.rank(), 0);
    for (int a = dims.rank() - 1; a >= 0 && n > 0; n /= dims[a--]) place[a] = n % dims[a];
    return place;
  }
  /// The place of a broadcast argument.
  static extents in_broadcast(extents const& dims, extents const& place) {
    extents p = extents::filled(dims.rank(), 0);
    for (int a = 0, missing = place.rank() - dims.rank(); a < dims.rank(); ++a)
      p[a] = dims[a] == 1 ? 0 : place[missing + a];
    return p;
  }
  field_number arg(op_id o, std::size_t i, extents const& place) {
    auto const v = g_.inputs(o)[i];
    return at(v, in_broadcast(g_.type(v).dims, place));
  }
  static int axis_of(std::int64_t axis, int rank) { return op::detail::plain_axis(axis, rank); }

  digest key_of(op_id o, value_id v) const {
    auto const& f = *meaning(o).facets;
    digest d = digest{}.mix(f.name).mix(index(v) - index(g_.output(o)));
    for (auto const& a : f.attributes) {
      auto const value = a.get(meaning(o).bytes);
      if (auto const* e = std::get_if<extents>(&value)) {
        d = d.mix(static_cast<std::uint64_t>(e->rank()));
        for (auto i : *e) d = d.mix(static_cast<std::uint64_t>(i));
      } else if (auto const* real = std::get_if<double>(&value)) d = d.mix(std::bit_cast<std::uint64_t>(*real));
      else if (auto const* whole = std::get_if<std::int64_t>(&value)) d = d.mix(static_cast<std::uint64_t>(*whole));
      else if (auto const* truth = std::get_if<bool>(&value)) d = d.mix(*truth ? 1u : 0u);
      else d = d.mix(static_cast<std::uint64_t>(std::get<dtype>(value)));
    }
    if (&f == &facets_of<op::opaque>) d = d.mix(g_.target(o)).mix(g_.details(o));
    return d.mix(static_cast<std::uint64_t>(g_.type(v).element));
  }
  /// A type that has all the numbers of another one.
  static bool has_all_of(dtype to, dtype from) {
    if (to == from || to == dtype::f64) return is_floating(from) || to == from;
    return to == dtype::f32 && (from == dtype::f16 || from == dtype::bf16);
  }

  /// The sum of f(place) over the places of some axes, the others standing.
  template <class F>
  field_number sum_over(extents const& dims, extents place, bool const* reduced, F const& f) {
    std::int64_t n = 1;
    for (int a = 0; a < dims.rank(); ++a)
      if (reduced[a]) place[a] = 0, n *= dims[a];
    field_number s;
    for (std::int64_t i = 0; i < n && left_ > 0; ++i) {
      s = s + f(place);
      for (int a = dims.rank() - 1; a >= 0; --a) {
        if (!reduced[a]) continue;
        if (++place[a] < dims[a]) break;
        place[a] = 0;
      }
    }
    return s;
  }

  field_number reduce(op_id o, extents const& axes, bool keepdim, extents const& place) {
    auto const v = g_.inputs(o)[0];
    auto const& dims = g_.type(v).dims;
    op::detail::reduced_axes const r(axes, dims.rank());
    extents p = extents::filled(dims.rank(), 0);
    for (int a = 0, b = 0; a < dims.rank(); ++a) {
      if (!r.at[a]) p[a] = place[b];
      b += !r.at[a] || keepdim;
    }
    return sum_over(dims, p, r.at, [&](extents const& q) { return at(v, q); });
  }

  field_number product(op_id o, extents const& place) {
    auto const& m = *means<op::matmul>(o);
    auto const a = g_.inputs(o)[0], b = g_.inputs(o)[1];
    auto const &da = g_.type(a).dims, &db = g_.type(b).dims;
    int const ra = da.rank(), rb = db.rank(), r = place.rank();
    extents pa = extents::filled(ra, 0), pb = extents::filled(rb, 0);
    for (int k = 0; k < ra - 2; ++k) pa[k] = da[k] == 1 ? 0 : place[r - ra + k];
    for (int k = 0; k < rb - 2; ++k) pb[k] = db[k] == 1 ? 0 : place[r - rb + k];
    pa[m.transpose_a ? ra - 1 : ra - 2] = place[r - 2];
    pb[m.transpose_b ? rb - 2 : rb - 1] = place[r - 1];
    int const ka = m.transpose_a ? ra - 2 : ra - 1, kb = m.transpose_b ? rb - 1 : rb - 2;
    field_number s;
    for (std::int64_t i = 0; i < da[ka] && left_ > 0; ++i) {
      pa[ka] = pb[kb] = i;
      s = s + at(a, pa) * at(b, pb);
    }
    return s;
  }

  /// Which output row or column a tap and an input row or column belong to; -1: none.
  template <class Op>
  static std::int64_t output_index(Op const& c, int axis, std::int64_t in, std::int64_t tap, std::int64_t outputs) {
    auto const x = in + c.padding[axis] - tap * c.dilation[axis];
    if (x < 0 || x % c.stride[axis] != 0 || x / c.stride[axis] >= outputs) return -1;
    return x / c.stride[axis];
  }
  field_number convolution(op_id o, extents const& p) {
    auto const& c = *means<op::conv2d>(o);
    auto const x = g_.inputs(o)[0], w = g_.inputs(o)[1];
    auto const &dx = g_.type(x).dims, &dw = g_.type(w).dims;
    auto const per_group = dw[0] / c.groups;
    field_number s;
    if (g_.inputs(o).size() > 2) s = at(g_.inputs(o)[2], {p[1]});
    for (std::int64_t i = 0; i < dw[1]; ++i)
      for (std::int64_t k = 0; k < dw[2]; ++k)
        for (std::int64_t l = 0; l < dw[3] && left_ > 0; ++l) {
          auto const row = p[2] * c.stride[0] - c.padding[0] + k * c.dilation[0];
          auto const column = p[3] * c.stride[1] - c.padding[1] + l * c.dilation[1];
          if (row < 0 || row >= dx[2] || column < 0 || column >= dx[3]) continue;
          s = s + at(x, {p[0], p[1] / per_group * dw[1] + i, row, column}) * at(w, {p[1], i, k, l});
        }
    return s;
  }
  field_number convolution_to_input(op_id o, extents const& p) {
    auto const& c = *means<op::conv2d_grad_input>(o);
    auto const dy = g_.inputs(o)[0], w = g_.inputs(o)[1];
    auto const &d = g_.type(dy).dims, &dw = g_.type(w).dims;
    auto const per_group = dw[0] / c.groups, group = p[1] / dw[1];
    field_number s;
    for (std::int64_t i = group * per_group; i < (group + 1) * per_group; ++i)
      for (std::int64_t k = 0; k < dw[2]; ++k)
        for (std::int64_t l = 0; l < dw[3] && left_ > 0; ++l) {
          auto const row = output_index(c, 0, p[2], k, d[2]), column = output_index(c, 1, p[3], l, d[3]);
          if (row >= 0 && column >= 0) s = s + at(dy, {p[0], i, row, column}) * at(w, {i, p[1] % dw[1], k, l});
        }
    return s;
  }
  field_number convolution_to_weight(op_id o, extents const& p) {
    auto const& c = *means<op::conv2d_grad_weight>(o);
    auto const x = g_.inputs(o)[0], dy = g_.inputs(o)[1];
    auto const &dx = g_.type(x).dims, &d = g_.type(dy).dims, &dw = g_.type(g_.output(o)).dims;
    auto const group = p[0] / (dw[0] / c.groups);
    field_number s;
    for (std::int64_t n = 0; n < d[0]; ++n)
      for (std::int64_t i = 0; i < d[2]; ++i)
        for (std::int64_t j = 0; j < d[3] && left_ > 0; ++j) {
          auto const row = i * c.stride[0] - c.padding[0] + p[2] * c.dilation[0];
          auto const column = j * c.stride[1] - c.padding[1] + p[3] * c.dilation[1];
          if (row < 0 || row >= dx[2] || column < 0 || column >= dx[3]) continue;
          s = s + at(x, {n, group * dw[1] + p[1], row, column}) * at(dy, {n, p[0], i, j});
        }
    return s;
  }

  field_number compute(op_id o, value_id v, extents const& p) {
    auto const in = g_.inputs(o);
    auto const type_of = [&](std::size_t i) -> tensor_type const& { return g_.type(in[i]); };
    switch (kind_of(o)) {
      case kind::add:
      case kind::accumulate: return arg(o, 0, p) + arg(o, 1, p);
      case kind::sub: return arg(o, 0, p) - arg(o, 1, p);
      case kind::mul: return arg(o, 0, p) * arg(o, 1, p);
      case kind::div: return arg(o, 0, p) * inverse(arg(o, 1, p));
      case kind::neg: return field_number{} - arg(o, 0, p);
      case kind::reciprocal: return inverse(arg(o, 0, p));
      case kind::square: {
        auto const x = arg(o, 0, p);
        return x * x;
      }
      case kind::add_scalar: return arg(o, 0, p) + field_number::of(means<op::add_scalar>(o)->value);
      case kind::mul_scalar: return arg(o, 0, p) * field_number::of(means<op::mul_scalar>(o)->value);
      case kind::copy: return at(in[0], p);
      case kind::load: {  // what was stored; a stored tensor itself is none that anybody can read
        auto const made = store_of(g_, in[0]);
        if (made == nothing<op_id>) return give_up();
        return at(g_.inputs(made)[0], p);
      }
      case kind::cast: return cast(o, v, p);
      case kind::reshape: return at(in[0], unlinear(type_of(0).dims, linear(v, p)));
      case kind::permute: {
        auto const& axes = means<op::permute>(o)->axes;
        extents q = p;
        for (int k = 0; k < axes.rank(); ++k) q[static_cast<int>(axes[k])] = p[k];
        return at(in[0], q);
      }
      case kind::slice: {
        auto const& s = *means<op::slice>(o);
        extents q = p;
        q[axis_of(s.axis, p.rank())] += s.start;
        return at(in[0], q);
      }
      case kind::split: {
        auto const& s = *means<op::split>(o);
        extents q = p;
        int const k = axis_of(s.axis, p.rank());
        q[k] += static_cast<std::int64_t>(index(v) - index(g_.output(o))) * g_.type(v).dims[k];
        return at(in[0], q);
      }
      case kind::pad: {
        auto const& x = *means<op::pad>(o);
        extents q = p;
        int const k = axis_of(x.axis, p.rank());
        q[k] -= x.before;
        return q[k] < 0 || q[k] >= type_of(0).dims[k] ? field_number::of(x.value) : at(in[0], q);
      }
      case kind::concat: {
        int const k = axis_of(means<op::concat>(o)->axis, p.rank());
        extents q = p;
        for (auto x : in) {
          auto const n = g_.type(x).dims[k];
          if (q[k] < n) return at(x, q);
          q[k] -= n;
        }
        return give_up();
      }
      case kind::broadcast_to: return arg(o, 0, p);
      case kind::fill: return field_number::of(means<op::fill>(o)->value);
      case kind::sum: return reduce(o, means<op::sum>(o)->axes, means<op::sum>(o)->keepdim, p);
      case kind::mean: {
        auto const& m = *means<op::mean>(o);
        auto const terms =
            static_cast<std::uint64_t>(type_of(0).count() / std::max<std::int64_t>(g_.type(v).count(), 1));
        return reduce(o, m.axes, m.keepdim, p) * inverse(field_number::of(terms));
      }
      case kind::sum_to: {
        auto const &x = type_of(0).dims, &y = g_.type(v).dims;
        bool reduced[max_rank]{};
        extents q = extents::filled(x.rank(), 0);
        for (int a = 0, missing = x.rank() - y.rank(); a < x.rank(); ++a) {
          reduced[a] = a < missing || y[a - missing] != x[a];
          if (!reduced[a]) q[a] = p[a - missing];
        }
        return sum_over(x, q, reduced, [&](extents const& r) { return at(in[0], r); });
      }
      case kind::triangle: {
        auto const& t = *means<op::triangle>(o);
        auto const d = p[p.rank() - 1] - p[p.rank() - 2];
        return (t.upper ? d >= t.diagonal : d <= t.diagonal) ? at(in[0], p) : field_number{};
      }
      case kind::matmul: return product(o, p);
      case kind::conv2d: return convolution(o, p);
      case kind::conv2d_grad_input: return convolution_to_input(o, p);
      case kind::conv2d_grad_weight: return convolution_to_weight(o, p);
      case kind::place: {
        auto const& x = *means<op::place>(o);
        int const k = axis_of(x.axis, p.rank());
        extents q = p;
        q[k] -= x.start;
        return q[k] < 0 || q[k] >= type_of(1).dims[k] ? at(in[0], p) : at(in[1], q);
      }
      case kind::combine_into:
        if (means<op::combine_into>(o)->how == combine::sum) return arg(o, 0, p) + arg(o, 1, p);
        [[fallthrough]];
      case kind::scalar: {
        digest d = key_of(o, v);
        for (std::size_t i = 0; i < in.size(); ++i) d = d.mix(arg(o, i, p).n);
        return field_number::of(d);
      }
      case kind::hashed:
      case kind::unknown: break;
    }
    digest d = key_of(o, v).mix(static_cast<std::uint64_t>(linear(v, p)));
    for (auto n : g_.type(v).dims) d = d.mix(static_cast<std::uint64_t>(n));
    for (auto x : in) {
      for (auto n : g_.type(x).dims) d = d.mix(static_cast<std::uint64_t>(n));
      d = d.mix(fingerprint(x));
    }
    return field_number::of(d);
  }
  /// What was cast to a type with all numbers of the old one comes back from it as it was.
  field_number cast(op_id o, value_id v, extents const& p) {
    auto const in = g_.inputs(o)[0];
    auto const from = g_.type(in).element, to = g_.type(v).element;
    if (has_all_of(to, from)) return at(in, p);
    digest ignored;
    if (auto const made = g_.producer(in);
        made != nothing<op_id> && means<op::cast>(made) && !given_.given(in, ignored))
      if (auto const x = g_.inputs(made)[0]; g_.type(x).element == to && has_all_of(from, to)) return at(x, p);
    return field_number::of(key_of(o, v).mix(at(in, p).n));
  }

  op_graph const& g_;
  given_values const& given_;
  std::int64_t left_;
  table<value_id, std::uint8_t> known_;  // 0: not asked yet, 1: made by an op, 2: given
  table<value_id, digest> names_;
  plain_vector<kind> known_kinds_;
  number_map rows_;  // elements worked out, by value and place
  plain_vector<field_number> memory_;
};

enum class field_answer : std::uint8_t { same, different, too_large };

/// Whether value x of one graph and value y of another (or the same) have the same elements, whatever the given values are.
/// Values of at most `whole` elements are compared at every place.
inline field_answer compare_in_field(field_values& a, op_graph const& ga, value_id x, field_values& b,
                                     op_graph const& gb, value_id y, std::int64_t whole = field_values::most_whole) {
  if (!(ga.type(x) == gb.type(y))) return field_answer::different;
  bool const same = field_values::for_samples(ga.type(x).dims, whole, [&](extents const& place) {
    auto const p = a.at(x, place), q = b.at(y, place);
    return a && b && p == q;
  });
  return !a || !b ? field_answer::too_large : same ? field_answer::same : field_answer::different;
}

}  // namespace neap::inline v0
