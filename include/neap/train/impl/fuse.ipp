// The bodies of <neap/train/fuse.hpp>.
#pragma once

#include <neap/train/fuse.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC fuser::fuser(op_graph const& g, operator_facets const& fused)
    : operator_groups(g, fused, "fuse"),
      sums_(g.storage_count()),
      last_reader_(g.storage_count(), 0),
      chain_(g.op_count(), nothing<op_id>),
      members_(g.op_count()) {
  for (auto o : places_.order)
    for (auto v : g.inputs(o)) last_reader_[g.storage(v)] = std::max(last_reader_[g.storage(v)], places_.place[o]);
  for (auto v : g.kept()) last_reader_[g.storage(v)] = g.op_count();
  for (auto v : g.sources()) last_reader_[g.storage(v)] = g.op_count();
}

NEAP_FUNC void fuser::find(fuse_options options, std::span<std::vector<op_id> const> like) {
  if (options.products) {
    for (auto o : places_.order)
      if (g_.as<op::sum_to>(o)) sums_[g_.storage(g_.inputs(o)[0])].push_back(o);
    for (auto o : places_.order) match_activation(o);
    for (auto o : places_.order) match_bias(o);
    for (auto o : places_.order) match_gelu_gradient(o);
    for (auto o : places_.order) match_sums(o);
  }
  if (options.rows)
    for (auto o : places_.order) {
      auto const plain = may_join(o) ? anchor_at(o) : std::nullopt;
      if (!plain) continue;
      if (plain->is_reduction()) match_reduction(o, *plain);
      else if (!plain->is_product()) match_rows(o, *plain);
    }
  if (!options.chains) return;
  if (like.empty() || !take_chains(like)) grow_chains();
  for (auto o : places_.order)
    if (members_[index(o)].size() > 1) {
      auto made = *program_of(members_[index(o)]);
      join({op::fused{made.program}, std::move(made.ops), std::move(made.in), {g_.output(o)}});
    }
}

NEAP_FUNC std::optional<fuser::chain> fuser::program_of(plain_vector<op_id> ops, value_id first) const {
  chain made;
  made.ops = std::move(ops);
  sort(made.ops);
  auto const makes = [&](value_id v) {
    for (std::size_t k = 0; k < made.ops.size(); ++k)
      if (g_.output(made.ops[k]) == v) return static_cast<int>(k);
    return -1;
  };
  bool wide = false, narrow = false;
  auto const see = [&](dtype t) {
    wide = wide || t == dtype::f64, narrow = narrow || (t != dtype::f64 && t != dtype::boolean);
  };
  if (first != nothing<value_id>) made.in.push_back(first);
  for (auto o : made.ops) {
    see(g_.type(g_.output(o)).element);
    for (auto v : g_.inputs(o)) {
      see(g_.type(v).element);
      if (makes(v) < 0 && std::find(made.in.begin(), made.in.end(), v) == made.in.end()) made.in.push_back(v);
    }
  }
  if (made.in.size() > element_program::max_inputs || (wide && narrow)) return {};
  made.program = element_program(made.in.size());
  for (auto o : made.ops) {
    plain_vector<int> operands;
    for (auto v : g_.inputs(o)) {
      auto const k = makes(v);
      operands.push_back(k >= 0 ? made.program.inputs + k
                                : static_cast<int>(std::find(made.in.begin(), made.in.end(), v) - made.in.begin()));
    }
    if (!made.program.add(g_.view(o), g_.type(g_.output(o)).element, span_of(operands))) return {};
  }
  if (!made.program.fault(made.in.size()).empty()) return {};
  return made;
}

// ---------------------------------------------------------------------------------------------- products

NEAP_FUNC bool fuser::join_product(op_id product, std::span<op_id const> epilogue, bool keeps_step, product_sums sums,
                                   op_id sum) {
  auto const in = g_.inputs(product);
  group made{op::fused::of(*g_.as<op::matmul>(product)), {product}, {in[0], in[1]}, {g_.output(product)}};
  made.op.sums = sums, made.op.keeps_step = keeps_step;
  if (!epilogue.empty()) {
    plain_vector<op_id> ops;
    for (auto o : epilogue) ops.push_back(o), made.ops.push_back(o);
    auto const steps = program_of(std::move(ops), g_.output(product));
    if (!steps) return false;
    made.op.epilogue = steps->program;
    for (std::size_t i = 1; i < steps->in.size(); ++i) made.in.push_back(steps->in[i]);
    made.out = {g_.output(epilogue.back())};
    if (keeps_step) made.out.push_back(g_.output(epilogue.front()));
  }
  if (sum != nothing<op_id>) made.ops.push_back(sum), made.out.push_back(g_.output(sum));
  return join(std::move(made));
}

NEAP_FUNC void fuser::match_activation(op_id o) {
  auto const* bent = g_.as<op::gelu>(o);
  if ((!(bent && bent->tanh_form) && !g_.as<op::relu>(o)) || !may_join(o)) return;
  auto const before = g_.inputs(o)[0];
  auto const sum = g_.producer(before);
  if (sum == nothing<op_id>) return;
  auto const product = biased_product(sum);
  op_id const ops[]{sum, o};
  if (product != nothing<op_id>) join_product(product, ops, g_.uses(before).size() > 1 || g_.is_kept(before));
}

NEAP_FUNC void fuser::match_bias(op_id o) {
  if (auto const product = biased_product(o); product != nothing<op_id>) join_product(product, {&o, 1}, false);
}

NEAP_FUNC void fuser::match_gelu_gradient(op_id o) {
  auto const* slope = g_.as<op::gelu_grad>(o);
  if (!slope || !slope->tanh_form || !may_join(o)) return;
  auto const in = g_.inputs(o);
  auto const product = alone_behind(in[0]);
  if (product == nothing<op_id> || !g_.as<op::matmul>(product) || !(g_.type(in[0]) == g_.type(in[1])) ||
      !is_floating(g_.type(in[0]).element))
    return;
  for (auto sum : sums_[g_.storage(g_.output(o))])
    if (sums_columns(sum, g_.output(o)) && join_product(product, {&o, 1}, false, product_sums::of_result, sum)) return;
  join_product(product, {&o, 1}, false);
}

NEAP_FUNC void fuser::match_sums(op_id o) {
  auto const* m = g_.as<op::matmul>(o);
  if (!m || !may_join(o) || g_.type(g_.output(o)).rank() != 2) return;
  for (std::size_t i : {0u, 1u}) {
    if (i == 0 ? !m->transpose_a : m->transpose_b) continue;
    auto const x = g_.inputs(o)[i];
    if (g_.type(x).rank() != 2 || !g_.layout(x).is_dense()) continue;
    for (auto sum : sums_[g_.storage(x)])
      if (sums_columns(sum, x) && join_product(o, {}, false, i == 0 ? product_sums::of_a : product_sums::of_b, sum))
        return;
  }
}

NEAP_FUNC op_id fuser::biased_product(op_id sum) const {
  if (!g_.as<op::add>(sum) || !may_join(sum)) return nothing<op_id>;
  auto const in = g_.inputs(sum);
  auto const product = alone_behind(in[0]);
  if (product == nothing<op_id> || !g_.as<op::matmul>(product)) return nothing<op_id>;
  auto const& y = g_.type(in[0]);
  return is_floating(y.element) && g_.type(in[1]) == tensor_type{y.element, {y.dims.back()}} &&
                 g_.type(g_.output(sum)) == y
             ? product
             : nothing<op_id>;
}

NEAP_FUNC bool fuser::sums_columns(op_id sum, value_id x) const {
  return may_join(sum) && shows_all_of(g_.inputs(sum)[0], x) &&
         g_.type(g_.output(sum)) == tensor_type{g_.type(x).element, {g_.type(x).dims.back()}};
}

NEAP_FUNC bool fuser::shows_all_of(value_id v, value_id x) const {
  return g_.layout(v).is_dense() && g_.layout(v).offset == g_.layout(x).offset &&
         g_.type(v).element == g_.type(x).element && g_.type(v).count() == g_.type(x).count() &&
         g_.type(v).rank() >= 1 && g_.type(v).dims.back() == g_.type(x).dims.back() &&
         g_.record(g_.storage(v)).updates == 0;
}

}}}  // namespace neap::v0::detail

// ---------------------------------------------------------------------------------------------- rows and reductions

namespace neap { inline namespace v0 { namespace detail {

template <class... Op>
std::optional<op::fused> anchor_of(op_graph const& g, op_id o, type_list<Op...>) {
  std::optional<op::fused> found;
  auto const one = [&]<class One>(type_tag<One>) {
    if (auto const* f = g.as<One>(o)) found = op::fused::of(*f);
  };
  (one(type_tag<Op>{}), ...);
  return found;
}
NEAP_FUNC std::optional<op::fused> fuser::anchor_at(op_id o) const {
  return anchor_of(g_, o, op::detail::anchor_list{});
}

NEAP_FUNC void fuser::match_reduction(op_id o, op::fused made) {
  auto const x = g_.inputs(o)[0];
  made.keeps_x = is_read_elsewhere(x, o);
  if (!is_floating(g_.type(x).element) || (made.keeps_x && first_reader(x) != o)) return;
  auto const before = before_of(o);
  if (before.ops.empty()) return;
  made.prologue = before.program;
  group all{made, before.ops, before.in, {g_.output(o)}};
  all.ops.push_back(o);
  if (made.keeps_x) all.out.push_back(x);
  join(std::move(all));
}

NEAP_FUNC void fuser::match_rows(op_id o, op::fused const& plain) {
  auto const before = before_of(o), after = after_of(o, before);
  if (before.ops.empty() && after.ops.empty()) return;
  if (join_rows(o, plain, before, after)) return;
  if (before.ops.empty() || after.ops.empty()) return;
  if (!join_rows(o, plain, before, {})) join_rows(o, plain, {}, after_of(o, {}));
}

NEAP_FUNC bool fuser::join_rows(op_id o, op::fused made, chain const& before, chain const& after) {
  auto const in = g_.inputs(o);
  auto const out = g_.outputs(o);
  group all;
  for (auto m : before.ops) all.ops.push_back(m);
  all.ops.push_back(o);
  for (auto m : after.ops) all.ops.push_back(m);
  if (before.ops.empty()) all.in.push_back(in[0]);
  else all.in = before.in, made.prologue = before.program, made.keeps_x = is_read_elsewhere(in[0], o);
  for (std::size_t i = 1; i < in.size(); ++i) all.in.push_back(in[i]);
  if (!after.ops.empty()) {
    made.epilogue = after.program, made.keeps_y = is_read_elsewhere(out[0], after.ops[0]);
    for (std::size_t i = 1; i < after.in.size(); ++i) all.in.push_back(after.in[i]);
  }
  all.out.push_back(after.ops.empty() ? out[0] : g_.output(after.ops.back()));
  if (made.keeps_x) all.out.push_back(in[0]);
  if (made.keeps_y) all.out.push_back(out[0]);
  for (std::size_t j = 1; j < out.size(); ++j) all.out.push_back(out[j]);
  all.op = made;
  return join(std::move(all));
}

NEAP_FUNC fuser::chain fuser::before_of(op_id o) {
  auto const in = g_.inputs(o);
  auto const p = g_.producer(in[0]);
  chain found;
  if (p == nothing<op_id> || std::find(in.begin() + 1, in.end(), in[0]) != in.end() || !may_be_beside(p, o) ||
      !may_wait(p, o, {}))
    return found;
  if (auto made = program_of({p})) found = std::move(*made);
  for (bool grows = !found.ops.empty(); grows;) {
    grows = false;
    for (auto v : found.in) {
      auto const q = alone_behind(v);
      if (q == nothing<op_id> || !may_be_beside(q, o) || !may_wait(q, o, span_of(found.ops))) continue;
      auto ops = found.ops;
      ops.push_back(q);
      if (auto made = program_of(std::move(ops))) {
        found = std::move(*made), grows = true;
        break;
      }
    }
  }
  return found;
}

NEAP_FUNC fuser::chain fuser::after_of(op_id o, chain const& before) {
  chain found;
  auto const y = g_.outputs(o)[0];
  for (auto last = y;;) {
    auto const r = first_reader(last);
    if (r == nothing<op_id> || (last != y && is_read_elsewhere(last, r)) || !may_be_beside(r, o) ||
        g_.type(g_.output(r)).element != g_.type(y).element || !may_wait(o, r, span_of(found.ops)))
      return found;
    bool apart = true;  // from what else the operator makes
    for (auto v : g_.inputs(r))
      if (auto const p = g_.producer(v); v != last && p != nothing<op_id>)
        apart = apart && p != o && std::find(before.ops.begin(), before.ops.end(), p) == before.ops.end();
    auto ops = found.ops;
    ops.push_back(r);
    auto made = apart ? program_of(std::move(ops), y) : std::nullopt;
    if (!made) return found;
    found = std::move(*made);
    last = g_.output(r);
  }
}

NEAP_FUNC op_id fuser::first_reader(value_id v) const {
  op_id first = nothing<op_id>;
  for (auto const& u : g_.uses(v))
    if (first == nothing<op_id> || places_.place[u.op] < places_.place[first]) first = u.op;
  return first;
}

NEAP_FUNC bool fuser::is_read_elsewhere(value_id v, op_id o) const {
  bool elsewhere = g_.is_kept(v);
  for (auto const& u : g_.uses(v)) elsewhere = elsewhere || u.op != o;
  return elsewhere;
}

NEAP_FUNC bool fuser::may_be_beside(op_id p, op_id o) const {
  if (!op::detail::step_at(g_.facets(p).standard_row)) return false;
  auto const& x = g_.type(g_.inputs(o)[0]);
  bool const wide = x.element == dtype::f64;
  auto const suits = [wide](dtype t) {
    return t == dtype::boolean || (wide ? t == dtype::f64 : t != dtype::f64 && t <= dtype::f16);
  };
  bool known = may_join(p) && g_.type(g_.output(p)).dims == x.dims && suits(g_.type(g_.output(p)).element);
  for (auto v : g_.inputs(p)) known = known && suits(g_.type(v).element);
  return known;
}

NEAP_FUNC bool fuser::may_wait(op_id p, op_id o, std::span<op_id const> with) const {
  bool next = true;
  for (std::size_t i = places_.place[p] + 1; i < places_.place[o]; ++i) {
    auto const between = places_.order[i];
    if (std::find(with.begin(), with.end(), between) != with.end()) continue;
    for (auto v : g_.outputs(between)) next = next && g_.record(v).alias != alias_kind::fresh;
  }
  if (next) return true;
  bytes_t waiting = 0;
  auto const& made = g_.type(g_.outputs(p)[0]);
  for (auto v : g_.inputs(p))  // vectors and statistics are small
    if (last_reader_[g_.storage(v)] <= places_.place[p] && g_.type(v).count() == made.count())
      waiting += g_.bytes(g_.storage(v));
  return waiting <= made.bytes();
}

}}}  // namespace neap::v0::detail

// ---------------------------------------------------------------------------------------------- chains

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void fuser::grow_chains() {
  for (auto o : places_.order) {
    if (is_in_group(o) || !can_be_step(o)) continue;
    chain_[o] = o;
    members_[index(o)].push_back(o);
    while (grow_chain(o)) {}
  }
}

NEAP_FUNC bool fuser::take_chains(std::span<std::vector<op_id> const> like) {
  bool fits = true;
  for (auto const& ops : like) {
    auto const made_by = ops.back();
    if (index(made_by) < g_.op_count() && is_in_group(made_by)) continue;  // no chain
    fits = fits && index(made_by) < g_.op_count();
    for (std::size_t i = 0; fits && i < ops.size(); ++i) {
      auto const o = ops[i];
      fits = !is_in_group(o) && can_be_step(o) && g_.type(g_.output(o)).dims == g_.type(g_.output(made_by)).dims;
      chain_[o] = made_by;
      members_[index(made_by)].push_back(o);
    }
    fits = fits && program_of(members_[index(made_by)]).has_value();
  }
  if (fits) return true;
  chain_.assign(g_.op_count(), nothing<op_id>);
  members_.assign(g_.op_count(), {});
  return false;
}

NEAP_FUNC bool fuser::can_be_step(op_id o) const {
  if (!op::detail::step_at(g_.facets(o).standard_row) || !g_.may_replace(o)) return false;
  auto const v = g_.output(o);
  auto const& r = g_.record(v);
  if (r.alias != alias_kind::fresh || g_.overwrites(v) != nothing<value_id> || !g_.layout(v).is_dense() ||
      g_.layout(v).offset != 0 || g_.bytes(r.storage) != g_.type(v).bytes())
    return false;
  auto const is_known = [&](value_id x) {
    auto const t = g_.type(x).element;
    return t <= dtype::f16 || t == dtype::boolean;
  };
  bool known = is_known(v);
  for (auto x : g_.inputs(o)) known = known && is_known(x);
  return known;
}

NEAP_FUNC bool fuser::grow_chain(op_id o) {
  auto const now = program_of(members_[index(o)]);
  if (!now) return false;
  for (auto v : now->in) {
    auto const p = g_.producer(v);
    if (p == nothing<op_id> || chain_[p] != p) continue;
    auto const joining = program_of(members_[index(p)]);
    if (!joining || !may_join_chain(p, o, *joining)) continue;
    auto both = now->ops;
    for (auto m : joining->ops) both.push_back(m);
    auto made = program_of(std::move(both));
    if (!made) continue;
    for (auto m : joining->ops) chain_[m] = o;
    members_[index(o)] = std::move(made->ops);
    members_[index(p)].clear();
    return true;
  }
  return false;
}

NEAP_FUNC bool fuser::may_join_chain(op_id p, op_id o, chain const& joining) const {
  auto const v = g_.output(p);
  auto const s = g_.storage(v);
  if (g_.is_kept(v) || g_.is_resident(s) || g_.is_overwritten(s) || g_.record(s).updates != 0 ||
      !(g_.type(v).dims == g_.type(g_.output(o)).dims))
    return false;
  for (auto const& r : g_.uses(v))
    if (chain_[r.op] != o) return false;
  for (auto m : joining.ops)
    if (places_.next_writer[m] < places_.place[o]) return false;
  if (is_next(p, o)) return true;
  bytes_t waiting = 0;
  for (auto x : joining.in)
    if (last_reader_[g_.storage(x)] <= places_.place[p]) waiting += g_.bytes(g_.storage(x));
  return waiting <= g_.bytes(s);
}

NEAP_FUNC bool fuser::is_next(op_id p, op_id o) const {
  for (std::size_t i = places_.place[p] + 1; i < places_.place[o]; ++i) {
    auto const x = places_.order[i];
    if (chain_[x] == o || chain_[x] == p) continue;
    for (auto v : g_.outputs(x))
      if (g_.record(v).alias != alias_kind::view) return false;
  }
  return true;
}

NEAP_FUNC fused_graph fused_by(op_graph const& g, fuse_options options, std::span<std::vector<op_id> const> like) {
  fuser f(g, facets_of<op::fused>);
  f.find(options, like);
  return f.write();
}

}}}  // namespace neap::v0::detail
