// What every operator must hold, checked on one case at a time:
//   - its kernel gives the reference's numbers, in f64 and, more coarsely, in f32, from dense inputs and from views;
//   - the gradients of all its floating outputs agree with a difference quotient in f64, from dense inputs and from
//     views, the incoming gradient lying in any order; an operator without a gradient is refused by name;
//   - cut along a related axis, run by parts and combined, it gives the whole;
//   - outputs written over inputs, where it says that they may be, have the same bits.
//
//   check_operator(op::add{}, {{{3, 4}}, {{4}}}, [](auto const& in) { ... return std::vector{...}; });
#pragma once

#include <neap/ir/editor.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/model/kernels.hpp>
#include <neap/train/differentiate.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "operand.hpp"
#include "plain_run.hpp"

namespace neap::testing {

/// A tensor with memory of its own, in any layout.
struct array {
  tensor_layout layout;
  std::vector<double> memory;  // doubles, so that it is aligned

  explicit array(tensor_layout l) : layout(l) {
    std::int64_t last = l.offset;
    for (int k = 0; k < l.type.rank(); ++k) last += std::max<std::int64_t>(0, l.type.dims[k] - 1) * l.strides[k];
    memory.resize(static_cast<std::size_t>((last + 1) * size_of(l.type.element) / 8 + 1));
    std::memset(memory.data(), 0x5e, memory.size() * 8);
  }
  tensor_ref ref() const { return tensor_ref::place(const_cast<double*>(memory.data()), layout); }
  std::int64_t count() const { return layout.type.count(); }
  std::int64_t place(std::int64_t i) const {
    std::int64_t at = 0;
    for (int k = layout.type.rank() - 1; k >= 0; --k) {
      at += i % layout.type.dims[k] * layout.strides[k];
      i /= layout.type.dims[k];
    }
    return at;
  }
  double operator[](std::int64_t i) const {
    return with_type(layout.type.element, [&](auto tag) {
      using T = typename decltype(tag)::type;
      return static_cast<double>(static_cast<compute_t<T>>(ref().as<T>()[place(i)]));
    });
  }
  void set(std::int64_t i, double x) {
    with_type(layout.type.element, [&](auto tag) {
      using T = typename decltype(tag)::type;
      ref().as<T>()[place(i)] = neap::detail::convert<T>(x);
    });
  }
  /// The elements in row-major order.
  std::vector<double> values() const {
    std::vector<double> v;
    for (std::int64_t i = 0; i < count(); ++i) v.push_back((*this)[i]);
    return v;
  }
  double at(std::initializer_list<std::int64_t> places) const {
    std::int64_t i = 0;
    int k = 0;
    for (auto p : places) i = i * layout.type.dims[k++] + p;
    return (*this)[i];
  }
  array dense() const {
    array d(tensor_layout::dense(layout.type));
    for (std::int64_t i = 0; i < count(); ++i) d.set(i, (*this)[i]);
    return d;
  }
};

/// A random layout for a type: axes in another order, gaps, an offset.
inline tensor_layout random_view(random_stream& draw, tensor_type const& t) {
  int const r = t.rank();
  std::vector<int> order;
  for (int k = 0; k < r; ++k) order.insert(order.begin() + draw.below(static_cast<std::uint32_t>(k + 1)), k);
  tensor_layout l{t, extents::filled(r, 0), draw.below(4)};
  std::int64_t stride = 1;
  for (int k : order) {
    l.strides[k] = stride;
    stride *= t.dims[k] + draw.below(3);
  }
  return l;
}

/// A shape of at least `least` and at most `most` axes, of extents 1 to 5.
inline shape random_shape(random_stream& draw, int least, int most) {
  shape s;
  for (int k = least + static_cast<int>(draw.below(static_cast<std::uint32_t>(most - least + 1))); k > 0; --k)
    s.push_back(1 + draw.below(5));
  return s;
}
/// A shape that broadcasts to `whole`.
inline shape random_part(random_stream& draw, shape const& whole) {
  shape s;
  for (int k = static_cast<int>(draw.below(static_cast<std::uint32_t>(whole.rank() + 1))); k < whole.rank(); ++k)
    s.push_back(draw.below(3) ? whole[k] : 1);
  return s;
}

struct operator_checks {
  bool gradient = true, views = true, f32 = true;
  double tolerance = 1e-9, f32_tolerance = 2e-4, slope_tolerance = 2e-6;
};

namespace detail {
inline host_backend& backend() {
  static host_backend b(2);
  return b;
}
inline std::vector<array> draw_inputs(std::vector<operand> const& spec, dtype floating, std::uint64_t seed,
                                      bool views) {
  random_stream draw(seed), layouts(seed, 9);
  std::vector<array> in;
  for (auto const& o : spec) {
    tensor_type const t{is_floating(o.element) ? floating : o.element, o.dims};
    in.emplace_back(views ? random_view(layouts, t) : tensor_layout::dense(t));
    for (std::int64_t i = 0; i < in.back().count(); ++i) {
      double const x = o.low + (o.high - o.low) * static_cast<double>(draw.uniform());
      in.back().set(i, is_floating(o.element) ? static_cast<double>(static_cast<float>(x)) : std::floor(x));
    }
  }
  return in;
}
inline std::vector<output_rule> infer(operator_view op, std::vector<array> const& in) {
  std::vector<tensor_layout> layouts;
  for (auto const& x : in) layouts.push_back(x.layout);
  shape_context c(op.facets->name, layouts);
  op.facets->infer(op.bytes, c);
  return {c.outputs().begin(), c.outputs().end()};
}
/// Runs a kernel. over[j] = i: output j lies on input i (whose memory changes).
inline std::vector<array> run(operator_view op, kernel_function<host_backend> kernel, std::vector<array>& in,
                              std::vector<tensor_layout> const& out_layouts, std::vector<int> const& over) {
  std::vector<array> out;
  std::vector<tensor_ref> in_refs, out_refs;
  std::vector<tensor_layout> in_layouts;
  for (auto const& x : in) in_refs.push_back(x.ref()), in_layouts.push_back(x.layout);
  for (auto const& l : out_layouts) out.emplace_back(l);
  for (std::size_t j = 0; j < out.size(); ++j)
    out_refs.push_back(over[j] >= 0 ? in_refs[static_cast<std::size_t>(over[j])] : out[j].ref());
  bytes_t const scratch = op.facets->workspace ? op.facets->workspace(op.bytes, {in_layouts, out_layouts}) : 0;
  block workspace(scratch + 64);
  std::memset(workspace.data(), 0x5e, static_cast<std::size_t>(scratch + 64));
  kernel(backend(), op.bytes, {in_refs, out_refs, workspace.data()});
  for (bytes_t i = scratch; i < scratch + 64; ++i)
    if (workspace.data()[i] != std::byte{0x5e})
      throw error(std::string(op.facets->name) + ": writes behind its workspace");
  for (std::size_t j = 0; j < out.size(); ++j)
    if (over[j] >= 0) out[j].memory = in[static_cast<std::size_t>(over[j])].memory;
  return out;
}
inline std::vector<array> run(operator_view op, kernel_function<host_backend> kernel, std::vector<array> in) {
  auto const rules = infer(op, in);
  std::vector<tensor_layout> layouts;
  std::vector<int> over;
  for (auto const& r : rules) layouts.push_back(r.layout), over.push_back(r.alias == alias_kind::fresh ? -1 : r.of);
  if (!rules.empty() && rules[0].alias == alias_kind::view) {
    std::vector<array> views;
    for (auto const& r : rules) {
      views.emplace_back(r.layout);
      views.back().memory = in[static_cast<std::size_t>(r.of)].memory;
    }
    return views;
  }
  return run(op, kernel, in, layouts, over);
}
inline bool close(double a, double b, double tolerance) {
  return a == b || (std::isnan(a) && std::isnan(b)) || std::abs(a - b) <= tolerance * (1 + std::abs(a) + std::abs(b));
}
inline void compare(std::string const& what, std::vector<double> const& got, std::vector<double> const& expected,
                    double tolerance) {
  INFO(what);
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    if (!close(got[i], expected[i], tolerance)) {
      FAIL_CHECK(what << ": element " << i << " is " << got[i] << ", not " << expected[i]);
      return;
    }
}

/// Part `part` of two along an axis, dense.
inline array half(array const& x, int axis, int part) {
  tensor_layout l = x.layout;
  l.type.dims[axis] /= 2;
  array h(tensor_layout::dense(l.type));
  array view(x);
  view.layout = l;
  view.layout.offset += part * l.type.dims[axis] * l.strides[axis];
  for (std::int64_t i = 0; i < h.count(); ++i) h.set(i, view[i]);
  return h;
}

/// An operator with the attributes that a part of it has.
class operator_of_part {
 public:
  operator_of_part(operator_view whole, cut_context const& c) : facets_(whole.facets), bytes_(whole.bytes) {
    if (!facets_->cut) return;
    room_.resize(facets_->size / sizeof(std::max_align_t) + 1);
    std::memcpy(static_cast<void*>(room_.data()), whole.bytes, facets_->size);
    facets_->cut(room_.data(), c);
    bytes_ = room_.data();
  }
  operator_view view() const { return {facets_, bytes_}; }

 private:
  operator_facets const* facets_;
  void const* bytes_;
  std::vector<std::max_align_t> room_;
};

/// How many axes were cut.
inline int check_relations(std::string const& what, operator_view op, kernel_function<host_backend> kernel,
                           std::vector<array> const& in, std::vector<array> const& whole, double tolerance) {
  std::vector<tensor_layout> in_layouts, out_layouts;
  for (auto const& x : in) in_layouts.push_back(x.layout);
  for (auto const& x : whole) out_layouts.push_back(x.layout);
  dim_context c(in_layouts, out_layouts);
  op.facets->relate(op.bytes, c);
  bool const view = infer(op, in)[0].alias == alias_kind::view;
  int cuts = 0;
  for (auto const& start : c.links()) {
    // What must be cut together with this axis.
    std::vector<int> in_axis(in.size(), -1), out_axis(whole.size(), -1);
    std::vector<bool> reduced(64);
    combine how = combine::concat;
    in_axis[static_cast<std::size_t>(start.input)] = start.in_axis;
    for (bool grew = true; grew;) {
      grew = false;
      for (auto const& l : c.links()) {
        auto& a = in_axis[static_cast<std::size_t>(l.input)];
        bool const is_in = a == l.in_axis;
        bool const is_out = l.output >= 0 ? out_axis[static_cast<std::size_t>(l.output)] == l.out_axis
                                          : reduced[static_cast<std::size_t>(l.out_axis)];
        if (is_in && !is_out) {
          if (l.output >= 0) {
            REQUIRE(out_axis[static_cast<std::size_t>(l.output)] == -1);
            out_axis[static_cast<std::size_t>(l.output)] = l.out_axis;
          } else {
            reduced[static_cast<std::size_t>(l.out_axis)] = true;
            how = l.how;
          }
          grew = true;
        }
        if (is_out && !is_in) {
          REQUIRE(a == -1);
          a = l.in_axis;
          grew = true;
        }
      }
    }
    bool even = true;
    for (std::size_t i = 0; i < in.size(); ++i)
      if (in_axis[i] >= 0) even &= in_layouts[i].type.dims[in_axis[i]] % 2 == 0;
    for (std::size_t j = 0; j < whole.size(); ++j)
      if (out_axis[j] >= 0) even &= out_layouts[j].type.dims[out_axis[j]] % 2 == 0;
    if (!even || in_layouts[static_cast<std::size_t>(start.input)].type.dims[start.in_axis] == 0) continue;
    std::vector<std::vector<array>> parts;
    for (int part : {0, 1}) {
      operator_of_part const of_part(op, {in_layouts, out_layouts, in_axis, out_axis, part, part + 1, 2});
      std::vector<array> cut;
      for (std::size_t i = 0; i < in.size(); ++i) {
        cut.push_back(in_axis[i] >= 0 ? half(in[i], in_axis[i], part) : in[i]);
      }
      std::vector<tensor_layout> layouts;
      for (std::size_t j = 0; j < whole.size(); ++j) {
        tensor_type t = whole[j].layout.type;
        if (out_axis[j] >= 0) t.dims[out_axis[j]] /= 2;
        layouts.push_back(tensor_layout::dense(t));
      }
      parts.push_back(view ? run(of_part.view(), kernel, cut)
                           : run(of_part.view(), kernel, cut, layouts, std::vector<int>(whole.size(), -1)));
      for (std::size_t j = 0; j < whole.size(); ++j) REQUIRE(parts.back()[j].layout.type == layouts[j].type);
    }
    for (std::size_t j = 0; j < whole.size(); ++j) {
      std::vector<double> got, expected;
      if (out_axis[j] >= 0) {
        for (int part : {0, 1}) {
          auto const p = half(whole[j], out_axis[j], part).values(),
                     q = parts[static_cast<std::size_t>(part)][j].values();
          expected.insert(expected.end(), p.begin(), p.end());
          got.insert(got.end(), q.begin(), q.end());
        }
      } else {
        REQUIRE_MESSAGE(how != combine::concat, what, ": output ", j, " has no axis that is cut and no way to combine");
        expected = whole[j].values();
        for (std::size_t i = 0; i < expected.size(); ++i) {
          double const x = parts[0][j][static_cast<std::int64_t>(i)], y = parts[1][j][static_cast<std::int64_t>(i)];
          got.push_back(how == combine::sum    ? x + y
                        : how == combine::mean ? (x + y) / 2
                        : how == combine::max  ? std::max(x, y)
                                               : std::min(x, y));
        }
      }
      compare(what + ": cut along axis " + std::to_string(start.in_axis) + " of input " + std::to_string(start.input),
              got, expected, tolerance);
    }
    ++cuts;
  }
  return cuts;
}

inline void check_takeover(std::string const& what, operator_view op, kernel_function<host_backend> kernel,
                           std::vector<array> const& in, std::vector<array> const& plain) {
  std::vector<tensor_layout> layouts;
  for (auto const& x : plain) layouts.push_back(x.layout);
  // Every start of the rule "each output the first input that still can be taken", and each pair alone.
  for (std::size_t first = 0; first < in.size(); ++first)
    for (std::size_t only = 0; only <= plain.size(); ++only) {
      std::vector<int> over(plain.size(), -1);
      std::vector<bool> taken(in.size());
      bool any = false;
      for (std::size_t j = 0; j < plain.size(); ++j)
        for (std::size_t k = 0; k < in.size() && over[j] < 0; ++k) {
          std::size_t const i = (first + k) % in.size();
          if (taken[i] || !(in[i].layout == layouts[j]) || (only < plain.size() && only != j)) continue;
          over[j] = static_cast<int>(i);
          taken[i] = any = true;
        }
      if (!any) continue;
      auto copies = in;
      auto const got = run(op, kernel, copies, layouts, over);
      for (std::size_t j = 0; j < plain.size(); ++j)
        compare(what + ": output over input", got[j].values(), plain[j].values(), 0);
    }
}

/// A tensor as what an operator of views gives of a dense one.
struct seen_tensor {
  tensor_type base;
  tensor_layout layout;
  std::function<value_id(graph_editor&, value_id)> see = [](graph_editor&, value_id v) { return v; };
};
template <class Op>
seen_tensor seen_by(tensor_type base, Op const& view) {
  return {base, infer(view_of(view), {array(tensor_layout::dense(base))})[0].layout,
          [view](graph_editor& e, value_id v) { return e.add(view, {v})[0]; }};
}
/// Axes in a random order.
inline extents random_axes(random_stream& draw, int rank) {
  extents axes;
  for (int k = 0; k < rank; ++k) axes.insert(static_cast<int>(draw.below(static_cast<std::uint32_t>(k + 1))), k);
  return axes;
}
/// As it is, with axes in another order, a part of a larger one, or one axis repeated.
inline seen_tensor random_sight(random_stream& draw, tensor_type t) {
  auto const kind = draw.below(4);
  int const axis = t.rank() ? static_cast<int>(draw.below(static_cast<std::uint32_t>(t.rank()))) : 0;
  tensor_type base = t;
  if (t.rank() == 0 || kind == 0) return {t, tensor_layout::dense(t)};
  if (kind == 1) {
    auto const axes = random_axes(draw, t.rank());
    for (int k = 0; k < t.rank(); ++k) base.dims[static_cast<int>(axes[k])] = t.dims[k];
    return seen_by(base, op::permute{axes});
  }
  if (kind == 2) {
    base.dims[axis] += 3;
    return seen_by(base, op::slice{axis, 1, 1 + t.dims[axis]});
  }
  base.dims[axis] = 1;
  return seen_by(base, op::broadcast_to{t.dims});
}

/// One differentiation of an op: which outputs the loss depends on (bit j: output j), and whether inputs are views and
/// the gradients of the outputs lie in other orders.
struct gradient_case {
  std::uint64_t seed = 1;
  unsigned outputs = ~0u;
  bool views = false;
  int probes = 12;  // elements of an input for which the quotient is taken
};

/// The gradient agrees with the difference quotient of loss = a random linear function of the outputs.
inline void check_gradient(std::string const& what, operator_view op, std::vector<operand> const& spec,
                           double tolerance, gradient_case const& how) {
  auto in = draw_inputs(spec, dtype::f64, how.seed, false);
  graph_editor e{operator_table(standard_operators::facets)};
  random_stream draw(how.seed, 77);
  std::vector<block> memory;
  auto const source = [&](array const& x) {
    block b(x.layout.type.bytes());
    std::memcpy(b.data(), x.memory.data(), static_cast<std::size_t>(b.bytes()));
    memory.push_back(std::move(b));
    return e.add_source(role::input, x.layout.type);
  };
  auto const random_source = [&](tensor_type const& t, double low, double high) {
    array x(tensor_layout::dense(t));
    for (std::int64_t i = 0; i < x.count(); ++i) x.set(i, low + (high - low) * static_cast<double>(draw.uniform()));
    return source(x);
  };

  std::vector<value_id> arguments, wanted;
  std::vector<std::size_t> which;
  auto layouts = in;  // as the op sees them
  for (std::size_t i = 0; i < in.size(); ++i) {
    bool const floating = is_floating(spec[i].element);
    value_id v;
    seen_tensor x{in[i].layout.type, in[i].layout};
    if (how.views && floating && spec[i].differentiable) {
      x = random_sight(draw, x.base);
      auto trial = layouts;
      trial[i] = array(x.layout);
      try {
        infer(op, trial);
        layouts = trial;
      } catch (error const& refused) {
        CHECK(std::string(refused.what()).find("dense") != std::string::npos);
        x = {in[i].layout.type, in[i].layout};
      }
      v = random_source(x.base, spec[i].low, spec[i].high);
    } else {
      v = source(in[i]);
    }
    if (floating && spec[i].differentiable) wanted.push_back(v), which.push_back(memory.size() - 1);
    arguments.push_back(x.see(e, v));
  }
  if (wanted.empty()) return;
  auto const outputs = e.emit(op, arguments);

  value_id loss = nothing<value_id>;
  for (std::size_t j = 0; j < outputs.size(); ++j) {
    value_id y = outputs[j];
    if (!is_floating(e.graph().type(y).element) || !(how.outputs >> j & 1u)) continue;
    auto const t = e.graph().type(y);
    if (how.views && t.rank() > 0) {  // the gradient comes permuted, repeated, or as a part of a larger one
      std::int64_t const axis = draw.below(static_cast<std::uint32_t>(t.rank()));
      switch (draw.below(3)) {
        case 0: y = e.add(op::permute{random_axes(draw, t.rank())}, {y})[0]; break;
        case 1: y = e.add(op::sum{{axis}, true}, {y})[0]; break;
        default: y = e.add(op::concat{axis}, {y, random_source(t, -1, 1)})[0];
      }
    }
    value_id const weights = random_source(e.graph().type(y), -1, 1);
    value_id const term = e.add(op::sum{}, {e.add(op::mul{}, {y, weights})[0]})[0];
    value_id const number = e.graph().type(term).element == dtype::f64 ? term : e.add(op::cast{dtype::f64}, {term})[0];
    loss = loss == nothing<value_id> ? number : e.add(op::add{}, {loss, number})[0];
  }
  if (loss == nothing<value_id>) return;
  e.keep(loss, role::loss);
  graph const forward{graph_editor(e).finish()};
  auto const gradients = differentiate(e, loss, wanted);
  for (std::size_t k = 0; k < gradients.size(); ++k)  // one gradient may belong to two inputs
    if (std::find(gradients.begin(), gradients.begin() + static_cast<std::ptrdiff_t>(k), gradients[k]) ==
        gradients.begin() + static_cast<std::ptrdiff_t>(k))
      e.keep(gradients[k], role::gradient);
  graph const both{std::move(e).finish()};
  auto const order = [](op_graph const& g) {
    schedule s;
    for (auto o : g.ops()) s.order.push_back(o);
    return s;
  };
  auto const run_with = [&](graph const& g) { return run_plainly(g, order(g), memory, backend()).kept; };
  auto const kept = run_with(both);
  if (!std::isfinite(*reinterpret_cast<double const*>(run_with(forward)[0].data()))) {  // a mean of nothing
    CHECK(std::any_of(layouts.begin(), layouts.end(), [](array const& x) { return x.count() == 0; }));
    return;
  }
  for (std::size_t k = 0; k < wanted.size(); ++k) {
    auto const at = std::find(both.kept().begin(), both.kept().end(), gradients[k]) - both.kept().begin();
    auto const* slope = reinterpret_cast<double const*>(kept[static_cast<std::size_t>(at)].data());
    auto* x = reinterpret_cast<double*>(memory[which[k]].data());
    std::int64_t const n = both.type(wanted[k]).count(), probes = std::min<std::int64_t>(n, how.probes);
    for (std::int64_t p = 0; p < probes; ++p) {
      std::int64_t const i = n <= how.probes ? p : draw.below(static_cast<std::uint32_t>(n));
      double const h = 1e-5, before = x[i];
      x[i] = before + h;
      double const up = *reinterpret_cast<double const*>(run_with(forward)[0].data());
      x[i] = before - h;
      double const down = *reinterpret_cast<double const*>(run_with(forward)[0].data());
      x[i] = before;
      if (!close(slope[i], (up - down) / (2 * h), tolerance)) {
        FAIL_CHECK(what << std::string(how.views ? " of views" : "") << ", seed " << how.seed << ", outputs "
                        << how.outputs << ": gradient of input " << k << " of those wanted, element " << i << " is "
                        << slope[i] << ", the quotient " << (up - down) / (2 * h));
        return;
      }
    }
  }
}
/// Several of them: from dense inputs, twice from views, and for each floating output alone if there are more than one.
inline void check_gradients(std::string const& what, operator_view op, std::vector<operand> const& spec,
                            std::vector<array> const& out, double tolerance, std::uint64_t seed) {
  check_gradient(what, op, spec, tolerance, {seed});
  for (std::uint64_t k : {1u, 2u}) check_gradient(what, op, spec, tolerance, {seed + k, ~0u, true, 6});
  unsigned floating = 0;
  for (std::size_t j = 0; j < out.size(); ++j)
    if (is_floating(out[j].layout.type.element)) floating |= 1u << j;
  for (std::size_t j = 0; (floating & (floating - 1)) && j < out.size(); ++j)
    if (floating >> j & 1u) check_gradient(what, op, spec, tolerance, {seed + 3 + j, 1u << j, true, 6});
}
/// An op without a gradient rule is refused by name where a loss depends on it.
inline void check_refusal(operator_view op, std::vector<operand> const& spec, std::vector<array> const& in) {
  graph_editor e{operator_table(standard_operators::facets)};
  std::vector<value_id> arguments, wanted;
  for (auto const& x : in) {
    arguments.push_back(e.add_source(role::input, x.layout.type));
    if (is_floating(spec[arguments.size() - 1].element)) wanted.push_back(arguments.back());
  }
  auto const out = e.emit(op, arguments);
  if (wanted.empty() || !is_floating(e.graph().type(out[0]).element)) return;
  std::string told;
  try {
    differentiate(e, out[0], wanted);
  } catch (error const& x) { told = x.what(); }
  CHECK(told == "differentiate: " + std::string(op.facets->name) + " #0 has no gradient");
}
}  // namespace detail

using arrays = std::vector<array>;
using numbers = std::vector<std::vector<double>>;
using reference = std::function<numbers(arrays const&)>;  // of each output; fewer than the op has: the first ones

namespace detail {
inline int check_operator(operator_view view, kernel_function<host_backend> kernel, std::vector<operand> const& spec,
                          reference const& expected, operator_checks const& o, std::uint64_t seed) {
  std::string what(view.facets->name);
  for (auto const& x : spec) what += " " + to_string(x.dims);
  INFO(what);
  auto const in = draw_inputs(spec, dtype::f64, seed, false);
  auto const out = run(view, kernel, in);
  if (expected) {
    auto const right = expected(in);
    for (std::size_t j = 0; j < right.size(); ++j) compare(what, out[j].values(), right[j], o.tolerance);
  }
  bool const updates = infer(view, in)[0].alias == alias_kind::update;
  if (o.f32) {
    auto const narrow = run(view, kernel, draw_inputs(spec, dtype::f32, seed, false));
    for (std::size_t j = 0; j < out.size(); ++j)
      compare(what + " in f32", narrow[j].values(), out[j].values(), o.f32_tolerance);
  }
  for (std::uint64_t k = 0; o.views && k < 4; ++k) {
    auto strided = in;
    random_stream draw(seed + k, 3);
    for (auto& x : strided) {
      if (draw.below(3) == 0) continue;
      array y(random_view(draw, x.layout.type));
      for (std::int64_t i = 0; i < x.count(); ++i) y.set(i, x[i]);
      try {  // a layout that does not suit is refused by the shape rule, and told
        auto trial = strided;
        trial[static_cast<std::size_t>(&x - strided.data())] = y;
        infer(view, trial);
      } catch (error const& e) {
        CHECK(std::string(e.what()).find("dense") != std::string::npos);
        continue;
      }
      x = y;
    }
    auto const got = run(view, kernel, strided);
    for (std::size_t j = 0; j < out.size(); ++j) compare(what + " of views", got[j].values(), out[j].values(), 1e-12);
  }
  if (view.facets->is_elementwise(view.bytes) && !updates) check_takeover(what, view, kernel, in, out);
  int cuts = 0;
  if (!updates) cuts = check_relations(what, view, kernel, in, out, o.tolerance);
  if (o.gradient && view.facets->gradient) check_gradients(what, view, spec, out, o.slope_tolerance, seed);
  if (!view.facets->gradient && !updates) check_refusal(view, spec, in);
  std::vector<tensor_layout> il, ol;
  for (auto const& x : in) il.push_back(x.layout);
  for (auto const& x : out) ol.push_back(x.layout);
  work const w = view.facets->cost(view.bytes, {il, ol});
  CHECK(w.flops >= 0);
  CHECK(w.read >= 0);
  CHECK(w.written >= 0);
  return cuts;
}
}  // namespace detail

/// Checks everything that a case can; gives the number of axes that could be cut.
template <class Op>
int check_operator(Op const& op, std::vector<operand> const& spec, reference const& expected = {},
                   operator_checks const& o = {}, std::uint64_t seed = 1) {
  return detail::check_operator(view_of(op), host_kernel(facets_of<Op>), spec, expected, o, seed);
}

}  // namespace neap::testing
