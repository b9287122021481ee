// Moves over fissions that stand in a candidate: `lift` makes one whole again, `fission_factor` cuts it into more or fewer
// parts.
//
//   parts   a0 = slice(x), b0 = f(a0), y0 = place(blank, b0), a1 = slice(x), b1 = f(a1), y1 = place(y0, b1), g(y1)
//   lifted  b = f(x), g(b)
//
// Each part knows what it was cut from (op_graph::whole). The first part says in which order the whole ops run, and what was
// done to it since - moved, computed again - is done to them; what slices, stores or joins pieces goes.
//
// After MAGIS (ASPLOS'24), which dissolves the deepest level of nested regions and moves to the neighbouring divisor.
#pragma once

#include <neap/core/number_map.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/ir/editor.hpp>
#include <neap/mutate/fission.hpp>
#include <neap/mutate/mutator.hpp>
#include <neap/mutate/ranked_stream.hpp>

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace neap { inline namespace v0 {

namespace detail {

/// The graph and the order in which the ops of a fission are whole; nothing if something reads pieces otherwise than the
/// fission has it. None of its parts is cut once more. `cut`, if not null: the fission that would cut them again; nothing if
/// no op is there that was not there before.
std::optional<edited> with_whole_ops(op_graph const& g, schedule const& order, std::uint32_t fission,
                                     std::optional<fission_of>* cut = nullptr);

/// A fission that stands in a candidate.
struct standing_fission {
  std::uint32_t number = 0;  // whole_op::fission
  std::int64_t parts = 0;
  std::int64_t extent = 0;  // of the first axis that it cuts
};
/// All of them, in the order of their first parts. O(ops).
plain_vector<standing_fission> standing_fissions(op_graph const& g, schedule const& order);
/// The fission, or one that cuts its parts once more and is cut no more itself. O(ops) for each level.
std::uint32_t innermost_of(op_graph const& g, std::uint32_t fission);

/// A candidate (without its simulation) in which the ops of a fission are whole again, and the fission that cuts them.
struct whole_again {
  candidate whole;
  fission_of cut;
};
/// Nothing if the parts are cut once more, or something reads pieces otherwise than the fission has it.
inline std::optional<whole_again> made_whole(candidate const& c, std::uint32_t fission) {
  if (innermost_of(c.graph, fission) != fission) return std::nullopt;
  std::optional<fission_of> cut;
  auto e = with_whole_ops(c.graph, c.order, fission, &cut);
  if (!e || !cut) return std::nullopt;
  return whole_again{{op_graph(std::move(e->graph)), std::move(e->order), {}}, *cut};
}

}  // namespace detail

/// The ops of a fission are whole again: what runs in parts of its parts first of all.
struct lift_of {
  std::uint32_t fission = 0;  // its number: whole_op::fission

  friend bool operator==(lift_of const&, lift_of const&) = default;

  std::optional<edited> apply(candidate const& c) const {
    std::optional<edited> out;
    for (;;) {
      op_graph const& g = out ? out->graph : c.graph;
      auto const& order = out ? out->order : c.order;
      auto const next = detail::innermost_of(g, fission);
      auto e = detail::with_whole_ops(g, order, next);
      if (!e) return std::nullopt;
      out = edited{op_graph(std::move(e->graph)), std::move(e->order)};
      if (next == fission) return out;
    }
  }
  std::string describe(candidate const& c) const {
    for (auto const& f : detail::standing_fissions(c.graph, c.order))
      if (f.number == fission) return detail::text_of({"make whole what runs in ", f.parts, " parts"});
    return "make whole what runs in parts";
  }
};

/// A fission has another number of parts: its ops are made whole, and cut anew.
struct factor_of {
  std::uint32_t fission = 0;  // its number: whole_op::fission
  std::int64_t parts = 2;

  friend bool operator==(factor_of const&, factor_of const&) = default;

  /// Nothing if the parts are cut once more: those would have to be lifted first.
  std::optional<edited> apply(candidate const& c) const {
    auto was = detail::made_whole(c, fission);
    if (!was || was->cut.parts == parts) return std::nullopt;
    was->cut.parts = parts;
    return was->cut.apply(was->whole);
  }
  std::string describe(candidate const& c) const {
    std::string from;
    for (auto const& f : detail::standing_fissions(c.graph, c.order))
      if (f.number == fission) from = "what runs in " + std::to_string(f.parts) + " parts in ";
    return detail::text_of({"run ", from, parts, " parts"});
  }
};

namespace detail {

/// Lifts of all fissions, in the order of their first parts.
struct lifts {
  plain_vector<scored<lift_of>> operator()(candidate const& c) const {
    plain_vector<scored<lift_of>> found;
    for (auto const& f : standing_fissions(c.graph, c.order)) found.push_back({0, {f.number}});
    return found;
  }
};

/// The next fewer and the next more parts of all fissions.
struct factors {
  plain_vector<scored<factor_of>> operator()(candidate const& c) const {
    plain_vector<scored<factor_of>> found;
    for (auto const& f : standing_fissions(c.graph, c.order))
      for (int step : {-1, 1}) {
        auto n = f.parts + step;
        while (n > 1 && n <= f.extent && f.extent % n != 0) n += step;
        if (n > 1 && n <= f.extent) found.push_back({0, {f.number, n}});
      }
    return found;
  }
};

}  // namespace detail

/// The mutator: `lift_of` for every fission that stands in a candidate.
struct lift {
  auto operator()(candidate const& c) const { return detail::ranked_stream<lift_of, detail::lifts>(c, {}); }
};

/// The mutator: `factor_of` for every fission that stands in a candidate, with the next fewer and the next more parts that
/// divide the first axis it cuts.
struct fission_factor {
  auto operator()(candidate const& c) const { return detail::ranked_stream<factor_of, detail::factors>(c, {}); }
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/mutate/impl/lift.ipp>
#endif
