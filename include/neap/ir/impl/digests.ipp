// The bodies of <neap/ir/digests.hpp>.
#pragma once

#include <neap/ir/digests.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC digest_updater::digest_updater(op_graph& g)
    : g_(g),
      down_(g.op_count()),
      up_(g.op_count()),
      sources_(g.value_count()) {
  auto const old_sources = g_.t_->source_down.size();
  g_.t_->op_down.resize(g_.op_count(), {0, 0}), g_.t_->op_up.resize(g_.op_count(), {0, 0});
  g_.t_->source_down.resize(g_.t_->sources.size(), {0, 0}), g_.t_->source_up.resize(g_.t_->sources.size(), {0, 0});
  for (std::size_t i = old_sources; i < g_.t_->sources.size(); ++i) {
    g_.t_->source_down[i] = source_down(i);
    sources_.set(index(g_.t_->sources[i]));
  }
}

NEAP_FUNC void digest_updater::changed(value_id v) {
  if (auto const p = g_.producer(v); p != nothing<op_id>) {
    up_.add(p);
    return;
  }
  sources_.set(index(v));
  auto const i = source_ordinal(v);
  if (auto const d = source_down(i); d != g_.t_->source_down[i]) {
    g_.t_->source_down[i] = d;
    for (auto const& u : g_.t_->uses[v]) down_.add(u.op);
  }
}

NEAP_FUNC void digest_updater::all() {
  for (std::size_t i = 0; i < g_.t_->sources.size(); ++i) g_.t_->source_down[i] = source_down(i);
  plain_vector<std::uint32_t> missing(g_.op_count());
  plain_vector<op_id> order;
  order.reserve(g_.op_count());
  for (auto o : g_.ops()) {
    for (auto v : g_.inputs(o)) missing[index(o)] += g_.producer(v) != nothing<op_id>;
    if (!missing[index(o)]) order.push_back(o);
  }
  for (std::size_t at = 0; at < order.size(); ++at) {
    op_id const o = order[at];
    g_.t_->op_down[o] = op_down(o);
    for (auto v : g_.outputs(o))
      for (auto const& u : g_.t_->uses[v])
        if (--missing[index(u.op)] == 0) order.push_back(u.op);
  }
  for (std::size_t at = order.size(); at-- > 0;) g_.t_->op_up[order[at]] = op_up(order[at]);
  g_.t_->digest = {0, 0};
  for (auto d : g_.t_->op_up) g_.t_->digest = g_.t_->digest + d;
  for (std::size_t i = 0; i < g_.t_->sources.size(); ++i) {
    g_.t_->source_up[i] = source_up(i);
    g_.t_->digest = g_.t_->digest + g_.t_->source_up[i];
  }
}

NEAP_FUNC digest digest_updater::own_digest(op_id o) const {
  auto const& r = g_.t_->ops[o];
  auto const* const opaque = g_.as<op::opaque>(o);
  digest d = opaque ? digest{opaque->text_low, opaque->text_high} : operator_digest(g_.facets_of_kind(r.kind));
  // Fields of parts came later: left out where they are zero, so that digests of graph files stay what they were.
  auto fields = g_.facets(o).attributes;
  if (opaque && !opaque->is_part()) fields = fields.first(fields.size() - 2);
  for (auto const& a : fields) d = detail::mix_attribute(d, a.get(g_.attributes(o)));
  for (auto p = r.part; p != nothing<part_id>; p = g_.t_->parts[index(p)].of)
    d = d.mix(static_cast<std::uint64_t>(g_.t_->parts[index(p)].number))
            .mix(static_cast<std::uint64_t>(g_.t_->parts[index(p)].count));
  if (!r.pins.empty()) d = d.mix(0x70696e73u << 8 | r.pins.bits());
  d = d.mix(no_id);
  for (auto v : g_.outputs(o)) {
    auto const& x = g_.t_->values[v];
    if (!x.pins.empty()) d = d.mix(x.pins.bits());
    d = detail::mix_layout(d, g_.layout(v))
            .mix(static_cast<std::uint64_t>(x.alias) << 32 | static_cast<std::uint16_t>(x.of));
    if (x.alias == alias_kind::fresh) d = d.mix(static_cast<std::uint64_t>(g_.bytes(x.storage)));
  }
  return d;
}

NEAP_FUNC digest digest_updater::op_down(op_id o) const {
  digest d = own_digest(o);
  for (auto v : g_.inputs(o)) d = d.mix(value_digest(v));
  return d;
}

NEAP_FUNC digest digest_updater::source_down(std::size_t ordinal) const {
  auto const& r = g_.t_->values[g_.t_->sources[ordinal]];
  auto d = digest{}.mix(ordinal).mix(source_ordinal(g_.t_->storages[r.storage].first));
  if (!r.pins.empty()) d = d.mix(0x70696e73u << 8 | r.pins.bits());
  return detail::mix_layout(d.mix(static_cast<std::uint64_t>(r.role)), g_.layout(g_.t_->sources[ordinal]))
      .mix(static_cast<std::uint64_t>(g_.bytes(r.storage)));
}

NEAP_FUNC bool digest_updater::update_cones(std::size_t first_new) {
  auto patience = static_cast<std::ptrdiff_t>(4 * g_.op_count() + 64);
  for (std::size_t at = first_new; !down_.empty();) {
    op_id const o = down_.take_up(at);
    at = index(o) + 1;
    if (--patience < 0) return false;
    auto const d = op_down(o);
    if (d == g_.t_->op_down[o]) continue;
    g_.t_->op_down[o] = d;
    up_.add(o);
    for (auto v : g_.outputs(o))
      for (auto const& u : g_.t_->uses[v]) down_.add(u.op);
  }
  for (std::size_t at = g_.op_count() - 1; !up_.empty();) {
    op_id const o = up_.take_down(at);
    at = index(o) - 1;  // before the first one: the last one
    if (--patience < 0) return false;
    auto const d = op_up(o);
    if (d == g_.t_->op_up[o]) continue;
    replace(g_.t_->op_up[o], d);
    for (auto v : g_.inputs(o)) {
      auto const p = g_.producer(v);
      if (p != nothing<op_id>) up_.add(p);
      else sources_.set(index(v));
    }
  }
  return true;
}

}}  // namespace neap::v0
