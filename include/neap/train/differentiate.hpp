// Reverse-mode differentiation of a recorded program (Linnainmaa 1970; Griewank and Walther 2008). The gradient of one
// number flows backwards through the ops that it was computed by; each op's gradient rule adds ops for its inputs' share,
// and shares that meet are added. Only what lies between the wanted values and the loss is touched.
//
// A recording is whatever knows which op made a value: an op_graph, or an eager tape.
#pragma once

#include <neap/ir/editor.hpp>
#include <neap/ir/operators/binary.hpp>

#include <algorithm>
#include <concepts>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace neap::inline v0 {

/// What differentiation asks of a record of ops. Promise: inputs(o) were made before o; ids index both ranges densely.
template <class R>
concept op_recording = requires(R const& r, op_id o, value_id v) {
  { r.op_count() } -> std::convertible_to<std::size_t>;
  { r.value_count() } -> std::convertible_to<std::size_t>;
  { r.producer(v) } -> std::same_as<op_id>;              // nothing<op_id> for sources
  { r.inputs(o).begin() };                               // ranges of value_id
  { r.outputs(o).begin() };
  { r.view(o) } -> std::same_as<operator_view>;
  { r.record(v).alias } -> std::convertible_to<alias_kind>;
};

namespace detail {

/// The ops that `loss` was computed by, each before those that made its inputs; the later made first where both may be.
template <op_recording R>
std::vector<op_id> backward_order(R const& made, value_id loss) {
  std::vector<std::uint32_t> readers(made.op_count());  // inputs of ops of the cone that op makes
  std::vector<bool> in_cone(made.op_count());
  std::vector<op_id> cone, order;
  auto const reach = [&](value_id v) {
    op_id const p = made.producer(v);
    if (p == nothing<op_id>) return;
    ++readers[index(p)];
    if (!in_cone[index(p)]) in_cone[index(p)] = true, cone.push_back(p);
  };
  reach(loss);
  if (cone.empty()) return order;
  for (std::size_t at = 0; at < cone.size(); ++at)
    for (value_id v : made.inputs(cone[at])) reach(v);
  std::vector<op_id> ready{made.producer(loss)};  // a heap, the largest id on top
  std::size_t const n = cone.size();
  readers[index(ready[0])] -= 1;
  if (readers[index(ready[0])]) throw error("differentiate: the ops form a cycle");
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end());
    op_id const o = ready.back();
    ready.pop_back();
    order.push_back(o);
    for (value_id v : made.inputs(o)) {
      op_id const p = made.producer(v);
      if (p == nothing<op_id> || --readers[index(p)]) continue;
      ready.push_back(p);
      std::push_heap(ready.begin(), ready.end());
    }
  }
  if (order.size() != n) throw error("differentiate: the ops form a cycle");
  return order;
}

}  // namespace detail

/// Adds the ops that compute the gradients of `loss` with respect to the wanted values, through `to`; those gradients, in
/// order, each of its value's type. nothing<value_id> for a value that the loss does not depend on, or only through ops
/// without slope (comparisons, arg-max, casts to integers): the caller decides whether that is zero or a mistake. `seed`
/// is the gradient of the loss itself, a one if not given; then the loss must have one element.
///
/// Throws neap::error, with the operator's name, if the gradient would have to pass an operator that has none or an
/// update in place. `made` may grow while ops are emitted. O(ops + edges) besides the ops that are added.
template <op_recording R>
std::vector<value_id> differentiate(op_emitter& to, R const& made, value_id loss, std::span<value_id const> wanted,
                                    value_id seed = nothing<value_id>) {
  auto const order = detail::backward_order(made, loss);
  std::vector<bool> needs(made.value_count());  // lies on a way from a wanted value
  for (auto v : wanted) needs[index(v)] = true;
  for (std::size_t k = order.size(); k-- > 0;) {
    bool any = false;
    for (value_id v : made.inputs(order[k])) any = any || needs[index(v)];
    if (any)
      for (value_id v : made.outputs(order[k])) needs[index(v)] = true;
  }

  std::vector<value_id> gradient(made.value_count(), nothing<value_id>);
  if (needs[index(loss)]) {
    auto const t = to.layout_of(loss).type;
    if (seed == nothing<value_id>) {
      if (t.count() != 1) throw error("differentiate: the loss must be one number, but has shape " + to_string(t.dims));
      if (!is_floating(t.element)) throw error("differentiate: the loss must be floating, but is " + to_string(t));
      seed = to.emit(view_of(op::fill{t.dims, t.element, 1}), {}).front();
    }
    gradient[index(loss)] = seed;
  }
  std::vector<value_id> in, out, out_gradient;
  for (op_id const o : order) {
    in.assign(made.inputs(o).begin(), made.inputs(o).end());
    out.assign(made.outputs(o).begin(), made.outputs(o).end());
    bool reached = false, asked = false;
    out_gradient.clear();
    for (auto v : out) {
      out_gradient.push_back(gradient[index(v)]);
      reached = reached || out_gradient.back() != nothing<value_id>;
    }
    auto const want = std::make_unique<bool[]>(in.size() + 1);
    for (std::size_t i = 0; i < in.size(); ++i) {
      want[i] = needs[index(in[i])] && is_floating(to.layout_of(in[i]).type.element);
      asked = asked || want[i];
    }
    if (!reached || !asked) continue;

    operator_view const op = made.view(o);
    std::string const name(op.facets->name);
    for (auto v : out)
      if (made.record(v).alias == alias_kind::update)
        throw error(name + ": an update in place cannot be differentiated");
    if (!op.facets->gradient) throw error(name + ": has no gradient");
    gradient_context c(to, in, out, out_gradient, std::span<bool const>(want.get(), in.size()));
    // A rule may read the operator's attributes while the recording grows under them: it gets a copy.
    auto const attributes = std::make_unique<std::max_align_t[]>(op.facets->size / sizeof(std::max_align_t) + 1);
    if (op.facets->size) std::copy_n(static_cast<std::byte const*>(op.bytes), op.facets->size, reinterpret_cast<std::byte*>(attributes.get()));
    op.facets->gradient(attributes.get(), c);
    for (std::size_t i = 0; i < in.size(); ++i) {
      value_id const share = c.gradients()[i];
      if (share == nothing<value_id> || !want[i]) continue;
      auto const expected = to.layout_of(in[i]).type, given = to.layout_of(share).type;
      if (given != expected)
        throw error(name + ": its gradient rule gives " + to_string(given) + " for input " + std::to_string(i) +
                    " of type " + to_string(expected));
      auto& total = gradient[index(in[i])];
      if (total == nothing<value_id>) {
        total = share;
      } else {
        value_id const both[] = {total, share};
        total = to.emit(view_of(op::add{}), both).front();
      }
    }
  }
  std::vector<value_id> result;
  for (auto v : wanted) result.push_back(gradient[index(v)]);
  return result;
}

/// The same for a graph that is being edited.
inline std::vector<value_id> differentiate(graph_editor& edit, value_id loss, std::span<value_id const> wanted,
                                           value_id seed = nothing<value_id>) {
  return differentiate(edit, edit.graph(), loss, wanted, seed);
}

}  // namespace neap::inline v0
