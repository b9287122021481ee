// The bodies of <neap/train/batch_use.hpp>.
#pragma once

#include <neap/train/batch_use.hpp>

#include <neap/core/separate_compilation.hpp>

#include <algorithm>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC linearity linearity_in(op_graph const& g, op_id o, std::span<bool const> sums) {
  auto const is_any = [&]<class... Op>(std::type_identity<std::tuple<Op...>>) { return (g.as<Op>(o) || ...); };
  auto const count = std::count(sums.begin(), sums.end(), true);
  using linear = std::tuple<op::neg, op::mul_scalar, op::copy, op::reshape, op::permute, op::broadcast_to, op::slice,
                            op::split, op::sum, op::mean, op::sum_to, op::triangle, op::cumsum, op::as_strided>;
  using affine = std::tuple<op::add_scalar, op::add, op::sub, op::concat>;
  using first = std::tuple<op::div, op::scale_by, op::gather, op::index_select>;
  if (is_any(std::type_identity<linear>{})) return linearity::linear;
  if (is_any(std::type_identity<affine>{})) return linearity::affine;
  if (is_any(std::type_identity<first>{})) return sums[0] && count == 1 ? linearity::linear : linearity::none;
  if (g.as<op::cast>(o)) return is_floating(g.type(g.output(o)).element) ? linearity::linear : linearity::none;
  if (g.as<op::where>(o)) return sums[0] ? linearity::none : linearity::affine;
  if (g.as<op::mul>(o) || g.as<op::matmul>(o)) return count == 1 ? linearity::linear : linearity::none;
  return linearity::none;
}

NEAP_FUNC std::vector<batch_cut> cuts_of(std::span<tensor_type const> sample, std::int64_t parts) {
  struct extent {
    std::int64_t samples;
    int tensors;
  };
  std::vector<extent> all;
  for (auto const& t : sample) {
    if (t.rank() == 0) continue;
    auto const same = std::find_if(all.begin(), all.end(), [&](extent const& e) { return e.samples == t.dims[0]; });
    if (same != all.end()) ++same->tensors;
    else all.push_back({t.dims[0], 1});
  }
  std::stable_sort(all.begin(), all.end(), [&](extent const& a, extent const& b) {
    bool const one = a.samples % parts == 0, other = b.samples % parts == 0;
    return a.tensors != b.tensors ? a.tensors > b.tensors : one && !other;
  });
  std::vector<batch_cut> cuts;
  for (auto const& e : all) {
    auto const n = std::max<std::int64_t>(std::min(parts, e.samples), 1);
    cuts.push_back({n, n == 1 ? INT64_MAX : e.samples % n == 0 ? n : e.samples});  // one sample is not cut
  }
  if (cuts.empty()) cuts.push_back({1, INT64_MAX});
  return cuts;
}

NEAP_FUNC batch_uses::batch_uses(op_graph const& g, std::span<value_id const> sample, std::span<value_id const> outputs,
                                 std::span<value_id const> fixed, batch_cut const& how)
    : g_(g),
      outputs_(outputs),
      how_(how),
      values_(g.value_count(), batch_value{}),
      runs_(g.op_count(), batch_run::once),
      first_axis_(g.op_count(), 0),
      fixed_(g.value_count(), false) {
  for (auto v : fixed) fixed_[v] = true;
  for (auto v : g.sources()) {
    auto& x = values_[v];
    x.of_weights = g.role(v) == role::weight;
    x.carries = x.of_weights && !fixed_[v] && g.record(v).alias == alias_kind::fresh && is_floating(g.type(v).element);
  }
  for (auto v : sample) {
    auto& x = values_[v];
    x.sampled = true;
    if (g.type(v).rank() > 0 && how.cuts(g.type(v).dims[0])) x.use = batch_use::piece, x.axis = 0;
  }
  for (auto o : g.ops()) enter(o);
}

NEAP_FUNC plain_vector<dim_link> batch_uses::links(op_id o) const {
  auto const* c = g_.as<op::cross_entropy>(o);
  if (c && !c->per_row && g_.inputs(o).size() == 2) {
    tensor_layout const in[] = {g_.layout(g_.inputs(o)[0]), g_.layout(g_.inputs(o)[1]), g_.layout(g_.inputs(o)[1])};
    tensor_layout const out[] = {g_.layout(g_.output(o, 0)), g_.layout(g_.output(o, 1))};
    dim_context d(in, out);
    c->relate(d);
    return std::move(d).take();
  }
  if (is_detached(o)) {
    plain_vector<dim_link> all;
    for (int k = 0; k < g_.type(g_.output(o)).rank(); ++k)
      all.push_back({0, static_cast<std::int16_t>(k), 0, static_cast<std::int16_t>(k), combine::concat});
    return all;
  }
  return g_.links(o);
}

NEAP_FUNC bool batch_uses::complete(op_id o, std::span<dim_link const> all, cut& c) const {
  auto const in = g_.inputs(o);
  c.out.resize(g_.outputs(o).size(), -1);
  for (bool again = true; again;) {
    again = false;
    for (auto const& l : all) {
      auto& axis = c.in[static_cast<std::size_t>(l.input)];
      if (axis == l.in_axis) {
        if (l.output < 0) {
          if (c.reduces && (c.loop != l.out_axis || c.how != l.how)) return false;
          if (!c.reduces) again = true;
          c.reduces = true, c.loop = l.out_axis, c.how = l.how;
        } else {
          auto& out = c.out[static_cast<std::size_t>(l.output)];
          if (out >= 0 && out != l.out_axis) return false;
          if (out < 0) out = l.out_axis, again = true;
        }
        continue;
      }
      bool const in_loop =
          l.output < 0 ? c.reduces && c.loop == l.out_axis : c.out[static_cast<std::size_t>(l.output)] == l.out_axis;
      if (!in_loop) continue;
      auto const& x = values_[in[static_cast<std::size_t>(l.input)]];
      if (axis >= 0 || x.use == batch_use::piece) {
        if (axis >= 0 || x.carries) return false;
      }
      axis = l.in_axis, again = true;
    }
  }
  if (c.how == combine::same) return false;
  bool pieces = false;
  for (std::size_t j = 0; j < c.out.size(); ++j) {
    pieces = pieces || c.out[j] >= 0;
    if (c.out[j] < 0 && !c.reduces) return false;
    if (c.out[j] >= 0 && !how_.cuts(g_.type(g_.output(o, static_cast<int>(j))).dims[c.out[j]])) return false;
  }
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (c.in[i] < 0) continue;
    if (!how_.cuts(g_.type(in[i]).dims[c.in[i]])) return false;
    bool piece = false, reduced = false;
    for (auto const& l : all)
      if (static_cast<std::size_t>(l.input) == i && l.in_axis == c.in[i]) (l.output < 0 ? reduced : piece) = true;
    if (!piece && !reduced) return false;                          // the op says nothing of that axis
    if (pieces && c.reduces && !(piece && reduced)) return false;  // two loops of the op
  }
  return true;
}

NEAP_FUNC bool batch_uses::stacks(op_id o, cut& c) const {
  bool const first = g_.as<op::concat>(o) != nullptr;
  if (!first && !g_.as<op::reshape>(o)) return false;
  auto const joined = first ? g_.output(o) : g_.inputs(o)[0];
  auto const maker = g_.producer(joined);
  if (maker == nothing<op_id> || !g_.as<op::concat>(maker) || g_.uses(joined).size() != 1) return false;
  auto const reader = g_.uses(joined)[0].op;
  if (!g_.as<op::reshape>(reader) || std::ranges::find(outputs_, joined) != outputs_.end()) return false;
  auto const parts = g_.inputs(maker);
  auto const& dims = g_.type(parts[0]).dims;
  int const k = op::detail::plain_axis(g_.as<op::concat>(maker)->axis, dims.rank());
  shape stacked = dims;
  if (dims.rank() == max_rank) return false;
  stacked.insert(k, static_cast<std::int64_t>(parts.size()));
  if (g_.type(g_.output(reader)).dims != stacked || !how_.cuts(dims[k])) return false;
  bool pieces = false;
  for (auto v : parts) {
    auto const& x = values_[v];
    if (x.use == batch_use::piece ? x.axis != k : x.use != batch_use::whole) return false;
    if (g_.type(v).dims[k] != dims[k]) return false;
    pieces |= x.use == batch_use::piece;
  }
  if (!pieces) return false;
  c.in.resize(g_.inputs(o).size(), k);
  c.out.resize(1, first ? k : k + 1);
  return true;
}

NEAP_FUNC void batch_uses::enter(op_id o) {
  auto const in = g_.inputs(o);
  first_axis_[o] = static_cast<std::uint32_t>(axes_.size());
  for (std::size_t i = 0; i < std::max<std::size_t>(in.size(), 1); ++i)
    axes_.push_back(-1), combined_.push_back(combine::sum);

  batch_value all;  // what the outputs have of the inputs
  bool carrying_in = false, updates = false;
  batch_value const* mixed = nullptr;
  for (auto v : in) {
    auto const& x = values_[v];
    all.sampled |= x.sampled, all.of_weights |= x.of_weights, all.gathers |= x.gathers, carrying_in |= x.carries;
    if (x.gathers) all.by = x.by;
    if (x.use == batch_use::mixed && !mixed) mixed = &x;
  }
  bool carries = false;
  for (auto v : g_.outputs(o)) {
    updates |= g_.record(v).alias == alias_kind::update;
    carries |= carrying_in && is_floating(g_.type(v).element) && !fixed_[v];
  }
  if (updates) carries = false;
  if (mixed) return mix(o, all, mixed->why, mixed->by);
  if (!all.sampled) return give_whole(o, all, carries && carrying_in);
  if (updates) {
    if (!all.of_weights) return give_whole(o, all, false);
    return mix(o, all, mixing::written, o);
  }

  bool pieces = false, sums = false;
  for (auto v : in) {
    pieces |= values_[v].use == batch_use::piece;
    sums |= carries && values_[v].use == batch_use::partial && values_[v].carries;
  }
  if (sums) return enter_linear(o, all);
  if (!pieces) {
    if (carries && all.gathers) return mix(o, all, mixing::joins, all.by);
    return give_whole(o, all, carries);
  }
  if (cut c; stacks(o, c)) return give_parts(o, all, c, carrying_in);
  auto const relations = links(o);
  auto const own = std::span<dim_link const>(relations.data(), relations.size());
  for (bool carrying_only : {false, true}) {
    cut c;
    bool any = false, skipped = false;
    for (auto v : in) {
      auto const& x = values_[v];
      bool const cuts = x.use == batch_use::piece && (x.carries || !carrying_only);
      skipped |= x.use == batch_use::piece && !cuts;
      any |= cuts;
      c.in.push_back(cuts ? x.axis : -1);
    }
    if (!any || (carrying_only && !skipped) || !complete(o, own, c)) continue;
    return give_parts(o, all, c, carrying_in);
  }
  if (carries) return mix(o, all, mixing::joins, o);
  all.gathers = true, all.by = o;
  give_whole(o, all, false);
}

NEAP_FUNC void batch_uses::give_parts(op_id o, batch_value x, cut const& c, bool carrying_in) {
  runs_[o] = batch_run::part;
  combined_[first_axis_[o]] = c.how;
  for (std::size_t i = 0; i < c.in.size(); ++i) axes_[first_axis_[o] + i] = c.in[i];
  x.gathers = false, x.by = nothing<op_id>;
  for (std::size_t j = 0; j < c.out.size(); ++j) {
    auto const v = g_.output(o, static_cast<int>(j));
    x.carries = carries_out(v, carrying_in);
    x.axis = c.out[j];
    x.use = c.out[j] >= 0 ? batch_use::piece : batch_use::partial;
    x.how = c.how == combine::max || c.how == combine::min ? c.how : combine::sum;
    values_[v] = x;
    // The gradient of an extreme goes to one part, and which one is not known before.
    if (x.use == batch_use::partial && x.how != combine::sum && x.carries) return mix(o, x, mixing::extreme, o);
  }
}

NEAP_FUNC void batch_uses::enter_linear(op_id o, batch_value x) {
  auto const in = g_.inputs(o);
  bool is_sum[64] = {};
  bool alone = in.size() <= 64;
  for (std::size_t i = 0; alone && i < in.size(); ++i) {
    auto const& y = values_[in[i]];
    is_sum[i] = y.use == batch_use::partial && y.carries;
    alone = is_sum[i] || y.use != batch_use::piece || !y.carries;
  }
  if (!alone || linearity_in(g_, o, {is_sum, in.size()}) == linearity::none) return mix(o, x, mixing::not_linear, o);
  runs_[o] = batch_run::linear;
  x.use = batch_use::partial, x.how = combine::sum, x.gathers = false, x.by = nothing<op_id>;
  for (auto v : g_.outputs(o)) x.carries = carries_out(v, true), values_[v] = x;
}

}}}  // namespace neap::v0::detail

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC std::span<std::int32_t const> batch_uses::input_axes(op_id o) const {
  return {axes_.data() + first_axis_[o], g_.inputs(o).size()};
}

NEAP_FUNC bool batch_uses::takes_all_targets(op_id o) const {
  auto const* c = g_.as<op::cross_entropy>(o);
  return c && !c->per_row && g_.inputs(o).size() == 2 && runs_[o] == batch_run::part;
}

NEAP_FUNC bool batch_uses::is_detached(op_id o) const {
  auto const* s = g_.as<op::as_strided>(o);
  return s && fixed_[g_.output(o)] && g_.layout(g_.output(o)) == g_.layout(g_.inputs(o)[0]);
}

NEAP_FUNC bool batch_uses::carries_out(value_id v, bool carrying_in) const {
  return carrying_in && is_floating(g_.type(v).element) && !fixed_[v];
}

NEAP_FUNC void batch_uses::give_whole(op_id o, batch_value x, bool carries) {
  runs_[o] = carries ? batch_run::same : batch_run::once;
  x.use = batch_use::whole;
  for (auto v : g_.outputs(o)) x.carries = carries_out(v, carries), values_[v] = x;
}

NEAP_FUNC void batch_uses::mix(op_id o, batch_value x, mixing why, op_id by) {
  runs_[o] = batch_run::late;
  x.use = batch_use::mixed, x.why = why, x.by = by, x.carries = false;
  for (auto v : g_.outputs(o)) values_[v] = x;
}

}}}  // namespace neap::v0::detail
