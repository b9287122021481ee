// The bodies of <neap/train/fuse_updates.hpp>.
#pragma once

#include <neap/train/fuse_updates.hpp>

#include <neap/backend/gemm.hpp>
#include <neap/core/separate_compilation.hpp>
#include <neap/ir/standard_operators.hpp>

namespace neap { inline namespace v0 {
namespace detail {

NEAP_FUNC update_fuser::update_fuser(op_graph const& g, std::span<op_id const>* chosen)
    : g_(g),
      chosen_(chosen),
      gone_(g.op_count()),
      pulled_(g.op_count()) {
  if (!g.parts().empty()) throw_error({"fuse_updates: the graph has parts"});
  for (auto o : g.ops())
    for (auto v : g.inputs(o))
      if (auto const p = g.producer(v); p != nothing<op_id> && p > o)
        throw_error({"fuse_updates: op ", index(o), " reads what a later one makes"});
}

NEAP_FUNC std::pair<op::matmul const*, std::int64_t> update_fuser::product_of(op_id o) const {
  if (g_.inputs(o).size() < 2) return {};
  auto const v = g_.inputs(o)[1];
  auto const p = product_behind(v);
  if (p == nothing<op_id> || !g_.may_replace(o)) return {};
  auto const* m = g_.as<op::matmul>(p);
  if (!m) return {};
  for (auto w : g_.outputs(o))  // what is updated must not be read by the products of the parts that follow
    for (auto x : g_.inputs(p))
      if (g_.storage(w) == g_.storage(x)) return {};
  auto const &a = g_.layout(g_.inputs(p)[0]), &b = g_.layout(g_.inputs(p)[1]);
  if (a.type.rank() != 2 || b.type.rank() != 2) return {};
  if (chosen_ ? std::find(chosen_->begin(), chosen_->end(), o) == chosen_->end()
              : g_.type(v).bytes() <= a.type.bytes() + b.type.bytes())
    return {};
  auto const parts = gemm_parts::most(op::detail::weight_product{m->transpose_a, m->transpose_b, 1}.shape_of(a, b));
  return {parts > 1 ? m : nullptr, parts};
}

NEAP_FUNC fused_updates update_fuser::write() {
  detail::sort_list(found_, [](update_to_fuse const& a, update_to_fuse const& b) {
    return a.place != b.place ? a.place < b.place : a.update < b.update;
  });
  fused_updates out;
  for (auto const& f : found_) out.fused.push_back(f.update);
  program_copy copy(g_);
  auto next = found_.begin();
  for (auto o : g_.ops()) {
    if (!gone_[o] && !pulled_[o]) put(copy, o, o, g_.view(o));
    for (; next != found_.end() && next->place == index(o); ++next) {
      for (auto v : g_.inputs(next->update))
        if (auto const p = g_.producer(v); p != nothing<op_id> && pulled_[p]) {
          put(copy, p, p, g_.view(p));
          pulled_[p] = false;
          gone_[p] = true;
        }
      put(copy, next->update, next->product, {next->facets, bytes_.data() + next->attributes});
    }
  }
  out.program = copy.finish();
  out.value = std::move(copy.value);
  return out;
}

NEAP_FUNC op_id update_fuser::product_behind(value_id v) const {
  auto const alone = [&](value_id x) {
    auto const p = g_.producer(x);
    return p != nothing<op_id> && g_.uses(x).size() == 1 && !g_.is_kept(x) && g_.may_replace(p);
  };
  if (!alone(v)) return nothing<op_id>;
  auto const p = g_.producer(v);
  auto const* c = g_.as<op::cast>(p);
  if (!c) return p;
  auto const x = g_.inputs(p)[0];
  return c->to == dtype::f32 && is_low(g_.type(x).element) && alone(x) ? g_.producer(x) : nothing<op_id>;
}

NEAP_FUNC void update_fuser::fuse(update_to_fuse f) {
  auto place = index(f.product);
  for (auto o : g_.order_after(f.update)) place = std::max(place, index(o));
  for (auto v : g_.inputs(f.update)) {
    auto const p = g_.producer(v);
    if (p == nothing<op_id> || index(p) <= place || v == g_.inputs(f.update)[1]) continue;
    // The counter of steps is counted up before the first update: it can be once the old number has no readers left.
    bool early = true;
    for (auto in : g_.inputs(p)) early &= g_.producer(in) == nothing<op_id> || index(g_.producer(in)) <= place;
    for (auto o : g_.order_after(p)) early &= index(o) <= place;
    if (early) pulled_[p] = true;
    else place = index(p);
  }
  f.place = place;
  gone_[f.product] = gone_[f.update] = gone_[g_.producer(g_.inputs(f.update)[1])] = true;
  found_.push_back(f);
}

NEAP_FUNC void update_fuser::put(program_copy& copy, op_id o, op_id product, operator_view op) {
  inputs_.clear();
  for (auto v : g_.inputs(o))
    if (product != o && v == g_.inputs(o)[1])
      for (auto x : g_.inputs(product)) inputs_.push_back(copy.value[x]);
    else inputs_.push_back(copy.value[v]);
  copy.put(o, op, span_of(inputs_), product != o ? 1 : 0);
}

}  // namespace detail
NEAP_FUNC fused_updates fuse_updates(op_graph const& g, std::span<op_id const>* chosen) {
  detail::update_fuser f(g, chosen);
  for (auto o : g.ops()) detail::match_updates(f, o, standard_operators::list{});
  return f.write();
}

}}  // namespace neap::v0
