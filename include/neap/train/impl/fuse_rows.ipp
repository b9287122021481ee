// The bodies of <neap/train/fuse_rows.hpp>.
#pragma once

#include <neap/train/fuse_rows.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC rows_fuser::rows_fuser(op_graph const& g, operator_facets const& rows, operator_facets const& reduction)
    : operator_groups(g, "fuse_rows"),
      rows_(rows),
      reduction_(reduction),
      last_reader_(g.storage_count(), 0) {
  for (auto o : places_.order)
    for (auto v : g.inputs(o)) last_reader_[g.storage(v)] = std::max(last_reader_[g.storage(v)], places_.place[o]);
  for (auto v : g.kept()) last_reader_[g.storage(v)] = g.op_count();
  for (auto v : g.sources()) last_reader_[g.storage(v)] = g.op_count();
}

NEAP_FUNC void rows_fuser::find(std::span<std::vector<op_id> const> /*like*/) {
  for (auto o : places_.order) {
    if (!may_join(o)) continue;
    if (auto const plain = function_of(o)) match(o, *plain);
    else if (auto const reduction = reduction_of(o)) match(o, *reduction);
  }
}

NEAP_FUNC std::optional<op::fused_rows> rows_fuser::function_of(op_id o) const {
  std::optional<op::fused_rows> found;
  auto const one = [&]<class Op>(type_tag<Op>) {
    if (auto const* f = g_.as<Op>(o)) found = op::fused_rows::of(*f);
  };
  one(type_tag<op::layer_norm>{}), one(type_tag<op::rms_norm>{}), one(type_tag<op::softmax>{});
  one(type_tag<op::log_softmax>{}), one(type_tag<op::layer_norm_grad>{}), one(type_tag<op::rms_norm_grad>{});
  one(type_tag<op::softmax_grad>{}), one(type_tag<op::log_softmax_grad>{});
  one(type_tag<op::batch_norm>{}), one(type_tag<op::batch_norm_grad>{}), one(type_tag<op::batch_norm_relu_grad>{});
  one(type_tag<op::group_norm>{}), one(type_tag<op::group_norm_grad>{});
  return found;
}

NEAP_FUNC std::optional<op::fused_reduction> rows_fuser::reduction_of(op_id o) const {
  std::optional<op::fused_reduction> found;
  auto const one = [&]<class Op>(type_tag<Op>) {
    if (auto const* f = g_.as<Op>(o)) found = op::fused_reduction::of(*f);
  };
  one(type_tag<op::sum>{}), one(type_tag<op::mean>{}), one(type_tag<op::max_reduce>{});
  one(type_tag<op::min_reduce>{}), one(type_tag<op::sum_to>{});
  return found;
}

NEAP_FUNC void rows_fuser::match(op_id o, op::fused_reduction made) {
  auto const x = g_.inputs(o)[0];
  made.keeps_x = is_read_elsewhere(x, o);
  if (!is_floating(g_.type(x).element) || (made.keeps_x && first_reader(x) != o)) return;
  auto const before = before_of(o, op::fused::max_steps);
  if (before.ops.empty()) return;
  made.set_program(before.program);
  group all{&reduction_, bytes_of(made), before.ops, before.in, {g_.output(o)}};
  all.ops.push_back(o);
  if (made.keeps_x) all.out.push_back(x);
  join(std::move(all));
}

NEAP_FUNC void rows_fuser::match(op_id o, op::fused_rows const& plain) {
  auto const before = before_of(o, max_steps_of_rows), after = after_of(o, before);
  if (before.ops.empty() && after.ops.empty()) return;
  if (make_one(o, plain, before, after)) return;
  if (before.ops.empty() || after.ops.empty()) return;
  if (!make_one(o, plain, before, {})) make_one(o, plain, {}, after_of(o, {}));
}

NEAP_FUNC bool rows_fuser::make_one(op_id o, op::fused_rows op, chain const& before, chain const& after) {
  auto const in = g_.inputs(o);
  auto const out = g_.outputs(o);
  group all{&rows_, {}, {}, {}, {}};
  for (auto m : before.ops) all.ops.push_back(m);
  all.ops.push_back(o);
  for (auto m : after.ops) all.ops.push_back(m);
  if (before.ops.empty()) all.in.push_back(in[0]);
  else all.in = before.in, op.set_before(before.program), op.keeps_x = is_read_elsewhere(in[0], o);
  for (std::size_t i = 1; i < in.size(); ++i) all.in.push_back(in[i]);
  if (!after.ops.empty()) {
    op.set_after(after.program), op.keeps_y = is_read_elsewhere(out[0], after.ops[0]);
    for (std::size_t i = 1; i < after.in.size(); ++i) all.in.push_back(after.in[i]);
  }
  all.out.push_back(after.ops.empty() ? out[0] : g_.output(after.ops.back()));
  if (op.keeps_x) all.out.push_back(in[0]);
  if (op.keeps_y) all.out.push_back(out[0]);
  for (std::size_t j = 1; j < out.size(); ++j) all.out.push_back(out[j]);
  all.op = bytes_of(op);
  return join(std::move(all));
}

NEAP_FUNC rows_fuser::chain rows_fuser::before_of(op_id o, int max_steps) {
  auto const in = g_.inputs(o);
  auto const p = g_.producer(in[0]);
  chain found;
  if (p == nothing<op_id> || std::find(in.begin() + 1, in.end(), in[0]) != in.end() || !may_be_beside(p, o) ||
      !may_wait(p, o, {}))
    return found;
  if (auto made = program_of({p}, nothing<value_id>, max_steps)) found = std::move(*made);
  for (bool grows = !found.ops.empty(); grows;) {
    grows = false;
    for (auto v : found.in) {
      auto const q = alone_behind(v);
      if (q == nothing<op_id> || !may_be_beside(q, o) || !may_wait(q, o, span_of(found.ops))) continue;
      auto ops = found.ops;
      ops.push_back(q);
      if (auto made = program_of(std::move(ops), nothing<value_id>, max_steps)) {
        found = std::move(*made), grows = true;
        break;
      }
    }
  }
  return found;
}

NEAP_FUNC rows_fuser::chain rows_fuser::after_of(op_id o, chain const& before) {
  chain found;
  auto const y = g_.outputs(o)[0];
  for (auto last = y; static_cast<int>(found.ops.size()) < max_steps_of_rows;) {
    auto const r = first_reader(last);
    if (r == nothing<op_id> || (last != y && is_read_elsewhere(last, r)) || !may_be_beside(r, o) ||
        g_.type(g_.output(r)).element != g_.type(y).element || !may_wait(o, r, span_of(found.ops)))
      break;
    bool apart = true;  // from what else the operator makes
    for (auto v : g_.inputs(r))
      if (auto const p = g_.producer(v); v != last && p != nothing<op_id>)
        apart = apart && p != o && std::find(before.ops.begin(), before.ops.end(), p) == before.ops.end();
    auto ops = found.ops;
    ops.push_back(r);
    auto made = apart ? program_of(std::move(ops), y, max_steps_of_rows) : std::nullopt;
    if (!made) break;
    found = std::move(*made);
    last = g_.output(r);
  }
  return found;
}

NEAP_FUNC std::optional<rows_fuser::chain> rows_fuser::program_of(plain_vector<op_id> ops, value_id first,
                                                                  int max_steps) const {
  chain made;
  made.ops = std::move(ops);
  std::sort(made.ops.begin(), made.ops.end(), [&](op_id a, op_id b) { return places_.place[a] < places_.place[b]; });
  auto const makes = [&](value_id v) {
    for (std::size_t k = 0; k < made.ops.size(); ++k)
      if (g_.output(made.ops[k]) == v) return static_cast<int>(k);
    return -1;
  };
  if (first != nothing<value_id>) made.in.push_back(first);
  for (auto o : made.ops)
    for (auto v : g_.inputs(o))
      if (makes(v) < 0 && std::find(made.in.begin(), made.in.end(), v) == made.in.end()) made.in.push_back(v);
  if (made.in.empty() || made.in.size() > static_cast<std::size_t>(op::fused::max_inputs)) return {};
  op::fused_maker make(static_cast<int>(made.in.size()));
  plain_vector<int> results;
  for (auto o : made.ops) {
    plain_vector<int> operands;
    for (auto v : g_.inputs(o)) {
      auto const k = makes(v);
      operands.push_back(k >= 0 ? results[static_cast<std::size_t>(k)]
                                : static_cast<int>(std::find(made.in.begin(), made.in.end(), v) - made.in.begin()));
    }
    auto const* inner = g_.as<op::fused>(o);
    auto const at = inner ? make.add_all(*inner, span_of(operands))
                          : make.add(g_.view(o), g_.type(g_.output(o)).element, span_of(operands));
    if (!at) return {};
    results.push_back(*at);
  }
  made.program = make.made();
  if (made.program.step_count() > max_steps || !made.program.fault(made.in.size()).empty()) return {};
  return made;
}

}}}  // namespace neap::v0::detail

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC op_id rows_fuser::first_reader(value_id v) const {
  op_id first = nothing<op_id>;
  for (auto const& u : g_.uses(v))
    if (first == nothing<op_id> || places_.place[u.op] < places_.place[first]) first = u.op;
  return first;
}

NEAP_FUNC bool rows_fuser::is_read_elsewhere(value_id v, op_id o) const {
  bool elsewhere = g_.is_kept(v);
  for (auto const& u : g_.uses(v)) elsewhere = elsewhere || u.op != o;
  return elsewhere;
}

NEAP_FUNC bool rows_fuser::may_be_beside(op_id p, op_id o) const {
  if (!op::detail::step_at(g_.facets(p).standard_row) && !g_.as<op::fused>(p)) return false;
  auto const& x = g_.type(g_.inputs(o)[0]);
  bool const wide = x.element == dtype::f64;
  auto const suits = [wide](dtype t) {
    return t == dtype::boolean || (wide ? t == dtype::f64 : t != dtype::f64 && t <= dtype::f16);
  };
  bool known = may_join(p) && g_.type(g_.output(p)).dims == x.dims && suits(g_.type(g_.output(p)).element);
  for (auto v : g_.inputs(p)) known = known && suits(g_.type(v).element);
  return known;
}

NEAP_FUNC bool rows_fuser::may_wait(op_id p, op_id o, std::span<op_id const> with) const {
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

}  // namespace detail
}}  // namespace neap::v0
