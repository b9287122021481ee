// Digests of ops, sources and the whole graph, kept true after an edit.
//
// down(op): what the op computes, from its operator and its arguments' down digests. up(op): down(op) and what is done
// with its results: their roles, and the up digests of their readers. Copies share down and differ in up. The graph's
// digest is the sum of up over ops and sources, so an edit costs the ops above it and those below it that compute
// something else now: a recomputed copy computes the same, and so does who reads what was stored and loaded again.
#pragma once

#include <neap/core/bit_set.hpp>
#include <neap/core/compiled_once.hpp>
#include <neap/core/digest.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/ir/graph.hpp>
#include <neap/ir/opaque.hpp>
#include <neap/ir/operators/transfer.hpp>
#include <neap/ir/stored.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <variant>

namespace neap::inline v0 {

namespace detail {

inline digest mix_strides(digest d, tensor_layout const& l) {
  d = d.mix(static_cast<std::uint64_t>(l.type.element) * 16 + static_cast<std::uint64_t>(l.type.rank()));
  for (int i = 0; i < l.type.rank(); ++i)
    d = d.mix(static_cast<std::uint64_t>(l.type.dims[i])).mix(static_cast<std::uint64_t>(l.strides[i]));
  return d;
}
inline digest mix_layout(digest d, tensor_layout const& l) {
  return mix_strides(d, l).mix(static_cast<std::uint64_t>(l.offset));
}
inline digest mix_attribute(digest d, attribute_value const& v) {
  if (auto const* x = std::get_if<extents>(&v)) {
    d = d.mix(static_cast<std::uint64_t>(x->rank()));
    for (auto i : *x) d = d.mix(static_cast<std::uint64_t>(i));
    return d;
  }
  if (auto const* x = std::get_if<double>(&v)) return d.mix(std::bit_cast<std::uint64_t>(*x));
  if (auto const* x = std::get_if<std::int64_t>(&v)) return d.mix(static_cast<std::uint64_t>(*x));
  if (auto const* x = std::get_if<bool>(&v)) return d.mix(*x ? 1 : 0);
  return d.mix(static_cast<std::uint64_t>(*std::get_if<dtype>(&v)));
}

/// Ops waiting for their turn, taken by ascending or descending id, round and round; each is in it once.
class op_ring {
 public:
  explicit op_ring(std::size_t n) : words_((n + 63) / 64) {}
  bool empty() const { return count_ == 0; }
  void add(op_id o) {
    auto const i = index(o);
    auto& w = words_[i / 64];
    auto const bit = std::uint64_t{1} << (i % 64);
    count_ += !(w & bit);
    w |= bit;
  }
  /// The first one at or after `at`, else the first of all. Not empty.
  op_id take_up(std::size_t at) {
    std::size_t w = at / 64;
    if (w >= words_.size()) w = 0, at = 0;
    if (words_[w] >> (at % 64) & 1) return take(at);  // often: a guess that does not wait for the search below
    auto bits = words_[w] & (~std::uint64_t{0} << (at % 64));
    while (!bits) {
      if (++w == words_.size()) w = 0;
      bits = words_[w];
    }
    return take(w * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
  }
  /// The last one at or before `at`, else the last of all. Not empty.
  op_id take_down(std::size_t at) {
    std::size_t w = std::min(at / 64, words_.size() - 1);
    if (at / 64 == w && (words_[w] >> (at % 64) & 1)) return take(at);
    auto bits = words_[w];
    if (at / 64 == w) bits &= ~std::uint64_t{0} >> (63 - at % 64);
    while (!bits) {
      if (w-- == 0) w = words_.size() - 1;
      bits = words_[w];
    }
    return take(w * 64 + 63 - static_cast<std::size_t>(std::countl_zero(bits)));
  }

 private:
  op_id take(std::size_t i) {
    words_[i / 64] &= ~(std::uint64_t{1} << (i % 64));
    --count_;
    return id_at<op_id>(i);
  }
  plain_vector<std::uint64_t> words_;
  std::size_t count_ = 0;
};

}  // namespace detail

/// Brings the digests of a graph up to date whose other tables are: changed() marks, settle() updates once.
///
///   digest_updater digests(g);
///   digests.changed(op), digests.changed(value);
///   digests.settle(first_new_op);                       // or digests.all()
class digest_updater {
 public:
  /// Ops and sources that were appended since the digests were true have to be marked as well, ops by changed().
  NEAP_ONCE explicit digest_updater(op_graph& g)
      : g_(g),
        down_(g.op_count()),
        up_(g.op_count()),
        sources_(g.value_count()) {
    auto const old_sources = g_.source_down_.size();
    g_.op_down_.resize(g_.op_count(), {0, 0}), g_.op_up_.resize(g_.op_count(), {0, 0});
    g_.source_down_.resize(g_.sources_.size(), {0, 0}), g_.source_up_.resize(g_.sources_.size(), {0, 0});
    for (std::size_t i = old_sources; i < g_.sources_.size(); ++i) {
      g_.source_down_[i] = source_down(i);
      sources_.set(index(g_.sources_[i]));
    }
  }

  /// Of the kind of operator. What an opaque op is called is mixed in by the editor, once: it may be long.
  static digest operator_digest(op_graph const& g, std::size_t kind) {
    auto const& f = g.facets_of_kind(kind);
    if (kind < g.table_.size()) return digest{}.mix(kind);
    return g.table_.empty() && f.standard_row >= 0 ? digest{}.mix(static_cast<std::uint64_t>(f.standard_row))
                                                   : digest{}.mix(f.name);
  }

  /// The op's own digest, or an argument, may be another one.
  void changed(op_id o) { down_.add(o), up_.add(o); }
  /// The value's role, whether it is kept, or its readers may be others.
  NEAP_ONCE void changed(value_id v) {
    if (auto const p = g_.producer(v); p != nothing<op_id>) {
      up_.add(p);
      return;
    }
    sources_.set(index(v));
    auto const i = source_ordinal(v);
    if (auto const d = source_down(i); d != g_.source_down_[i]) {
      g_.source_down_[i] = d;
      for (auto const& u : g_.uses_[v]) down_.add(u.op);
    }
  }
  /// Costs the ops above and below what has changed; ops from `first_new` on are looked at first.
  void settle(std::size_t first_new) {
    if (!update_cones(first_new)) return all();
    std::size_t i = 0;  // both ascend
    sources_.for_each([&](std::size_t v) {
      while (index(g_.sources_[i]) != v) ++i;
      replace(g_.source_up_[i], source_up(i));
    });
  }
  /// All digests, in an order found by counting unmet inputs (Kahn 1962). Ops on a cycle keep what they have.
  NEAP_ONCE void all() {
    for (std::size_t i = 0; i < g_.sources_.size(); ++i) g_.source_down_[i] = source_down(i);
    plain_vector<std::uint32_t> missing(g_.op_count());
    plain_vector<op_id> order;
    order.reserve(g_.op_count());
    for (auto o : g_.ops()) {
      for (auto v : g_.inputs(o)) missing[index(o)] += g_.producer(v) != nothing<op_id>;
      if (!missing[index(o)]) order.push_back(o);
    }
    for (std::size_t at = 0; at < order.size(); ++at) {
      op_id const o = order[at];
      g_.op_down_[o] = op_down(o);
      for (auto v : g_.outputs(o))
        for (auto const& u : g_.uses_[v])
          if (--missing[index(u.op)] == 0) order.push_back(u.op);
    }
    for (std::size_t at = order.size(); at-- > 0;) g_.op_up_[order[at]] = op_up(order[at]);
    g_.digest_ = {0, 0};
    for (auto d : g_.op_up_) g_.digest_ = g_.digest_ + d;
    for (std::size_t i = 0; i < g_.sources_.size(); ++i) {
      g_.source_up_[i] = source_up(i);
      g_.digest_ = g_.digest_ + g_.source_up_[i];
    }
  }

 private:
  std::size_t source_ordinal(value_id v) const {
    return static_cast<std::size_t>(std::lower_bound(g_.sources_.begin(), g_.sources_.end(), v) - g_.sources_.begin());
  }
  digest value_digest(value_id v) const {
    for (auto before = before_swap(v); before != nothing<value_id>; before = before_swap(v)) v = before;
    auto const& r = g_.values_[v];
    if (r.producer == nothing<op_id>) return g_.source_down_[source_ordinal(v)];
    return g_.op_down_[r.producer].mix(index(v) - g_.ops_[r.producer].first_output);
  }
  /// The value that was stored, of one that was loaded: who reads it computes the same.
  value_id before_swap(value_id v) const {
    auto const loads = g_.producer(v);
    if (loads == nothing<op_id> || !g_.as<op::load>(loads)) return nothing<value_id>;
    auto const stores = store_of(g_, g_.inputs(loads)[0]);
    return stores == nothing<op_id> ? nothing<value_id> : g_.inputs(stores)[0];
  }
  /// What an op is, without its arguments.
  NEAP_ONCE digest own_digest(op_id o) const {
    auto const& r = g_.ops_[o];
    auto const* const opaque = g_.as<op::opaque>(o);
    digest d = opaque ? digest{opaque->text_low, opaque->text_high} : operator_digest(g_, r.kind);
    // Fields of parts came later: left out where they are zero, so that digests of graph files stay what they were.
    auto fields = g_.facets(o).attributes;
    if (opaque && !opaque->is_part()) fields = fields.first(fields.size() - 2);
    for (auto const& a : fields) d = detail::mix_attribute(d, a.get(g_.attributes(o)));
    for (auto p = r.part; p != nothing<part_id>; p = g_.parts_[index(p)].of)
      d = d.mix(static_cast<std::uint64_t>(g_.parts_[index(p)].number))
              .mix(static_cast<std::uint64_t>(g_.parts_[index(p)].count));
    if (!r.pins.empty()) d = d.mix(0x70696e73u << 8 | r.pins.bits());
    d = d.mix(no_id);
    for (auto v : g_.outputs(o)) {
      auto const& x = g_.values_[v];
      if (!x.pins.empty()) d = d.mix(x.pins.bits());
      d = detail::mix_layout(d, g_.layout(v))
              .mix(static_cast<std::uint64_t>(x.alias) << 32 | static_cast<std::uint16_t>(x.of));
      if (x.alias == alias_kind::fresh) d = d.mix(static_cast<std::uint64_t>(g_.bytes(x.storage)));
    }
    return d;
  }
  NEAP_ONCE digest op_down(op_id o) const {
    digest d = own_digest(o);
    for (auto v : g_.inputs(o)) d = d.mix(value_digest(v));
    return d;
  }
  NEAP_ONCE digest source_down(std::size_t ordinal) const {
    auto const& r = g_.values_[g_.sources_[ordinal]];
    auto d = digest{}.mix(ordinal).mix(source_ordinal(g_.storages_[r.storage].first));
    if (!r.pins.empty()) d = d.mix(0x70696e73u << 8 | r.pins.bits());
    return detail::mix_layout(d.mix(static_cast<std::uint64_t>(r.role)), g_.layout(g_.sources_[ordinal]))
        .mix(static_cast<std::uint64_t>(g_.bytes(r.storage)));
  }
  digest mix_readers(digest d, value_id v) const {
    auto const& r = g_.values_[v];
    digest readers{static_cast<std::uint64_t>(r.role) * 2 + r.kept, 0};
    for (auto const& u : g_.uses_[v]) readers = readers + g_.op_up_[u.op].mix(u.argument);
    return d.mix(readers);
  }
  digest op_up(op_id o) const {
    digest d = g_.op_down_[o];
    for (auto v : g_.outputs(o)) d = mix_readers(d, v);
    return d;
  }
  digest source_up(std::size_t ordinal) const { return mix_readers(g_.source_down_[ordinal], g_.sources_[ordinal]); }
  void replace(digest& term, digest by) {
    g_.digest_ = g_.digest_ - term + by;
    term = by;
  }
  /// Works from the changed ops outwards. Ops are nearly always numbered after what they read, and new ones depend on
  /// what was there, so nearly all are looked at once; gives up (false) when that is not so.
  NEAP_ONCE bool update_cones(std::size_t first_new) {
    auto patience = static_cast<std::ptrdiff_t>(4 * g_.op_count() + 64);
    for (std::size_t at = first_new; !down_.empty();) {
      op_id const o = down_.take_up(at);
      at = index(o) + 1;
      if (--patience < 0) return false;
      auto const d = op_down(o);
      if (d == g_.op_down_[o]) continue;
      g_.op_down_[o] = d;
      up_.add(o);
      for (auto v : g_.outputs(o))
        for (auto const& u : g_.uses_[v]) down_.add(u.op);
    }
    for (std::size_t at = g_.op_count() - 1; !up_.empty();) {
      op_id const o = up_.take_down(at);
      at = index(o) - 1;  // before the first one: the last one
      if (--patience < 0) return false;
      auto const d = op_up(o);
      if (d == g_.op_up_[o]) continue;
      replace(g_.op_up_[o], d);
      for (auto v : g_.inputs(o)) {
        auto const p = g_.producer(v);
        if (p != nothing<op_id>) up_.add(p);
        else sources_.set(index(v));
      }
    }
    return true;
  }
  op_graph& g_;
  detail::op_ring down_, up_;  // to be looked at
  bit_set sources_;            // whose readers have changed
};

}  // namespace neap::inline v0
