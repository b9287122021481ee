// The graph of a training step, as a regular value: flat tables indexed by ids. Copies share them until one is edited.
//
//   source values (weights, inputs...)      an op reads values and makes values; a value lies in a storage;
//        |        |                         views and in-place updates share the storage of an input.
//      op 0 ---> value ---> op 1
//
// Memory is counted by storage. An in-place update makes the next version of its storage; every reader of the version
// before must run first: order_after(op) lists these constraints, which the editor derives.
//
// An update is for storages that outlast the step. An op that writes in place on a temporary overwrites it instead: the
// result is a storage of its own, at the same address, and the overwritten storage ends there (op_graph::overwrites). So
// the producer and the writer can both run again, on bytes of their own; readers of what is overwritten run first.
//
// A graph does not know its operators' types: it has their facets. An operator joins a graph when it is first added to it,
// so a user's operator is used without notice. The only place where a graph changes is the editor (ir/editor.hpp).
#pragma once

#include <neap/core/csr.hpp>
#include <neap/core/digest.hpp>
#include <neap/core/id.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/span_of.hpp>
#include <neap/core/text_pool.hpp>
#include <neap/ir/dim_links.hpp>
#include <neap/ir/opaque.hpp>
#include <neap/ir/operator.hpp>
#include <neap/ir/part.hpp>
#include <neap/ir/pins.hpp>

#include <algorithm>
#include <bit>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace neap { inline namespace v0 {

/// What a value is for. The first five and `donated` are source roles: such values are made by no op. Their storages are
/// resident, except those of donated inputs: these are there from the beginning and dead after their last reader.
enum class role : std::uint8_t { weight, state, buffer, input, constant, activation, gradient, output, loss, donated };

constexpr bool is_source(role r) { return r <= role::constant || r == role::donated; }
constexpr std::string_view name_of(role r) {
  constexpr std::string_view names[] = {"weight",     "state",    "buffer", "input", "constant",
                                        "activation", "gradient", "output", "loss",  "donated"};
  return names[static_cast<std::size_t>(r)];
}

struct op_record {
  std::uint32_t first_input = 0;   // in the list of all arguments
  std::uint32_t first_output = 0;  // outputs are values first_output, first_output + 1, ...
  std::uint16_t input_count = 0, output_count = 0;
  std::uint16_t kind = 0;           // of operator: op_graph::facets_of_kind
  bool rewritten = false;           // put here by a rewrite rule: no op of the original graph, nor a copy of one
  pin_set pins{};                   // its own, and those of its outputs
  std::uint32_t attributes = 0;     // byte offset of the operator struct
  std::uint32_t name = 0;           // number of a text; 0: none
  std::uint32_t origin = no_id;     // the op of the original graph that this is, or is a copy of; never reused
  part_id part = nothing<part_id>;  // which part of its origin; nothing: the whole op
  std::uint32_t whole = no_id;      // of a part: what it was cut from, as it was (op_graph::whole); no_id: not known
  friend bool operator==(op_record const&, op_record const&) = default;
};

/// An op as it was before it was cut, so that its parts can be made whole again (mutate/lift.hpp).
struct whole_op {
  static constexpr std::uint32_t stated = no_id;  // in the place of a fission: a file said how large its values are
  op_record record;                               // what it read and made is gone; what that was like is below
  std::uint32_t fission = 0;                      // which one cut it: fissions of a graph are numbered as they come
  std::uint32_t first = 0;                        // of its inputs and outputs in op_graph::whole_values
};
/// An input or output of such an op.
struct whole_value {
  layout_id layout{};
  bytes_t bytes = 0;  // of an output: of its storage
  std::int16_t of = -1;
  alias_kind alias = alias_kind::fresh;
  pin_set pins{};
};

struct value_record {
  layout_id layout{};
  storage_id storage{};
  op_id producer = nothing<op_id>;  // nothing: a source
  std::uint32_t name = 0;           // number of a text; 0: none
  std::uint16_t version = 0;        // of the storage: how many updates have made this value
  std::int16_t of = -1;             // the producer's input that is viewed, updated or, by a fresh value, overwritten;
                                    // -2 - j: shares with its output j
  alias_kind alias = alias_kind::fresh;
  neap::role role = role::activation;
  bool kept = false;  // lives to the end of the step
  pin_set pins{};     // keep, never_out
  friend bool operator==(value_record const&, value_record const&) = default;
};

/// Storages are numbered in the order of their first values.
struct storage_record {
  bytes_t bytes = 0;
  value_id first = nothing<value_id>;  // the value that made it
  std::uint16_t updates = 0;           // how many values are in-place updates of it
  bool resident = false;               // its first value is a source, not donated: it exists before and after the step
  bool overwritten = false;            // it ends with an op that writes its result in its place
  friend bool operator==(storage_record const&, storage_record const&) = default;
};

/// A reader of a value: an op and which of its arguments.
struct use {
  op_id op;
  std::uint32_t argument;
  friend bool operator==(use const&, use const&) = default;
};

namespace detail {
/// The operator struct if x is an Op, else nullptr. (For an empty Op: a valid pointer to one.)
template <class Op>
Op const* as_operator(operator_view x) {
  if constexpr (is_standard<Op>) {  // by its row: its facets would compile its kernel
    if (x.facets->standard_row != standard_row<Op>) return nullptr;
  } else {
    if (x.facets != &facets_of<Op>) return nullptr;
  }
  if constexpr (std::is_empty_v<Op>) {
    static constexpr Op it{};
    return &it;
  } else {
    return static_cast<Op const*>(x.bytes);
  }
}
}  // namespace detail

namespace detail {
/// What a graph has. Copies of a graph share it; an editor works on tables of its own.
struct graph_tables {
  operator_table kinds;
  plain_vector<operator_facets const*> others;  // operators that are not in the table, in the order they came
  table<op_id, op_record> ops;
  table<value_id, value_record> values;
  table<storage_id, storage_record> storages;
  plain_vector<value_id> arguments, kept, sources;
  plain_vector<std::byte> attributes;
  plain_vector<tensor_layout> layouts;
  plain_vector<op_part> parts;  // each after the part it is cut from
  plain_vector<whole_op> wholes;
  plain_vector<whole_value> whole_values;  // of each of wholes its inputs, then its outputs
  text_pool texts;
  std::uint32_t origin_count = 0;  // origins are below this
  // derived, kept true by the editor
  csr<value_id, use> uses;
  csr<op_id, op_id> after;
  table<op_id, neap::digest> op_down;                 // what the op computes: it and all below it
  table<op_id, neap::digest> op_up;                   // op_down, and what is done with the results: all above it
  plain_vector<neap::digest> source_down, source_up;  // the same for each of sources
  neap::digest digest{0, 0};                          // the sum of op_up and source_up
  bool in_edit = false;                               // by an editor: a copy of the graph then has tables of its own
};
}  // namespace detail

class op_graph {
 public:
  op_graph();
  op_graph(op_graph const&);
  op_graph(op_graph&&) noexcept;
  op_graph& operator=(op_graph const&);
  op_graph& operator=(op_graph&&) noexcept;
  ~op_graph();
  explicit op_graph(operator_table ops);

  // sizes
  std::size_t op_count() const { return t_->ops.size(); }
  std::size_t value_count() const { return t_->values.size(); }
  std::size_t storage_count() const { return t_->storages.size(); }
  id_range<op_id> ops() const { return id_range<op_id>(op_count()); }
  id_range<value_id> values() const { return id_range<value_id>(value_count()); }
  id_range<storage_id> storages() const { return id_range<storage_id>(storage_count()); }

  // ops
  op_record const& record(op_id o) const { return t_->ops[o]; }
  operator_facets const& facets(op_id o) const { return facets_of_kind(t_->ops[o].kind); }
  /// The operator of a kind: a row of the table, and after its end one of those met besides.
  operator_facets const& facets_of_kind(std::size_t kind) const {
    return *(kind < t_->kinds.size() ? t_->kinds[kind] : t_->others[kind - t_->kinds.size()]);
  }
  std::size_t kind_count() const { return t_->kinds.size() + t_->others.size(); }
  void const* attributes(op_id o) const { return t_->attributes.data() + t_->ops[o].attributes; }
  operator_view view(op_id o) const { return {&facets(o), attributes(o)}; }
  /// The operator struct if op o is an Op, else nullptr. (For an empty Op: a valid pointer to one.)
  template <class Op>
  Op const* as(op_id o) const {
    return detail::as_operator<Op>(view(o));
  }
  /// What an op computes: its operator, or of an opaque one the operator of neap's that is known to compute the same.
  operator_view meaning(op_id o) const {
    if (auto const* x = as<op::opaque>(o); x && x->known_kind)
      return {&facets_of_kind(x->known_kind - 1), t_->attributes.data() + x->known};
    return view(o);
  }
  /// The kind of operator that it is.
  std::size_t kind_of_meaning(op_id o) const {
    auto const* x = as<op::opaque>(o);
    return x && x->known_kind ? x->known_kind - 1 : t_->ops[o].kind;
  }
  /// The operator struct if op o computes what an Op does, else nullptr.
  template <class Op>
  Op const* means(op_id o) const {
    return detail::as_operator<Op>(meaning(o));
  }
  std::span<value_id const> inputs(op_id o) const {
    auto const& r = t_->ops[o];
    return span_of(t_->arguments.data() + r.first_input, r.input_count);
  }
  /// Ids of the outputs are consecutive.
  id_range<value_id> outputs(op_id o) const {
    auto const& r = t_->ops[o];
    return {value_id{r.first_output}, r.output_count};
  }
  value_id output(op_id o, int j = 0) const { return outputs(o)[static_cast<std::size_t>(j)]; }
  /// Ops that must have run before o beyond those that make its inputs: readers of the storage version o overwrites.
  std::span<op_id const> order_after(op_id o) const { return has_updates() ? t_->after[o] : std::span<op_id const>{}; }
  /// Whether any op updates or overwrites one of its inputs.
  bool has_updates() const { return t_->after.row_count() != 0; }
  /// Inputs, outputs and order_after of all ops together, or more (arguments of removed ops may still count).
  std::size_t edge_count() const { return t_->arguments.size() + value_count() + t_->after.item_count(); }
  op_id origin(op_id o) const { return op_id{t_->ops[o].origin}; }
  /// Origins given so far, to ops that are there or gone: all are below it.
  std::uint32_t origin_count() const { return t_->origin_count; }
  /// What an opaque op's operator is called where it comes from; empty for other ops.
  std::string_view target(op_id o) const {
    auto const* x = as<op::opaque>(o);
    return x ? text(x->target) : std::string_view{};
  }
  /// What a file says of an opaque op beyond what neap knows: its arguments that are no tensors, as one text.
  std::string_view details(op_id o) const {
    auto const* x = as<op::opaque>(o);
    return x ? text(x->details) : std::string_view{};
  }
  /// The dimension relations of an op: its operator's, or of an opaque one those that came with it.
  plain_vector<dim_link> links(op_id o) const;
  /// The name given by a user or a file; empty if none.
  std::string_view name(op_id o) const { return text(t_->ops[o].name); }

  // pins (ir/pins.hpp)
  /// The pins of an op, those of its outputs among them.
  pin_set pins(op_id o) const { return t_->ops[o].pins; }
  /// The pins of a value: keep and never_out.
  pin_set pins(value_id v) const { return t_->values[v].pins; }
  /// Whether no pin keeps the op from running more than once.
  bool may_recompute(op_id o) const { return !t_->ops[o].pins.has_any(pin::run_once | pin::keep); }
  /// Whether no pin keeps the op from running in parts.
  bool may_cut(op_id o) const { return !t_->ops[o].pins.has_any(pin::run_once | pin::keep | pin::never_in_parts); }
  /// Whether no pin keeps the op from being removed, or replaced by a rewrite rule.
  bool may_replace(op_id o) const {
    return !t_->ops[o].pins.has_any(pin::run_once | pin::keep | pin::never_in_parts | pin::never_out);
  }
  /// Whether no pin keeps a storage from being swapped out.
  bool may_swap(storage_id s) const {
    return !t_->values[t_->storages[s].first].pins.has_any(pin::keep | pin::never_out);
  }
  /// Whether any op or value is pinned. O(ops + sources).
  bool has_pins() const {
    for (auto const& r : t_->ops)
      if (!r.pins.empty()) return true;
    for (auto v : t_->sources)
      if (!t_->values[v].pins.empty()) return true;
    return false;
  }

  // values
  value_record const& record(value_id v) const { return t_->values[v]; }
  tensor_layout const& layout(value_id v) const { return t_->layouts[index(t_->values[v].layout)]; }
  tensor_type const& type(value_id v) const { return layout(v).type; }
  storage_id storage(value_id v) const { return t_->values[v].storage; }
  op_id producer(value_id v) const { return t_->values[v].producer; }
  neap::role role(value_id v) const { return t_->values[v].role; }
  std::string_view name(value_id v) const { return text(t_->values[v].name); }
  /// Readers, ordered by op id and argument.
  std::span<use const> uses(value_id v) const { return t_->uses[v]; }
  bool is_kept(value_id v) const { return t_->values[v].kept; }
  /// Values that live to the end of the step, each once, in the order they were declared.
  std::span<value_id const> kept() const { return span_of(t_->kept); }
  /// What a view or an updated value was made of; nothing if v is neither.
  value_id base(value_id v) const {
    auto const& r = t_->values[v];
    if (r.alias == alias_kind::fresh) return nothing<value_id>;
    if (r.producer == nothing<op_id>) return t_->storages[r.storage].first;
    return r.of >= 0 ? inputs(r.producer)[static_cast<std::size_t>(r.of)] : output(r.producer, -2 - r.of);
  }
  /// The input in whose place a value is written; nothing for values that are written elsewhere.
  value_id overwrites(value_id v) const {
    auto const& r = t_->values[v];
    if (r.alias != alias_kind::fresh || r.of < 0) return nothing<value_id>;
    return inputs(r.producer)[static_cast<std::size_t>(r.of)];
  }
  /// Whether an op ends the storage by writing a result in its place.
  bool is_overwritten(storage_id s) const { return t_->storages[s].overwritten; }
  /// Whether an op writes a result in the place of one of its inputs.
  bool overwrites_any(op_id o) const {
    if (!has_updates()) return false;
    for (auto v : outputs(o))
      if (t_->values[v].alias == alias_kind::fresh && t_->values[v].of >= 0) return true;
    return false;
  }
  /// Values made by no op, in the order they were declared: ids ascend.
  std::span<value_id const> sources() const { return span_of(t_->sources); }

  // storages
  storage_record const& record(storage_id s) const { return t_->storages[s]; }
  bytes_t bytes(storage_id s) const { return t_->storages[s].bytes; }
  bool is_resident(storage_id s) const { return t_->storages[s].resident; }
  /// Whether the storage exists before the step: it is resident, or donated.
  bool is_source(storage_id s) const { return producer(t_->storages[s].first) == nothing<op_id>; }
  /// Sum of the resident storages' bytes, unrounded.
  bytes_t resident_bytes() const {
    bytes_t n = 0;
    for (auto const& s : t_->storages) n += s.resident ? s.bytes : 0;
    return n;
  }

  // parts
  std::span<op_part const> parts() const { return span_of(t_->parts); }
  /// Whether any op is a part of another one. (Rows of the table may be left without an op.)
  bool runs_in_parts() const {
    return !t_->parts.empty() &&
           std::any_of(t_->ops.begin(), t_->ops.end(), [](op_record const& r) { return r.part != nothing<part_id>; });
  }
  op_part const& part(part_id p) const { return t_->parts[index(p)]; }
  /// What parts were cut from. Rows may be left without a part, and parts that were read from a text have none. Of parts
  /// that were read from a plan file a row has extents alone (whole_op::stated).
  std::span<whole_op const> wholes() const { return span_of(t_->wholes); }
  whole_op const& whole(std::uint32_t row) const { return t_->wholes[row]; }
  /// Numbers of fissions are below this.
  std::uint32_t fission_count() const {
    return t_->wholes.empty() || t_->wholes.back().fission == whole_op::stated ? 0 : t_->wholes.back().fission + 1;
  }
  tensor_layout const& input_layout(whole_op const& w, std::size_t i) const {
    return t_->layouts[index(t_->whole_values[w.first + i].layout)];
  }
  tensor_layout const& output_layout(whole_op const& w, std::size_t j) const {
    return t_->layouts[index(t_->whole_values[w.first + w.record.input_count + j].layout)];
  }

  /// Equal for equal graphs up to the numbering of ops and values; 128 bits, additive over ops. Sources are distinguished
  /// by their place among the sources; names, origins and the order of kept values do not count.
  neap::digest digest() const { return t_->digest; }
  /// The digest of what an op computes: its operator, attributes, types, part, and its arguments' digests. A copy has
  /// that of its original.
  neap::digest digest(op_id o) const { return t_->op_down[o]; }

  operator_table facet_table() const { return t_->kinds; }
  /// A text by its number: names, and what opaque operators are called. Number 0 is the empty text. O(1).
  std::string_view text(std::uint32_t at) const { return t_->texts[at]; }

  /// The same graph, ids, names and origins included. Two graphs that differ in numbering alone are not equal, but have
  /// equal digests. O(everything).
  friend bool operator==(op_graph const& a, op_graph const& b);

 private:
  friend class graph_editor;
  friend class digest_updater;      // ir/digests.hpp
  friend class graph_checker;       // ir/impl/verify.ipp
  friend struct graph_test_access;  // tests plant faults
  /// An editor works on tables that no other graph shares.
  void begin_edit();
  void end_edit() { t_->in_edit = false; }
  std::shared_ptr<detail::graph_tables> t_;
};

namespace detail {
/// Floating-point numbers bit by bit: not-a-number equals itself, and zeros have signs. (Comparing the variants
/// themselves would cost every program that includes this header some time.)
inline bool same_attribute(attribute_value const& a, attribute_value const& b) {
  if (a.index() != b.index()) return false;
  if (auto const* x = std::get_if<double>(&a))
    return std::bit_cast<std::uint64_t>(*x) == std::bit_cast<std::uint64_t>(*std::get_if<double>(&b));
  if (auto const* x = std::get_if<std::int64_t>(&a)) return *x == *std::get_if<std::int64_t>(&b);
  if (auto const* x = std::get_if<bool>(&a)) return *x == *std::get_if<bool>(&b);
  if (auto const* x = std::get_if<dtype>(&a)) return *x == *std::get_if<dtype>(&b);
  if (auto const* x = std::get_if<element_program>(&a)) return *x == *std::get_if<element_program>(&b);
  return *std::get_if<extents>(&a) == *std::get_if<extents>(&b);
}
/// The same operator with the same attributes; the texts of opaque operators are not looked at.
inline bool same_operator(operator_view a, operator_view b) {
  if (a.facets != b.facets) return false;
  for (auto const& f : a.facets->attributes)
    if (!same_attribute(f.get(a.bytes), f.get(b.bytes))) return false;
  return true;
}
}  // namespace detail

bool operator==(op_graph const& a, op_graph const& b);

using graph = op_graph;

}}  // namespace neap::v0

template <>
struct std::hash<neap::op_graph> {
  std::size_t operator()(neap::op_graph const& g) const { return neap::digest_hash{}(g.digest()); }
};

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/impl/graph.ipp>
#endif
