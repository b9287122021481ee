// Rewritten pieces, for the verifier: ops that the original has not, and values computed otherwise than in the original.
// That such a value is the original's is shown by evaluating both in a prime field, from values that both graphs have, down
// to which neither looks further (ir/field_values.hpp). Nothing is believed of where a rewrite was made or by what rule.
//
//   original   c * (a + b) -> tanh          planned   c * a + c * b -> tanh
//
// tanh is the original's op by its origin; its argument has another number, and is compared: c, a and b have one number in
// both graphs and are free variables; a planned value that was shown to be one of the original's is that one from then on.
// Where that is not enough (a graph may have both a sum and what it was taken apart into), sums and products of elements are
// looked through too, then products of matrices, then everything down to sources.
//
// What a pinned op of the original makes is always one of the free variables: nothing else stands for it (pins.hpp).
//
// What is computed otherwise and never is an argument that is compared changes nothing: some of the original's values are
// dead too, and what was computed again may have lost its readers.
#pragma once

#include <neap/ir/field_values.hpp>
#include <neap/ir/operators/parts.hpp>
#include <neap/verify/value_numbers.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail::plan_check {

class rewritten {
 public:
  rewritten(op_graph const& original, value_numbering const& was, op_graph const& g, value_numbering const& now)
      : original_(original),
        was_(was),
        g_(g),
        now_(now) {}

  /// The first `n` ops of the order have their numbers.
  void numbered(std::size_t n) { numbered_ = n; }

  /// Whether an op could be one that a rewrite has put there: of a known operator, that writes nothing and draws nothing.
  bool may_be(op_id o) const {
    return !g_.as<op::opaque>(o) && !g_.as<op::blank>(o) && !g_.facets(o).random && g_.facets(o).standard_row >= 0 &&
           g_.record(o).part == nothing<part_id> && !updates_in_place(g_, o) && !is_transfer(g_, o);
  }
  /// Takes an op of the planned graph that the original has not, if it may be one.
  bool take(op_id o) {
    if (!may_be(o)) return false;
    if (taken_.empty()) taken_.assign(g_.op_count(), false);
    return taken_[index(o)] = true;
  }
  /// Whether the value is made by such an op.
  bool makes(value_id v) const {
    auto const o = g_.producer(v);
    return o != nothing<op_id> && !taken_.empty() && taken_[index(o)];
  }

  /// Whether a planned value is the original's.
  bool same(value_id v, value_id w) {
    if (now_.value[v] == was_.value[w]) return true;
    if (!(g_.type(v) == original_.type(w))) return false;
    if (original_.producer(w) == nothing<op_id> || is_pinned(original_, w)) return false;
    auto const key = std::uint64_t{index(v)} << 32 | index(w);
    auto const [at, fresh] = compared_.emplace(key, false);
    if (!fresh) return at->second;
    bool const is = compare(v, w);
    compared_[key] = is;
    if (is) {
      any_ = true;
      is_shown_.emplace(index(v), w);
      shown_.insert(was_.value[w]);
      // What it is another shape of has the same elements in the same order, which is all that free variables tell.
      for (auto o = g_.producer(v); o != nothing<op_id> && g_.as<op::reshape>(o); o = g_.producer(v))
        is_shown_.emplace(index(v = g_.inputs(o)[0]), w);
    }
    return is;
  }
  /// Whether a planned value has the elements of the original's pinned value w.
  bool computes_pinned(value_id v, value_id w) {
    return g_.type(v) == original_.type(w) && original_.producer(w) != nothing<op_id> && compare(v, w);
  }
  /// Whether any value was shown to be the original's by evaluation.
  bool any() const { return any_; }

 private:
  /// What an op computes. Of the planned graph's opaque ops that is what the original says of those that are called the same
  /// and make the same: its own word is not taken.
  operator_view meaning(op_graph const& g, op_id o) const {
    if (&g == &original_ || !g.as<op::opaque>(o)) return g.meaning(o);
    auto const x = index(o) < meant_.size() ? meant_[index(o)] : nothing<op_id>;
    return x == nothing<op_id> ? g.view(o) : original_.meaning(x);
  }

  /// What an op is called with its other attributes, what it makes, and of what types; and which op of the original it is,
  /// for what as_strided means depends on layouts.
  static digest called(op_graph const& g, value_numbering const& n, op_id o) {
    sip_hash d(n.key);
    d.mix(n.plain[o]).mix(n.types[o]).mix(index(g.origin(o)));
    for (auto v : g.inputs(o)) with_type(d, g.type(v));
    return d.finish();
  }
  /// How deep an operator is looked through: what only moves elements, sums and products of elements, products of
  /// matrices, all others.
  int depth_of(op_graph const& g, op_id o) const {
    static operator_facets const* const moves[] = {
        &facets_of<op::copy>,    &facets_of<op::load>,   &facets_of<op::cast>,        &facets_of<op::fill>,
        &facets_of<op::reshape>, &facets_of<op::slice>,  &facets_of<op::permute>,     &facets_of<op::split>,
        &facets_of<op::pad>,     &facets_of<op::concat>, &facets_of<op::broadcast_to>};
    static operator_facets const* const elements[] = {
        &facets_of<op::add>, &facets_of<op::sub>,        &facets_of<op::mul>,        &facets_of<op::div>,
        &facets_of<op::neg>, &facets_of<op::square>,     &facets_of<op::reciprocal>, &facets_of<op::add_scalar>,
        &facets_of<op::sum>, &facets_of<op::mul_scalar>, &facets_of<op::sum_to>,     &facets_of<op::mean>};
    static operator_facets const* const products[] = {&facets_of<op::matmul>, &facets_of<op::conv2d>,
                                                      &facets_of<op::conv2d_grad_input>,
                                                      &facets_of<op::conv2d_grad_weight>};
    auto const* f = meaning(g, o).facets;
    auto const is_in = [&](auto const& list) {
      return std::find(std::begin(list), std::end(list), f) != std::end(list);
    };
    return is_in(moves) ? 0 : is_in(elements) ? 1 : is_in(products) ? 2 : 3;
  }

  struct digest_key {
    std::size_t operator()(digest const& d) const { return static_cast<std::size_t>(d.low); }
  };
  using number_list = std::unordered_set<digest, digest_key>;

  /// Values whose numbers the other graph has too.
  class common final : public given_values {
   public:
    common(rewritten const& all, op_graph const& g, value_numbering const& n, number_list const& other, value_id asked,
           int depth, bool with_shown)
        : all_(all),
          g_(g),
          n_(n),
          other_(other),
          asked_(asked),
          depth_(depth),
          with_shown_(with_shown) {}
    bool given(value_id v, digest& name) const override {
      if (all_.pinned_.count(n_.value[v]) != 0) return name = n_.value[v], true;
      if (v == asked_) return false;
      if (with_shown_ && &g_ == &all_.g_)
        if (auto const at = all_.is_shown_.find(index(v)); at != all_.is_shown_.end()) {
          if (all_.depth_of(all_.original_, all_.original_.producer(at->second)) <= depth_) return false;
          name = all_.was_.value[at->second];
          return true;
        }
      bool const is_shown = with_shown_ && &g_ == &all_.original_ && all_.shown_.count(n_.value[v]) != 0;
      if (!is_shown && other_.count(n_.value[v]) == 0) return false;
      if (auto const o = g_.producer(v); o != nothing<op_id> && all_.depth_of(g_, o) <= depth_) return false;
      name = n_.value[v];
      return true;
    }
    operator_view meaning(op_graph const& g, op_id o) const override { return all_.meaning(g, o); }

   private:
    rewritten const& all_;
    op_graph const& g_;
    value_numbering const& n_;
    number_list const& other_;
    value_id asked_;
    int depth_;
    bool with_shown_;  // planned values that were shown to be one of the original's are that one
  };

  void learn() {
    if (originals_.empty()) {
      for (auto v : original_.values()) {
        originals_.insert(was_.value[v]);
        if (original_.has_pins() && is_pinned(original_, v)) pinned_.insert(was_.value[v]);
      }
      for (auto o : original_.ops())
        if (auto const* x = original_.as<op::opaque>(o); x && x->known_kind)
          means_.emplace(called(original_, was_, o), o);
    }
    if (planned_.empty())
      for (auto v : g_.sources()) planned_.insert(now_.value[v]);
    meant_.resize(g_.op_count(), nothing<op_id>);
    for (; learned_ < numbered_; ++learned_) {
      auto const o = now_.order[learned_];
      for (auto v : g_.outputs(o)) planned_.insert(now_.value[v]);
      if (!g_.as<op::opaque>(o) || means_.empty()) continue;
      if (auto const x = means_.find(called(g_, now_, o)); x != means_.end()) meant_[index(o)] = x->second;
    }
  }
  bool compare(value_id v, value_id w) {
    learn();
    if (!secret_) secret_.emplace(now_.key);
    for (int tries = shown_.empty() ? 4 : 0; tries < 8; ++tries) {
      int const depth = tries % 4;
      // A planned value may be one of the original's others: that is where the comparison ends, unless nothing is left.
      bool const is_given = g_.producer(v) == nothing<op_id> ||
                            (originals_.count(now_.value[v]) != 0 && depth_of(g_, g_.producer(v)) > depth);
      common const from_plan(*this, g_, now_, originals_, is_given ? nothing<value_id> : v, depth, tries < 4);
      common const from_original(*this, original_, was_, planned_, w, depth, tries < 4);
      field_comparison shared(*secret_);
      field_values a(g_, from_plan, shared, max_elements), b(original_, from_original, shared, max_elements);
      if (field_values::compare(a, v, b, w) == field_answer::same && field_values::within_magnitudes(a, b)) return true;
    }
    return false;
  }
  static constexpr std::int64_t max_elements = 20'000'000;

  op_graph const& original_;
  value_numbering const& was_;
  op_graph const& g_;
  value_numbering const& now_;
  std::optional<field_secret> secret_;  // once there is something to compare
  std::size_t numbered_ = 0, learned_ = 0;
  number_list originals_, planned_, shown_, pinned_;
  std::unordered_map<digest, op_id, digest_key> means_;  // ops of the original that mean something, by called()
  std::vector<op_id> meant_;  // of each planned opaque op: the one of the original that says what it is
  std::unordered_map<std::uint64_t, bool> compared_;
  std::unordered_map<std::size_t, value_id> is_shown_;  // which of the original's a planned value was shown to be
  std::vector<bool> taken_;                             // ops that the original has not
  bool any_ = false;
};

}}}  // namespace neap::v0::detail::plan_check
