// The editor: the only place where a graph changes. It takes a graph, collects edits, and gives a graph back whose
// derived tables are true again: readers, order constraints, storages of views, digests.
//
//   graph_editor edit{std::move(g)};
//   op_id again = edit.clone(producer);                    // rematerialise
//   edit.replace_uses(v, edit.output(again), late_users);
//   g = graph{std::move(edit).finish()};
//
// Ids stay valid until finish(); finish() renumbers only if ops were removed. A few edits cost what they touch, a few
// passes of plain copies, and the digests of what lies above and below them; many edits, or removals, O(ops + edges).
#pragma once

#include <neap/core/number_set.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/sort.hpp>
#include <neap/core/span_of.hpp>
#include <neap/core/work_meter.hpp>
#include <neap/ir/graph.hpp>
#include <neap/ir/opaque.hpp>
#include <neap/ir/operators/movement.hpp>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace neap { inline namespace v0 {

class graph_editor final : public op_emitter {
 public:
  explicit graph_editor(op_graph g);
  /// An empty graph over a table of operators.
  explicit graph_editor(operator_table ops);

  /// The graph as edited so far. Readers, order constraints and digests are those from before the edits.
  op_graph const& graph() const { return g_; }

  // ------------------------------------------------------------------ adding

  /// A value made by no op, dense in a storage of its own.
  value_id add_source(neap::role r, tensor_type const& t, std::string_view name = {}) {
    return add_source_at(r, tensor_layout::dense(t), name);
  }
  /// The same with a layout; `bytes` is the storage's size where it is not that of the dense tensor.
  value_id add_source_at(neap::role r, tensor_layout const& l, std::string_view name = {}, bytes_t bytes = -1);
  /// Another value on a source's storage (an imported graph may look at one buffer in several ways).
  value_id add_source_view(value_id base, tensor_layout const& l, std::string_view name = {});

  /// Adds an op of any kind, after copies of those inputs whose layout its kernel cannot read; its outputs. Throws neap::error if its shape rule refuses the inputs
  /// or another operator of its name is in the graph.
  std::vector<value_id> emit(operator_view op, std::span<value_id const> inputs) override;
  template <class Op>
  std::vector<value_id> add(Op const& op, std::initializer_list<value_id> inputs) {
    return emit(view_of(op), span_of(inputs.begin(), inputs.size()));
  }
  template <class Op>
  std::vector<value_id> add(Op const& op, std::span<value_id const> inputs) {
    return emit(view_of(op), inputs);
  }
  /// Adds an op whose meaning is not known, with its outputs. `of = -2 - j` shares the storage of its own output j.
  /// `details`: its attributes besides, as one text that is equal where they are. `links`: how it may be cut, if known.
  op_id add_opaque(std::string_view target, op::opaque what, std::span<value_id const> inputs,
                   std::span<output_rule const> outputs, std::string_view name = {}, std::string_view details = {},
                   std::span<dim_link const> links = {});
  /// The same for an op that is called as one of this graph, from which `what` is, and has its details: texts may be long.
  op_id add_opaque_alike(op::opaque what, std::span<value_id const> inputs, std::span<output_rule const> outputs,
                         std::span<dim_link const> links);
  /// For readers of files: an op of any kind with its outputs given instead of inferred, whose inputs may be values
  /// that are added later. What was read must then pass verify().
  op_id add_given(operator_view op, std::span<value_id const> inputs, std::span<output_rule const> outputs,
                  std::string_view target = {}, std::string_view details = {});
  /// A copy of an op: same operator, attributes, key, origin, part and inputs, new outputs. In-place updates cannot
  /// be copied: throws neap::error.
  op_id clone(op_id o);

  // ------------------------------------------------------------------ changing

  void set_input(op_id o, std::size_t argument, value_id v);
  /// The given readers of `from` read `to` from now on.
  void replace_uses(value_id from, value_id to, std::span<op_id const> readers) {
    for (auto o : readers)
      for (std::size_t i = 0; i < g_.t_->ops[o].input_count; ++i)
        if (g_.inputs(o)[i] == from) set_input(o, i, to);
  }
  /// All readers of `from` read `to`, and if `from` was kept, `to` is. O(readers + edits so far).
  void replace_uses(value_id from, value_id to);
  /// Removes an op when finish() is called; by then its outputs must be dead.
  void remove(op_id o) {
    if (removed_.size() < g_.op_count()) removed_.resize(g_.op_count());
    removed_[index(o)] = true;
    any_removed_ = true;
  }
  /// `v` lives to the end of the step, in the given role (gradient, output or loss). A source keeps its own role.
  void keep(value_id v, neap::role r) {
    if (!g_.t_->values[v].kept) g_.t_->kept.push_back(v);
    g_.t_->values[v].kept = true;
    set_role(v, r);
  }
  void drop(value_id v);
  /// Sources stay sources: a role that is none is not given to them.
  void set_role(value_id v, neap::role r) {
    touch(v);
    if (g_.producer(v) == nothing<op_id> && !is_source(r)) return;
    g_.t_->values[v].role = r;
    if (g_.producer(v) == nothing<op_id> && g_.t_->values[v].alias == alias_kind::fresh)
      g_.t_->storages[g_.t_->values[v].storage].resident = r != role::donated;
  }
  /// Pins an op beside the pins that it has; keep and never_out pin its outputs. Throws neap::error for pins that exclude
  /// each other, and for run_again of an op that writes in place.
  void add_pins(op_id o, pin_set p);
  /// Pins a value, and what it is a view of, beside the pins that it has; pins that are of ops alone pin the op that makes
  /// it. Throws neap::error as the other one does, and for a source, which no op makes.
  void add_pins(value_id v, pin_set p);
  void set_name(op_id o, std::string_view name) { g_.t_->ops[o].name = intern(name); }
  /// The name of another op: the same text, of any length.
  void set_name_of(op_id o, op_id from) { g_.t_->ops[o].name = g_.t_->ops[from].name; }
  void set_name(value_id v, std::string_view name) { g_.t_->values[v].name = intern(name); }
  /// The details of an opaque op; of others there are none.
  void set_details(op_id o, std::string_view details);
  /// What an opaque op computes: the same as an operator of neap's with the same inputs and outputs, if that one's shape
  /// rule gives the types that the op's outputs have. False, and nothing said, if it does not.
  bool set_meaning(op_id o, operator_view known);
  /// For readers of files; otherwise an op's origin is a number of its own, and a copy's that of its original.
  void set_origin(op_id o, op_id origin) {
    g_.t_->ops[o].origin = static_cast<std::uint32_t>(index(origin));
    if (g_.t_->origin_count <= index(origin)) g_.t_->origin_count = static_cast<std::uint32_t>(index(origin)) + 1;
  }
  /// For readers of files, after the last set_origin: how many origins are taken. Throws neap::error if it is too few.
  void set_origin_count(std::uint32_t n);
  /// The row of a part; a new one if there is none yet. Throws neap::error for a number outside [0, count).
  part_id part_row(op_part const& p);
  /// Remembers an op that a fission is about to cut; the row for its parts' set_whole().
  std::uint32_t remember_whole(op_id o, std::uint32_t fission);
  void set_whole(op_id part, std::uint32_t row) { g_.t_->ops[part].whole = row; }
  /// For readers of files: how large the inputs and outputs of what a part was cut from are, the first cut's first. What
  /// else it was like is not known.
  void state_wholes(op_id part, std::span<extents const> dims);
  /// An op that was remembered, as it was, of inputs laid out as it read them.
  op_id add_whole(std::uint32_t row, std::span<value_id const> inputs);
  /// Marks an op as one that a rewrite rule has put here.
  void set_rewritten(op_id o) { g_.t_->ops[o].rewritten = true; }
  void set_part(op_id o, part_id p) {
    g_.t_->ops[o].part = p;
    touched_ops_.push_back(o);
  }

  /// finish() derives every table from scratch, whatever was edited.
  void derive_all() { derive_all_ = true; }

  // ------------------------------------------------------------------ looking

  std::vector<value_id> outputs_of(op_id o) const;
  value_id output(op_id o, int j = 0) const { return g_.output(o, j); }
  tensor_layout layout_of(value_id v) const override { return g_.layout(v); }

  /// The edited graph. Throws neap::error if a removed op's output is still read or kept, or views form a cycle.
  op_graph finish() &&;

 private:
  static constexpr std::uint64_t work_of_op = 40;  // nanoseconds that an edited graph's tables take for each of its ops
  struct reading {
    value_id value;
    use by;
  };

  /// Throws neap::error if an op cannot have these pins beside its own.
  void check_pins(op_id o, pin_set p) const;
  void pin_op(op_id o, pin_set p);
  /// v and what it is a view of, in turn.
  template <class F>
  void each_base(value_id v, F const& f) const {
    for (std::size_t n = 0; v != nothing<value_id> && n <= g_.value_count(); v = g_.base(v), ++n) f(v);
  }
  void check_pins(value_id v, pin_set p) const;
  void pin_value(value_id v, pin_set p);

  int kind_of(operator_facets const* f);
  void check_inputs(std::span<value_id const> inputs) const {
    for (auto v : inputs)
      if (index(v) >= g_.value_count()) throw_error({"graph: an op reads a value that is not in the graph"});
  }
  static bytes_t bytes_of(tensor_layout const& l, bytes_t given) { return given >= 0 ? given : l.type.bytes(); }

  // A value's storage comes last, because a view shares one and a fresh value makes one.
  value_id new_value(op_id producer, layout_id layout, alias_kind alias, int of, bytes_t bytes,
                     storage_id shared = nothing<storage_id>);
  value_id add_source_value(neap::role r, value_id v, std::string_view name);
  void add_output(op_id o, std::span<value_id const> inputs, layout_id layout, alias_kind alias, int of, bytes_t bytes,
                  std::uint32_t name = 0);
  /// Versions and updates are counted in 16 bits.
  static std::uint16_t next(std::uint16_t n) {
    if (n == 0xffff) throw_error({"graph: more than 65535 updates of one storage"});
    return static_cast<std::uint16_t>(n + 1);
  }
  void count_update(storage_id s) { g_.t_->storages[s].updates = next(g_.t_->storages[s].updates); }
  void take_arguments(std::span<value_id const> inputs);
  /// `inputs` is not a part of the graph's own list, which may move.
  std::uint32_t append_arguments(op_id o, std::span<value_id const> inputs);

  op_id append(int kind, void const* attributes, std::span<value_id const> inputs, std::span<output_rule const> rules);

  // ------------------------------------------------------------------ tables of layouts and text

  layout_id intern(tensor_layout const& l);
  bool gives_types_of(op_id o, operator_view known);
  /// The same bytes as those of an op added before by this editor: large imported graphs repeat themselves.
  std::uint32_t intern(op::opaque const& x);
  std::uint32_t append_bytes(void const* bytes, std::size_t size) {
    auto const at = static_cast<std::uint32_t>(g_.t_->attributes.size());
    g_.t_->attributes.append(static_cast<std::byte const*>(bytes), size);
    g_.t_->attributes.resize((g_.t_->attributes.size() + 15) / 16 * 16);
    return at;
  }
  /// What opaque operators are called, and their details, come again and again.
  std::uint32_t intern_often(std::string_view text);
  std::uint32_t intern(std::string_view text);
  void digest_texts(op::opaque& x) const;

  // ------------------------------------------------------------------ what has changed

  void touch(value_id v) { touched_values_.push_back(v); }
  void read(value_id v, use by) {
    reads_.push_back({v, by});
    if (is_updated(v)) order_changed_ = true;
  }
  void unread(value_id v) {
    unread_.push_back(v);
    if (is_updated(v)) order_changed_ = true;
  }
  bool is_updated(value_id v) const {
    if (index(v) >= g_.value_count()) return true;  // not here yet
    auto const s = g_.t_->values[v].storage;
    return index(s) >= g_.storage_count() || g_.t_->storages[s].updates != 0 || g_.t_->storages[s].overwritten;
  }
  bool is_removed(op_id o) const { return index(o) < removed_.size() && removed_[index(o)]; }
  /// A value made by an op that goes.
  bool is_removed(value_id v) const {
    auto const p = g_.producer(v);
    return p != nothing<op_id> && is_removed(p);
  }

  /// Renumbers ops and values without the removed ones, and storages without the unused ones.
  void compact();

  /// The storage of every view and update, from its base, after inputs of such ops were replaced.
  void resolve_storages();
  value_id follow(value_id v, value_id base);

  // ------------------------------------------------------------------ readers and order

  void index_uses();

  /// The readers after a few changes: the old table, with some rows written anew.
  void patch_uses();

  struct writer {
    op_id op;
    std::uint32_t next;  // another writer of the same, in its list: verify() will refuse it
  };
  /// For each op that updates or overwrites a storage: who reads what it overwrites.
  void derive_order();
  static std::uint64_t pair_of(op_id writer, op_id reader) {
    return std::uint64_t{index(writer)} << 32 | index(reader);
  }
  /// False if nothing is overwritten. Marks the storages that are.
  bool order_overwrites(plain_vector<std::uint64_t>& pairs);
  /// False if nothing is updated.
  bool order_updates(plain_vector<std::uint64_t>& pairs);

  void update_digests();

  op_graph g_;
  std::size_t old_ops_, old_values_;  // before the edits
  plain_vector<bool> removed_;
  bool any_removed_ = false, aliases_changed_ = false, order_changed_ = false, derive_all_ = false;
  plain_vector<op_id> touched_ops_;        // their own digest, or an argument, has changed
  plain_vector<value_id> touched_values_;  // their role has changed, or they are kept or not any more
  plain_vector<reading> reads_;            // added since; some may be gone again
  plain_vector<value_id> unread_;          // lost a reader
  // scratch
  plain_vector<value_id> arguments_;
  plain_vector<tensor_layout> layouts_;
  number_set interned_layouts_, interned_opaque_, interned_texts_;
  std::size_t layouts_seen_ = 0;  // are in interned_layouts_
};

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/impl/editor.ipp>
#endif
