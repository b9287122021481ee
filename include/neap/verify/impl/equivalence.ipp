// The bodies of <neap/verify/equivalence.hpp>.
#pragma once

#include <neap/verify/equivalence.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/verify/rewritten.hpp>
#include <neap/verify/value_numbers.hpp>
#include <neap/verify/views.hpp>
#include <neap/verify/whole_program.hpp>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail { namespace plan_check {

NEAP_FUNC std::string describe(op_graph const& g, op_id o) {
  std::string s = "op " + std::to_string(index(o)) + " (";
  auto const* x = g.as<op::opaque>(o);
  s += x ? g.text(x->target) : g.facets(o).name;
  if (auto const name = g.name(o); !name.empty()) s += " ", s += name;
  return s + ")";
}

/// Whether the arguments of an op are those of an op of the original, whatever way they are computed.
NEAP_FUNC bool same_arguments(op_graph const& original, op_id x, op_graph const& g, op_id o, rewritten& rewrites) {
  auto const a = g.inputs(o), b = original.inputs(x);
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!rewrites.same(a[i], b[i])) return false;
  return true;
}

/// The comparison of a graph with the original, value by value. `was`: the original's numbers.
class value_check {
 public:
  value_check(op_graph const& original, value_numbering const& was, op_graph const& g, hash_key key, verification& out)
      : original_(original),
        was_(was),
        g_(g),
        out_(out),
        first_of_(original.origin_count(), nothing<op_id>),
        next_of_(original.op_count(), nothing<op_id>),
        any_pins_(original.has_pins()),
        now_(g, key),
        rewrites_(original, was, g, now_),
        cut_(original, was, g, now_, rewrites_) {
    for (std::size_t i = original.op_count(); i-- > 0;) {
      auto const o = id_at<op_id>(i);
      if (is_transfer(original, o)) continue;
      auto& first = first_of_[index(original.origin(o))];
      next_of_[o] = std::exchange(first, o);
      if (runs_at_most_once(original, o)) counted_.emplace_back(was.op[o], o);
    }
    std::sort(counted_.begin(), counted_.end());
    for (auto o : original.ops()) original_fuses_ = original_fuses_ || fused_of(original, o) != nullptr;
  }

  /// Reports what differs; whether some of the graph is computed otherwise.
  bool operator()() {
    check_sources();
    check_ops();
    check_counts();
    rewrites_.numbered(now_.order.size());
    if (any_pins_) check_stores();
    check_kept();
    check_storages();
    check_updates();
    return rewrites_.any() || otherwise_;
  }

 private:
  using kind = violation_kind;
  void report(kind k, op_id o, std::string what) { out_.add({k, no_id, o, nothing<storage_id>, std::move(what)}); }

  op_id of_origin(op_id origin) const {
    return index(origin) < first_of_.size() ? first_of_[index(origin)] : nothing<op_id>;
  }
  bool is_of_original(digest d) {
    if (known_.empty()) {
      for (auto o : original_.ops())
        if (!is_transfer(original_, o)) known_.push_back(was_.op[o]);
      std::sort(known_.begin(), known_.end());
    }
    return std::binary_search(known_.begin(), known_.end(), d);
  }
  /// An op that may run once only, of this number; nothing if another op of the original has that number too.
  op_id pinned_of(digest d) const {
    op_id found = nothing<op_id>;
    if (!any_pins_) return found;
    for (auto o : original_.ops()) {
      if (is_transfer(original_, o) || was_.op[o] != d) continue;
      if (!original_.pins(o).has_any(pin::keep | pin::run_once)) return nothing<op_id>;
      found = o;
    }
    return found;
  }

  /// Sources: the same, in the same order.
  void check_sources() {
    if (g_.sources().size() != original_.sources().size())
      report(kind::source_changed, nothing<op_id>,
             std::to_string(g_.sources().size()) + " sources where the original has " +
                 std::to_string(original_.sources().size()));
    for (std::size_t i = 0; i < std::min(g_.sources().size(), original_.sources().size()); ++i) {
      auto const a = g_.sources()[i], b = original_.sources()[i];
      if (now_.value[a] != was_.value[b])
        report(kind::source_changed, nothing<op_id>, "source " + std::to_string(i) + " has another role, type or size");
      if (g_.record(g_.storage(a)).first == a && g_.name(a) != original_.name(b))  // views of it have none in a file
        report(kind::name_changed, nothing<op_id>,
               "source " + std::to_string(i) + " is called \"" + std::string(g_.name(a)) + "\", in the original \"" +
                   std::string(original_.name(b)) + "\"");
    }
  }

  /// Ops: each has the number of one of the original's.
  void check_ops() {
    if (now_.order.size() != g_.op_count())
      report(kind::read_before_made, nothing<op_id>, "the planned graph has a circle");
    std::size_t done = 0;
    for (auto o : now_.order) {
      rewrites_.numbered(done++);
      now_.add(g_, o);
      if (is_transfer(g_, o)) check_transfer(o);
      else check_op(o);
    }
  }
  void check_transfer(op_id o) {
    bool ok = g_.inputs(o).size() == 1 && g_.outputs(o).size() == 1;
    if (ok) {
      auto const in = g_.inputs(o)[0];
      auto a = g_.layout(in), b = g_.layout(g_.output(o));
      a.offset = b.offset = 0;  // a load makes a storage of its own
      ok = a == b && (is_store(g_, o) || stored_by(g_, in) != nothing<op_id>);
    }
    if (!ok)
      report(kind::bad_transfer, o, describe(g_, o) + " is not a store or load of one value, or a wait for its store");
  }
  void check_name(op_id o, op_id meant) {
    if (g_.name(o) != original_.name(meant))
      report(kind::name_changed, o, describe(g_, o) + " is " + describe(original_, meant) + " of the original");
  }
  void check_views(op_id o, op_id x) {
    if (!shows_the_same(original_, was_, x, g_, now_, o))
      report(kind::type_changed, o,
             describe(g_, o) + " shows other elements than " + describe(original_, x) +
                 " of the original: its layout, or that of what it is a view of, differs");
    if (!writes_over_the_same(original_, was_, x, g_, now_, o))
      report(kind::input_changed, o,
             describe(g_, o) + " writes over other bytes than " + describe(original_, x) +
                 " of the original: what it writes over has another layout, lies in another storage, or beside it "
                 "there lies something else");
  }
  /// The original op of its origin that is most alike, and how much: 4 is the same.
  std::pair<op_id, int> meant_by(op_id o) const {
    op_id meant = nothing<op_id>;
    int likeness = -1;
    for (auto x = of_origin(g_.origin(o)); x != nothing<op_id>; x = next_of_[x]) {
      int const l =
          was_.op[x] == now_.op[o] ? 4 : (was_.plain[x] == now_.plain[o]) * 2 + (was_.types[x] == now_.types[o]);
      if (l > likeness) likeness = l, meant = x;
      if (l == 4) break;
    }
    return {meant, likeness};
  }
  void check_op(op_id o) {
    auto const [meant, likeness] = meant_by(o);
    if (likeness < 4 && fused_of(g_, o)) {
      otherwise_ = true;
      if (any_pins_) check_steps(o);
    }
    if (likeness == 4) {
      if (g_.record(o).part != nothing<part_id>)
        report(kind::not_a_part, o, describe(g_, o) + " says that it is a part, and is the whole op");
      check_name(o, meant);
      check_views(o, meant);
      if (runs_at_most_once(original_, meant)) ran_.push_back(now_.op[o]);
      return;
    }
    if (meant == nothing<op_id> && cut_.add_helper(o)) return;
    // The original's op, of arguments that are the original's, if not computed as there.
    if (meant != nothing<op_id> && was_.plain[meant] == now_.plain[o] && was_.types[meant] == now_.types[o] &&
        g_.record(o).part == nothing<part_id> && same_arguments(original_, meant, g_, o, rewrites_)) {
      check_name(o, meant);
      check_views(o, meant);
      now_.set_as(g_, o, was_, original_, meant);
      if (runs_at_most_once(original_, meant)) ran_.push_back(now_.op[o]);
      return;
    }
    if (is_of_original(now_.op[o])) return check_other(o, meant);
    if (meant == nothing<op_id>) {
      if (!rewrites_.take(o)) report(kind::unknown_op, o, describe(g_, o) + " is not in the original");
      otherwise_ = otherwise_ || original_fuses_;
      return;
    }
    std::string no_part;
    if (g_.record(o).part != nothing<part_id> && cut_.add_part(meant, o, no_part)) {
      if (g_.name(o) != original_.name(meant))
        report(kind::name_changed, o,
               describe(g_, o) + " is a part of " + describe(original_, meant) + " of the original");
      return;
    }
    report_change(o, meant, no_part);
    if (g_.outputs(o).size() == original_.outputs(meant).size())
      now_.set_as(g_, o, was_, original_, meant);  // so that readers are not blamed
    if (runs_at_most_once(original_, meant)) ran_.push_back(was_.op[meant]);
  }
  /// What is pinned may not be a step of an op that the original has not: it would run there, perhaps once more.
  void check_steps(op_id o) {
    now_.each_step(g_, o, [&](digest d) {
      if (auto const x = pinned_of(d); x != nothing<op_id> && d != now_.op[o])
        report(kind::broken_pin, o,
               describe(g_, o) + " has " + describe(original_, x) + " of the original as a step, which is pinned " +
                   to_string(original_.pins(x)));
    });
  }
  /// An op with the number of another op of the original than its origin says.
  void check_other(op_id o, op_id meant) {
    if (meant == nothing<op_id> && rewrites_.may_be(o)) {  // a rewrite has come upon something that was there
      if (auto const x = pinned_of(now_.op[o]); x != nothing<op_id>)
        report(kind::broken_pin, o,
               describe(g_, o) + " computes " + describe(original_, x) + " of the original again, which is pinned " +
                   to_string(original_.pins(x)));
      return;
    }
    report(kind::unknown_op, o, describe(g_, o) + " is another op of the original than its origin says");
    if (runs_at_most_once(g_, o)) ran_.push_back(now_.op[o]);
  }
  /// How an op differs from the one that it was meant to be.
  void report_change(op_id o, op_id meant, std::string const& no_part) {
    auto const who = describe(g_, o) + " is not " + describe(original_, meant) + " of the original: ";
    if (!no_part.empty())
      return report(kind::not_a_part, o,
                    describe(g_, o) + " is no part of " + describe(original_, meant) + " of the original: " + no_part);
    if (was_.plain[meant] != now_.plain[o])
      return report(kind::operator_changed, o, who + "another operator, attribute or random key");
    if (was_.types[meant] != now_.types[o])
      return report(kind::type_changed, o, who + "its outputs have other types, layouts or sizes");
    std::string where = "another number of arguments";
    auto what = kind::input_changed;
    auto const a = g_.inputs(o), b = original_.inputs(meant);
    for (std::size_t i = 0; a.size() == b.size() && i < a.size(); ++i)
      if (now_.value[a[i]] != was_.value[b[i]]) {
        where = "argument " + std::to_string(i) + " is another value";
        if (!is_pinned(original_, b[i])) break;
        auto const maker = original_.producer(b[i]);
        where += " than " + describe(original_, maker) + " makes, which is pinned " + to_string(original_.pins(maker));
        what = kind::broken_pin;
        break;
      }
    report(what, o, who + where);
  }

  /// Ops that count: as often as in the original.
  void check_counts() {
    std::sort(ran_.begin(), ran_.end());
    for (std::size_t i = 0, next = 0; i < counted_.size(); i = next) {
      auto const [number, o] = counted_[i];
      while (next < counted_.size() && counted_[next].first == number) ++next;
      auto const [first, last] = std::equal_range(ran_.begin(), ran_.end(), number);
      auto const have = static_cast<std::size_t>(last - first);
      if (have < next - i && runs_exactly_once(original_, o))
        report(kind::missing_op, nothing<op_id>, describe(original_, o) + " of the original does not run");
      if (have > next - i)
        report(kind::repeated_op, nothing<op_id>, describe(original_, o) + " of the original runs more than once");
    }
  }
  /// What is stored: not what may never leave, whichever op computes it.
  void check_stores() {
    std::vector<digest> free;  // numbers of values that may leave
    for (auto v : original_.values())
      if (!original_.pins(v).has_any(pin::keep | pin::never_out)) free.push_back(was_.value[v]);
    std::sort(free.begin(), free.end());
    for (auto o : now_.order) {
      if (!is_store(g_, o) || g_.inputs(o).size() != 1) continue;
      auto const v = g_.inputs(o)[0];
      for (auto w : original_.values())
        if (original_.pins(w).has_any(pin::keep | pin::never_out) &&
            !std::binary_search(free.begin(), free.end(), was_.value[w]) &&
            (now_.value[v] == was_.value[w] || (rewrites_.makes(v) && rewrites_.computes_pinned(v, w))))
          report(kind::broken_pin, o,
                 describe(g_, o) + " stores what is pinned in the original: " + to_string(original_.pins(w)));
    }
  }
  /// What is kept: the same values in the same order.
  void check_kept() {
    if (g_.kept().size() != original_.kept().size())
      report(kind::output_changed, nothing<op_id>,
             std::to_string(g_.kept().size()) + " values are kept, " + std::to_string(original_.kept().size()) +
                 " in the original");
    for (std::size_t i = 0; i < std::min(g_.kept().size(), original_.kept().size()); ++i) {
      auto const a = g_.kept()[i], b = original_.kept()[i];
      bool const same = g_.layout(a) == original_.layout(b) &&
                        (now_.value[a] == was_.value[b] || (g_.producer(a) != nothing<op_id> && rewrites_.same(a, b)));
      if (!same || g_.role(a) != original_.role(b))
        report(kind::output_changed, g_.producer(a), "kept value " + std::to_string(i) + " is not the original's");
    }
  }
  /// What is kept lies in the storages of the original.
  void check_storages() {
    table<storage_id, storage_id> lies_in(g_.storage_count(), nothing<storage_id>);
    for (std::size_t i = 0; i < std::min(g_.kept().size(), original_.kept().size()); ++i) {
      auto const s = g_.storage(g_.kept()[i]), t = original_.storage(original_.kept()[i]);
      if (lies_in[s] == nothing<storage_id>) lies_in[s] = t;
      if (lies_in[s] != t || g_.is_resident(s) != original_.is_resident(t))
        report(kind::output_changed, g_.producer(g_.kept()[i]),
               "kept value " + std::to_string(i) + " shares a storage that it does not share in the original");
      else if (g_.bytes(s) != original_.bytes(t) && now_.value[g_.kept()[i]] == was_.value[original_.kept()[i]])
        report(kind::output_changed, g_.producer(g_.kept()[i]),
               "kept value " + std::to_string(i) + " lies in a storage of another size than in the original");
    }
  }
  /// What is written is the storage that the original writes.
  void check_updates() {
    for (auto o : now_.order) {
      if (!updates_in_place(g_, o)) continue;
      auto x = of_origin(g_.origin(o));
      while (x != nothing<op_id> && was_.op[x] != now_.op[o]) x = next_of_[x];
      if (x == nothing<op_id>) continue;
      for (std::size_t j = 0; j < g_.outputs(o).size(); ++j) {
        auto const &s = g_.record(g_.storage(g_.outputs(o)[j])),
                   &t = original_.record(original_.storage(original_.outputs(x)[j]));
        if (s.resident != t.resident || (t.resident && now_.value[s.first] != was_.value[t.first]))
          report(kind::type_changed, o, describe(g_, o) + " writes over another storage than in the original");
      }
    }
  }

  op_graph const& original_;
  value_numbering const& was_;
  op_graph const& g_;
  verification& out_;
  std::vector<op_id> first_of_;                    // ops of the original by origin: the first one
  table<op_id, op_id> next_of_;                    // and after each the next
  std::vector<std::pair<digest, op_id>> counted_;  // ops of the original that count
  std::vector<digest> ran_;                        // the numbers of those that run
  std::vector<digest> known_;                      // all numbers of the original, computed at the first use
  bool any_pins_;
  bool original_fuses_ = false;
  bool otherwise_ = false;  // ops are fused that are not fused in the original, or the other way round
  value_numbering now_;
  rewritten rewrites_;
  pieces cut_;
};

/// Compares a graph with another one, value by value; whether some of it is computed otherwise.
NEAP_FUNC bool check_values(op_graph const& original, op_graph const& g, hash_key key, verification& out) {
  value_numbering was(original, key);
  for (auto o : was.order) was.add(original, o);
  return value_check(original, was, g, key, out)();
}

NEAP_FUNC bool check_what_is_computed(op_graph const& original, op_graph const& g, hash_key key, verification& out) {
  bool const needed = runs_parts_of_others(original, g);  // else there is a good chance that that way is not
  verification direct;
  bool const rewritten = !needed && check_values(original, g, key, direct);
  std::optional<verification> by_way;
  std::vector<op_id> order;
  if (needed || (!direct.ok() && g.runs_in_parts())) order = data_order(g);
  bool more = !order.empty() && order.size() == g.op_count();
  for (int choice = 0; more && choice < 24; ++choice) {
    auto const [whole, has_more_choices] = whole_program_of(original, g, order, choice);
    more = has_more_choices;
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

}}}}  // namespace neap::v0::detail::plan_check
