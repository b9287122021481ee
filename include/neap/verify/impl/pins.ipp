// The bodies of <neap/verify/pins.hpp>.
#pragma once

#include <neap/verify/pins.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/ir/operators/movement.hpp>
#include <neap/ir/operators/parts.hpp>
#include <neap/ir/operators/split.hpp>
#include <neap/ir/operators/unary.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail { namespace plan_check {

class pin_check {
 public:
  pin_check(op_graph const& original, op_graph const& g, verification& out)
      : original_(original),
        g_(g),
        out_(out),
        of_origin_(original.origin_count(), nothing<op_id>),
        runs_(original.origin_count()),
        wanted_(original.origin_count()) {}

  void operator()() {
    bool any = false;
    for (auto o : original_.ops()) {
      any = any || !original_.pins(o).empty();
      auto const i = index(original_.origin(o));
      ++wanted_[i];
      if (of_origin_[i] == nothing<op_id> || !original_.pins(o).empty()) of_origin_[i] = o;
    }
    if (!any) return;
    for (auto o : g_.ops()) {
      if (is_store(g_, o)) check_store(o);
      if (is_transfer(g_, o)) continue;
      auto const x = original_of(o);
      if (x == nothing<op_id>) continue;
      ++runs_[index(g_.origin(o))];
      auto const pins = original_.pins(x);
      if (g_.record(o).part != nothing<part_id> && pins.has_any(pin::keep | pin::run_once | pin::never_in_parts))
        report(o, name(original_, x) + " of the original runs in parts", pins);
    }
    for (std::size_t i = 0; i < of_origin_.size(); ++i) {
      if (of_origin_[i] == nothing<op_id>) continue;
      auto const pins = original_.pins(of_origin_[i]);
      auto const who = name(original_, of_origin_[i]) + " of the original ";
      bool const once = pins.has_any(pin::keep | pin::run_once);
      if (once && runs_[i] > wanted_[i])
        report(nothing<op_id>, who + "runs " + std::to_string(runs_[i]) + " times", pins);
      if (once ? runs_[i] < wanted_[i] : pins.has_any(pin::never_in_parts | pin::never_out) && runs_[i] == 0)
        report(nothing<op_id>, who + "does not run", pins);
    }
  }

 private:
  static std::string name(op_graph const& g, op_id o) {
    auto const* x = g.as<op::opaque>(o);
    std::string s = "op " + std::to_string(index(o)) + " (" + std::string(x ? g.text(x->target) : g.facets(o).name);
    if (auto const given = g.name(o); !given.empty()) s += " ", s += given;
    return s + ")";
  }
  void report(op_id o, std::string what, pin_set pins) {
    out_.add({violation_kind::broken_pin, no_id, o, nothing<storage_id>,
              std::move(what) + ", and is pinned " + to_string(pins)});
  }
  op_id original_of(op_id o) const {
    auto const i = index(g_.origin(o));
    return i < of_origin_.size() ? of_origin_[i] : nothing<op_id>;
  }
  /// Whether what an op makes is what it reads, or a part of it, at other places or in another type.
  bool moves_elements(op_id o) const {
    return g_.as<op::place>(o) || g_.as<op::combine_into>(o) || g_.as<op::copy>(o) || g_.as<op::cast>(o) ||
           g_.as<op::reshape>(o) || g_.as<op::slice>(o) || g_.as<op::permute>(o) || g_.as<op::split>(o) ||
           g_.as<op::pad>(o) || g_.as<op::concat>(o) || g_.as<op::broadcast_to>(o);
  }
  /// What is stored: the value, all that it is a view of, and what it was copied or put together from.
  void check_store(op_id store) {
    std::vector<value_id> open(g_.inputs(store).begin(), g_.inputs(store).end());
    std::vector<bool> seen(g_.value_count());
    while (!open.empty()) {
      auto const v = open.back();
      open.pop_back();
      if (seen[index(v)]) continue;
      seen[index(v)] = true;
      auto const o = g_.producer(v);
      if (o == nothing<op_id>) {
        check_source(store, v);
        continue;
      }
      if (auto const base = g_.base(v); base != nothing<value_id>) open.push_back(base);
      if (is_load(g_, o)) {
        if (auto const from = stored_by(g_, g_.inputs(o)[0]); from != nothing<op_id>)
          open.push_back(g_.inputs(from)[0]);
        continue;
      }
      auto const x = original_of(o);
      if (x != nothing<op_id>) {
        auto const j = index(v) - index(g_.outputs(o).front());
        if (j >= original_.outputs(x).size()) continue;
        auto const w = original_.outputs(x)[j];
        if (auto const pins = original_.pins(w); pins.has_any(pin::keep | pin::never_out))
          report(store, "what " + name(original_, x) + " of the original makes is swapped out", pins);
        continue;
      }
      if (moves_elements(o)) open.insert(open.end(), g_.inputs(o).begin(), g_.inputs(o).end());
      if (auto const p = g_.producer(g_.inputs(o).empty() ? v : g_.inputs(o)[0]);
          g_.as<op::mul_scalar>(o) && p != nothing<op_id> && g_.as<op::combine_into>(p))
        open.push_back(g_.inputs(o)[0]);
    }
  }
  void check_source(op_id store, value_id v) {
    for (std::size_t i = 0; i < g_.sources().size() && i < original_.sources().size(); ++i)
      if (g_.sources()[i] == v)
        if (auto const pins = original_.pins(original_.sources()[i]); pins.has_any(pin::keep | pin::never_out))
          report(store, "source " + std::to_string(i) + " is swapped out", pins);
  }

  op_graph const& original_;
  op_graph const& g_;
  verification& out_;
  std::vector<op_id> of_origin_;  // the pinned one, if there is one
  std::vector<std::size_t> runs_, wanted_;
};

NEAP_FUNC void check_pins(op_graph const& original, op_graph const& g, verification& out) {
  pin_check check(original, g, out);
  check();
}

}}}}  // namespace neap::v0::detail::plan_check
