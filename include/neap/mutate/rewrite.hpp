// rewrite: the mutation that puts the right side of a rule where its left side is, and the mutator that yields every such
// place of a list of rules (mutate/pattern.hpp says how rules are written), in the order of the schedule, each when it is
// drawn. Rules are looked up by the operator of their root.
//
// Where a rule applies: the ops are whole ops of known operators, none is pinned (ir/pins.hpp), cuts or joins parts; values between them are
// read by them alone (views may be read by others too: they cost nothing), and the rule's condition holds. What must hold
// besides is seen when it is applied: shape rules accept the new ops, the result has the old one's type, every reader of the
// old result can read the new one as it lies in memory (else it is copied), no op updates the old result's storage in place
// if the new one shares another, and there is an order in which every reader of a storage still comes before the op that
// updates it.
//
// A program with rewrites computes the same numbers in exact arithmetic, not the same bits. `checked(m)` has every
// application evaluated in a finite field as well (ir/field_values.hpp): a rule that is wrong throws neap::error.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/field_values.hpp>
#include <neap/mutate/build_edit.hpp>
#include <neap/mutate/mutator.hpp>
#include <neap/mutate/pattern.hpp>
#include <neap/mutate/serves_parts.hpp>
#include <neap/schedule/incremental.hpp>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace neap { inline namespace v0 {

/// Finds a rule's left side.
class rule_matcher {
 public:
  /// The match of `what` with its root at op `o`; of rules with two roots, the other one at `second`. Bit k of `way`: the
  /// arguments of the k-th op that commutes are exchanged.
  static std::optional<match> find(rule const& what, op_graph const& g, op_id o, op_id second, std::uint32_t way);
  /// How many ops of a rule's left side commute.
  static constexpr std::uint32_t commuting(rule const& what) {
    std::uint32_t n = 0;
    for (int k = 0; k < what.from.count; ++k) n += what.from.nodes[static_cast<std::size_t>(k)].commutes;
    return n;
  }
  /// Whether an op may be the one of a node.
  static bool is_of(pattern::node const& n, operator_facets const& f) {
    return n.is == pattern::node::kind::unary ? is_unary(f) : n.facets == &f;
  }
  /// The letters' values, for a rewrite that has been found.
  static std::array<value_id, pattern::max_letters> const& letters(match const& m) { return m.letter_; }
  static std::array<op_id, pattern::max_nodes> const& ops(match const& m) { return m.op_; }
  static op_id slot(match const& m, int k) { return m.slot_[static_cast<std::size_t>(k)]; }

 private:
  rule_matcher(rule const& what, op_graph const& g, std::uint32_t way) : what_(what), g_(g), way_(way) {}

  template <class... Op>
  static constexpr auto unary_rows(type_list<Op...>) {
    return std::array{[] {
      if constexpr (op::scalar_operator<Op>) return Op::map_inputs == 1 && !neap::detail::random_v<Op>;
      else return false;
    }()...};
  }
  static bool is_unary(operator_facets const& f) {
    static constexpr auto rows = unary_rows(op::standard_list{});
    return f.standard_row >= 0 && rows[static_cast<std::size_t>(f.standard_row)];
  }
  int output_of(std::uint8_t k) const { return what_.from.nodes[k].output; }

  bool has(std::uint8_t k, value_id v);

  bool is_matched(op_id o) const;
  /// Whether an op's results are live: a dead op is not worth a rewrite.
  bool is_read(op_id o) const;
  /// Values between the ops are read by them alone, except views.
  bool is_closed() const;

  rule const& what_;
  op_graph const& g_;
  std::uint32_t way_, turn_ = 0;
  match m_;
};

namespace detail {

/// The graph and order with a rule's right side in the place of the match; nothing if the rule cannot be applied there.
std::optional<edited> rewritten_by(rule const& what, match const& m, op_graph const& g, schedule const& order,
                                   bool check);

}  // namespace detail

/// Puts a rule's right side in the place of its left side.
struct rewrite {
  rule const* what = nullptr;
  op_id root = nothing<op_id>, second = nothing<op_id>;
  std::uint32_t way = 0;  // rule_matcher::find
  bool check = false;     // by evaluation in a finite field

  friend bool operator==(rewrite const&, rewrite const&) = default;

  /// Throws neap::error if it is checked and the rule is wrong.
  std::optional<edited> apply(candidate const& c) const {
    auto const m = rule_matcher::find(*what, c.graph, root, second, way);
    if (!m) return std::nullopt;
    auto e = detail::rewritten_by(*what, *m, c.graph, c.order, check);
    if (!e) return std::nullopt;
    return edited{op_graph(std::move(e->graph)), std::move(e->order)};
  }
  std::string describe(candidate const& c) const {
    return detail::text_of(
        {"rewrite ", what->name, " at ", c.graph.meaning(root).facets->name, " #", index(c.graph.origin(root))});
  }
};

namespace detail {

/// Yields the places of rules, op by op in the order of the schedule.
class rewrite_stream {
 public:
  rewrite_stream(candidate const& c, std::span<rule const* const> rules, bool check)
      : candidate_(&c),
        rules_(rules),
        check_(check) {}

  std::optional<rewrite> next() {
    if (by_kind_.empty()) index_rules();
    auto const& c = *candidate_;
    for (; position_ < c.order.size(); ++position_, rule_ = 0) {
      auto const o = c.order[position_];
      auto const& here = by_kind_[c.graph.kind_of_meaning(o)];
      for (; rule_ < here.size(); ++rule_, way_ = 0, other_ = 0)
        if (auto found = next_of(*here[rule_], o)) return found;
    }
    return std::nullopt;
  }

 private:
  void index_rules() {
    auto const& g = candidate_->graph;
    by_kind_.resize(g.kind_count() + 1);
    for (std::size_t k = 0; k < g.kind_count(); ++k)
      for (auto const* r : rules_)
        if (rule_matcher::is_of(r->from.nodes[r->from.root], g.facets_of_kind(k))) by_kind_[k].push_back(r);
  }
  std::optional<rewrite> next_of(rule const& r, op_id o) {
    auto const& g = candidate_->graph;
    auto const ways = std::uint32_t{1} << rule_matcher::commuting(r);
    if (r.from.second < 0) {
      while (way_ < ways)
        if (auto const way = way_++; rule_matcher::find(r, g, o, nothing<op_id>, way))
          return rewrite{&r, o, nothing<op_id>, way, check_};
      return std::nullopt;
    }
    // The other root reads something that this one reads too.
    std::size_t k = 0;
    for (auto v : g.inputs(o))
      for (auto const& u : g.uses(v)) {
        if (k++ < other_) continue;
        ++other_;
        if (u.op > o && rule_matcher::find(r, g, o, u.op, 0)) return rewrite{&r, o, u.op, 0, check_};
      }
    return std::nullopt;
  }

  candidate const* candidate_;
  std::span<rule const* const> rules_;
  bool check_;
  std::vector<std::vector<rule const*>> by_kind_;
  std::size_t position_ = 0, rule_ = 0, other_ = 0;
  std::uint32_t way_ = 0;
};

template <rule const&... R>
inline constexpr std::array<rule const*, sizeof...(R)> rule_list{&R...};

}  // namespace detail

/// The mutator of a list of rules, which outlives it.
struct rewriter {
  static constexpr permissions allows{.rewrite = true};

  std::span<rule const* const> rules;
  bool check = false;  // every application

  auto operator()(candidate const& c) const { return detail::rewrite_stream(c, rules, check); }
};
/// One rule as a mutator, or several: `using_rules<distribute, my_rule>`.
template <rule const&... R>
inline constexpr rewriter using_rules{detail::rule_list<R...>};

/// The same rules, each application checked by evaluation in a finite field: about 0.1 ms for pieces of small extents. What
/// has too many elements to sum is not checked.
constexpr rewriter checked(rewriter r) {
  r.check = true;
  return r;
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/mutate/impl/rewrite.ipp>
#endif
