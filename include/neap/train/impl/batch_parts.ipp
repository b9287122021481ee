// The bodies of <neap/train/batch_parts.hpp>.
#pragma once

#include <neap/train/batch_parts.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC batch_parts::batch_parts(traced_loss const& t, std::vector<tensor> const& sample,
                                   std::vector<tensor> const& weights, batch_cut const& how, std::source_location at)
    : t_(t),
      g_(t.program),
      uses_(g_, span_of(t.inputs), span_of(t.outputs), span_of(t.fixed), how),
      how_(how),
      at_(at),
      known_(g_.value_count()),
      late_(g_.value_count()),
      is_fixed_(g_.value_count(), false),
      is_collected_(g_.value_count(), false),
      collected_(g_.value_count()) {
  if (auto const& l = uses_.of(t.loss); l.use == batch_use::mixed) refuse(l);
  for (auto v : t.fixed) is_fixed_[v] = true;
  for (std::size_t k = 0; k < sample.size(); ++k) known_[t.inputs[k]] = sample[k];
  for (auto const& r : t.residents) known_[r.value] = source_tensor(r, weights);
  for (auto v : g_.sources())
    if (known_[v].is_empty()) {  // a view without history
      auto const& base = known_[g_.record(g_.storage(v)).first];
      known_[v] = make_leaf(base.storage(), g_.layout(v));
    }
  run_before();
}

NEAP_FUNC tensor batch_parts::part(std::int64_t i) {
  bool const adds = i == 0 || uses_.of(t_.loss).use == batch_use::partial;
  std::vector<value_id> wanted = to_collect_;
  if (adds) wanted.push_back(t_.loss);
  auto made = run_part(i, wanted);
  no_gradient const off;
  for (std::size_t k = 0; k < to_collect_.size(); ++k) collect(to_collect_[k], made[k]);
  return adds ? made.back() : tensor();
}

NEAP_FUNC std::vector<tensor> batch_parts::finish() {
  no_gradient const off;
  for (auto o : g_.ops())
    if (is_late_[o]) run_late(o);
  std::vector<tensor> out;
  for (auto v : t_.outputs) out.push_back(after(v));
  return out;
}

NEAP_FUNC void batch_parts::refuse(batch_value const& x) const {
  auto const place = t_.places[index(x.by)];
  std::string what(g_.facets(x.by).name);
  if (auto const name = g_.name(x.by); name.find(what) != name.npos) what = name;
  else if (!name.empty()) what += " " + std::string(name);
  what += " " + to_string(g_.type(g_.output(x.by)));
  std::string_view const why =
      x.why == mixing::joins     ? draws(x.by) ? " draws for all samples at once: the batch is not its first axis"
                                               : " joins samples of the batch"
      : x.why == mixing::extreme ? " takes an extreme over the batch, whose gradient goes to one part"
      : x.why == mixing::written ? " writes what depends on the batch, and it is read afterwards"
                                 : " is not linear in a sum over the batch, which is known after all parts only";
  throw_error(place.line() ? place : context_access::place(at_),
              {"micro_batches = ", how_.parts, " would not give the whole batch's loss: ", what, why,
               ". Use micro_batches = 1, or a loss that is a sum over samples"});
}

NEAP_FUNC tensor batch_parts::source_tensor(resident const& r, std::vector<tensor> const& weights) {
  auto const& s = r.holder.storage();
  for (auto const& w : weights)
    if (w.storage() == s) return w;
  return make_leaf(s, r.holder.layout(), s->role() == role::weight);
}

NEAP_FUNC std::vector<tensor> batch_parts::apply_op(op_id o, std::vector<tensor> const& in, std::int64_t i) {
  auto const& facets = g_.facets(o);
  plain_vector<std::max_align_t> copy(facets.size / sizeof(std::max_align_t) + 1);
  if (facets.size) std::memcpy(copy.data(), g_.attributes(o), facets.size);
  if (i >= 0 && facets.cut) {
    plain_vector<tensor_layout> layouts;
    plain_vector<std::int32_t> out_axes;
    for (auto v : g_.inputs(o)) layouts.push_back(g_.layout(v));
    for (auto v : g_.outputs(o)) {
      layouts.push_back(g_.layout(v));
      out_axes.push_back(uses_.of(v).use == batch_use::piece ? uses_.of(v).axis : -1);
    }
    auto const all = span_of(layouts);
    auto const arity = g_.inputs(o).size();
    facets.cut(copy.data(), {all.first(arity), all.subspan(arity), uses_.input_axes(o), span_of(out_axes), how_.from(i),
                             how_.from(i + 1), how_.units});
  }
  auto const& place = t_.places[index(o)];
  auto const at = place.line() ? place : at_;
  if (uses_.is_detached(o)) return {in[0].detach(at)};
  if (!is_fixed_[g_.output(o)]) return pinned_as(o, apply_view({&facets, copy.data()}, span_of(in), at), at);
  no_gradient const off;
  return pinned_as(o, apply_view({&facets, copy.data()}, span_of(in), at), at);
}

NEAP_FUNC tensor batch_parts::piece_of(tensor const& x, std::int32_t axis, std::int64_t i) const {
  auto const n = x.size(axis) / how_.units;
  tensor const piece = slice(x, axis, how_.from(i) * n, how_.from(i + 1) * n, at_);
  return axis == 0 ? piece : contiguous(piece, at_);
}

NEAP_FUNC bool batch_parts::writes(op_id o) const {
  for (auto v : g_.outputs(o))
    if (g_.record(v).alias == alias_kind::update) return true;
  return false;
}

NEAP_FUNC table<op_id, bool> batch_parts::live_ops() const {
  auto const ops = g_.op_count();
  table<op_id, bool> live(ops, false);
  auto const use = [&](value_id v) {
    if (auto const p = g_.producer(v); p != nothing<op_id>) live[p] = true;
  };
  use(t_.loss);
  for (auto v : t_.outputs) use(v);
  for (std::size_t k = ops; k-- > 0;) {
    auto const o = id_at<op_id>(k);
    if (writes(o)) {
      live[o] = true;
      for (auto v : g_.outputs(o))
        if (g_.role(g_.record(g_.storage(v)).first) == role::weight)
          throw_error(context_access::place(t_.places[k].line() ? t_.places[k] : at_),
                      {"micro_batches = ", how_.parts,
                       ": the loss writes a weight in place, which parts of the batch "
                       "read: use micro_batches = 1"});
    }
    if (live[o])
      for (auto v : g_.inputs(o)) use(v);
  }
  return live;
}

NEAP_FUNC void batch_parts::find_late_ops(table<op_id, bool> const& live, table<value_id, bool>& wanted) {
  is_late_ = table<op_id, bool>(g_.op_count(), false);
  std::vector<value_id> open(t_.outputs.begin(), t_.outputs.end());
  for (auto o : g_.ops())
    if (live[o] && uses_.run(o) == batch_run::late && writes(o)) open.push_back(g_.output(o));
  while (!open.empty()) {
    auto const v = open.back();
    open.pop_back();
    auto const p = g_.producer(v);
    if (p == nothing<op_id>) continue;
    auto const how = uses_.run(p);
    if (how == batch_run::once) {
      wanted[v] = true;
    } else if (how == batch_run::part || how == batch_run::linear) {
      if (!is_collected_[v]) to_collect_.push_back(v);
      is_collected_[v] = true;
    } else if (!is_late_[p]) {
      is_late_[p] = true;
      for (auto x : g_.inputs(p)) open.push_back(x);
    }
  }
  if (auto const p = g_.producer(t_.loss); p != nothing<op_id> && uses_.run(p) == batch_run::once)
    wanted[t_.loss] = true;
}

NEAP_FUNC void batch_parts::find_whole_values(table<op_id, bool> const& live, table<value_id, bool>& wanted) const {
  for (auto o : g_.ops())
    if (live[o]) {
      auto const how = uses_.run(o);
      if (how == batch_run::once) {
        if (writes(o)) wanted[g_.output(o)] = true;
        continue;
      }
      if (how == batch_run::late) continue;
      for (std::size_t k = 0; k < g_.inputs(o).size(); ++k)
        if (reads_known(o, k)) wanted[g_.inputs(o)[k]] = true;
      if (uses_.takes_all_targets(o)) wanted[g_.inputs(o)[1]] = true;
    }
}

NEAP_FUNC void batch_parts::run_before() {
  auto const live = live_ops();
  table<value_id, bool> wanted(g_.value_count(), false);
  find_late_ops(live, wanted);
  find_whole_values(live, wanted);
  // And what that needs, as wholes too.
  table<op_id, bool> run(g_.op_count(), false);
  for (std::size_t k = g_.op_count(); k-- > 0;) {
    auto const o = id_at<op_id>(k);
    bool need = false, swept = false;
    for (auto v : g_.outputs(o)) need |= wanted[v], swept |= wanted[v] && is_swept(v);
    run[o] = need;
    if (need && !swept)
      for (auto v : g_.inputs(o)) wanted[v] = true;
  }
  no_gradient const off;
  for (auto o : g_.ops())
    if (run[o]) {
      bool swept = false;
      for (auto v : g_.outputs(o)) swept |= is_swept(v);
      if (swept) {
        for (auto v : g_.outputs(o))
          if (wanted[v]) known_[v] = sweep(v);
        continue;
      }
      keep_old_values(o);
      std::vector<tensor> in;
      for (auto v : g_.inputs(o)) in.push_back(known_[v]);
      auto const made = apply_op(o, in);
      for (std::size_t j = 0; j < made.size(); ++j) known_[g_.output(o, static_cast<int>(j))] = made[j];
    }
}

NEAP_FUNC void batch_parts::keep_old_values(op_id o) {
  for (auto u : g_.outputs(o)) {
    if (g_.record(u).alias != alias_kind::update) continue;
    for (auto v : g_.values()) {
      if (v == u || g_.storage(v) != g_.storage(u) || known_[v].is_empty()) continue;
      if (g_.record(v).version >= g_.record(u).version) continue;
      bool later = false;
      for (auto const& x : g_.uses(v)) later = later || uses_.run(x.op) != batch_run::once;
      if (later) known_[v] = apply(op::copy{}, {known_[v]}, at_);
    }
  }
}

NEAP_FUNC tensor batch_parts::sweep(value_id v) {
  std::vector<tensor> all;
  for (std::int64_t i = 0; i < how_.parts; ++i) all.push_back(run_part(i, {v}).front());
  if (uses_.of(v).use == batch_use::piece) return concat(all, uses_.of(v).axis, at_);
  tensor sum = all[0];
  for (std::size_t i = 1; i < all.size(); ++i) sum = combined(uses_.of(v).how, sum, all[i]);
  return sum;
}

NEAP_FUNC std::vector<tensor> batch_parts::run_part(std::int64_t i, std::vector<value_id> const& wanted) {
  table<op_id, bool> run(g_.op_count(), false);
  table<value_id, std::uint32_t> last(g_.value_count(), 0);
  constexpr std::uint32_t to_the_end = UINT32_MAX;
  for (auto v : wanted) {
    last[v] = to_the_end;
    if (auto const p = g_.producer(v); p != nothing<op_id>) run[p] = true;
  }
  for (std::size_t k = g_.op_count(); k-- > 0;) {
    auto const o = id_at<op_id>(k);
    if (run[o] && uses_.run(o) == batch_run::once) run[o] = false;
    if (!run[o]) continue;
    for (std::size_t n = 0; n < g_.inputs(o).size(); ++n) {
      auto const v = g_.inputs(o)[n];
      last[v] = std::max(last[v], static_cast<std::uint32_t>(k));
      if (!reads_known(o, n)) run[g_.producer(v)] = true;
    }
  }
  std::vector<tensor> here(g_.value_count());
  for (auto o : g_.ops()) {
    if (!run[o]) continue;
    auto made = run_in_part(o, i, here);
    for (std::size_t j = 0; j < made.size(); ++j) here[index(g_.output(o, static_cast<int>(j)))] = std::move(made[j]);
    for (auto v : g_.inputs(o))
      if (last[v] == index(o)) here[index(v)] = tensor();
  }
  std::vector<tensor> out;
  for (auto v : wanted) {
    auto const& x = here[index(v)];
    out.push_back(!x.is_empty() ? x : known_[v]);
  }
  return out;
}

NEAP_FUNC std::vector<tensor> batch_parts::run_in_part(op_id o, std::int64_t i, std::vector<tensor> const& here) {
  auto const in = g_.inputs(o);
  auto const how = uses_.run(o);
  auto const whole = [&](value_id v) -> tensor const& {
    auto const& x = here[index(v)];
    auto const p = g_.producer(v);
    return p != nothing<op_id> && uses_.run(p) == batch_run::same ? x : known_[v];
  };
  std::vector<tensor> from;
  for (std::size_t k = 0; k < in.size(); ++k) {
    auto const v = in[k];
    auto const& x = uses_.of(v);
    if (how == batch_run::linear && x.use == batch_use::partial && x.carries) {
      from.push_back(here[index(v)]);
    } else if (how == batch_run::part && uses_.input_axes(o)[k] >= 0) {
      auto const axis = uses_.input_axes(o)[k];
      bool const piece = x.use == batch_use::piece && x.axis == axis && g_.producer(v) != nothing<op_id>;
      from.push_back(piece ? here[index(v)] : piece_of(whole(v), axis, i));
    } else {
      from.push_back(whole(v));
    }
  }
  if (how == batch_run::same) return apply_op(o, from);
  if (how == batch_run::linear) return run_linear(o, i, std::move(from));
  if (uses_.takes_all_targets(o)) from.push_back(known_[in[1]]);
  auto made = apply_op(o, from, i);
  if (uses_.combined(o) == combine::mean)
    for (std::size_t j = 0; j < made.size(); ++j)
      if (uses_.of(g_.output(o, static_cast<int>(j))).use == batch_use::partial)
        made[j] = made[j] * (static_cast<double>(how_.from(i + 1) - how_.from(i)) / static_cast<double>(how_.units));
  return made;
}

NEAP_FUNC std::vector<tensor> batch_parts::run_linear(op_id o, std::int64_t i, std::vector<tensor> in) {
  if (i > 0 && g_.as<op::add_scalar>(o)) return {in[0]};
  bool const adds = g_.as<op::add>(o) || g_.as<op::sub>(o) || g_.as<op::concat>(o) || g_.as<op::where>(o);
  for (std::size_t k = g_.as<op::where>(o) ? 1 : 0; adds && i > 0 && k < in.size(); ++k) {
    auto const& x = uses_.of(g_.inputs(o)[k]);
    if (x.use != batch_use::partial || !x.carries) in[k] = tensor::zeros(in[k].shape(), in[k].element());
  }
  return apply_op(o, in);
}

NEAP_FUNC void batch_parts::collect(value_id v, tensor const& made) {
  tensor const x = made.is_traced() ? made : made.detach(at_);
  auto& all = collected_[v];
  if (uses_.of(v).use == batch_use::piece || all.empty()) all.push_back(x);
  else all[0] = combined(uses_.of(v).how, all[0], x);
}

NEAP_FUNC tensor batch_parts::after(value_id v) {
  if (is_collected_[v] && late_[v].is_empty())
    late_[v] = uses_.of(v).use == batch_use::piece ? concat(collected_[v], uses_.of(v).axis, at_) : collected_[v][0];
  if (!late_[v].is_empty()) return late_[v];
  return known_[v];
}

NEAP_FUNC void batch_parts::run_late(op_id o) {
  std::vector<tensor> in;
  for (auto v : g_.inputs(o)) in.push_back(after(v));
  auto const made = apply_op(o, in);
  for (std::size_t j = 0; j < made.size(); ++j) late_[g_.output(o, static_cast<int>(j))] = made[j];
}

}}}  // namespace neap::v0::detail

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC std::vector<tensor> batch_parts::pinned_as(op_id o, std::vector<tensor> made, std::source_location at) const {
  if (g_.pins(o).empty()) return made;
  for (std::size_t j = 0; j < made.size(); ++j)
    (void)pinned(made[j], g_.pins(o).of_op() | g_.pins(g_.outputs(o)[j]), at);
  return made;
}

NEAP_FUNC tensor batch_parts::combined(combine how, tensor const& a, tensor const& b) const {
  return how == combine::max ? maximum(a, b) : how == combine::min ? minimum(a, b) : a + b;
}

NEAP_FUNC bool batch_parts::is_swept(value_id v) const {
  auto const o = g_.producer(v);
  return o != nothing<op_id> && is_in_part(o) && uses_.of(v).of_weights;
}

NEAP_FUNC bool batch_parts::reads_known(op_id o, std::size_t k) const {
  auto const v = g_.inputs(o)[k];
  auto const& x = uses_.of(v);
  auto const p = g_.producer(v);
  switch (uses_.run(o)) {
    case batch_run::once: return true;
    case batch_run::same: return p == nothing<op_id> || uses_.run(p) != batch_run::same;
    case batch_run::linear:
      if (x.use == batch_use::partial && x.carries) return false;
      return p == nothing<op_id> || uses_.run(p) != batch_run::same;
    case batch_run::part: {
      auto const axis = uses_.input_axes(o)[k];
      if (axis >= 0 && x.use == batch_use::piece && x.axis == axis) return p == nothing<op_id>;
      return p == nothing<op_id> || uses_.run(p) != batch_run::same;
    }
    case batch_run::late: return false;
  }
  return false;
}

}}}  // namespace neap::v0::detail
