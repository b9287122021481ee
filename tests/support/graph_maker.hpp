// Small graphs written as formulas: maker m; auto x = m.in({2, 3}); m.keep(x + x); m.done().
#pragma once

#include <neap/ir/editor.hpp>
#include <neap/ir/standard_operators.hpp>

#include <string>
#include <vector>

namespace neap::testing {

class maker;

/// A value of a graph that is being made.
struct expr {
  maker* m = nullptr;
  value_id v = nothing<value_id>;
  friend bool operator==(expr const&, expr const&) = default;
};

class maker {
 public:
  dtype element = dtype::f64;

  expr in(shape const& dims, role r = role::input) { return {this, edit_.add_source(r, {element, dims}, "")}; }
  expr weight(shape const& dims) { return in(dims, role::weight); }
  template <class Op>
  expr put(Op const& op, std::vector<expr> const& arguments) {
    return put_all(op, arguments).front();
  }
  template <class Op>
  std::vector<expr> put_all(Op const& op, std::vector<expr> const& arguments) {
    std::vector<value_id> ids;
    for (auto const& a : arguments) ids.push_back(a.v);
    std::vector<expr> out;
    for (auto v : edit_.emit(view_of(op), span_of(ids))) out.push_back({this, v});
    return out;
  }
  void keep(expr x) { edit_.keep(x.v, role::output); }
  graph done() { return graph(std::move(edit_).finish()); }
  /// Whether a value lies in a source's storage.
  bool in_source(expr x) const { return edit_.graph().is_resident(edit_.graph().storage(x.v)); }
  shape dims(expr x) const { return edit_.layout_of(x.v).type.dims; }

 private:
  graph_editor edit_{operator_table(standard_operators::facets)};
};

inline expr operator+(expr a, expr b) { return a.m->put(op::add{}, {a, b}); }
inline expr operator-(expr a, expr b) { return a.m->put(op::sub{}, {a, b}); }
inline expr operator*(expr a, expr b) { return a.m->put(op::mul{}, {a, b}); }
inline expr operator-(expr a) { return a.m->put(op::neg{}, {a}); }
inline expr operator*(double f, expr a) { return a.m->put(op::mul_scalar{f}, {a}); }
inline expr operator+(double f, expr a) { return a.m->put(op::add_scalar{f}, {a}); }
inline expr tanh(expr a) { return a.m->put(op::tanh{}, {a}); }
inline expr mm(expr a, expr b, bool transpose_a = false, bool transpose_b = false) {
  return a.m->put(op::matmul{transpose_a, transpose_b}, {a, b});
}
inline expr conv(expr a, expr w, std::int64_t padding = 0, std::int64_t stride = 1, std::int64_t groups = 1) {
  return a.m->put(op::conv2d{{stride, stride}, {padding, padding}, {1, 1}, groups}, {a, w});
}
inline expr conv(expr a, expr w, expr b) { return a.m->put(op::conv2d{}, {a, w, b}); }
inline expr cat(std::int64_t axis, std::vector<expr> const& all) { return all[0].m->put(op::concat{axis}, all); }
inline expr cut(expr a, std::int64_t axis, std::int64_t start, std::int64_t stop) {
  return a.m->put(op::slice{axis, start, stop}, {a});
}
inline expr permuted(expr a, extents const& axes) { return a.m->put(op::permute{axes}, {a}); }
inline expr reshaped(expr a, extents const& dims) { return a.m->put(op::reshape{dims}, {a}); }
inline expr broadcast(expr a, extents const& dims) { return a.m->put(op::broadcast_to{dims}, {a}); }
inline expr padded(expr a, std::int64_t axis, std::int64_t before, std::int64_t after) {
  return a.m->put(op::pad{axis, before, after, 0}, {a});
}
inline expr summed(expr a, extents const& axes) { return a.m->put(op::sum{axes}, {a}); }
inline expr summed_to(expr a, extents const& dims) { return a.m->put(op::sum_to{dims}, {a}); }
inline expr copied(expr a) { return a.m->put(op::copy{}, {a}); }
inline expr cast_to(expr a, dtype t) { return a.m->put(op::cast{t}, {a}); }
/// w is written in place: what comes back is its next version.
inline expr descended(expr w, expr g) { return w.m->put(op::sgd{}, {w, g}); }

}  // namespace neap::testing
