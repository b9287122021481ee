// Random valid graphs over a small operator set of their own: structure without kernels. For schedulers, simulators,
// planners and everything else that knows only the dataflow_graph concept, and for the graph's own tests.
//
//   for (std::uint64_t seed = 0; seed < 200; ++seed) {
//     auto const g = neap::testing::random_graph(seed);
//
// Deterministic by seed on every compiler. Op ids are a data order (an op's inputs have smaller ids) unless copies were
// asked for, but order constraints of in-place updates go both ways: do not take ids for an order.
#pragma once

#include <neap/core/philox.hpp>
#include <neap/ir/dataflow.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/traversal.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace neap::testing {

// ---------------------------------------------------------------------------------------------- operators

namespace toy {

/// x -> y, of x's type; may take x's place. A random number of it stands for gelu, exp...
struct unary {
  static constexpr std::string_view name = "unary";
  static constexpr layouts takes = layouts::any;
  static constexpr bool elementwise = true;
  std::int32_t which = 0;
  static constexpr auto attributes() { return std::array{field<&unary::which>("which")}; }
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    c.fresh(c.in(0));
  }
  void relate(dim_context& c) const { c.aligned(0, 0); }
};

/// x, y -> z of equal types; may take the place of either.
struct binary {
  static constexpr std::string_view name = "binary";
  static constexpr layouts takes = layouts::any;
  static constexpr bool elementwise = true;
  std::int32_t which = 0;
  double scale = 1;
  static constexpr auto attributes() {
    return std::array{field<&binary::which>("which"), field<&binary::scale>("scale")};
  }
  void infer(shape_context& c) const {
    c.require_arity(2, 2);
    c.require(c.in(0) == c.in(1), "types differ, ", c.in(0), " and ", c.in(1));
    c.fresh(c.in(0));
  }
  void relate(dim_context& c) const { c.aligned(0, 0), c.aligned(1, 0); }
};

/// [m,k] x [k,n] -> [m,n]; needs m * n bytes of workspace.
struct matmul {
  static constexpr std::string_view name = "matmul";
  static constexpr layouts takes = layouts::any;
  void infer(shape_context& c) const {
    c.require_arity(2, 2);
    c.require(c.in(0).rank() == 2 && c.in(1).rank() == 2 && c.in(0).extent(1) == c.in(1).extent(0),
              "inner extents differ, ", c.in(0), " x ", c.in(1));
    c.fresh(tensor_type{c.in(0).element, {c.in(0).extent(0), c.in(1).extent(1)}});
  }
  void relate(dim_context& c) const {
    c.same(0, 0, 0, 0), c.same(1, 1, 0, 1);
    c.reduced(0, 1, 0), c.reduced(1, 0, 0);
  }
  work cost(work_context const& c) const {
    auto w = detail::streaming_work(c, 1);
    w.flops = 2.0 * static_cast<double>(c.in[0].type.count()) * static_cast<double>(c.in[1].type.extent(1));
    return w;
  }
  bytes_t workspace(work_context const& c) const { return c.out[0].type.count(); }
};

/// [m,n] -> normalised [m,n] and its mean [m].
struct normalise {
  static constexpr std::string_view name = "normalise";
  static constexpr layouts takes = layouts::any;
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    c.require(c.in(0).rank() == 2, "takes a matrix, not ", c.in(0));
    c.fresh(c.in(0));
    c.fresh(tensor_type{c.in(0).element, {c.in(0).extent(0)}});
  }
  void relate(dim_context& c) const { c.same(0, 0, 0, 0), c.same(0, 0, 1, 0); }
};

/// [m,n] -> [n], summed over m.
struct column_sum {
  static constexpr std::string_view name = "column_sum";
  static constexpr layouts takes = layouts::any;
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    c.require(c.in(0).rank() == 2, "takes a matrix, not ", c.in(0));
    c.fresh(tensor_type{c.in(0).element, {c.in(0).extent(1)}});
  }
  void relate(dim_context& c) const { c.same(0, 1, 0, 0), c.reduced(0, 0, 0); }
};

/// A view of a matrix with its axes swapped.
struct transpose {
  static constexpr std::string_view name = "transpose";
  static constexpr layouts takes = layouts::any;
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    c.require(c.in(0).rank() == 2, "takes a matrix, not ", c.in(0));
    auto l = c.layout(0);
    std::swap(l.type.dims[0], l.type.dims[1]);
    std::swap(l.strides[0], l.strides[1]);
    c.view(0, l);
  }
  void relate(dim_context& c) const { c.same(0, 0, 0, 1), c.same(0, 1, 0, 0); }
};

/// A view of `count` rows from `first`.
struct rows {
  static constexpr std::string_view name = "rows";
  static constexpr layouts takes = layouts::any;
  std::int64_t first = 0, count = 1;
  static constexpr auto attributes() { return std::array{field<&rows::first>("first"), field<&rows::count>("count")}; }
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    c.require(c.in(0).rank() > 0 && first >= 0 && count > 0 && count <= c.in(0).extent(0) - first, "no such rows in ",
              c.in(0));
    auto l = c.layout(0);
    l.type.dims[0] = count;
    l.offset += first * l.strides[0];
    c.view(0, l);
  }
  void relate(dim_context& c) const {
    for (int i = 1; i < c.in(0).rank(); ++i) c.same(0, i, 0, i);
  }
};

/// x, dx -> x, changed in place.
struct descend {
  static constexpr std::string_view name = "descend";
  static constexpr layouts takes = layouts::any;
  double rate = 0.5;
  static constexpr auto attributes() { return std::array{field<&descend::rate>("rate")}; }
  void infer(shape_context& c) const {
    c.require_arity(2, 2);
    c.require(c.in(0) == c.in(1), "types differ, ", c.in(0), " and ", c.in(1));
    c.update(0);
  }
  void relate(dim_context& c) const { c.aligned(0, 0), c.aligned(1, 0); }
};

/// x -> y, x's elements with some dropped by a counter-based draw; and the mask.
struct drop {
  static constexpr std::string_view name = "drop";
  static constexpr layouts takes = layouts::any;
  static constexpr bool elementwise = true, random = true;
  std::int64_t key = 0;
  double rate = 0.25;
  static constexpr auto attributes() { return std::array{field<&drop::key>("key"), field<&drop::rate>("rate")}; }
  void infer(shape_context& c) const {
    c.require_arity(1, 1);
    c.fresh(c.in(0));
    c.fresh(tensor_type{dtype::u8, c.in(0).dims});
  }
  void relate(dim_context& c) const { c.aligned(0, 0), c.aligned(0, 1); }
};

}  // namespace toy

struct toy_operators
    : operator_set<toy::unary, toy::binary, toy::matmul, toy::normalise, toy::column_sum, toy::transpose, toy::rows,
                   toy::descend, toy::drop, op::opaque, op::store, op::load, op::wait> {};

using toy_graph = op_graph;

// ---------------------------------------------------------------------------------------------- renumbering

/// The same graph with ops and values in another order: drawn from all orders that meet the data edges (not the order
/// constraints). Sources stay in order, because their place is their identity; names and origins go along.
inline op_graph renumbered(op_graph const& g, std::uint64_t seed) {
  random_stream draw(seed, 77);
  graph_editor edit(g.facet_table());
  table<value_id, value_id> to(g.value_count(), nothing<value_id>);
  table<op_id, op_id> op_to(g.op_count(), nothing<op_id>);
  for (auto v : g.sources()) {
    auto const& r = g.record(v);
    to[v] = r.alias == alias_kind::view ? edit.add_source_view(to[g.record(r.storage).first], g.layout(v), g.name(v))
                                        : edit.add_source_at(r.role, g.layout(v), g.name(v), g.bytes(r.storage));
  }
  for (auto const& p : g.parts()) (void)edit.part_row(p);
  std::vector<op_id> ready;
  table<op_id, int> missing(g.op_count());
  for (auto o : g.ops()) {
    for (auto v : g.inputs(o)) missing[o] += g.producer(v) != nothing<op_id>;
    if (!missing[o]) ready.push_back(o);
  }
  while (!ready.empty()) {
    auto const at = draw.below(static_cast<std::uint32_t>(ready.size()));
    op_id const o = ready[at];
    ready.erase(ready.begin() + at);
    std::vector<value_id> in;
    for (auto v : g.inputs(o)) in.push_back(to[v]);
    op_id id{};
    if (auto const* x = g.as<op::opaque>(o)) {
      std::vector<output_rule> rules;
      for (auto v : g.outputs(o))
        rules.push_back({g.layout(v), g.record(v).alias, g.record(v).of, g.bytes(g.storage(v))});
      id = edit.add_opaque(g.target(o), *x, in, rules, {}, g.details(o));
    } else {
      edit.emit(g.view(o), in);
      id = id_at<op_id>(edit.graph().op_count() - 1);
    }
    op_to[o] = id;
    edit.set_name(id, g.name(o));
    if (g.record(o).part != nothing<part_id>) edit.set_part(id, g.record(o).part);
    for (std::size_t j = 0; j < g.outputs(o).size(); ++j) {
      auto const v = g.outputs(o)[j];
      to[v] = edit.output(id, static_cast<int>(j));
      edit.set_name(to[v], g.name(v));
      if (g.role(v) != role::activation) edit.set_role(to[v], g.role(v));
      for (auto const& u : g.uses(v))
        if (--missing[u.op] == 0) ready.push_back(u.op);
    }
  }
  for (auto o : g.ops()) edit.set_origin(op_to[o], g.origin(o));
  for (auto v : g.kept()) edit.keep(to[v], g.role(v));
  return std::move(edit).finish();
}

// ---------------------------------------------------------------------------------------------- random graphs

struct random_graph_options {
  std::uint32_t least_ops = 3, max_ops = 60;
  bool views = true;         // transpose, rows, opaque views
  bool updates = true;       // in-place updates of weights and activations
  bool opaque = true;        // operators whose meaning is not known, outputs of odd sizes
  bool random = true;        // ops with a key
  bool parts = false;        // some ops are marked as parts of others
  std::uint32_t copies = 0;  // at most so many ops are computed again for some of their readers
  std::uint32_t swaps = 0;   // at most so many values are stored, and loaded for some of their readers
};

namespace detail {

inline bool is_kept(op_graph const& g, value_id v) {
  return std::find(g.kept().begin(), g.kept().end(), v) != g.kept().end();
}

class graph_maker {
 public:
  graph_maker(std::uint64_t seed, random_graph_options o) : draw_(seed, 1), options_(o), edit_(toy_operators::facets) {}

  op_graph make() {
    auto const ops = options_.least_ops + below(options_.max_ops - options_.least_ops + 1);
    int const inputs = 1 + static_cast<int>(below(3));
    for (int i = 0; i < inputs; ++i) {
      auto const r = i == 0 || coin(2) ? role::input : role::constant;
      push(source(r, matrix()));
    }
    while (edit_.graph().op_count() < ops) {
      add_op();
      if (edit_.graph().op_count() && coin(12))
        edit_.set_name(id_at<op_id>(edit_.graph().op_count() - 1), "op" + std::to_string(below(100)));
    }
    keep_some();
    return std::move(edit_).finish();
  }

 private:
  std::uint32_t below(std::uint32_t n) { return draw_.below(n); }
  bool coin(std::uint32_t one_in) { return below(one_in) == 0; }
  std::int64_t extent() { return std::array<std::int64_t, 6>{1, 2, 4, 4, 6, 8}[below(6)]; }
  tensor_type matrix() { return {coin(6) ? dtype::f16 : dtype::f32, {extent(), extent()}}; }
  tensor_type type(value_id v) const { return edit_.layout_of(v).type; }
  value_id source(role r, tensor_type t) {
    return edit_.add_source(r, t, coin(3) ? std::string(name_of(r)) + std::to_string(below(10)) : std::string());
  }
  value_id pick() {
    if (readable_.empty()) return push(source(role::input, matrix()));
    return readable_[below(static_cast<std::uint32_t>(readable_.size()))];
  }
  /// One of the last values, so that graphs become deep, or one that nobody reads yet.
  value_id pick_recent() {
    auto const n = static_cast<std::uint32_t>(readable_.size());
    if (n == 0) return pick();
    if (coin(2)) {
      auto const& g = edit_.graph();
      for (; seen_ < g.op_count(); ++seen_)
        for (auto v : g.inputs(id_at<op_id>(seen_))) {
          if (read_.size() <= index(v)) read_.resize(g.value_count());
          read_[v] = 1;
        }
      for (auto v : readable_)
        if ((index(v) >= read_.size() || !read_[v]) && coin(2)) return v;
    }
    return readable_[n - 1 - below(std::min(n, 4u))];
  }
  value_id pick_matrix() {
    for (int i = 0; i < 20; ++i)
      if (auto v = coin(3) ? pick() : pick_recent(); type(v).rank() == 2) return v;
    return push(source(role::input, matrix()));
  }
  /// A readable value of that type other than `not_this`, or a new source.
  value_id pick_like(tensor_type const& t, value_id not_this, role r) {
    std::vector<value_id> found;
    for (auto v : readable_)
      if (v != not_this && type(v) == t) found.push_back(v);
    if (found.empty() || coin(6)) return push(source(r, t));
    return found[below(static_cast<std::uint32_t>(found.size()))];
  }
  value_id push(value_id v) {
    readable_.push_back(v);
    return v;
  }
  void push_all(std::vector<value_id> const& all) {
    for (auto v : all) readable_.push_back(v);
  }
  std::int64_t key() {
    return static_cast<std::int64_t>(draw_()) << 20 | static_cast<std::int64_t>(edit_.graph().op_count());
  }

  /// The storage of v gets its next version; the values of the older one are read no more.
  void forget_version(value_id v) {
    auto const s = edit_.graph().storage(v);
    std::erase_if(readable_, [&](value_id x) { return edit_.graph().storage(x) == s; });
  }

  void add_op() {
    switch (below(12)) {
      // Draws are statements of their own: arguments are evaluated in any order.
      case 0:
      case 1: {
        auto const x = pick_recent();
        return push_all(edit_.add(toy::unary{static_cast<std::int32_t>(below(5))}, {x}));
      }
      case 2:
      case 3: {
        auto const x = pick_recent(), y = pick_like(type(x), x, role::input);
        return push_all(edit_.add(toy::binary{static_cast<std::int32_t>(below(3)), 0.5 * below(4)}, {x, y}));
      }
      case 4:
      case 5: {
        auto const x = pick_matrix();
        auto const w = pick_like({type(x).element, {type(x).extent(1), extent()}}, x, role::weight);
        return push_all(edit_.add(toy::matmul{}, {x, w}));
      }
      case 6: return push_all(edit_.add(toy::normalise{}, {pick_matrix()}));
      case 7: return push_all(edit_.add(toy::column_sum{}, {pick_matrix()}));
      case 8:
        if (!options_.views) return;
        if (coin(2)) return push_all(edit_.add(toy::transpose{}, {pick_matrix()}));
        else {
          auto const x = pick();
          if (type(x).rank() == 0) return;
          auto const n = static_cast<std::uint32_t>(type(x).extent(0));
          auto const first = below(n);
          return push_all(edit_.add(toy::rows{first, 1 + below(n - first)}, {x}));
        }
      case 9: {
        if (!options_.updates) return;
        auto x = coin(3) ? pick_recent() : pick();
        if (coin(2))  // most often a weight
          for (auto v : readable_)
            if (edit_.graph().role(v) == role::weight && coin(2)) x = v;
        if (edit_.graph().role(x) == role::input || edit_.graph().role(x) == role::constant) return;
        auto const dx = pick_like(type(x), x, role::input);
        if (edit_.graph().storage(dx) == edit_.graph().storage(x)) return;
        auto const out = edit_.add(toy::descend{0.25 * below(4)}, {x, dx});
        forget_version(x);
        return push_all(out);
      }
      case 10: {
        if (!options_.random) return;
        auto const x = pick_recent();
        return push_all(edit_.add(toy::drop{key()}, {x}));
      }
      default: return options_.opaque ? add_opaque() : void();
    }
  }

  void add_opaque() {
    std::vector<value_id> in;
    for (auto n = below(4); n > 0; --n) in.push_back(coin(2) ? pick() : pick_recent());
    op::opaque what;
    what.pointwise = coin(3);
    what.pure = !coin(4);
    what.placeholder = in.empty() && coin(3);
    if (options_.random && coin(4)) what.rng = true, what.key = key();
    what.flops = below(1000), what.read = below(1000), what.written = below(1000);
    if (coin(3)) what.seconds = 1e-6 * below(50);
    std::vector<output_rule> out;
    value_id updated = nothing<value_id>;
    auto const outputs = 1 + below(3);
    for (std::uint32_t j = 0; j < outputs; ++j) {
      if (!in.empty() && options_.views && coin(4)) {
        auto const of = below(static_cast<std::uint32_t>(in.size()));
        out.push_back({edit_.layout_of(in[of]), alias_kind::view, static_cast<int>(of), -1});
      } else if (j > 0 && options_.views && coin(5)) {  // shares with an earlier output
        auto const k = below(j);
        out.push_back({out[k].layout, alias_kind::view, -2 - static_cast<int>(k), -1});
      } else if (!in.empty() && updated == nothing<value_id> && options_.updates && coin(8) && may_update(in, out)) {
        updated = in[0];
        out.push_back({edit_.layout_of(in[0]), alias_kind::update, 0, -1});
      } else {
        auto const t = in.empty() || coin(2) ? matrix() : type(in[0]);
        out.push_back({tensor_layout::dense(t), alias_kind::fresh, -1, coin(3) ? t.bytes() + below(64) : -1});
      }
    }
    auto const nth = edit_.graph().op_count();
    auto const o = edit_.add_opaque("lib::op" + std::to_string(below(4)), what, in, out, {},
                                    nth % 2 ? "{\"dim\":" + std::to_string(nth % 3) + "}" : std::string());
    if (updated != nothing<value_id>) forget_version(updated);
    auto const version = [&](value_id v) { return edit_.graph().record(v).version; };
    for (auto v : edit_.outputs_of(o))
      if (updated == nothing<value_id> || edit_.graph().storage(v) != edit_.graph().storage(updated) ||
          version(v) > version(updated))
        push(v);
  }
  /// Input 0 may be updated: not what the caller gives, and no other argument or output lies in its storage.
  bool may_update(std::vector<value_id> const& in, std::vector<output_rule> const& out) {
    auto const r = edit_.graph().role(in[0]);
    if (r == role::input || r == role::constant) return false;
    for (std::size_t i = 1; i < in.size(); ++i)
      if (edit_.graph().storage(in[i]) == edit_.graph().storage(in[0])) return false;
    for (auto const& x : out)
      if (x.alias != alias_kind::fresh) return false;
    return true;
  }

  /// Everything nobody reads is kept, or now and then left dead; and some values that are read. Only the last version
  /// of a storage can be kept.
  void keep_some() {
    auto const& g = edit_.graph();
    table<value_id, bool_> read(g.value_count());
    for (auto o : g.ops())
      for (auto v : g.inputs(o)) read[v] = 1;
    bool any = false;
    for (auto v : std::vector<value_id>(readable_)) {
      if (g.producer(v) == nothing<op_id>) continue;
      if (read[v] ? coin(16) : !any || !coin(3)) {
        edit_.keep(v, !any ? role::loss : coin(2) ? role::output : role::gradient);
        any = true;
      }
    }
  }

  using bool_ = unsigned char;
  random_stream draw_;
  random_graph_options options_;
  graph_editor edit_;
  std::vector<value_id> readable_;  // at their storage's last version
  table<value_id, bool_> read_;
  std::size_t seen_ = 0;  // ops whose inputs read_ knows
};

/// Marks some ops as parts, and some of these as parts of parts. What they compute is left as it is.
inline op_graph with_parts(op_graph const& g, random_stream& draw) {
  graph_editor edit(g);
  for (auto o : g.ops()) {
    if (draw.below(3)) continue;
    auto p = edit.part_row({draw.below(2), 2});
    if (draw.below(2)) p = edit.part_row({draw.below(3), 3, p});
    edit.set_part(o, p);
  }
  return std::move(edit).finish();
}

/// Computes an op again, or swaps a value, for some of its readers that run after one of the others can have run.
inline bool copy_or_swap(op_graph& g, random_stream& draw, bool swap) {
  std::vector<value_id> candidates;
  for (auto v : g.values()) {
    auto const p = g.producer(v);
    if (p == nothing<op_id> || g.uses(v).empty() || !graph_traits<op_graph>::is_recomputable(g, p)) continue;
    if (is_kept(g, v)) continue;
    bool plain = g.record(v).alias == alias_kind::fresh;
    for (auto x : g.inputs(p)) {  // what it reads is never overwritten
      for (auto y : g.values()) plain &= g.storage(y) != g.storage(x) || g.record(y).version == 0;
    }
    for (auto const& u : g.uses(v))  // nor do its readers look at or change its storage
      for (auto y : g.outputs(u.op)) plain &= g.record(y).alias == alias_kind::fresh;
    if (plain) candidates.push_back(v);
  }
  if (candidates.empty()) return false;
  auto const v = candidates[draw.below(static_cast<std::uint32_t>(candidates.size()))];
  std::vector<op_id> late;
  for (auto const& u : g.uses(v))
    if (draw.below(2) && (late.empty() || late.back() != u.op)) late.push_back(u.op);
  if (late.empty()) return false;
  graph_editor edit(std::move(g));
  if (swap) {
    auto stored = edit.add(op::store{}, {v})[0];
    if (draw.below(3) == 0) stored = edit.add(op::wait{}, {stored})[0];
    edit.replace_uses(v, edit.add(op::load{}, {stored})[0], late);
  } else {
    auto const p = edit.graph().producer(v);
    auto const j = static_cast<int>(index(v) - index(edit.output(p)));
    edit.replace_uses(v, edit.output(edit.clone(p), j), late);
  }
  g = std::move(edit).finish();
  return true;
}

}  // namespace detail

/// A random valid graph; about one in three has readers of a storage numbered after the op that updates it.
inline toy_graph random_graph(std::uint64_t seed, random_graph_options options = {}) {
  op_graph g = detail::graph_maker(seed, options).make();
  random_stream draw(seed, 2);
  g = renumbered(g, seed);
  for (std::uint32_t i = 0; i < options.copies; ++i) detail::copy_or_swap(g, draw, false);
  for (std::uint32_t i = 0; i < options.swaps; ++i) detail::copy_or_swap(g, draw, true);
  if (options.parts) g = detail::with_parts(g, draw);
  return toy_graph(std::move(g));
}

}  // namespace neap::testing
