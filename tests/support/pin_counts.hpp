// Random pins, and what a planned graph does to pinned ops and values, counted op by op.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/operators/parts.hpp>
#include <neap/ir/operators/transfer.hpp>
#include <neap/ir/pin_rules.hpp>

#include <string>
#include <vector>

namespace neap::testing {

/// The graph with pins on about one op in `one_in`; pins that exclude each other are left out.
template <class G>
G randomly_pinned(G const& g, std::uint64_t seed, std::uint32_t one_in = 5) {
  random_stream draw(seed, 91);
  graph_editor edit(g);
  constexpr pin all[] = {pin::keep, pin::run_again, pin::run_once, pin::never_in_parts, pin::never_out};
  for (auto o : g.ops())
    while (draw.below(one_in) == 0) {
      try {
        auto const p = all[draw.below(5)];
        auto const outputs = g.outputs(o);
        if (draw.below(2) == 0 || outputs.empty()) edit.add_pins(o, p);
        else edit.add_pins(outputs[draw.below(static_cast<std::uint32_t>(outputs.size()))], p);
      } catch (error const&) {}  // an update cannot run again
    }
  return G(std::move(edit).finish());
}

struct pin_counts {
  std::size_t again = 0, in_parts = 0, out = 0;  // ops run again, ops in parts, storages out: of those that are pinned
  std::size_t missing = 0;
  std::string first;  // what breaks a pin
  bool none() const { return first.empty(); }
};

/// Counts what a planned graph does that the pins of `original` forbid.
inline pin_counts broken_pins(op_graph const& original, op_graph const& g) {
  pin_counts n;
  auto const note = [&](std::size_t& count, std::string const& what) {
    ++count;
    if (n.first.empty()) n.first = what;
  };
  auto const is = [](op_graph const& in, op_id o, pin_set p) { return in.pins(o).has_any(p); };
  for (auto o : original.ops()) {
    if (original.pins(o).empty()) continue;
    auto const who = std::string(original.facets(o).name) + " #" + std::to_string(index(o)) + " (" +
                     to_string(original.pins(o)) + ")";
    std::size_t runs = 0, parts = 0, like = 0;
    for (auto x : original.ops()) like += original.origin(x) == original.origin(o);
    for (auto x : g.ops()) {
      if (g.origin(x) != original.origin(o)) continue;
      ++runs;
      parts += g.record(x).part != nothing<part_id>;
    }
    bool const once = is(original, o, pin::keep | pin::run_once);
    if (once && runs > like) note(n.again, who + " runs " + std::to_string(runs) + " times");
    if (is(original, o, pin::keep | pin::run_once | pin::never_in_parts) && parts > 0)
      note(n.in_parts, who + " in parts");
    bool const stays = once || is(original, o, pin::never_in_parts | pin::never_out);
    if (stays && runs == 0) note(n.missing, who + " does not run");
  }
  // Every storage that is stored: values on it that pinned ops make, and those that were joined into it.
  std::vector<op_id> of(original.origin_count(), nothing<op_id>);
  for (auto o : original.ops()) of[index(original.origin(o))] = o;
  for (auto s : g.ops()) {
    if (!g.as<op::store>(s)) continue;
    auto const stored = g.storage(g.inputs(s)[0]);
    auto const look = [&](value_id v) {
      auto const o = g.producer(v);
      if (o == nothing<op_id> || index(g.origin(o)) >= of.size() || of[index(g.origin(o))] == nothing<op_id>) return;
      auto const x = of[index(g.origin(o))];
      auto const j = index(v) - index(g.outputs(o).front());
      if (original.pins(original.outputs(x)[j]).has_any(pin::keep | pin::never_out))
        note(n.out, std::string(original.facets(x).name) + " #" + std::to_string(index(x)) + " is swapped out");
    };
    for (auto v : g.values()) {
      if (g.storage(v) != stored) continue;
      look(v);
      auto const o = g.producer(v);
      if (o != nothing<op_id> && (g.as<op::place>(o) || g.as<op::combine_into>(o)))
        for (auto x : g.inputs(o)) look(x);
    }
  }
  return n;
}

}  // namespace neap::testing
