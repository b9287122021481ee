// False plans by hand, made with the verifier's source at hand: wrong in one row, one element, one bit, or in floating
// point only, in tensors of any size. Each is refused, whatever is drawn; right variants beside them are accepted.
#include <neap/verify/plan_verifier.hpp>

#include <neap/import/graph_file.hpp>
#include <neap/import/plan_reader.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/schedule/order.hpp>
#include <neap/simulate/roofline.hpp>
#include <neap/simulate/simulator.hpp>

#include "../support/aten_twin.hpp"
#include "../support/differences.hpp"
#include "../support/graph_maker.hpp"
#include "../support/plain_run.hpp"
#include "../support/sanitized.hpp"

#include <doctest/doctest.h>

#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

roofline const device = roofline::h100_like();

verification verdict_of(graph const& original, graph const& g, std::uint64_t seed = 1) {
  auto order = reverse_post_order{}(g);
  auto r = simulate(g, order, device);
  candidate const c{g, std::move(order), std::move(r)};
  return verify_plan(original, make_plan(c, original, memory_options{}), INT64_MAX, hash_key::of(seed));
}

/// What puts another value in the place of one.
struct planter {
  graph_editor& edit;
  value_id v, other;  // of one type
  random_stream& draw;

  template <class Op>
  value_id put(Op const& what, std::vector<value_id> in) {
    if constexpr (!std::is_same_v<Op, op::copy>)  // reshapes take what is dense
      for (auto& x : in)
        if (!(edit.layout_of(x) == tensor_layout::dense(edit.layout_of(x).type))) x = put(op::copy{}, {x});
    return edit.emit(view_of(what), span_of(in)).front();
  }
  extents dims(value_id x) const { return edit.layout_of(x).type.dims; }
  std::int64_t below(std::int64_t n) { return draw.below(static_cast<std::uint32_t>(n)); }
  value_id rows(value_id x, int axis, std::int64_t from, std::int64_t to) {
    return put(op::slice{axis, from, to}, {x});
  }
  /// Rows [from, to) of y, all others of x.
  value_id with_rows(value_id x, value_id y, int axis, std::int64_t from, std::int64_t to) {
    auto const n = dims(x)[axis];
    std::vector<value_id> pieces;
    if (from > 0) pieces.push_back(rows(x, axis, 0, from));
    pieces.push_back(rows(y, axis, from, to));
    if (to < n) pieces.push_back(rows(x, axis, to, n));
    return pieces.size() == 1 ? pieces[0] : put(op::concat{axis}, pieces);
  }
  int any_axis() { return static_cast<int>(below(dims(v).rank())); }
  bool square() const { return dims(v)[0] == dims(v)[1]; }
  value_id times(double f, value_id x) { return put(op::mul_scalar{f}, {x}); }
};
struct plant {
  char const* what;
  bool shows;  // in the numbers that a machine computes
  std::function<value_id(planter&)> make;
};

/// Two neighbours along an axis change places.
value_id exchanged(planter& p, int axis) {
  auto const n = p.dims(p.v)[axis], k = p.below(n - 1);
  std::vector<value_id> pieces;
  if (k > 0) pieces.push_back(p.rows(p.v, axis, 0, k));
  pieces.push_back(p.rows(p.v, axis, k + 1, k + 2)), pieces.push_back(p.rows(p.v, axis, k, k + 1));
  if (k + 2 < n) pieces.push_back(p.rows(p.v, axis, k + 2, n));
  return p.put(op::concat{axis}, pieces);
}

std::vector<plant> const wrong_ones{
    {"a row of another value", true,
     [](planter& p) {
       int const a = p.any_axis();
       auto const k = p.below(p.dims(p.v)[a]);
       return p.with_rows(p.v, p.other, a, k, k + 1);
     }},
    {"an element of another value", true,
     [](planter& p) {
       auto const i = p.below(p.dims(p.v)[0]), j = p.below(p.dims(p.v)[1]);
       return p.with_rows(p.v, p.with_rows(p.v, p.other, 1, j, j + 1), 0, i, i + 1);
     }},
    {"a row placed over", true,
     [](planter& p) {
       int const a = p.any_axis();
       auto const k = p.below(p.dims(p.v)[a]);
       return p.put(op::place{a, k}, {p.put(op::copy{}, {p.v}), p.rows(p.other, a, k, k + 1)});
     }},
    {"rolled by one", true,
     [](planter& p) {
       int const a = p.any_axis();
       auto const n = p.dims(p.v)[a];
       return p.put(op::concat{a}, {p.rows(p.v, a, 1, n), p.rows(p.v, a, 0, 1)});
     }},
    {"a row twice", true,
     [](planter& p) {
       int const a = p.any_axis();
       auto const n = p.dims(p.v)[a], k = 1 + p.below(n - 1);
       std::vector<value_id> pieces{p.rows(p.v, a, 0, k), p.rows(p.v, a, k - 1, k)};
       if (k + 1 < n) pieces.push_back(p.rows(p.v, a, k + 1, n));
       return p.put(op::concat{a}, pieces);
     }},
    {"two rows exchanged", true, [](planter& p) { return exchanged(p, 0); }},
    {"the last row is padding", true,
     [](planter& p) {
       int const a = p.any_axis();
       return p.put(op::pad{a, 0, 1, 0}, {p.rows(p.v, a, 0, p.dims(p.v)[a] - 1)});
     }},
    {"the first row is padding", true,
     [](planter& p) {
       int const a = p.any_axis();
       return p.put(op::pad{a, 1, 0, 0}, {p.rows(p.v, a, 1, p.dims(p.v)[a])});
     }},
    {"transposed", true,
     [](planter& p) {
       return p.square() ? p.put(op::permute{{1, 0}}, {p.v}) : nothing<value_id>;
     }},
    {"its lower half transposed", true,
     [](planter& p) {
       auto const n = p.dims(p.v)[0];
       return p.square() ? p.with_rows(p.v, p.put(op::permute{{1, 0}}, {p.v}), 0, n / 2, n) : nothing<value_id>;
     }},
    {"transposed and reshaped", true,
     [](planter& p) {
       auto const turned = p.put(op::copy{}, {p.put(op::permute{{1, 0}}, {p.v})});
       return p.put(op::reshape{p.dims(p.v)}, {turned});
     }},
    {"adjacent rows exchanged by a reshape", true,
     [](planter& p) {
       auto const d = p.dims(p.v);
       if (d[0] % 2 != 0) return nothing<value_id>;
       auto const pairs = p.put(op::reshape{{d[0] / 2, 2, d[1]}}, {p.v});
       return p.put(op::reshape{d}, {p.put(op::concat{1}, {p.rows(pairs, 1, 1, 2), p.rows(pairs, 1, 0, 1)})});
     }},
    {"one row for all", true,
     [](planter& p) {
       auto const k = p.below(p.dims(p.v)[0]);
       return p.put(op::broadcast_to{p.dims(p.v)}, {p.rows(p.v, 0, k, k + 1)});
     }},
    {"a corner left out", true,
     [](planter& p) {
       return p.put(op::triangle{2 - p.dims(p.v)[0], true}, {p.v});
     }},
    {"the other corner left out", true,
     [](planter& p) {
       return p.put(op::triangle{p.dims(p.v)[1] - 2, false}, {p.v});
     }},
    {"its sign in one row", true,
     [](planter& p) {
       auto const k = p.below(p.dims(p.v)[0]);
       return p.with_rows(p.v, p.put(op::neg{}, {p.v}), 0, k, k + 1);
     }},
    {"pieces of a split exchanged", true,
     [](planter& p) {
       if (p.dims(p.v)[1] % 2 != 0) return nothing<value_id>;
       std::vector<value_id> const in{p.v};
       auto const halves = p.edit.emit(view_of(op::split{1, 2}), span_of(in));
       return p.put(op::concat{1}, {halves[1], halves[0]});
     }},
    {"times 2^61", true, [](planter& p) { return p.times(0x1p61, p.v); }},
    {"times 2^-61", true, [](planter& p) { return p.times(0x1p-61, p.v); }},
    {"times 2^122 in a row", true,
     [](planter& p) {
       return p.with_rows(p.v, p.times(0x1p122, p.v), 0, p.below(p.dims(p.v)[0] - 1), p.dims(p.v)[0]);
     }},
    {"times 1 and a bit", true, [](planter& p) { return p.times(1 + 0x1p-52, p.v); }},
    {"and a little", false, [](planter& p) { return p.put(op::add_scalar{1e-300}, {p.v}); }},
    {"through f32", true, [](planter& p) { return p.put(op::cast{dtype::f64}, {p.put(op::cast{dtype::f32}, {p.v})}); }},
    {"a row through bf16 and f32", true,
     [](planter& p) {
       auto const half = p.put(op::cast{dtype::f32}, {p.put(op::cast{dtype::bf16}, {p.v})});
       auto const k = p.below(p.dims(p.v)[0]);
       return p.with_rows(p.v, p.put(op::cast{dtype::f64}, {half}), 0, k, k + 1);
     }},
    {"through whole numbers", true,
     [](planter& p) { return p.put(op::cast{dtype::f64}, {p.put(op::cast{dtype::i64}, {p.v})}); }},
    {"up and down by 2^1000", false, [](planter& p) { return p.times(0x1p-1000, p.times(0x1p1000, p.v)); }},
    {"down and up by 2^600, twice", false,
     [](planter& p) { return p.times(0x1p600, p.times(0x1p600, p.times(0x1p-600, p.times(0x1p-600, p.v)))); }},
    {"up and down by 2^20 in a row", false,
     [](planter& p) { return p.with_rows(p.v, p.times(0x1p-20, p.times(0x1p20, p.v)), 0, 0, 1); }},
    {"another value added and subtracted", false,
     [](planter& p) {
       return p.put(op::sub{}, {p.put(op::add{}, {p.v, p.other}), p.other});
     }},
    {"a small share of another added and subtracted", false,
     [](planter& p) {
       auto const m = p.times(0x1p-60, p.other);
       return p.put(op::add{}, {p.put(op::sub{}, {p.v, m}), m});
     }},
    {"none of another", false,
     [](planter& p) {
       return p.put(op::add{}, {p.v, p.times(0, p.other)});
     }},
    {"zeros of another", false,
     [](planter& p) {
       auto const zeros = p.put(op::fill{p.dims(p.v), dtype::f64, 0}, {});
       return p.put(op::add{}, {p.v, p.put(op::mul{}, {zeros, p.other})});
     }},
    {"a number added and subtracted", false,
     [](planter& p) { return p.put(op::add_scalar{-1e30}, {p.put(op::add_scalar{1e30}, {p.v})}); }},
    {"divided by another and multiplied", false,
     [](planter& p) {
       return p.put(op::mul{}, {p.put(op::div{}, {p.v, p.other}), p.other});
     }},
    {"one over one over it", false,
     [](planter& p) { return p.put(op::reciprocal{}, {p.put(op::reciprocal{}, {p.v})}); }},
    {"log of exp", false, [](planter& p) { return p.put(op::log{}, {p.put(op::exp{}, {p.v})}); }},
    {"exp of log", false, [](planter& p) { return p.put(op::exp{}, {p.put(op::log{}, {p.v})}); }},
    {"root of the square", false, [](planter& p) { return p.put(op::sqrt{}, {p.put(op::square{}, {p.v})}); }},
    {"square of the root", false, [](planter& p) { return p.put(op::square{}, {p.put(op::sqrt{}, {p.v})}); }},
    {"its absolute value", false, [](planter& p) { return p.put(op::abs{}, {p.v}); }},
    {"clamped far away", false,
     [](planter& p) {
       return p.put(op::clamp{-1e30, 1e30}, {p.v});
     }},
    {"a third three times", false, [](planter& p) { return p.times(1.0 / 3, p.times(3, p.v)); }},
    {"shares of 0.3 and 0.7", false,
     [](planter& p) {
       return p.put(op::add{}, {p.times(0.3, p.v), p.times(0.7, p.v)});
     }},
    {"twice less once", false,
     [](planter& p) {
       return p.put(op::sub{}, {p.times(2, p.v), p.v});
     }},
    {"sums and differences", false,
     [](planter& p) {
       int const a = p.any_axis();
       auto const n = p.dims(p.v)[a];
       auto const c = p.put(op::cumsum{a}, {p.v});
       auto const shifted = p.put(op::pad{a, 1, 0, 0}, {p.rows(c, a, 0, n - 1)});
       return p.put(op::sub{}, {c, shifted});
     }},
    {"through f16 in a row", true,
     [](planter& p) {
       auto const half = p.put(op::cast{dtype::f64}, {p.put(op::cast{dtype::f16}, {p.v})});
       auto const k = p.below(p.dims(p.v)[0]);
       return p.with_rows(p.v, half, 0, k, k + 1);
     }},
    {"the larger of it and another less a lot", false,
     [](planter& p) {
       return p.put(op::maximum{}, {p.v, p.put(op::add_scalar{-1e200}, {p.other})});
     }},
    {"an exchange of two columns", true, [](planter& p) { return exchanged(p, 1); }},
    {"relu and minus relu of minus", false,
     [](planter& p) {
       return p.put(op::sub{}, {p.put(op::relu{}, {p.v}), p.put(op::relu{}, {p.put(op::neg{}, {p.v})})});
     }},
    {"a mask of zeros as a factor", false,
     [](planter& p) {
       auto const d = p.dims(p.v);
       auto const ones = p.put(op::fill{d, dtype::f64, 1}, {});
       auto const under = p.put(op::triangle{0, false}, {ones}), above = p.put(op::triangle{1, true}, {ones});
       return p.put(op::add{}, {p.put(op::mul{}, {p.v, under}), p.put(op::mul{}, {p.v, above})});
     }},
};
std::vector<plant> const right_ones{
    {"cut and joined", false,
     [](planter& p) {
       int const a = p.any_axis();
       auto const n = p.dims(p.v)[a], k = 1 + p.below(n - 1);
       return p.put(op::concat{a}, {p.rows(p.v, a, 0, k), p.rows(p.v, a, k, n)});
     }},
    {"a row of its own", false,
     [](planter& p) {
       int const a = p.any_axis();
       auto const k = p.below(p.dims(p.v)[a]);
       return p.with_rows(p.v, p.put(op::copy{}, {p.v}), a, k, k + 1);
     }},
    {"an element of its own", false,
     [](planter& p) {
       auto const i = p.below(p.dims(p.v)[0]), j = p.below(p.dims(p.v)[1]);
       return p.with_rows(p.v, p.with_rows(p.v, p.put(op::neg{}, {p.put(op::neg{}, {p.v})}), 1, j, j + 1), 0, i, i + 1);
     }},
    {"transposed twice", false,
     [](planter& p) {
       return p.put(op::permute{{1, 0}}, {p.put(op::permute{{1, 0}}, {p.v})});
     }},
    {"reshaped and back", false,
     [](planter& p) {
       auto const d = p.dims(p.v);
       for (std::int64_t n : {7, 6, 5, 4, 3, 2})
         if (d[0] * d[1] % n == 0) return p.put(op::reshape{d}, {p.put(op::reshape{{n, d[0] * d[1] / n}}, {p.v})});
       return nothing<value_id>;
     }},
    {"through another shape, transposed there", false,
     [](planter& p) {
       auto const d = p.dims(p.v);
       if (d[0] * d[1] % 6 != 0) return nothing<value_id>;
       auto const turned = p.put(op::permute{{1, 0}}, {p.put(op::reshape{{6, d[0] * d[1] / 6}}, {p.v})});
       auto const back = p.put(op::permute{{1, 0}}, {p.put(op::copy{}, {turned})});
       return p.put(op::reshape{d}, {p.put(op::copy{}, {back})});
     }},
    {"padded and cut", false,
     [](planter& p) {
       int const a = p.any_axis();
       return p.rows(p.put(op::pad{a, 2, 1, 0}, {p.v}), a, 2, 2 + p.dims(p.v)[a]);
     }},
    {"twice and half", false, [](planter& p) { return p.times(0.5, p.times(2, p.v)); }},
    {"in a row twice and half", false,
     [](planter& p) {
       auto const k = p.below(p.dims(p.v)[0]);
       return p.with_rows(p.v, p.times(0.5, p.times(2, p.v)), 0, k, k + 1);
     }},
    {"pairs of rows apart and together", false,
     [](planter& p) {
       auto const d = p.dims(p.v);
       if (d[0] % 2 != 0) return nothing<value_id>;
       auto const pairs = p.put(op::reshape{{d[0] / 2, 2, d[1]}}, {p.v});
       return p.put(op::reshape{d}, {p.put(op::concat{1}, {p.rows(pairs, 1, 0, 1), p.rows(pairs, 1, 1, 2)})});
     }},
};

/// A value of one of some shapes, made of sources; what reads it; and another value of its type.
struct subject {
  graph program;
  value_id v, other;
  op_id reader;
};
subject drawn_subject(std::uint64_t seed) {
  random_stream draw(seed, 3);
  std::array<extents, 6> const shapes{extents{16, 32}, {24, 24}, {3, 3}, {300, 2}, {5, 401}, {64, 48}};
  maker m;
  auto const d = shapes[draw.below(6)];
  auto const x = m.in(d), y = m.in(d), other = m.in(d), w = m.weight({d[1], 4});
  expr v;
  switch (draw.below(5)) {
    case 0: v = 0.5 * x; break;
    case 1: v = x + y; break;
    case 2: v = tanh(x); break;
    case 3: v = x * y; break;
    default: v = cat(0, {cut(x, 0, 0, 1), cut(y, 0, 1, d[0])}); break;
  }
  expr read;
  switch (draw.below(5)) {
    case 0: read = tanh(v); break;
    case 1: read = m.put(op::softmax{}, {v}); break;
    case 2: read = mm(v, w); break;
    case 3: read = summed(v, {static_cast<std::int64_t>(draw.below(2))}); break;
    default: read = v - y; break;
  }
  m.keep(tanh(read)), m.keep(tanh(other));
  auto g = m.done();
  auto const reader = g.producer(read.v);
  return {std::move(g), v.v, other.v, reader};
}
std::optional<graph> with_plant(subject const& s, graph const& g, random_stream& draw,
                                std::vector<plant const*> const& plants) {
  graph_editor edit(g);
  planter p{edit, s.v, s.other, draw};
  for (auto const* x : plants) {
    auto const to = x->make(p);
    if (to == nothing<value_id>) return std::nullopt;
    p.v = to;
  }
  // A kernel takes dense rows.
  if (!(edit.layout_of(p.v) == tensor_layout::dense(edit.layout_of(p.v).type))) p.v = p.put(op::copy{}, {p.v});
  for (std::size_t i = 0; i < g.inputs(s.reader).size(); ++i)
    if (g.inputs(s.reader)[i] == s.v) edit.set_input(s.reader, i, p.v);
  return graph(std::move(edit).finish());
}

}  // namespace

TEST_CASE("a value that is wrong somewhere, or in floating point, is refused; right ones are accepted") {
  std::size_t wrong = 0, right = 0;
  host_backend backend;
  for (std::uint64_t seed = 0; seed < testing::cases(60u); ++seed) {
    CAPTURE(seed);
    auto const s = drawn_subject(seed);
    // As a file from PyTorch would have it: values keep their numbers.
    auto const original = seed % 2 ? aten_twin(s.program) : s.program;
    random_stream draw(seed, 9);
    auto const sources = random_sources(s.program, seed);
    auto const expected = run_plainly(s.program, reverse_post_order{}(s.program), sources, backend);
    auto const any_right = [&] { return &right_ones[draw.below(static_cast<std::uint32_t>(right_ones.size()))]; };
    for (auto const& x : wrong_ones) {
      CAPTURE(std::string(x.what));
      std::vector<plant const*> plants{&x};
      if (draw.below(3) == 0) plants.insert(plants.begin(), any_right());
      if (draw.below(3) == 0) plants.push_back(any_right());
      random_stream again = draw;
      auto const g = with_plant(s, original, draw, plants);
      if (!g) continue;
      if (x.shows) {  // by chance a plant may change nothing
        auto const plain = with_plant(s, s.program, again, plants);
        auto const got = run_plainly(*plain, reverse_post_order{}(*plain), sources, backend);
        if (difference(expected.kept, got.kept) == 0) continue;
      }
      ++wrong;
      for (std::uint64_t k = 0; k < 2; ++k) CHECK_FALSE(verdict_of(original, *g, 100 * seed + k).ok());
    }
    for (auto const& x : right_ones) {
      CAPTURE(std::string(x.what));
      std::vector<plant const*> plants{&x};
      if (draw.below(2) == 0) plants.push_back(any_right());
      auto const g = with_plant(s, original, draw, plants);
      if (!g) continue;
      ++right;
      auto const verdict = verdict_of(original, *g, seed);
      CHECK_MESSAGE(verdict.ok(), verdict.message());
    }
  }
  CHECK(wrong > testing::cases(1500));
  CHECK(right > testing::cases(500));
}

namespace {

/// One op in the place of another one of the same type, between a square or an image and what reads it.
struct change {
  std::string what;
  std::function<std::vector<value_id>(graph_editor&, value_id x, value_id y)> from, to;
};
template <class Op>
auto emits(Op const& what, int arguments = 1) {
  return [=](graph_editor& edit, value_id x, value_id y) {
    std::vector<value_id> const both{x, y};
    auto const out = edit.emit(view_of(what), std::span(both.data(), static_cast<std::size_t>(arguments)));
    return std::vector<value_id>(out.begin(), out.end());
  };
}
template <class Op>
auto emits_turned(Op const& what) {
  return [=](graph_editor& edit, value_id x, value_id y) {
    std::vector<value_id> const both{y, x};
    auto const out = edit.emit(view_of(what), span_of(both));
    return std::vector<value_id>(out.begin(), out.end());
  };
}
op::conv2d convolution(std::int64_t padding, std::int64_t dilation, std::int64_t stride = 1) {
  return {{stride, stride}, {padding, padding}, {dilation, dilation}, 1};
}
graph around(extents const& x, extents const& y,
             std::function<std::vector<value_id>(graph_editor&, value_id, value_id)> f, graph const* original) {
  if (original) {  // the op anew, in the place of the original's
    graph_editor edit(*original);
    op_id reader{};
    for (auto o : original->ops())
      if (original->name(o) == "reader") reader = o;
    auto out = f(edit, original->sources()[0], original->sources()[1])[0];
    if (!(edit.layout_of(out) == tensor_layout::dense(edit.layout_of(out).type)))
      out = edit.emit(view_of(op::copy{}), std::span(&out, 1))[0];
    edit.set_input(reader, 0, out);
    return graph(std::move(edit).finish());
  }
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const a = edit.add_source(role::input, {dtype::f32, x}, "x"),
             b = edit.add_source(role::input, {dtype::f32, y}, "y");
  auto out = f(edit, a, b)[0];
  if (!(edit.layout_of(out) == tensor_layout::dense(edit.layout_of(out).type)))
    out = edit.emit(view_of(op::copy{}), std::span(&out, 1))[0];
  auto const read = edit.emit(view_of(op::tanh{}), std::span(&out, 1))[0];
  edit.set_name(id_at<op_id>(edit.graph().op_count() - 1), "reader");
  edit.keep(read, role::output);
  return graph(std::move(edit).finish());
}

}  // namespace

TEST_CASE("an op with another attribute, or other arguments, is not the original's") {
  std::vector<std::pair<std::array<extents, 2>, change>> all;
  std::array<extents, 2> const squares{extents{24, 24}, extents{24, 24}}, cubes{extents{6, 24, 24}, extents{6, 24, 24}},
      images{extents{2, 8, 20, 20}, extents{8, 8, 3, 3}};
  auto const in = [&](std::array<extents, 2> const& dims, char const* what, auto from, auto to) {
    all.push_back({dims, {what, from, to}});
  };
  in(squares, "triangle", emits(op::triangle{0, true}), emits(op::triangle{1, true}));
  in(squares, "lower triangle", emits(op::triangle{0, false}), emits(op::triangle{-1, false}));
  in(squares, "upper and lower", emits(op::triangle{0, true}), emits(op::triangle{0, false}));
  in(squares, "far corner", emits(op::triangle{-22, true}), emits(op::triangle{-23, true}));
  in(squares, "difference", emits(op::sub{}, 2), emits_turned(op::sub{}));
  in(squares, "quotient", emits(op::div{}, 2), emits_turned(op::div{}));
  in(squares, "product", emits(op::matmul{}, 2), emits_turned(op::matmul{}));
  in(squares, "left transposed", emits(op::matmul{}, 2), emits(op::matmul{true, false}, 2));
  in(squares, "right transposed", emits(op::matmul{}, 2), emits(op::matmul{false, true}, 2));
  in(cubes, "batches", emits(op::matmul{false, true}, 2), emits_turned(op::matmul{false, true}));
  in(cubes, "axes", emits(op::permute{{0, 1, 2}}), emits(op::permute{{0, 2, 1}}));
  in(squares, "sum", emits(op::sum{{0}}), emits(op::sum{{1}}));
  in(squares, "mean", emits(op::mean{{1}}), emits(op::sum{{1}}));
  in(cubes, "inner axes", emits(op::sum{{1}}), emits(op::sum{{2}}));
  in(squares, "slice", emits(op::slice{0, 3, 20}), emits(op::slice{0, 4, 21}));
  in(squares, "slice of the other axis", emits(op::slice{0, 0, 24}), emits(op::permute{{1, 0}}));
  in(squares, "concat", emits(op::concat{0}, 2), emits_turned(op::concat{0}));
  in(squares, "padding", emits(op::pad{0, 1, 2, 0}), emits(op::pad{0, 2, 1, 0}));
  in(squares, "padding's number", emits(op::pad{0, 1, 1, 0.5}), emits(op::pad{0, 1, 1, 0.5000000001}));
  in(squares, "padding's infinity", emits(op::pad{0, 1, 1, -INFINITY}), emits(op::pad{0, 1, 1, -1e300}));
  in(squares, "factor", emits(op::mul_scalar{0.1}), emits(op::mul_scalar{0.1f}));
  in(squares, "factor of the modulus before", emits(op::mul_scalar{0.5}), emits(op::mul_scalar{0.5 * 0x1p61}));
  in(squares, "summand", emits(op::add_scalar{1}), emits(op::add_scalar{1 + 0x1p-50}));
  in(squares, "slope", emits(op::leaky_relu{0.01}), emits(op::leaky_relu{0.02}));
  in(squares, "function", emits(op::tanh{}), emits(op::sigmoid{}));
  in(squares, "rows", emits(op::softmax{}), emits(op::log_softmax{}));
  in(squares, "exponent", emits(op::square{}), emits(op::abs{}));
  in(images, "dilation", emits(convolution(2, 2), 2), emits(convolution(1, 1), 2));
  in(images, "one convolution and its kernel padded", emits(convolution(1, 1), 2),
     [](graph_editor& edit, value_id x, value_id w) {
       std::vector<value_id> const a{w};
       std::vector<value_id> const b{edit.emit(view_of(op::pad{2, 2, 0, 0}), span_of(a))[0]};
       std::vector<value_id> const c{x, edit.emit(view_of(op::pad{3, 1, 1, 0}), span_of(b))[0]};
       return std::vector<value_id>{edit.emit(view_of(convolution(2, 1)), span_of(c))[0]};
     });
  std::size_t n = 0;
  for (auto const& [dims, x] : all) {
    CAPTURE(x.what);
    auto const original = around(dims[0], dims[1], x.from, nullptr);
    if (!(around(dims[0], dims[1], x.to, nullptr).type(around(dims[0], dims[1], x.to, nullptr).kept()[0]) ==
          original.type(original.kept()[0])))
      FAIL("the change changes a type");
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      auto const same = verdict_of(original, around(dims[0], dims[1], x.from, &original), seed);
      CHECK_MESSAGE(same.ok(), same.message());
      CHECK_FALSE(verdict_of(original, around(dims[0], dims[1], x.to, &original), seed).ok());
    }
    ++n;
  }
  CHECK(n == all.size());
}

namespace {

/// An op of another engine.
struct external_op {
  std::string target;
  std::vector<value_id> in;
  tensor_layout out;
  alias_kind alias = alias_kind::fresh;
  std::string details{};
  bool rng = false, pure = true;
};
value_id put(graph_editor& edit, external_op const& f) {
  op::opaque what;
  what.rng = f.rng, what.pure = f.pure;
  output_rule const rule[] = {{f.out, f.alias, f.alias == alias_kind::fresh ? -1 : 0, -1}};
  return edit.output(edit.add_opaque(f.target, what, f.in, rule, f.target, f.details));
}
op_id named(graph const& g, std::string_view name) {
  for (auto o : g.ops())
    if (g.name(o) == name) return o;
  FAIL("no such op");
  return {};
}
/// A copy of a value for one reader.
graph copied_for(graph const& g, op_id reader, std::size_t argument) {
  graph_editor edit(g);
  std::vector<value_id> const in{g.inputs(reader)[argument]};
  edit.set_input(reader, argument, edit.emit(view_of(op::copy{}), span_of(in))[0]);
  return graph(std::move(edit).finish());
}

}  // namespace

TEST_CASE("plan files written by hand") {
  struct file {
    char const *folder, *graph, *plan;
    bool right;
  };
  for (auto const& f : {file{"only-16-places", "graph", "right", true},
                        {"only-16-places", "graph", "false", false},
                        {"only-16-places", "graph", "control-refused", false},
                        {"constants-mod-p", "graph", "right", true},
                        {"constants-mod-p", "graph", "false", false},
                        {"constants-mod-p", "graph", "control-refused", false},
                        {"view-of-a-copy", "graph", "right", true},
                        {"view-of-a-copy", "graph", "right-and-refused", true},
                        {"view-of-a-copy", "graph", "false", false},
                        {"view-of-a-copy", "graph-parts", "false-parts", false},
                        {"float-overflow", "graph", "false", false},
                        {"float-overflow", "graph", "cancel", false}}) {
    std::string const folder = std::string(NEAP_SOURCE_DIR "/tests/verify/plans/") + f.folder + "/";
    CAPTURE(folder + f.plan);
    auto const original = io::read_graph(folder + f.graph + ".json");
    REQUIRE_MESSAGE(original.ok(), original.message());
    auto const p = io::read_plan(folder + f.plan + ".plan");
    REQUIRE_MESSAGE(p.ok(), p.message());
    REQUIRE(p->durations);
    for (int k = 0; k < 5; ++k) {  // each with another secret
      auto const verdict = verify_plan(original->program, p->planned, stated_durations(*p->durations));
      CHECK_MESSAGE(verdict.ok() == f.right, verdict.message());
    }
  }
}

TEST_CASE("a weight's copy is not updated in its place") {
  for (bool const external : {false, true}) {
    CAPTURE(external);
    graph_editor edit{operator_table(standard_operators::facets)};
    auto const t = tensor_layout::dense({dtype::f32, {16, 32}});
    auto const w = edit.add_source_at(role::weight, t, "w"), g = edit.add_source_at(role::input, t, "g");
    if (external) put(edit, {"update", {w, g}, t, alias_kind::update, "", false, false});
    else edit.add(op::accumulate{}, {w, g});
    edit.keep(put(edit, {"f", {g}, t}), role::output);
    auto const original = graph(std::move(edit).finish());
    CHECK(verdict_of(original, original).ok());
    for (auto o : original.ops())
      if (original.record(original.output(o)).alias == alias_kind::update)
        CHECK_FALSE(verdict_of(original, copied_for(original, o, 0)).ok());
  }
}

TEST_CASE("sources lie where they lie in the original") {
  auto const t = tensor_layout::dense({dtype::f32, {16, 32}});
  auto const with = [&](bool shared) {
    graph_editor edit{operator_table(standard_operators::facets)};
    auto const a = edit.add_source_at(role::weight, t, "a");
    auto const b = shared ? edit.add_source_view(a, t) : edit.add_source_at(role::weight, t, "b");
    edit.keep(put(edit, {"f", {a, b}, t}), role::output);
    return graph(std::move(edit).finish());
  };
  for (bool const shared : {false, true}) {
    CHECK(verdict_of(with(shared), with(shared)).ok());
    CHECK_FALSE(verdict_of(with(shared), with(!shared)).ok());
  }
}

TEST_CASE("random draws of another engine are told apart, however they are looked at") {
  auto const t = tensor_layout::dense({dtype::f32, {16, 32}});
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const x = edit.add_source_at(role::input, t, "x");
  auto const a = put(edit, {"dropout", {x}, t, alias_kind::fresh, "", true});
  auto const b = put(edit, {"dropout", {x}, t, alias_kind::fresh, "", true});
  auto const product = edit.add(op::mul{}, {a, a})[0];
  edit.keep(edit.add(op::tanh{}, {product})[0], role::output);
  edit.keep(edit.add(op::tanh{}, {b})[0], role::output);
  auto const original = graph(std::move(edit).finish());
  auto const with = [&](value_id l, value_id r) {
    graph_editor again(original);
    auto const old = original.producer(product);
    auto const anew = again.add(op::mul{}, {l, r})[0];
    again.replace_uses(product, anew);
    again.remove(old);
    return verdict_of(original, graph(std::move(again).finish()));
  };
  CHECK(with(a, a).ok());
  CHECK_FALSE(with(a, b).ok());
  CHECK_FALSE(with(b, b).ok());
}

TEST_CASE("what was computed in a narrow type is not what was computed in a wide one") {
  auto const of_sum = [](bool narrow, graph const* original) {
    graph_editor edit = original ? graph_editor(*original) : graph_editor{operator_table(standard_operators::facets)};
    tensor_type const t{dtype::bf16, {16, 32}};
    auto const x = original ? original->sources()[0] : edit.add_source(role::input, t, "x");
    auto const y = original ? original->sources()[1] : edit.add_source(role::input, t, "y");
    auto const wide = [&](value_id v) { return edit.add(op::cast{dtype::f32}, {v})[0]; };
    auto const sum = narrow ? wide(edit.add(op::add{}, {x, y})[0]) : edit.add(op::add{}, {wide(x), wide(y)})[0];
    if (original) {
      edit.set_input(named(*original, "reader"), 0, sum);
    } else {
      edit.keep(edit.add(op::tanh{}, {sum})[0], role::output);
      edit.set_name(id_at<op_id>(edit.graph().op_count() - 1), "reader");
    }
    return graph(std::move(edit).finish());
  };
  for (bool const narrow : {false, true}) {
    auto const original = of_sum(narrow, nullptr);
    auto const same = verdict_of(original, of_sum(narrow, &original));
    CHECK_MESSAGE(same.ok(), same.message());
    CHECK_FALSE(verdict_of(original, of_sum(!narrow, &original)).ok());
  }
}

TEST_CASE("a view of a copy, or of what was loaded, shows what the view of the original does") {
  tensor_layout const turned{{dtype::f32, {16, 8}}, {1, 16}, 0}, dense = tensor_layout::dense({dtype::f32, {16, 8}});
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const x = edit.add_source_at(role::input, turned, "x");
  auto const v = put(edit, {"view", {x}, turned, alias_kind::view});
  edit.keep(put(edit, {"f", {v}, dense}), role::output);
  auto const original = graph(std::move(edit).finish());
  // The view as an op of the original's with another layout: all others of its record stay.
  auto const with = [&](tensor_layout const& shown) {
    graph_editor again{operator_table(standard_operators::facets)};
    auto const x2 = again.add_source_at(role::input, turned, "x");
    std::vector<value_id> const in{x2};
    auto const copy = again.emit(view_of(op::copy{}), span_of(in))[0];
    again.set_origin(id_at<op_id>(0), op_id{900});
    auto const v2 = put(again, {"view", {copy}, shown, alias_kind::view});
    again.set_origin(id_at<op_id>(1), op_id{0});
    again.keep(put(again, {"f", {v2}, dense}), role::output);
    again.set_origin(id_at<op_id>(2), op_id{1});
    return verdict_of(original, graph(std::move(again).finish()));
  };
  auto const right = with(dense);
  CHECK_MESSAGE(right.ok(), right.message());
  CHECK(with(turned).has(violation_kind::type_changed));
  CHECK_FALSE(with({{dtype::f32, {16, 8}}, {8, 0}, 0}).ok());
  CHECK_FALSE(with({{dtype::f32, {16, 8}}, {0, 1}, 0}).ok());
}

TEST_CASE("as_strided of a copy that lies otherwise is another value") {
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const x = edit.add_source(role::input, {dtype::f32, {24, 24}}, "x");
  auto const turned = edit.add(op::permute{{1, 0}}, {x})[0];
  auto const shown = edit.add(op::as_strided{{24, 24}, {24, 1}, 0}, {turned})[0];
  edit.keep(edit.add(op::tanh{}, {shown})[0], role::output);
  auto const original = graph(std::move(edit).finish());
  auto const o = original.producer(shown);
  CHECK(verdict_of(original, original).ok());
  CHECK_FALSE(verdict_of(original, copied_for(original, o, 0)).ok());
}

TEST_CASE("texts that differ anywhere are different ops") {
  auto const t = tensor_layout::dense({dtype::f32, {16, 32}});
  auto const with = [&](std::string const& target, std::string const& details) {
    graph_editor edit{operator_table(standard_operators::facets)};
    auto const x = edit.add_source_at(role::input, t, "x");
    auto const y = put(edit, {target, {x}, t, alias_kind::fresh, details});
    edit.set_name(id_at<op_id>(0), "f");
    edit.keep(y, role::output);
    return graph(std::move(edit).finish());
  };
  std::string const text = "{\"args\":[\"%0\",12345678,12345678,12345678]}";
  auto const original = with("f", text);
  CHECK(verdict_of(original, with("f", text)).ok());
  random_stream draw(1);
  for (int k = 0; k < 200; ++k) {
    auto other = text;
    auto& c = other[draw.below(static_cast<std::uint32_t>(other.size()))];
    c = static_cast<char>(c ^ (1 << draw.below(7)));
    if (c == 0) continue;
    CHECK_FALSE(verdict_of(original, with("f", other)).ok());
  }
  CHECK_FALSE(verdict_of(original, with("f" + text, "")).ok());
}

TEST_CASE("a view that shows more than its argument is looked at in the argument's storage alone") {
  tensor_layout const whole = tensor_layout::dense({dtype::f32, {32}});
  graph_editor edit{operator_table(standard_operators::facets)};
  auto const x = edit.add_source_at(role::input, whole, "x"), y = edit.add_source_at(role::input, whole, "y");
  auto const first = edit.add(op::slice{0, 0, 16}, {edit.add(op::add{}, {x, y})[0]})[0];
  auto const shown = put(edit, {"as_strided", {first}, whole, alias_kind::view});
  edit.keep(put(edit, {"f", {shown}, whole}), role::output);
  auto const original = graph(std::move(edit).finish());
  CHECK(verdict_of(original, original).ok());
  graph_editor again(original);
  auto const other = again.add(
      op::concat{0}, {again.add(op::slice{0, 0, 16}, {first})[0], again.add(op::slice{0, 16, 32}, {y})[0]})[0];
  again.set_input(named(original, "as_strided"), 0, again.add(op::slice{0, 0, 16}, {other})[0]);
  CHECK_FALSE(verdict_of(original, graph(std::move(again).finish())).ok());
}
