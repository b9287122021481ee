// MAGIS's five pipelines as constants, made of this library's mutators: the search is given them as any other pipeline.
// (Its rules for swapping and recomputation are `rematerialize` and `swap`, what undoes them `de_rematerialize` and
// `de_swap`. Where its regions would be nested too deep, it dissolves the deepest level: `lift`.)
//
//   auto const found = optimize(step, magis_default, memory_limit::of_original(0.4));
#pragma once

#include <neap/mutate/chain.hpp>
#include <neap/mutate/fission_sweep.hpp>
#include <neap/mutate/lift.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/rules_in_parts.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/taso_rules.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/undo_moves.hpp>
#include <neap/mutate/zip.hpp>

namespace neap { inline namespace v0 {

/// What takes recomputations and swaps back.
inline constexpr auto undo_moves = zip(de_rematerialize{}, de_swap{});

/// What cuts a stretch into parts, what changes how many they are, and what makes them whole again.
inline constexpr auto fission_moves = chain(fission{}, fission_factor{}, lift{});

/// Rules, on ops that run in parts too.
inline constexpr auto rule_moves = chain(taso_rules{}, in_parts(taso_rules{}));

/// MAGIS's default (mlynar there): fission, then swaps and recomputations, then rules and what undoes the former.
inline constexpr auto magis_default = chain(fission_moves, zip(swap{}, rematerialize{}), chain(rule_moves, undo_moves));
/// The same (sustr) with bounded streams, rules and undoing in turn.
inline constexpr auto magis_bounded =
    chain(fission_moves, zip(swap{}, rematerialize{}) | truncate(100), zip(rule_moves, undo_moves) | truncate(100));
/// One of each kind in turn, 200 at most (chen).
inline constexpr auto magis_in_turn =
    zip(fission_moves, zip(swap{}, rematerialize{}), rule_moves, undo_moves) | truncate(200);
/// Fission alone (ines).
inline constexpr auto magis_fission = fission_moves;
/// All but fission (texas).
inline constexpr auto magis_without_fission = chain(zip(swap{}, rematerialize{}), chain(taso_rules{}, undo_moves));

}}  // namespace neap::v0
