// in_parts: rules within a fission that stands in a candidate. Its ops are made whole (mutate/lift.hpp), a rule rewrites some
// of them, and what stands in their place is cut anew, along the same axis into as many parts.
//
//   parts   y0 = place(blank, b * slice(x, 0) + c * slice(x, 0)), y1 = place(y0, b * slice(x, 1) + c * slice(x, 1))
//   whole   y = b * x + c * x
//   rule    y = (b + c) * x
//   parts   d = b + c, y0 = place(blank, d * slice(x, 0)), y1 = place(y0, d * slice(x, 1))
//
// After MAGIS (ASPLOS'24), whose rules apply to the graphs inside its regions, too.
#pragma once

#include <neap/mutate/lift.hpp>
#include <neap/mutate/rewrite.hpp>
#include <neap/schedule/order.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace neap { inline namespace v0 {

namespace detail {

/// Cuts what an edit of the whole program has left of a fission, or put into its place: whatever is new between ops that
/// are where they were. Nothing if the edit has changed anything before the fission, or what is behind it.
std::optional<edited> cut_anew(whole_again const& was, edited e);

}  // namespace detail

/// A rule rewrites ops of a fission.
struct rewrite_in_parts {
  std::uint32_t fission = 0;  // its number: whole_op::fission
  rewrite what;               // of the program in which its ops are whole

  friend bool operator==(rewrite_in_parts const&, rewrite_in_parts const&) = default;

  /// Nothing if the parts are cut once more: those would have to be lifted first. Throws neap::error if the rule is checked
  /// and wrong.
  std::optional<edited> apply(candidate const& c) const {
    auto const was = detail::made_whole(c, fission);
    if (!was) return std::nullopt;
    auto e = what.apply(was->whole);
    return e ? detail::cut_anew(*was, std::move(*e)) : std::nullopt;
  }
  std::string describe(candidate const& c) const {
    auto const was = detail::made_whole(c, fission);
    if (!was) return "rewrite " + std::string(what.what->name);
    return detail::text_of({what.describe(was->whole), " in ", was->cut.parts, " parts"});
  }
};

namespace detail {

/// Yields the places of rules in every fission, in the order of the fissions' first parts. A fission is made whole when its
/// first rule is asked for.
class rewrite_in_parts_stream {
 public:
  rewrite_in_parts_stream(candidate const& c, rewriter rules) : candidate_(&c), rules_(rules) {}

  std::optional<rewrite_in_parts> next() {
    if (!looked_) standing_ = standing_fissions(candidate_->graph, candidate_->order), looked_ = true;
    for (; fission_ < standing_.size(); ++fission_, was_.reset(), places_.reset()) {
      auto const number = standing_[fission_].number;
      if (!places_) {
        auto was = made_whole(*candidate_, number);
        if (!was) continue;
        was_ = std::make_unique<whole_again>(std::move(*was));  // where it stays
        at_ = positions(was_->whole.order);
        places_.emplace(was_->whole, rules_.rules, rules_.check);
      }
      while (auto const found = places_->next())
        if (is_inside(found->root) && (found->second == nothing<op_id> || is_inside(found->second)))
          return rewrite_in_parts{number, *found};
    }
    return std::nullopt;
  }

 private:
  bool is_inside(op_id o) const { return at_[o] >= was_->cut.first && at_[o] <= was_->cut.last; }

  candidate const* candidate_;
  rewriter rules_;
  bool looked_ = false;
  plain_vector<standing_fission> standing_;
  std::size_t fission_ = 0;
  std::unique_ptr<whole_again> was_;
  table<op_id, std::uint32_t> at_;
  std::optional<rewrite_stream> places_;
};

}  // namespace detail

/// The mutator: `rewrite_in_parts` for every place of a list of rules in every fission that stands in a candidate.
struct rewriter_in_parts {
  static constexpr permissions allows{.rewrite = true};

  rewriter rules;

  auto operator()(candidate const& c) const { return detail::rewrite_in_parts_stream(c, rules); }
};

/// The same rules, inside fissions: `in_parts(taso_rules{})`.
constexpr rewriter_in_parts in_parts(rewriter rules) { return {rules}; }

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/mutate/impl/rules_in_parts.ipp>
#endif
