// The editor: the only place where a graph changes. It takes a graph, collects edits, and gives a graph back whose
// derived tables are true again: readers, order constraints, storages of views, digests.
//
//   graph_editor edit{std::move(g)};
//   op_id again = edit.clone(producer);                    // rematerialise
//   edit.replace_uses(v, edit.output(again), late_users);
//   g = graph{std::move(edit).finish()};
//
// Ids stay valid until finish(); finish() renumbers only if ops were removed. It costs O(ops + edges) of plain array
// passes; digests are recomputed along the changed cone only.
#pragma once

#include <neap/ir/graph.hpp>
#include <neap/ir/opaque.hpp>

#include <cstring>
#include <string>
#include <string_view>

namespace neap::inline v0 {

class graph_editor final : public op_emitter {
 public:
  explicit graph_editor(op_graph g) : g_(std::move(g)) {
    if (g_.text_.empty()) g_.text_.push_back('\0');
  }
  /// An empty graph over a table of operators.
  explicit graph_editor(operator_table ops) : graph_editor(op_graph(ops)) {}

  /// The graph as edited so far. Readers, order constraints and digests are those from before the edits.
  op_graph const& graph() const { return g_; }

  // ------------------------------------------------------------------ adding

  /// A value made by no op, dense in a storage of its own.
  value_id add_source(neap::role r, tensor_type const& t, std::string_view name = {}) {
    return add_source_at(r, tensor_layout::dense(t), name);
  }
  /// The same with a layout; `bytes` is the storage's size where it is not that of the dense tensor.
  value_id add_source_at(neap::role r, tensor_layout const& l, std::string_view name = {}, bytes_t bytes = -1) {
    if (!is_source(r)) throw error("graph: a source needs a source role, not " + std::string(name_of(r)));
    value_id const v = new_value(nothing<op_id>, {l, alias_kind::fresh, -1, bytes});
    g_.values_[v].role = r;
    g_.values_[v].name = intern(name);
    g_.storages_[g_.values_[v].storage].resident = true;
    g_.sources_.push_back(v);
    return v;
  }
  /// Another value on a source's storage (an imported graph may look at one buffer in several ways).
  value_id add_source_view(value_id base, tensor_layout const& l, std::string_view name = {}) {
    value_id const v = new_value(nothing<op_id>, {l, alias_kind::view, -1}, g_.values_[base].storage);
    g_.values_[v].role = g_.values_[base].role;
    g_.values_[v].name = intern(name);
    g_.sources_.push_back(v);
    return v;
  }

  /// Adds an op of any kind of the graph's table; its outputs. Throws neap::error if its shape rule refuses the inputs
  /// or the kind is not in the table.
  std::vector<value_id> emit(operator_view op, std::span<value_id const> inputs) override {
    int const kind = find_kind(g_.table_, op.facets);
    if (kind < 0) throw error(std::string(op.facets->name) + ": not in the graph's operator set");
    layouts_.clear();
    for (auto v : inputs) layouts_.push_back(g_.layout(v));
    shape_context shapes(op.facets->name, layouts_);
    op.facets->infer(op.bytes, shapes);
    return outputs_of(append(kind, op.bytes, inputs, shapes.outputs()));
  }
  template <class Op>
  std::vector<value_id> add(Op const& op, std::initializer_list<value_id> inputs) {
    return emit(view_of(op), std::span(inputs.begin(), inputs.size()));
  }
  template <class Op>
  std::vector<value_id> add(Op const& op, std::span<value_id const> inputs) {
    return emit(view_of(op), inputs);
  }
  /// Adds an op whose meaning is not known, with its outputs. `of = -2 - j` shares the storage of its own output j.
  op_id add_opaque(std::string_view target, op::opaque what, std::span<value_id const> inputs,
                   std::span<output_rule const> outputs, std::string_view name = {}) {
    int const kind = find_kind(g_.table_, &facets_of<op::opaque>);
    if (kind < 0) throw error("opaque: not in the graph's operator set");
    what.target = intern(target);
    op_id const id = append(kind, &what, inputs, outputs);
    g_.ops_[id].name = intern(name);
    return id;
  }
  /// A copy of an op: same operator, attributes, key, origin and inputs, new outputs. In-place updates and placeholders
  /// cannot be copied: throws neap::error.
  op_id clone(op_id o) {
    op_record const r = g_.ops_[o];
    std::vector<output_rule> rules;
    for (auto v : g_.outputs(o)) {
      auto const& x = g_.values_[v];
      if (x.alias == alias_kind::update) throw error("an in-place update cannot be computed again");
      rules.push_back({g_.layout(v), x.alias, x.of, g_.storages_[x.storage].bytes});
    }
    arguments_.assign(g_.inputs(o).begin(), g_.inputs(o).end());
    op_id const copy = append(r.kind, nullptr, arguments_, rules);
    auto& c = g_.ops_[copy];
    c.attributes = r.attributes;
    c.name = r.name;
    c.origin = r.origin;
    c.region = r.region;
    for (std::size_t j = 0; j < rules.size(); ++j)
      g_.values_[g_.outputs(copy)[j]].name = g_.values_[g_.outputs(o)[j]].name;
    return copy;
  }

  // ------------------------------------------------------------------ changing

  void set_input(op_id o, std::size_t argument, value_id v) {
    auto& a = g_.arguments_[g_.ops_[o].first_input + argument];
    if (a == v) return;
    touch(a), touch(v), touch(o);
    a = v;
    for (auto out : g_.outputs(o))
      if (g_.values_[out].alias != alias_kind::fresh) aliases_changed_ = true;
  }
  /// The given readers of `from` read `to` from now on.
  void replace_uses(value_id from, value_id to, std::span<op_id const> readers) {
    for (auto o : readers)
      for (std::size_t i = 0; i < g_.inputs(o).size(); ++i)
        if (g_.inputs(o)[i] == from) set_input(o, i, to);
  }
  /// All readers of `from` read `to`, and if `from` was kept, `to` is. O(ops + edges): for one edit, use the overload.
  void replace_uses(value_id from, value_id to) {
    for (auto o : g_.ops()) replace_uses(from, to, std::span(&o, 1));
    for (auto& k : g_.kept_)
      if (k == from) {
        touch(from), touch(to);
        g_.values_[to].role = g_.values_[from].role;
        k = to;
      }
  }
  /// Removes an op when finish() is called; by then nobody may read its outputs.
  void remove(op_id o) {
    if (removed_.size() < g_.op_count()) removed_.resize(g_.op_count());
    removed_[index(o)] = true;
    any_removed_ = true;
  }
  /// `v` lives to the end of the step, in the given role (gradient, output or loss).
  void keep(value_id v, neap::role r) {
    g_.values_[v].role = r;
    g_.kept_.push_back(v);
    touch(v);
  }
  void drop(value_id v) {
    std::erase(g_.kept_, v);
    if (g_.values_[v].producer != nothing<op_id>) g_.values_[v].role = neap::role::activation;
    touch(v);
  }
  void set_role(value_id v, neap::role r) { g_.values_[v].role = r; touch(v); }
  void set_name(op_id o, std::string_view name) { g_.ops_[o].name = intern(name); }
  void set_name(value_id v, std::string_view name) { g_.values_[v].name = intern(name); }
  /// Makes o an op of its own again: its origin is itself. Used where a graph is first made.
  void set_origin(op_id o, op_id origin) { g_.ops_[o].origin = static_cast<std::uint32_t>(index(origin)); }
  region_id add_region(neap::region r) {
    g_.regions_.push_back(std::move(r));
    return id_at<region_id>(g_.regions_.size() - 1);
  }
  neap::region& region(region_id r) { return g_.regions_[index(r)]; }
  void set_region(op_id o, region_id r) {
    g_.ops_[o].region = r;
    touch(o);
  }

  // ------------------------------------------------------------------ looking

  std::vector<value_id> outputs_of(op_id o) const { return {g_.outputs(o).begin(), g_.outputs(o).end()}; }
  value_id output(op_id o, int j = 0) const { return g_.output(o, j); }
  tensor_layout layout_of(value_id v) const override { return g_.layout(v); }

  /// The edited graph. Throws neap::error if a removed op's output is still read or kept.
  op_graph finish() && {
    if (any_removed_) compact();
    if (aliases_changed_) resolve_storages();
    index_uses();
    derive_order();
    update_digests();
    return std::move(g_);
  }

 private:
  // A value's storage comes last, because a view shares one and a fresh value makes one.
  value_id new_value(op_id producer, output_rule const& rule, storage_id shared = nothing<storage_id>) {
    value_record r;
    r.layout = intern(rule.layout);
    r.producer = producer;
    r.alias = rule.alias;
    r.of = static_cast<std::int16_t>(rule.of);
    r.storage = shared;
    value_id const v = g_.values_.push_back(r);
    g_.value_ids_.push_back(v);
    if (shared == nothing<storage_id>)
      g_.values_[v].storage =
          g_.storages_.push_back({rule.bytes >= 0 ? rule.bytes : rule.layout.type.bytes(), v, false});
    touch(v);
    return v;
  }

  op_id append(int kind, void const* attributes, std::span<value_id const> inputs, std::span<output_rule const> rules) {
    op_record r;
    r.kind = static_cast<std::uint16_t>(kind);
    r.first_input = static_cast<std::uint32_t>(g_.arguments_.size());
    r.input_count = static_cast<std::uint16_t>(inputs.size());
    r.first_output = static_cast<std::uint32_t>(g_.value_count());
    r.output_count = static_cast<std::uint16_t>(rules.size());
    if (inputs.size() > 0xffff || rules.size() > 0xffff) throw error("graph: an op of more than 65535 values");
    op_id const id = id_at<op_id>(g_.op_count());
    r.origin = static_cast<std::uint32_t>(index(id));
    if (attributes && g_.table_[r.kind]->size) {
      r.attributes = static_cast<std::uint32_t>(g_.attributes_.size());
      auto const* from = static_cast<std::byte const*>(attributes);
      g_.attributes_.insert(g_.attributes_.end(), from, from + g_.table_[r.kind]->size);
      g_.attributes_.resize((g_.attributes_.size() + 15) / 16 * 16);
    }
    for (auto v : inputs) {
      if (index(v) >= g_.value_count()) throw error("graph: an op reads a value that is not in the graph");
      g_.arguments_.push_back(v);
      touch(v);
    }
    g_.ops_.push_back(r);
    for (std::size_t j = 0; j < rules.size(); ++j) {
      auto const& rule = rules[j];
      storage_id shared = nothing<storage_id>;
      std::uint16_t version = 0;
      if (rule.alias != alias_kind::fresh) {
        value_id const base = rule.of >= 0 ? inputs[static_cast<std::size_t>(rule.of)]
                                           : id_at<value_id>(r.first_output + static_cast<std::size_t>(-2 - rule.of));
        shared = g_.values_[base].storage;
        version = static_cast<std::uint16_t>(g_.values_[base].version + (rule.alias == alias_kind::update));
      }
      value_id const v = new_value(id, rule, shared);
      g_.values_[v].version = version;
    }
    touch(id);
    return id;
  }

  layout_id intern(tensor_layout const& l) {
    for (std::size_t i = g_.layouts_.size(); i-- > 0;)  // recent layouts first; a graph has few
      if (g_.layouts_[i] == l) return id_at<layout_id>(i);
    g_.layouts_.push_back(l);
    return id_at<layout_id>(g_.layouts_.size() - 1);
  }
  std::uint32_t intern(std::string_view text) {
    if (text.empty()) return 0;
    auto const at = static_cast<std::uint32_t>(g_.text_.size());
    g_.text_.insert(g_.text_.end(), text.begin(), text.end());
    g_.text_.push_back('\0');
    return at;
  }

  void touch(op_id o) { touched_ops_.push_back(o); }
  void touch(value_id v) { touched_values_.push_back(v); }

  bool is_removed(op_id o) const { return index(o) < removed_.size() && removed_[index(o)]; }

  /// Renumbers ops and values without the removed ones, and storages without those nobody uses.
  void compact() {
    std::vector<std::uint32_t> new_op(g_.op_count(), no_id), new_value(g_.value_count(), no_id),
        new_storage(g_.storage_count(), no_id);
    for (auto o : g_.ops())
      if (!is_removed(o))
        for (auto v : g_.inputs(o))
          if (auto p = g_.producer(v); p != nothing<op_id> && is_removed(p))
            throw error("graph: a removed op's output is still read");
    for (auto v : g_.kept_)
      if (auto p = g_.producer(v); p != nothing<op_id> && is_removed(p))
        throw error("graph: a removed op's output is kept");

    // Terms of removed ops and values leave the digest; what they read is touched, since its readers changed.
    std::vector<value_id> arguments;
    table<op_id, op_record> ops;
    table<op_id, neap::digest> op_digest;
    table<value_id, neap::digest> value_term;
    table<value_id, value_record> values;
    for (auto v : g_.values()) {
      auto const p = g_.producer(v);
      bool const dead = p != nothing<op_id> && is_removed(p);
      bool const has_term = index(v) < g_.value_term_.size();
      if (dead) {
        if (has_term) g_.digest_ = g_.digest_ - g_.value_term_[v];
        continue;
      }
      new_value[index(v)] = static_cast<std::uint32_t>(values.size());
      values.push_back(g_.values_[v]);
      value_term.push_back(has_term ? g_.value_term_[v] : neap::digest{0, 0});
    }
    for (auto o : g_.ops()) {
      bool const has_digest = index(o) < g_.op_digest_.size();
      if (is_removed(o)) {
        if (has_digest) g_.digest_ = g_.digest_ - g_.op_digest_[o];
        for (auto v : g_.inputs(o)) touch(v);
        continue;
      }
      op_record r = g_.ops_[o];
      new_op[index(o)] = static_cast<std::uint32_t>(ops.size());
      auto const first = static_cast<std::uint32_t>(arguments.size());
      for (auto v : g_.inputs(o)) arguments.push_back(value_id{new_value[index(v)]});
      r.first_input = first;
      if (r.output_count) r.first_output = new_value[r.first_output];
      ops.push_back(r);
      op_digest.push_back(has_digest ? g_.op_digest_[o] : neap::digest{0, 0});
    }
    table<storage_id, storage_record> storages;
    for (auto& r : values) {
      auto& s = new_storage[index(r.storage)];
      if (s == no_id) {
        s = static_cast<std::uint32_t>(storages.size());
        auto old = g_.storages_[r.storage];
        old.first = value_id{new_value[index(old.first)]};
        storages.push_back(old);
      }
      r.storage = storage_id{s};
      if (r.producer != nothing<op_id>) r.producer = op_id{new_op[index(r.producer)]};
    }
    auto const renumber = [](auto& list, auto const& map) {
      std::size_t n = 0;
      for (auto x : list)
        if (map[index(x)] != no_id) list[n++] = std::remove_cvref_t<decltype(x)>{map[index(x)]};
      list.resize(n);
    };
    for (auto& reg : g_.regions_)
      for (auto* edges : {&reg.inputs, &reg.outputs}) {
        std::erase_if(*edges, [&](region_edge const& e) { return new_value[index(e.value)] == no_id; });
        for (auto& e : *edges) e.value = value_id{new_value[index(e.value)]};
      }
    renumber(g_.kept_, new_value);
    renumber(g_.sources_, new_value);
    renumber(touched_values_, new_value);
    renumber(touched_ops_, new_op);
    g_.ops_ = std::move(ops);
    g_.values_ = std::move(values);
    g_.storages_ = std::move(storages);
    g_.arguments_ = std::move(arguments);
    g_.op_digest_ = std::move(op_digest);
    g_.value_term_ = std::move(value_term);
    g_.value_ids_.resize(g_.values_.size());
    for (std::size_t i = 0; i < g_.value_ids_.size(); ++i) g_.value_ids_[i] = id_at<value_id>(i);
    removed_.clear();
  }

  /// The storage of every view and update, from its base, after inputs of such ops were replaced.
  void resolve_storages() {
    std::vector<value_id> chain;
    bit_vector done(g_.value_count());
    for (auto v : g_.values()) {
      value_id at = v;
      chain.clear();
      while (!done[index(at)] && g_.values_[at].alias != alias_kind::fresh && g_.producer(at) != nothing<op_id>) {
        chain.push_back(at);
        if (chain.size() > g_.value_count()) throw error("graph: views form a cycle");
        auto const& r = g_.values_[at];
        at = r.of >= 0 ? g_.inputs(r.producer)[static_cast<std::size_t>(r.of)] : g_.output(r.producer, -2 - r.of);
      }
      done[index(at)] = true;
      for (auto base = at; !chain.empty(); chain.pop_back()) {
        auto& r = g_.values_[chain.back()];
        r.storage = g_.values_[base].storage;
        r.version = static_cast<std::uint16_t>(g_.values_[base].version + (r.alias == alias_kind::update));
        done[index(chain.back())] = true;
        base = chain.back();
      }
    }
  }
  using bit_vector = std::vector<bool>;

  void index_uses() {
    g_.uses_.build(g_.value_count(), [&](auto&& pair) {
      for (auto o : g_.ops()) {
        std::uint32_t i = 0;
        for (auto v : g_.inputs(o)) pair(v, use{o, i++});
      }
    });
  }

  /// For each op that updates a storage: who reads the version that it overwrites.
  void derive_order() {
    struct writer {
      op_id op;
      std::uint16_t version;  // the version it overwrites
      std::uint32_t next;     // another writer of the storage, in this list
    };
    std::vector<writer> writers;
    std::vector<std::uint32_t> of_storage;
    for (auto v : g_.values()) {
      auto const& r = g_.values_[v];
      if (r.alias != alias_kind::update) continue;
      if (of_storage.empty()) of_storage.assign(g_.storage_count(), no_id);
      auto& head = of_storage[index(r.storage)];
      writers.push_back({r.producer, static_cast<std::uint16_t>(r.version - 1), head});
      head = static_cast<std::uint32_t>(writers.size() - 1);
    }
    if (writers.empty()) {
      g_.after_ = {};
      return;
    }
    g_.after_.build(g_.op_count(), [&](auto&& pair) {
      for (auto o : g_.ops())
        for (auto v : g_.inputs(o)) {
          auto const& r = g_.values_[v];
          for (auto w = of_storage[index(r.storage)]; w != no_id; w = writers[w].next)
            if (writers[w].version == r.version && writers[w].op != o) pair(writers[w].op, o);
        }
    });
  }

  // ------------------------------------------------------------------ digests

  neap::digest value_digest(value_id v) const {
    auto const& r = g_.values_[v];
    if (r.producer == nothing<op_id>) return source_digest_[index(v)];
    return g_.op_digest_[r.producer].mix(index(v) - g_.ops_[r.producer].first_output);
  }
  static neap::digest mix_layout(neap::digest d, tensor_layout const& l) {
    d = d.mix(static_cast<std::uint64_t>(l.type.element) * 16 + static_cast<std::uint64_t>(l.type.rank()));
    for (int i = 0; i < l.type.rank(); ++i)
      d = d.mix(static_cast<std::uint64_t>(l.type.dims[i])).mix(static_cast<std::uint64_t>(l.strides[i]));
    return d.mix(static_cast<std::uint64_t>(l.offset));
  }
  static neap::digest mix_attribute(neap::digest d, attribute_value const& v) {
    return std::visit(
        [&](auto const& x) {
          using type = std::remove_cvref_t<decltype(x)>;
          if constexpr (std::is_same_v<type, extents>) {
            neap::digest e = d.mix(static_cast<std::uint64_t>(x.rank()));
            for (auto i : x) e = e.mix(static_cast<std::uint64_t>(i));
            return e;
          } else if constexpr (std::is_same_v<type, double>) {
            std::uint64_t bits;
            std::memcpy(&bits, &x, sizeof bits);
            return d.mix(bits);
          } else {
            return d.mix(static_cast<std::uint64_t>(x));
          }
        },
        v);
  }
  /// What an op is, without its arguments; kept for a while because copies and neighbours ask again.
  neap::digest own_digest(op_id o) const {
    auto const& f = g_.facets(o);
    auto const& r = g_.ops_[o];
    neap::digest d = neap::digest{}.mix(r.kind);
    if (auto const* x = g_.as<op::opaque>(o)) d = d.mix(g_.text(x->target));
    for (auto const& a : f.attributes) d = mix_attribute(d, a.get(g_.attributes(o)));
    if (r.region != nothing<region_id>) d = d.mix(index(r.region)).mix(static_cast<std::uint64_t>(g_.region(r.region).parts));
    for (auto v : g_.outputs(o)) {
      auto const& x = g_.values_[v];
      d = mix_layout(d, g_.layout(v)).mix(static_cast<std::uint64_t>(x.alias));
    }
    return d;
  }
  neap::digest downward_digest(op_id o) const {
    neap::digest d = own_digest(o);
    for (auto v : g_.inputs(o)) d = d.mix(value_digest(v));
    return d;
  }
  neap::digest upward_term(value_id v) const {
    neap::digest readers{0, 0};
    for (auto const& u : g_.uses_[v]) readers = readers + g_.op_digest_[u.op].mix(u.argument);
    auto const r = static_cast<std::uint64_t>(g_.values_[v].role);
    return value_digest(v).mix(readers).mix(r);
  }

  void update_digests() {
    source_digest_.resize(g_.value_count());
    std::uint64_t ordinal = 0;
    for (auto v : g_.sources_)
      source_digest_[index(v)] = mix_layout(neap::digest{}.mix(static_cast<std::uint64_t>(g_.values_[v].role)), g_.layout(v)).mix(++ordinal);

    g_.op_digest_.resize(g_.op_count(), {0, 0});
    g_.value_term_.resize(g_.value_count(), {0, 0});
    // Downward digests along the changed cone: first in first out, each op as often as something under it changed. Ops
    // are nearly always numbered after what they read, so most are computed once; a bound keeps the worst case linear.
    std::vector<op_id> queue(touched_ops_);
    std::vector<bool> waiting(g_.op_count());
    std::size_t const bound = 4 * g_.op_count() + 64;
    for (auto o : queue) waiting[index(o)] = true;
    for (std::size_t at = 0; at < queue.size(); ++at) {
      if (at > bound) {
        recompute_downward();
        break;
      }
      op_id const o = queue[at];
      waiting[index(o)] = false;
      auto const d = downward_digest(o);
      if (d == g_.op_digest_[o]) continue;
      change_digest(o, d);
      for (auto v : g_.outputs(o))
        for (auto const& u : g_.uses_[v])
          if (!waiting[index(u.op)]) {
            waiting[index(u.op)] = true;
            queue.push_back(u.op);
          }
    }
    std::vector<bool> seen(g_.value_count());
    for (auto v : touched_values_) {
      if (seen[index(v)]) continue;
      seen[index(v)] = true;
      auto const t = upward_term(v);
      g_.digest_ = g_.digest_ - g_.value_term_[v] + t;
      g_.value_term_[v] = t;
    }
  }
  void change_digest(op_id o, neap::digest d) {
    g_.digest_ = g_.digest_ - g_.op_digest_[o] + d;
    g_.op_digest_[o] = d;
    for (auto v : g_.outputs(o)) touch(v);
    for (auto v : g_.inputs(o)) touch(v);
  }
  /// All downward digests, in an order found by counting unmet inputs (Kahn 1962). Ops on a cycle keep what they have.
  void recompute_downward() {
    std::vector<std::uint32_t> missing(g_.op_count());
    std::vector<op_id> ready;
    for (auto o : g_.ops()) {
      for (auto v : g_.inputs(o)) missing[index(o)] += g_.producer(v) != nothing<op_id>;
      if (!missing[index(o)]) ready.push_back(o);
    }
    for (std::size_t at = 0; at < ready.size(); ++at) {
      op_id const o = ready[at];
      change_digest(o, downward_digest(o));
      for (auto v : g_.outputs(o))
        for (auto const& u : g_.uses_[v])
          if (--missing[index(u.op)] == 0) ready.push_back(u.op);
    }
  }

  op_graph g_;
  std::vector<bool> removed_;
  bool any_removed_ = false, aliases_changed_ = false;
  std::vector<op_id> touched_ops_;
  std::vector<value_id> touched_values_, arguments_;
  std::vector<tensor_layout> layouts_;
  std::vector<neap::digest> source_digest_;
};

}  // namespace neap::inline v0
