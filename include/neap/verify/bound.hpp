// The lower bound of the peak that a plan may claim, worked out again from the graph alone: while an op runs, what it reads
// and what it makes is there, and at the end what is kept, both beside what is resident. It holds for every order, however
// often ops are computed again, stored and loaded (simulate/lower_bound.hpp, whose code this does not share).
#pragma once

#include <neap/ir/dataflow.hpp>
#include <neap/plan/simulation.hpp>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail::plan_check {

inline bytes_t rounded(bytes_t n, bytes_t to) { return (n + to - 1) / to * to; }

class peak_bound_check {
 public:
  peak_bound_check(op_graph const& g, memory_options options) : g_(g), options_(options) {
    for (auto s : g.storages())
      if (g.is_resident(s)) resident_ += bytes(s);
  }
  /// What is kept, and what is resident: each in its whole storage, or, of plans whose ops are rewritten, in the smallest
  /// that it may lie in.
  bytes_t at_end(bool rewritten) const {
    std::vector<bytes_t> kept(g_.storage_count(), 0);
    for (auto v : g_.kept())
      if (auto const s = g_.storage(v); !g_.is_resident(s))
        kept[index(s)] = std::max(kept[index(s)], rewritten ? least(v) : bytes(s));
    bytes_t bound = resident_;
    for (auto b : kept) bound += b;
    return bound;
  }
  /// Of plans that run ops in parts, if `in_parts`: the needs of an op that can be cut give no bound then.
  bytes_t operator()(bool in_parts) const {
    bytes_t bound = at_end(false);
    std::vector<input> in;  // one vector for all: a large graph has many ops
    for (auto o : g_.ops())
      if (!in_parts || g_.links(o).empty()) bound = std::max(bound, resident_ + beside_residents(o, in));
    return bound;
  }

 private:
  struct input {
    storage_id storage;
    bytes_t bytes;
    bool goes;
  };
  bytes_t bytes(storage_id s) const { return rounded(g_.bytes(s), options_.alignment); }
  bytes_t alone(value_id v) const { return rounded(g_.type(v).bytes(), options_.alignment); }
  /// An op can find a value in its storage, or in a loaded copy of it or of what it is a view of.
  bytes_t least(value_id v) const {
    auto n = std::min(bytes(g_.storage(v)), alone(v));
    for (auto b = g_.base(v); b != nothing<value_id>; b = g_.base(b)) n = std::min(n, alone(b));
    return n;
  }
  bool may_lie_in(value_id v, bytes_t n) const {
    if (bytes(g_.storage(v)) == n || alone(v) == n) return true;
    for (auto b = g_.base(v); b != nothing<value_id>; b = g_.base(b))
      if (alone(b) == n) return true;
    return false;
  }

  bytes_t beside_residents(op_id o, std::vector<input>& in) const {
    in.clear();
    bytes_t there = rounded(flow::workspace(g_, o), options_.alignment);
    for (auto v : g_.inputs(o)) {
      auto const s = g_.storage(v);
      if (g_.is_resident(s)) continue;
      auto const at = std::find_if(in.begin(), in.end(), [&](input const& x) { return x.storage == s; });
      if (at == in.end()) in.push_back({s, least(v), false});
      else at->bytes = std::max(at->bytes, least(v));
    }
    bytes_t replaced = 0;
    bool const in_place = options_.takeover && flow::takes_over(g_, o);
    for (auto v : g_.outputs(o)) {
      if (g_.record(v).alias != alias_kind::fresh) continue;
      auto const made = bytes(g_.storage(v));
      there += made;
      auto const base = g_.overwrites(v);  // an op writes there whatever the options say
      if ((!in_place && base == nothing<value_id>) || made == 0) continue;
      bytes_t most = 0;
      for (auto u : g_.inputs(o))
        if (base == nothing<value_id> || u == base)
          for (auto& x : in)
            if (x.storage == g_.storage(u) && may_lie_in(u, made)) x.goes = true, most = std::max(most, x.bytes);
      replaced += most;
    }
    bytes_t going = 0;
    for (auto const& x : in) {
      there += x.bytes;
      if (x.goes) going += x.bytes;
    }
    return there - std::min(replaced, going);
  }

  op_graph const& g_;
  memory_options options_;
  bytes_t resident_ = 0;
};

}}}  // namespace neap::v0::detail::plan_check
