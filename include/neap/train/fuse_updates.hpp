// Weight gradients that are products and whose only reader is the weight's update become one operator with it
// (op::matmul_update): the gradient is made and used up in parts, and never takes the memory of the whole. The update
// moves to where the product was, so that a gradient's operands live no longer than before.
//
// The values stay the same to the last bit. But the update must wait for the weight's other readers, so the product can
// be ordered less freely: a gradient is fused where it is larger than both of its operands, which are in memory beside it
// anyway, and where its product comes in parts (gemm_parts).
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/operators/matmul_update.hpp>
#include <neap/train/program_copy.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <utility>

namespace neap::inline v0 {

template <class G>
struct fused_updates {
  G program;
  table<value_id, value_id>
      value;                 // of the graph that was given -> of the program; nothing<value_id>: a fused gradient
  std::vector<op_id> fused;  // the updates that were, in the graph that was given
};

namespace detail {

struct update_to_fuse {
  op_id product, update;
  operator_facets const* facets;  // of the matmul_update, whose attributes are at `attributes` of the pass's bytes
  std::size_t attributes;
  std::size_t place;  // the position, by the ids of the graph that was given, behind which it comes
};

/// Finds the pairs and writes the graph anew; what is known of operators' types comes through `match`.
class update_fuser {
 public:
  NEAP_ONCE update_fuser(op_graph const& g, std::span<op_id const>* chosen)
      : g_(g),
        chosen_(chosen),
        gone_(g.op_count()),
        pulled_(g.op_count()) {
    if (!g.parts().empty()) throw_error({"fuse_updates: the graph has parts"});
    for (auto o : g.ops())
      for (auto v : g.inputs(o))
        if (auto const p = g.producer(v); p != nothing<op_id> && p > o)
          throw_error({"fuse_updates: op ", index(o), " reads what a later one makes"});
  }

  /// The product that makes the gradient of update o, if it is to be fused; and in how many parts.
  NEAP_ONCE std::pair<op::matmul const*, std::int64_t> product_of(op_id o) const {
    if (g_.inputs(o).size() < 2) return {};
    auto const v = g_.inputs(o)[1];
    auto const p = product_behind(v);
    if (p == nothing<op_id> || !g_.may_replace(o)) return {};
    auto const* m = g_.as<op::matmul>(p);
    if (!m) return {};
    for (auto w : g_.outputs(o))  // what is updated must not be read by the products of the parts that follow
      for (auto x : g_.inputs(p))
        if (g_.storage(w) == g_.storage(x)) return {};
    auto const &a = g_.layout(g_.inputs(p)[0]), &b = g_.layout(g_.inputs(p)[1]);
    if (a.type.rank() != 2 || b.type.rank() != 2) return {};
    if (chosen_ ? std::find(chosen_->begin(), chosen_->end(), o) == chosen_->end()
                : g_.type(v).bytes() <= a.type.bytes() + b.type.bytes())
      return {};
    auto const parts = gemm_parts::most(op::detail::weight_product{m->transpose_a, m->transpose_b, 1}.shape_of(a, b));
    return {parts > 1 ? m : nullptr, parts};
  }
  template <class Update>
  void match(op_id o) {
    auto const* u = g_.as<Update>(o);
    if (!u || g_.inputs(o).size() + 1 > op::matmul_update<Update>::most_inputs) return;
    auto const [m, parts] = product_of(o);
    if (!m) return;
    op::matmul_update<Update> const both{*u, m->transpose_a, m->transpose_b, parts};
    auto const at = bytes_.size();
    bytes_.resize(at + (sizeof both + 15) / 16 * 16);
    std::memcpy(bytes_.data() + at, &both, sizeof both);
    auto const& facets = [&]() -> operator_facets const& {
      if constexpr (is_standard<Update>) return g_.facets(o).joined();
      else return facets_of<op::matmul_update<Update>>;
    }();
    fuse({product_behind(g_.inputs(o)[1]), o, &facets, at, 0});
  }

  NEAP_ONCE fused_updates<op_graph> write() {
    detail::sort_list(found_, [](update_to_fuse const& a, update_to_fuse const& b) {
      return a.place != b.place ? a.place < b.place : a.update < b.update;
    });
    fused_updates<op_graph> out;
    for (auto const& f : found_) out.fused.push_back(f.update);
    program_copy copy(g_);
    auto next = found_.begin();
    for (auto o : g_.ops()) {
      if (!gone_[o] && !pulled_[o]) put(copy, o, o, g_.view(o));
      for (; next != found_.end() && next->place == index(o); ++next) {
        for (auto v : g_.inputs(next->update))
          if (auto const p = g_.producer(v); p != nothing<op_id> && pulled_[p]) {
            put(copy, p, p, g_.view(p));
            pulled_[p] = false;
            gone_[p] = true;
          }
        put(copy, next->update, next->product, {next->facets, bytes_.data() + next->attributes});
      }
    }
    out.program = copy.finish();
    out.value = std::move(copy.value);
    return out;
  }

 private:
  /// Which op makes a gradient that has no other reader: in mixed precision, what its cast to f32 reads. (An update computes
  /// in f32 of gradients of any type: it needs no cast.)
  NEAP_ONCE op_id product_behind(value_id v) const {
    auto const alone = [&](value_id x) {
      auto const p = g_.producer(x);
      return p != nothing<op_id> && g_.uses(x).size() == 1 && !g_.is_kept(x) && g_.may_replace(p);
    };
    if (!alone(v)) return nothing<op_id>;
    auto const p = g_.producer(v);
    auto const* c = g_.as<op::cast>(p);
    if (!c) return p;
    auto const x = g_.inputs(p)[0];
    return c->to == dtype::f32 && is_low(g_.type(x).element) && alone(x) ? g_.producer(x) : nothing<op_id>;
  }
  /// Decides where the update can be at the earliest.
  NEAP_ONCE void fuse(update_to_fuse f) {
    auto place = index(f.product);
    for (auto o : g_.order_after(f.update)) place = std::max(place, index(o));
    for (auto v : g_.inputs(f.update)) {
      auto const p = g_.producer(v);
      if (p == nothing<op_id> || index(p) <= place || v == g_.inputs(f.update)[1]) continue;
      // The counter of steps is counted up before the first update: it can be once the old number has no readers left.
      bool early = true;
      for (auto in : g_.inputs(p)) early &= g_.producer(in) == nothing<op_id> || index(g_.producer(in)) <= place;
      for (auto o : g_.order_after(p)) early &= index(o) <= place;
      if (early) pulled_[p] = true;
      else place = index(p);
    }
    f.place = place;
    gone_[f.product] = gone_[f.update] = gone_[g_.producer(g_.inputs(f.update)[1])] = true;
    found_.push_back(f);
  }
  NEAP_ONCE void put(program_copy& copy, op_id o, op_id product, operator_view op) {
    inputs_.clear();
    for (auto v : g_.inputs(o))
      if (product != o && v == g_.inputs(o)[1])
        for (auto x : g_.inputs(product)) inputs_.push_back(copy.value[x]);
      else inputs_.push_back(copy.value[v]);
    copy.put(o, op, span_of(inputs_), product != o ? 1 : 0);
  }

  op_graph const& g_;
  std::span<op_id const>* chosen_;
  table<op_id, unsigned char> gone_, pulled_;  // fused; to be put before the first fused update that reads it
  plain_vector<update_to_fuse> found_;
  plain_vector<std::byte> bytes_;
  plain_vector<value_id> inputs_;
};

template <class Op>
struct fuse_one {
  static void match(update_fuser&, op_id) {}
};
template <class Update>
struct fuse_one<op::matmul_update<Update>> {
  static void match(update_fuser& f, op_id o) { f.match<Update>(o); }
};
template <class... Op>
void match_updates(update_fuser& f, op_id o, type_list<Op...>) {
  (fuse_one<Op>::match(f, o), ...);
}

}  // namespace detail

/// The program with the updates fused whose operator has its op::matmul_update in the graph's set (the standard set has
/// those of all its optimizers); `chosen`, if given: those of these updates that can be, whatever their sizes. Throws neap::error for a graph with parts, or whose ids are not in a topological
/// order. O(ops + edges).
template <class Ops>
fused_updates<basic_graph<Ops>> fuse_updates(basic_graph<Ops> const& g, std::span<op_id const>* chosen = nullptr) {
  detail::update_fuser f(g, chosen);
  for (auto o : g.ops()) detail::match_updates(f, o, typename Ops::list{});
  auto made = f.write();
  return {basic_graph<Ops>(std::move(made.program)), std::move(made.value), std::move(made.fused)};
}

}  // namespace neap::inline v0
