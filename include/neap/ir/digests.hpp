// Digests of ops, sources and the whole graph, kept true after an edit.
//
// down(op): what the op computes, from its operator and its arguments' down digests. up(op): down(op) and what is done
// with its results: their roles, and the up digests of their readers. Copies share down and differ in up. The graph's
// digest is the sum of up over ops and sources, so an edit costs the ops above it and those below it that compute
// something else now: a recomputed copy computes the same, and so does who reads what was stored and loaded again.
#pragma once

#include <neap/core/bit_set.hpp>
#include <neap/core/digest.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/ir/attribute_numbers.hpp>
#include <neap/ir/graph.hpp>
#include <neap/ir/opaque.hpp>
#include <neap/ir/operators/transfer.hpp>
#include <neap/ir/stored.hpp>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace neap { inline namespace v0 {

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
  each_number(v, [&](std::uint64_t n) { d = d.mix(n); });
  return d;
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
  explicit digest_updater(op_graph& g);

  /// Of the operator's name: that of a graph is the same over all sets. Opaque ops have that of their text,
  /// which the editor makes once: it may be long.
  static digest operator_digest(operator_facets const& f) { return digest{}.mix(f.name_digest); }

  /// The op's own digest, or an argument, may be another one.
  void changed(op_id o) { down_.add(o), up_.add(o); }
  /// The value's role, whether it is kept, or its readers may be others.
  void changed(value_id v);
  /// Costs the ops above and below what has changed; ops from `first_new` on are looked at first.
  void settle(std::size_t first_new) {
    if (!update_cones(first_new)) return all();
    std::size_t i = 0;  // both ascend
    sources_.for_each([&](std::size_t v) {
      while (index(g_.t_->sources[i]) != v) ++i;
      replace(g_.t_->source_up[i], source_up(i));
    });
  }
  /// All digests, in an order found by counting unmet inputs (Kahn 1962). Ops on a cycle keep what they have.
  void all();

 private:
  std::size_t source_ordinal(value_id v) const {
    return static_cast<std::size_t>(std::lower_bound(g_.t_->sources.begin(), g_.t_->sources.end(), v) -
                                    g_.t_->sources.begin());
  }
  digest value_digest(value_id v) const {
    for (auto before = before_swap(v); before != nothing<value_id>; before = before_swap(v)) v = before;
    auto const& r = g_.t_->values[v];
    if (r.producer == nothing<op_id>) return g_.t_->source_down[source_ordinal(v)];
    return g_.t_->op_down[r.producer].mix(index(v) - g_.t_->ops[r.producer].first_output);
  }
  /// The value that was stored, of one that was loaded: who reads it computes the same.
  value_id before_swap(value_id v) const {
    auto const loads = g_.producer(v);
    if (loads == nothing<op_id> || !g_.as<op::load>(loads)) return nothing<value_id>;
    auto const stores = store_of(g_, g_.inputs(loads)[0]);
    return stores == nothing<op_id> ? nothing<value_id> : g_.inputs(stores)[0];
  }
  /// What an op is, without its arguments.
  digest own_digest(op_id o) const;
  digest op_down(op_id o) const;
  digest source_down(std::size_t ordinal) const;
  digest mix_readers(digest d, value_id v) const {
    auto const& r = g_.t_->values[v];
    digest readers{static_cast<std::uint64_t>(r.role) * 2 + r.kept, 0};
    for (auto const& u : g_.t_->uses[v]) readers = readers + g_.t_->op_up[u.op].mix(u.argument);
    return d.mix(readers);
  }
  digest op_up(op_id o) const {
    digest d = g_.t_->op_down[o];
    for (auto v : g_.outputs(o)) d = mix_readers(d, v);
    return d;
  }
  digest source_up(std::size_t ordinal) const {
    return mix_readers(g_.t_->source_down[ordinal], g_.t_->sources[ordinal]);
  }
  void replace(digest& term, digest by) {
    g_.t_->digest = g_.t_->digest - term + by;
    term = by;
  }
  /// Works from the changed ops outwards. Ops are nearly always numbered after what they read, and new ones depend on
  /// what was there, so nearly all are looked at once; gives up (false) when that is not so.
  bool update_cones(std::size_t first_new);
  op_graph& g_;
  detail::op_ring down_, up_;  // to be looked at
  bit_set sources_;            // whose readers have changed
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/impl/digests.ipp>
#endif
