// The first half of the verifier: does the planned graph compute what the original computes, each update once?
#pragma once

#include <neap/verify/pieces.hpp>
#include <neap/verify/rewritten.hpp>
#include <neap/verify/value_numbers.hpp>
#include <neap/verify/views.hpp>
#include <neap/verify/violation.hpp>
#include <neap/verify/whole_program.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail::verifying {

inline std::string describe(op_graph const& g, op_id o) {
  std::string s = "op " + std::to_string(index(o)) + " (";
  auto const* x = g.as<op::opaque>(o);
  s += x ? g.text(x->target) : g.facets(o).name;
  if (auto const name = g.name(o); !name.empty()) s += " ", s += name;
  return s + ")";
}

/// Whether the arguments of an op are those of an op of the original, whatever way they are computed.
inline bool same_arguments(op_graph const& original, op_id x, op_graph const& g, op_id o, rewritten& rewrites) {
  auto const a = g.inputs(o), b = original.inputs(x);
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!rewrites.same(a[i], b[i])) return false;
  return true;
}

/// Compares a graph with another one, value by value; whether some of it is computed otherwise.
inline bool check_values(op_graph const& original, op_graph const& g, hash_key key, verification& out) {
  using kind = violation_kind;
  auto const report = [&](kind k, op_id o, std::string what) {
    out.add({k, no_id, o, nothing<storage_id>, std::move(what)});
  };

  numbers was(original, key);
  for (auto o : was.order) was.add(original, o);
  // Ops of the original by origin: the first one, and after each the next; and the numbers of those that count.
  std::vector<op_id> first_of(original.origin_count(), nothing<op_id>);
  table<op_id, op_id> next_of(original.op_count(), nothing<op_id>);
  std::vector<std::pair<digest, op_id>> counted;
  for (std::size_t i = original.op_count(); i-- > 0;) {
    auto const o = id_at<op_id>(i);
    if (is_transfer(original, o)) continue;
    auto& first = first_of[index(original.origin(o))];
    next_of[o] = std::exchange(first, o);
    if (runs_at_most_once(original, o)) counted.emplace_back(was.op[o], o);
  }
  std::sort(counted.begin(), counted.end());
  auto const of_origin = [&](op_id origin) {
    return index(origin) < first_of.size() ? first_of[index(origin)] : nothing<op_id>;
  };
  std::vector<digest> known;  // all numbers, computed at the first use
  auto const is_of_original = [&](digest d) {
    if (known.empty()) {
      for (auto o : original.ops())
        if (!is_transfer(original, o)) known.push_back(was.op[o]);
      std::sort(known.begin(), known.end());
    }
    return std::binary_search(known.begin(), known.end(), d);
  };

  // An op that may run once only, of this number; nothing if another op of the original has that number too.
  bool const any_pins = original.has_pins();
  auto const pinned_of = [&](digest d) {
    op_id found = nothing<op_id>;
    if (!any_pins) return found;
    for (auto o : original.ops()) {
      if (is_transfer(original, o) || was.op[o] != d) continue;
      if (!original.pins(o).has_any(pin::keep | pin::run_once)) return nothing<op_id>;
      found = o;
    }
    return found;
  };

  // sources: the same, in the same order
  numbers now(g, key);
  if (g.sources().size() != original.sources().size())
    report(kind::source_changed, nothing<op_id>,
           std::to_string(g.sources().size()) + " sources where the original has " +
               std::to_string(original.sources().size()));
  for (std::size_t i = 0; i < std::min(g.sources().size(), original.sources().size()); ++i) {
    auto const a = g.sources()[i], b = original.sources()[i];
    if (now.value[a] != was.value[b])
      report(kind::source_changed, nothing<op_id>, "source " + std::to_string(i) + " has another role, type or size");
    if (g.record(g.storage(a)).first == a && g.name(a) != original.name(b))  // views of it have none in a file
      report(kind::name_changed, nothing<op_id>,
             "source " + std::to_string(i) + " is called \"" + std::string(g.name(a)) + "\", in the original \"" +
                 std::string(original.name(b)) + "\"");
  }

  // ops: each has the number of one of the original's
  std::vector<digest> ran;  // the numbers of those that count
  rewritten rewrites(original, was, g, now);
  pieces cut(original, was, g, now, rewrites);
  std::size_t done = 0;
  bool otherwise = false;  // whether ops are fused that are not fused in the original, or the other way round
  bool original_fuses = false;
  for (auto o : original.ops()) original_fuses = original_fuses || has_steps(original, o);
  if (now.order.size() != g.op_count())
    report(kind::read_before_made, nothing<op_id>, "the planned graph has a circle");
  for (auto o : now.order) {
    rewrites.numbered(done++);
    now.add(g, o);
    if (is_transfer(g, o)) {
      bool ok = g.inputs(o).size() == 1 && g.outputs(o).size() == 1;
      if (ok) {
        auto const in = g.inputs(o)[0];
        auto a = g.layout(in), b = g.layout(g.output(o));
        a.offset = b.offset = 0;  // a load makes a storage of its own
        ok = a == b && (is_store(g, o) || stored_by(g, in) != nothing<op_id>);
      }
      if (!ok)
        report(kind::bad_transfer, o, describe(g, o) + " is not a store or load of one value, or a wait for its store");
      continue;
    }
    auto const check_views = [&](op_id x) {
      if (!shows_the_same(original, was, x, g, now, o))
        report(kind::type_changed, o,
               describe(g, o) + " shows other elements than " + describe(original, x) +
                   " of the original: its layout, or that of what it is a view of, differs");
      if (!writes_over_the_same(original, was, x, g, now, o))
        report(kind::input_changed, o,
               describe(g, o) + " writes over other bytes than " + describe(original, x) +
                   " of the original: what it writes over has another layout, lies in another storage, or beside it "
                   "there lies something else");
    };
    // What was it meant to be? The original op of its origin, the one most alike.
    op_id meant = nothing<op_id>;
    int likeness = -1;
    for (auto x = of_origin(g.origin(o)); x != nothing<op_id>; x = next_of[x]) {
      int const l = was.op[x] == now.op[o] ? 4 : (was.plain[x] == now.plain[o]) * 2 + (was.types[x] == now.types[o]);
      if (l > likeness) likeness = l, meant = x;
      if (l == 4) break;
    }
    // What is pinned may not be a step of an op that the original has not: it would run there, perhaps once more.
    bool const with_steps = likeness < 4 && has_steps(g, o);
    otherwise = otherwise || with_steps;
    if (with_steps && any_pins)
      now.each_step(g, o, [&](digest d) {
        if (auto const x = pinned_of(d); x != nothing<op_id> && d != now.op[o])
          report(kind::broken_pin, o,
                 describe(g, o) + " has " + describe(original, x) + " of the original as a step, which is pinned " +
                     to_string(original.pins(x)));
      });
    if (likeness == 4) {
      if (g.record(o).part != nothing<part_id>)
        report(kind::not_a_part, o, describe(g, o) + " says that it is a part, and is the whole op");
      if (g.name(o) != original.name(meant))
        report(kind::name_changed, o, describe(g, o) + " is " + describe(original, meant) + " of the original");
      check_views(meant);
      if (runs_at_most_once(original, meant)) ran.push_back(now.op[o]);
      continue;
    }
    if (meant == nothing<op_id> && cut.add_helper(o)) continue;
    // The original's op, of arguments that are the original's, if not computed as there.
    if (meant != nothing<op_id> && was.plain[meant] == now.plain[o] && was.types[meant] == now.types[o] &&
        g.record(o).part == nothing<part_id> && same_arguments(original, meant, g, o, rewrites)) {
      if (g.name(o) != original.name(meant))
        report(kind::name_changed, o, describe(g, o) + " is " + describe(original, meant) + " of the original");
      check_views(meant);
      now.set_as(g, o, was, original, meant);
      if (runs_at_most_once(original, meant)) ran.push_back(now.op[o]);
      continue;
    }
    if (is_of_original(now.op[o])) {
      if (meant == nothing<op_id> && rewrites.may_be(o)) {  // a rewrite has come upon something that was there
        if (auto const x = pinned_of(now.op[o]); x != nothing<op_id>)
          report(kind::broken_pin, o,
                 describe(g, o) + " computes " + describe(original, x) + " of the original again, which is pinned " +
                     to_string(original.pins(x)));
        continue;
      }
      report(kind::unknown_op, o, describe(g, o) + " is another op of the original than its origin says");
      if (runs_at_most_once(g, o)) ran.push_back(now.op[o]);
      continue;
    }
    if (meant == nothing<op_id>) {
      if (!rewrites.take(o)) report(kind::unknown_op, o, describe(g, o) + " is not in the original");
      otherwise = otherwise || original_fuses;
      continue;
    }
    std::string no_part;
    if (g.record(o).part != nothing<part_id> && cut.add_part(meant, o, no_part)) {
      if (g.name(o) != original.name(meant))
        report(kind::name_changed, o,
               describe(g, o) + " is a part of " + describe(original, meant) + " of the original");
      continue;
    }
    auto const who = describe(g, o) + " is not " + describe(original, meant) + " of the original: ";
    if (!no_part.empty()) {
      report(kind::not_a_part, o,
             describe(g, o) + " is no part of " + describe(original, meant) + " of the original: " + no_part);
    } else if (was.plain[meant] != now.plain[o]) {
      report(kind::operator_changed, o, who + "another operator, attribute or random key");
    } else if (was.types[meant] != now.types[o]) {
      report(kind::type_changed, o, who + "its outputs have other types, layouts or sizes");
    } else {
      std::string where = "another number of arguments";
      auto what = kind::input_changed;
      auto const a = g.inputs(o), b = original.inputs(meant);
      for (std::size_t i = 0; a.size() == b.size() && i < a.size(); ++i)
        if (now.value[a[i]] != was.value[b[i]]) {
          where = "argument " + std::to_string(i) + " is another value";
          if (!is_pinned(original, b[i])) break;
          auto const maker = original.producer(b[i]);
          where += " than " + describe(original, maker) + " makes, which is pinned " + to_string(original.pins(maker));
          what = kind::broken_pin;
          break;
        }
      report(what, o, who + where);
    }
    if (g.outputs(o).size() == original.outputs(meant).size())
      now.set_as(g, o, was, original, meant);  // so that readers are not blamed
    if (runs_at_most_once(original, meant)) ran.push_back(was.op[meant]);
  }

  // ops that count: as often as in the original
  std::sort(ran.begin(), ran.end());
  for (std::size_t i = 0, next = 0; i < counted.size(); i = next) {
    auto const [number, o] = counted[i];
    while (next < counted.size() && counted[next].first == number) ++next;
    auto const [first, last] = std::equal_range(ran.begin(), ran.end(), number);
    auto const have = static_cast<std::size_t>(last - first);
    if (have < next - i && runs_exactly_once(original, o))
      report(kind::missing_op, nothing<op_id>, describe(original, o) + " of the original does not run");
    if (have > next - i)
      report(kind::repeated_op, nothing<op_id>, describe(original, o) + " of the original runs more than once");
  }

  rewrites.numbered(now.order.size());
  // what is stored: not what may never leave, whichever op computes it
  if (any_pins) {
    std::vector<digest> free;  // numbers of values that may leave
    for (auto v : original.values())
      if (!original.pins(v).has_any(pin::keep | pin::never_out)) free.push_back(was.value[v]);
    std::sort(free.begin(), free.end());
    for (auto o : now.order) {
      if (!is_store(g, o) || g.inputs(o).size() != 1) continue;
      auto const v = g.inputs(o)[0];
      for (auto w : original.values())
        if (original.pins(w).has_any(pin::keep | pin::never_out) &&
            !std::binary_search(free.begin(), free.end(), was.value[w]) &&
            (now.value[v] == was.value[w] || (rewrites.makes(v) && rewrites.computes_pinned(v, w))))
          report(kind::broken_pin, o,
                 describe(g, o) + " stores what is pinned in the original: " + to_string(original.pins(w)));
    }
  }

  // what is kept: the same values in the same order
  if (g.kept().size() != original.kept().size())
    report(kind::output_changed, nothing<op_id>,
           std::to_string(g.kept().size()) + " values are kept, " + std::to_string(original.kept().size()) +
               " in the original");
  for (std::size_t i = 0; i < std::min(g.kept().size(), original.kept().size()); ++i) {
    auto const a = g.kept()[i], b = original.kept()[i];
    bool const same = g.layout(a) == original.layout(b) &&
                      (now.value[a] == was.value[b] || (g.producer(a) != nothing<op_id> && rewrites.same(a, b)));
    if (!same || g.role(a) != original.role(b))
      report(kind::output_changed, g.producer(a), "kept value " + std::to_string(i) + " is not the original's");
  }

  // what is written must be the storage that the original writes
  table<storage_id, storage_id> lies_in(g.storage_count(), nothing<storage_id>);
  for (std::size_t i = 0; i < std::min(g.kept().size(), original.kept().size()); ++i) {
    auto const s = g.storage(g.kept()[i]), t = original.storage(original.kept()[i]);
    if (lies_in[s] == nothing<storage_id>) lies_in[s] = t;
    if (lies_in[s] != t || g.is_resident(s) != original.is_resident(t))
      report(kind::output_changed, g.producer(g.kept()[i]),
             "kept value " + std::to_string(i) + " shares a storage that it does not share in the original");
    else if (g.bytes(s) != original.bytes(t) && now.value[g.kept()[i]] == was.value[original.kept()[i]])
      report(kind::output_changed, g.producer(g.kept()[i]),
             "kept value " + std::to_string(i) + " lies in a storage of another size than in the original");
  }
  for (auto o : now.order)
    if (updates_in_place(g, o))
      for (auto x = of_origin(g.origin(o)); x != nothing<op_id>; x = next_of[x]) {
        if (was.op[x] != now.op[o]) continue;
        for (std::size_t j = 0; j < g.outputs(o).size(); ++j) {
          auto const &s = g.record(g.storage(g.outputs(o)[j])),
                     &t = original.record(original.storage(original.outputs(x)[j]));
          if (s.resident != t.resident || (t.resident && now.value[s.first] != was.value[t.first]))
            report(kind::type_changed, o, describe(g, o) + " writes over another storage than in the original");
        }
        break;
      }
  return rewrites.any() || otherwise;
}

/// Compares the planned graph with the original; whether some of it is computed otherwise. Where parts are not those of the
/// original's ops, they may be those of what rules have made of it: then by way of that program (whole_program.hpp).
/// O((ops + edges) log ops), and what evaluating rewritten pieces costs.
inline bool check_what_is_computed(op_graph const& original, op_graph const& g, hash_key key, verification& out) {
  bool const needed = runs_parts_of_others(original, g);  // else there is a good chance that that way is not
  verification direct;
  bool const rewritten = !needed && check_values(original, g, key, direct);
  std::optional<verification> by_way;
  std::vector<op_id> order;
  if (needed || (!direct.ok() && g.runs_in_parts())) order = data_order(g);
  bool more = !order.empty() && order.size() == g.op_count();
  for (int choice = 0; more && choice < 24; ++choice) {
    whole_program made(original, g, choice);
    auto const whole = made.build(order);
    more = made.has_more_choices();
    if (!whole) continue;
    verification of_whole, found;
    check_values(original, *whole, key, of_whole);
    check_values(*whole, g, key, found);
    if (of_whole.ok() && found.ok()) return true;
    if (by_way) continue;
    for (auto v : of_whole.violations()) {
      v.op = nothing<op_id>, v.message = "with its parts made whole, " + v.message;
      found.add(std::move(v));
    }
    by_way = std::move(found);
  }
  if (needed && !by_way) check_values(original, g, key, direct);
  for (auto const& v : (needed && by_way ? *by_way : direct).violations()) out.add(v);
  return rewritten;
}

}}}  // namespace neap::v0::detail::verifying
