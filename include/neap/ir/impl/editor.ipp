// The bodies of <neap/ir/editor.hpp>.
#pragma once

#include <neap/ir/editor.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/ir/digests.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC std::uint32_t graph_editor::intern(op::opaque const& x) {
  constexpr std::size_t words = sizeof(op::opaque) / 8;
  static_assert(sizeof(op::opaque) == 24 + 9 * sizeof(double), "compared byte by byte: no padding");
  std::uint64_t bytes[words];
  std::memcpy(bytes, &x, sizeof bytes);
  neap::digest d;
  for (auto w : bytes) d = d.mix(w);
  return interned_opaque_.find_or_add(
      d.low, [&](std::uint32_t at) { return std::memcmp(g_.t_->attributes.data() + at, bytes, sizeof bytes) == 0; },
      [&] { return append_bytes(&x, sizeof x); });
}

NEAP_FUNC std::uint32_t graph_editor::intern_often(std::string_view text) {
  if (text.empty()) return 0;
  return interned_texts_.find_or_add(
      neap::digest{}.mix(text).low, [&](std::uint32_t at) { return g_.text(at) == text; },
      [&] { return intern(text); });
}

NEAP_FUNC void graph_editor::digest_texts(op::opaque& x) const {
  auto d = neap::digest{}.mix(0).mix(g_.text(x.target));  // plan files have digests of graphs of these ops
  if (x.details) d = d.mix(g_.text(x.details));
  x.text_low = d.low, x.text_high = d.high;
}

NEAP_FUNC void graph_editor::index_uses() {
  g_.t_->uses.build(g_.value_count(), [&](auto&& pair) {
    for (auto o : g_.ops()) {
      std::uint32_t i = 0;
      for (auto v : g_.inputs(o)) pair(v, use{o, i++});
    }
  });
}

NEAP_FUNC std::uint32_t graph_editor::append_arguments(op_id o, std::span<value_id const> inputs) {
  auto const first = static_cast<std::uint32_t>(g_.t_->arguments.size());
  std::uint32_t i = 0;
  for (auto v : inputs) {
    g_.t_->arguments.push_back(v);
    read(v, {o, i++});
  }
  return first;
}

NEAP_FUNC void graph_editor::check_pins(value_id v, pin_set p) const {
  each_base(v, [&](value_id x) {
    if (auto const o = g_.producer(x); o != nothing<op_id>) check_pins(o, p);
  });
}

NEAP_FUNC void graph_editor::pin_op(op_id o, pin_set p) {
  if ((g_.t_->ops[o].pins | p) == g_.t_->ops[o].pins) return;
  g_.t_->ops[o].pins |= p;
  touched_ops_.push_back(o);
}

NEAP_FUNC void graph_editor::pin_value(value_id v, pin_set p) {
  if (p.empty()) return;
  each_base(v, [&](value_id x) {
    if (auto const o = g_.producer(x); o != nothing<op_id>) pin_op(o, p);
    g_.t_->values[x].pins |= p;
    touch(x);
  });
}

NEAP_FUNC std::vector<value_id> graph_editor::outputs_of(op_id o) const {
  return {g_.outputs(o).begin(), g_.outputs(o).end()};
}

NEAP_FUNC void graph_editor::set_details(op_id o, std::string_view details) {
  auto const* x = g_.as<op::opaque>(o);
  if (!x) return;
  auto what = *x;
  what.details = intern_often(details);
  digest_texts(what);
  g_.t_->ops[o].attributes = intern(what);
  touched_ops_.push_back(o);
}

NEAP_FUNC void graph_editor::set_origin_count(std::uint32_t n) {
  for (auto const& r : g_.t_->ops)
    if (r.origin >= n) throw_error({"graph: an op's origin is not below the number of origins"});
  g_.t_->origin_count = n;
}

NEAP_FUNC void graph_editor::drop(value_id v) {
  g_.t_->kept.erase_if([&](value_id k) { return k == v; });
  g_.t_->values[v].kept = false;
  set_role(v, neap::role::activation);
}

NEAP_FUNC value_id graph_editor::follow(value_id v, value_id base) {
  auto& r = g_.t_->values[v];
  r.storage = g_.t_->values[base].storage;
  r.version = g_.t_->values[base].version;
  if (r.alias == alias_kind::update) r.version = next(r.version), count_update(r.storage);
  return v;
}

NEAP_FUNC void graph_editor::take_arguments(std::span<value_id const> inputs) {
  arguments_.clear();
  arguments_.append(inputs.data(), inputs.size());
}

NEAP_FUNC value_id graph_editor::add_source_value(neap::role r, value_id v, std::string_view name) {
  g_.t_->values[v].role = r;
  g_.t_->values[v].name = intern(name);
  if (g_.t_->values[v].alias == alias_kind::fresh)
    g_.t_->storages[g_.t_->values[v].storage].resident = r != role::donated;
  g_.t_->sources.push_back(v);
  return v;
}

NEAP_FUNC graph_editor::graph_editor(op_graph g)
    : g_(std::move(g)),
      old_ops_(g_.op_count()),
      old_values_(g_.value_count()) {
  g_.begin_edit();
}

NEAP_FUNC graph_editor::graph_editor(operator_table ops) : graph_editor(op_graph(ops)) {}

NEAP_FUNC value_id graph_editor::add_source_at(neap::role r, tensor_layout const& l, std::string_view name,
                                               bytes_t bytes) {
  if (!is_source(r)) throw_error({"graph: a source needs a source role, not ", name_of(r)});
  return add_source_value(r, new_value(nothing<op_id>, intern(l), alias_kind::fresh, -1, bytes_of(l, bytes)), name);
}

NEAP_FUNC value_id graph_editor::add_source_view(value_id base, tensor_layout const& l, std::string_view name) {
  if (g_.producer(base) != nothing<op_id>) throw_error({"graph: the base of a source view is made by an op"});
  auto const v = new_value(nothing<op_id>, intern(l), alias_kind::view, -1, -1, g_.t_->values[base].storage);
  return add_source_value(g_.t_->values[base].role, v, name);
}

NEAP_FUNC std::vector<value_id> graph_editor::emit(operator_view op, std::span<value_id const> inputs) {
  int const kind = kind_of(op.facets);
  check_inputs(inputs);
  layouts_.clear();
  for (auto v : inputs) layouts_.push_back(g_.layout(v));
  shape_context shapes(op.facets->name, span_of(layouts_));
  op.facets->infer(op.bytes, shapes);
  if (auto const takes = op.facets->takes; takes != layouts::any)
    if (auto const bits = shapes.misfits([&](tensor_layout const& l) { return fits(takes, l); })) {
      std::vector<value_id> dense(inputs.begin(), inputs.end());
      for (std::size_t i = 0; i < dense.size(); ++i)
        if (i < 64 && bits >> i & 1) dense[i] = emit(view_of(op::copy{}), span_of(&inputs[i], 1)).front();
      return emit(op, span_of(dense));
    }
  shapes.require_updates_apart([&](int i, int j) {
    return g_.storage(inputs[static_cast<std::size_t>(i)]) == g_.storage(inputs[static_cast<std::size_t>(j)]);
  });
  return outputs_of(append(kind, op.bytes, inputs, shapes.outputs()));
}

NEAP_FUNC op_id graph_editor::add_opaque_alike(op::opaque what, std::span<value_id const> inputs,
                                               std::span<output_rule const> outputs, std::span<dim_link const> links) {
  check_inputs(inputs);
  what.links = intern_often(to_text(links));
  what.known_kind = what.known = 0;
  return append(kind_of(&facets_of<op::opaque>), &what, inputs, outputs);
}

NEAP_FUNC op_id graph_editor::add_given(operator_view op, std::span<value_id const> inputs,
                                        std::span<output_rule const> outputs, std::string_view target,
                                        std::string_view details) {
  if (op.facets != &facets_of<op::opaque>) return append(kind_of(op.facets), op.bytes, inputs, outputs);
  auto what = *static_cast<op::opaque const*>(op.bytes);
  what.target = intern_often(target), what.details = intern_often(details);
  digest_texts(what);
  what.known_kind = what.known = 0;
  return append(kind_of(op.facets), &what, inputs, outputs);
}

NEAP_FUNC op_id graph_editor::clone(op_id o) {
  op_record r = g_.t_->ops[o];
  for (auto v : g_.outputs(o))
    if (g_.t_->values[v].alias == alias_kind::update) throw_error({"an in-place update cannot be computed again"});
  op_id const copy = id_at<op_id>(g_.op_count());
  auto const first = r.first_output;
  r.first_output = static_cast<std::uint32_t>(g_.value_count());
  take_arguments(g_.inputs(o));
  r.first_input = append_arguments(copy, span_of(arguments_));
  g_.t_->ops.push_back(r);
  for (std::uint32_t j = 0; j < r.output_count; ++j) {
    value_record const x = g_.t_->values[value_id{first + j}];
    add_output(copy, span_of(arguments_), x.layout, x.alias, x.of, g_.t_->storages[x.storage].bytes, x.name);
    g_.t_->values[value_id{r.first_output + j}].pins = x.pins;
  }
  touched_ops_.push_back(copy);
  return copy;
}

NEAP_FUNC void graph_editor::set_input(op_id o, std::size_t argument, value_id v) {
  auto& a = g_.t_->arguments[g_.t_->ops[o].first_input + argument];
  if (a == v) return;
  if (index(v) >= g_.value_count()) throw_error({"graph: an op reads a value that is not in the graph"});
  unread(a), read(v, {o, static_cast<std::uint32_t>(argument)});
  a = v;
  touched_ops_.push_back(o);
  for (auto out : g_.outputs(o))
    if (g_.t_->values[out].alias != alias_kind::fresh) aliases_changed_ = true;
    else if (g_.t_->values[out].of == static_cast<int>(argument)) order_changed_ = true;
}

NEAP_FUNC void graph_editor::add_pins(op_id o, pin_set p) {
  check_pins(o, p);
  for (auto v : g_.outputs(o)) check_pins(v, p.of_value());
  for (auto v : g_.outputs(o)) pin_value(v, p.of_value());
  pin_op(o, p.of_op());
}

NEAP_FUNC void graph_editor::add_pins(value_id v, pin_set p) {
  auto const o = g_.producer(v);
  if (o == nothing<op_id> && !p.of_op().empty())
    throw_error({"graph: no op makes the value ", index(v), ": it cannot be pinned ", to_string(p.of_op())});
  if (o != nothing<op_id>) check_pins(o, p);
  check_pins(v, p.of_value());
  pin_value(v, p.of_value());
  if (o != nothing<op_id>) pin_op(o, p.of_op());
}

NEAP_FUNC bool graph_editor::set_meaning(op_id o, operator_view known) {
  auto const* x = g_.as<op::opaque>(o);
  if (!x || !gives_types_of(o, known)) return false;
  auto what = *x;
  what.known_kind = static_cast<std::uint32_t>(kind_of(known.facets)) + 1;
  what.known = known.facets->attributes.empty() ? 0 : append_bytes(known.bytes, known.facets->size);
  g_.t_->ops[o].attributes = intern(what);
  return true;
}

NEAP_FUNC part_id graph_editor::part_row(op_part const& p) {
  if (p.number < 0 || p.number >= p.count) throw_error({"graph: a part's number is not below how many there are"});
  if (p.of != nothing<part_id> && index(p.of) >= g_.t_->parts.size())
    throw_error({"graph: a part of a part that is not there"});
  auto const at = std::find(g_.t_->parts.begin(), g_.t_->parts.end(), p) - g_.t_->parts.begin();
  if (static_cast<std::size_t>(at) == g_.t_->parts.size()) g_.t_->parts.push_back(p);
  return id_at<part_id>(static_cast<std::size_t>(at));
}

NEAP_FUNC std::uint32_t graph_editor::remember_whole(op_id o, std::uint32_t fission) {
  g_.t_->wholes.push_back({g_.t_->ops[o], fission, static_cast<std::uint32_t>(g_.t_->whole_values.size())});
  for (auto v : g_.inputs(o)) g_.t_->whole_values.push_back({g_.t_->values[v].layout});
  for (auto v : g_.outputs(o)) {
    auto const& r = g_.t_->values[v];
    g_.t_->whole_values.push_back({r.layout, g_.t_->storages[r.storage].bytes, r.of, r.alias, r.pins});
  }
  return static_cast<std::uint32_t>(g_.t_->wholes.size() - 1);
}

NEAP_FUNC void graph_editor::state_wholes(op_id part, std::span<extents const> dims) {
  auto const values = static_cast<std::size_t>(g_.t_->ops[part].input_count) + g_.t_->ops[part].output_count;
  auto row = no_id;
  for (std::size_t first = 0; first + values <= dims.size(); first += values) {
    auto r = g_.t_->ops[part];
    r.whole = std::exchange(row, static_cast<std::uint32_t>(g_.t_->wholes.size()));
    g_.t_->wholes.push_back({r, whole_op::stated, static_cast<std::uint32_t>(g_.t_->whole_values.size())});
    for (std::size_t i = 0; i < values; ++i) {
      auto const v = i < r.input_count ? g_.inputs(part)[i] : g_.outputs(part)[i - r.input_count];
      g_.t_->whole_values.push_back({intern(tensor_layout::dense({g_.type(v).element, dims[first + i]}))});
    }
  }
  g_.t_->ops[part].whole = row;
}

NEAP_FUNC op_id graph_editor::add_whole(std::uint32_t row, std::span<value_id const> inputs) {
  auto const w = g_.t_->wholes[row];
  op_id const id = id_at<op_id>(g_.op_count());
  op_record r = w.record;
  r.first_output = static_cast<std::uint32_t>(g_.value_count());
  take_arguments(inputs);
  r.first_input = append_arguments(id, span_of(arguments_));
  g_.t_->ops.push_back(r);
  for (std::uint32_t j = 0; j < r.output_count; ++j) {
    auto const x = g_.t_->whole_values[w.first + r.input_count + j];
    add_output(id, span_of(arguments_), x.layout, x.alias, x.of, x.bytes);
    g_.t_->values[value_id{r.first_output + j}].pins = x.pins;
  }
  touched_ops_.push_back(id);
  return id;
}

NEAP_FUNC op_graph graph_editor::finish() && {
  if (aliases_changed_ || derive_all_) resolve_storages();
  if (any_removed_) compact();
  work_meter::add(work_of_op * g_.op_count());
  bool const few = !any_removed_ && !derive_all_ && 4 * reads_.size() + 2 * unread_.size() < old_values_;
  if (few) patch_uses();
  else index_uses();
  if (order_changed_ || any_removed_) derive_order();
  else if (g_.has_updates()) g_.t_->after.add_rows(g_.op_count());
  update_digests();
  g_.t_->texts.share();
  g_.end_edit();
  return std::exchange(g_, op_graph(operator_table()));
}

NEAP_FUNC void graph_editor::check_pins(op_id o, pin_set p) const {
  p |= g_.t_->ops[o].pins;
  if (!p.has(pin::run_again)) return;
  auto const given = g_.name(o);
  auto const name = given.empty() ? g_.facets(o).name : given;
  if (p.has_any(pin::keep | pin::run_once))
    throw_error({"graph: op ", index(o), " (", name, ") is pinned run_again and ",
                 p.has(pin::keep) ? "keep" : "run_once", ", which exclude each other"});
  for (auto v : g_.outputs(o))
    if (g_.t_->values[v].alias == alias_kind::update)
      throw_error({"graph: op ", index(o), " (", name, ") writes in place: it cannot be pinned run_again"});
}

NEAP_FUNC int graph_editor::kind_of(operator_facets const* f) {
  if (auto const row = f->standard_row; row >= 0 && static_cast<std::size_t>(row) < g_.t_->kinds.size())
    if (g_.t_->kinds[static_cast<std::size_t>(row)] == f) return row;
  if (int const kind = find_kind(g_.t_->kinds, f); kind >= 0) return kind;
  auto const others = span_of(g_.t_->others);
  int kind = find_kind(others, f);
  if (kind < 0) {
    for (std::size_t k = 0; k < g_.kind_count(); ++k)
      if (g_.facets_of_kind(k).name == f->name) throw_error({f->name, ": another operator in the graph has this name"});
    kind = static_cast<int>(g_.t_->others.size());
    g_.t_->others.push_back(f);
  }
  return static_cast<int>(g_.t_->kinds.size()) + kind;
}

NEAP_FUNC op_id graph_editor::append(int kind, void const* attributes, std::span<value_id const> inputs,
                                     std::span<output_rule const> rules) {
  if (inputs.size() > 0x7fff || rules.size() > 0x7fff) throw_error({"graph: an op of more than 32767 values"});
  take_arguments(inputs);
  inputs = span_of(arguments_);
  op_record r;
  r.kind = static_cast<std::uint16_t>(kind);
  r.input_count = static_cast<std::uint16_t>(inputs.size());
  r.first_output = static_cast<std::uint32_t>(g_.value_count());
  r.output_count = static_cast<std::uint16_t>(rules.size());
  r.origin = g_.t_->origin_count++;
  for (std::size_t j = 0; j < rules.size(); ++j) {
    bool const fresh = rules[j].alias == alias_kind::fresh;
    if (rules[j].of >= static_cast<int>(inputs.size()) || (fresh ? rules[j].of < -1 : rules[j].of == -1) ||
        rules[j].of <= -2 - static_cast<int>(j))
      throw_error({"graph: output ", j, " shares with something that is no input and no earlier output"});
  }
  auto const& facets = g_.facets_of_kind(r.kind);
  if (&facets == &facets_of<op::opaque>) r.attributes = intern(*static_cast<op::opaque const*>(attributes));
  else if (auto const size = facets.size) r.attributes = append_bytes(attributes, size);
  op_id const id = id_at<op_id>(g_.op_count());
  r.first_input = append_arguments(id, inputs);
  g_.t_->ops.push_back(r);
  for (auto const& rule : rules)
    add_output(id, inputs, intern(rule.layout), rule.alias, rule.of, bytes_of(rule.layout, rule.bytes));
  touched_ops_.push_back(id);
  return id;
}

NEAP_FUNC layout_id graph_editor::intern(tensor_layout const& l) {
  auto const n = g_.t_->layouts.size();
  for (std::size_t i = n, least = n > 8 ? n - 8 : 0; i-- > least;)  // a graph has few, and the last ones come again
    if (g_.t_->layouts[i] == l) return id_at<layout_id>(i);
  auto const find_or_add = [&](tensor_layout const& x, auto&& make) {
    return interned_layouts_.find_or_add(
        detail::mix_layout({}, x).low, [&](std::uint32_t i) { return g_.t_->layouts[i] == x; }, make);
  };
  for (; layouts_seen_ < n; ++layouts_seen_) find_or_add(g_.t_->layouts[layouts_seen_], [&] { return layouts_seen_; });
  return layout_id{find_or_add(l, [&] {
    g_.t_->layouts.push_back(l);
    ++layouts_seen_;
    return n;
  })};
}

NEAP_FUNC std::uint32_t graph_editor::intern(std::string_view text) {
  if (text.empty()) return 0;
  if (text.find('\0') != text.npos) throw_error({"graph: a name with a zero character"});
  return g_.t_->texts.append(text);
}

NEAP_FUNC void graph_editor::compact() {
  for (auto o : g_.ops())
    if (!is_removed(o))
      for (auto v : g_.inputs(o))
        if (is_removed(v)) throw_error({"graph: a removed op's output is still read"});
  for (auto v : g_.t_->kept)
    if (is_removed(v)) throw_error({"graph: a removed op's output is kept"});

  plain_vector<std::uint32_t> new_op(g_.op_count(), no_id), new_value(g_.value_count(), no_id),
      new_storage(g_.storage_count(), no_id);
  std::size_t values = 0, ops = 0, storages = 0, arguments = 0, survivors = 0;
  for (auto v : g_.values())
    if (g_.t_->values[v].alias == alias_kind::update && is_removed(v)) --g_.t_->storages[g_.storage(v)].updates;
  for (auto v : g_.values()) {
    auto const& r = g_.t_->values[v];
    if (is_removed(v)) continue;
    new_value[index(v)] = static_cast<std::uint32_t>(values);
    if (r.alias == alias_kind::fresh) {
      auto s = g_.t_->storages[r.storage];
      s.first = id_at<value_id>(values);
      new_storage[index(r.storage)] = static_cast<std::uint32_t>(storages);
      g_.t_->storages[id_at<storage_id>(storages++)] = s;
    }
    ++values;
  }
  for (auto o : g_.ops()) {
    bool const had_digest = index(o) < g_.t_->op_up.size();
    if (is_removed(o)) {
      if (had_digest) g_.t_->digest = g_.t_->digest - g_.t_->op_up[o];
      for (auto v : g_.inputs(o)) touch(v);
      continue;
    }
    op_record r = g_.t_->ops[o];
    auto const to = id_at<op_id>(ops++);
    new_op[index(o)] = static_cast<std::uint32_t>(index(to));
    auto const first = static_cast<std::uint32_t>(arguments);
    for (std::uint32_t i = 0; i < r.input_count; ++i)
      g_.t_->arguments[arguments++] = value_id{new_value[index(g_.t_->arguments[r.first_input + i])]};
    r.first_input = first;
    if (r.output_count) r.first_output = new_value[r.first_output];
    else r.first_output = 0;
    g_.t_->ops[to] = r;
    if (had_digest) {
      g_.t_->op_down[to] = g_.t_->op_down[o];
      g_.t_->op_up[to] = g_.t_->op_up[o];
      survivors = ops;
    }
  }
  for (auto v : g_.values())
    if (auto const to = new_value[index(v)]; to != no_id) {
      auto r = g_.t_->values[v];
      r.storage = storage_id{new_storage[index(r.storage)]};
      if (r.producer != nothing<op_id>) r.producer = op_id{new_op[index(r.producer)]};
      g_.t_->values[value_id{to}] = r;
    }
  g_.t_->ops.resize(ops), g_.t_->values.resize(values), g_.t_->storages.resize(storages);
  g_.t_->arguments.resize(arguments);
  g_.t_->op_up.resize(survivors), g_.t_->op_down.resize(survivors);
  old_ops_ = survivors;
  auto const renumber = [](auto& list, auto const& map) {
    std::size_t n = 0;
    for (auto x : list)
      if (map[index(x)] != no_id) list[n++] = std::remove_cvref_t<decltype(x)>{map[index(x)]};
    list.resize(n);
  };
  renumber(g_.t_->kept, new_value);
  renumber(g_.t_->sources, new_value);
  renumber(touched_values_, new_value);
  renumber(unread_, new_value);
  renumber(touched_ops_, new_op);
  reads_.erase_if([&](reading const& r) { return new_value[index(r.value)] == no_id; });
  for (auto& r : reads_) r.value = value_id{new_value[index(r.value)]};  // `by` is not looked at any more
}

NEAP_FUNC void graph_editor::resolve_storages() {
  plain_vector<value_id> chain;
  plain_vector<unsigned char> done(g_.value_count());
  for (auto& s : g_.t_->storages) s.updates = 0;
  for (auto v : g_.values()) {
    value_id at = v;
    chain.clear();
    while (!done[index(at)] && g_.t_->values[at].alias != alias_kind::fresh && g_.producer(at) != nothing<op_id>) {
      chain.push_back(at);
      if (chain.size() > g_.value_count()) throw_error({"graph: views form a cycle"});
      auto const& r = g_.t_->values[at];
      at = r.of >= 0 ? g_.inputs(r.producer)[static_cast<std::size_t>(r.of)] : g_.output(r.producer, -2 - r.of);
      if (index(at) >= g_.value_count()) throw_error({"graph: an op reads a value that is not in the graph"});
    }
    done[index(at)] = 1;
    for (auto base = at; !chain.empty(); chain.pop_back()) {
      base = follow(chain.back(), base);
      done[index(base)] = 1;
    }
  }
  order_changed_ = true;
}

NEAP_FUNC void graph_editor::patch_uses() {
  auto const earlier = [](use a, use b) { return a.op != b.op ? a.op < b.op : a.argument < b.argument; };
  reads_.erase_if([&](reading const& r) { return g_.inputs(r.by.op)[r.by.argument] != r.value; });
  detail::sort_list(reads_, [&](reading const& a, reading const& b) {
    return a.value != b.value ? a.value < b.value : earlier(a.by, b.by);
  });
  auto const same = [](reading const& a, reading const& b) { return a.value == b.value && a.by == b.by; };
  reads_.erase(std::unique(reads_.begin(), reads_.end(), same), reads_.end());
  plain_vector<value_id> changed(unread_);
  for (auto const& r : reads_) changed.push_back(r.value);
  detail::sort_list(changed);
  changed.erase(std::unique(changed.begin(), changed.end()), changed.end());
  std::size_t next = 0;
  g_.t_->uses.patch(g_.value_count(), span_of(changed), [&](value_id v, std::span<use const> old, auto&& put) {
    for (auto const& u : old) {
      if (g_.inputs(u.op)[u.argument] != v) continue;
      for (; next < reads_.size() && reads_[next].value == v && !earlier(u, reads_[next].by); ++next)
        if (!(reads_[next].by == u)) put(reads_[next].by);
      put(u);
    }
    for (; next < reads_.size() && reads_[next].value == v; ++next) put(reads_[next].by);
  });
}

NEAP_FUNC void graph_editor::derive_order() {
  plain_vector<std::uint64_t> pairs;  // writer, reader
  bool const updates = order_updates(pairs), overwrites = order_overwrites(pairs);
  if (!updates && !overwrites) {
    g_.t_->after = {};
    return;
  }
  detail::sort_list(pairs);
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  g_.t_->after.build(g_.op_count(), [&](auto&& pair) {
    for (auto const p : pairs) pair(id_at<op_id>(p >> 32), id_at<op_id>(p & 0xffffffffu));
  });
}

NEAP_FUNC void graph_editor::update_digests() {
  digest_updater digests(g_);
  if (derive_all_ || 2 * touched_ops_.size() >= g_.op_count()) return digests.all();
  for (auto o : touched_ops_) digests.changed(o);
  for (auto v : touched_values_) digests.changed(v);
  for (auto v : unread_) digests.changed(v);
  for (auto const& r : reads_) digests.changed(r.value);
  digests.settle(old_ops_);
}

}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC op_id graph_editor::add_opaque(std::string_view target, op::opaque what, std::span<value_id const> inputs,
                                         std::span<output_rule const> outputs, std::string_view name,
                                         std::string_view details, std::span<dim_link const> links) {
  check_inputs(inputs);
  what.target = intern_often(target), what.details = intern_often(details);
  digest_texts(what);
  what.links = intern_often(to_text(links));
  what.known_kind = what.known = 0;
  op_id const id = append(kind_of(&facets_of<op::opaque>), &what, inputs, outputs);
  g_.t_->ops[id].name = intern(name);
  return id;
}

NEAP_FUNC void graph_editor::replace_uses(value_id from, value_id to) {
  if (from == to) return;
  auto const turn = [&](use u) {
    if (g_.inputs(u.op)[u.argument] == from) set_input(u.op, u.argument, to);
  };
  if (index(from) < old_values_)
    for (auto const& u : g_.t_->uses[from]) turn(u);
  for (std::size_t i = 0, n = reads_.size(); i < n; ++i)
    if (reads_[i].value == from) turn(reads_[i].by);
  if (g_.t_->values[from].kept) {
    auto const r = g_.t_->values[from].role;
    auto const at = std::find(g_.t_->kept.begin(), g_.t_->kept.end(), from);
    if (g_.t_->values[to].kept) g_.t_->kept.erase(at, at + 1);
    else *at = to;
    g_.t_->values[from].kept = false, g_.t_->values[to].kept = true;
    touch(from);
    set_role(to, r);
  }
}

NEAP_FUNC value_id graph_editor::new_value(op_id producer, layout_id layout, alias_kind alias, int of, bytes_t bytes,
                                           storage_id shared) {
  value_record r;
  r.layout = layout;
  r.producer = producer;
  r.alias = alias;
  r.of = static_cast<std::int16_t>(of);
  r.storage = shared;
  value_id const v = g_.t_->values.push_back(r);
  if (shared == nothing<storage_id>) g_.t_->values[v].storage = g_.t_->storages.push_back({bytes, v, 0, false, false});
  return v;
}

NEAP_FUNC void graph_editor::add_output(op_id o, std::span<value_id const> inputs, layout_id layout, alias_kind alias,
                                        int of, bytes_t bytes, std::uint32_t name) {
  storage_id shared = nothing<storage_id>;
  std::uint16_t version = 0;
  if (alias == alias_kind::fresh) {
    if (of >= 0) order_changed_ = true;
  } else {
    value_id const base = of >= 0 ? inputs[static_cast<std::size_t>(of)]
                                  : id_at<value_id>(g_.t_->ops[o].first_output + static_cast<std::size_t>(-2 - of));
    if (index(base) < g_.value_count()) {
      auto const& b = g_.t_->values[base];
      shared = b.storage;
      version = b.version;
      if (alias == alias_kind::update) {
        version = next(version);
        if (index(shared) < g_.storage_count()) count_update(shared);
        order_changed_ = true;
      }
    } else {  // comes later (add_given): a place until then, so that every value has a storage
      shared = storage_id{0};
      aliases_changed_ = true;
    }
  }
  value_id const v = new_value(o, layout, alias, of, bytes, shared);
  g_.t_->values[v].version = version;
  g_.t_->values[v].name = name;
}

NEAP_FUNC bool graph_editor::gives_types_of(op_id o, operator_view known) {
  layouts_.clear();
  for (auto v : g_.inputs(o)) layouts_.push_back(tensor_layout::dense(g_.type(v)));
  shape_context shapes(known.facets->name, span_of(layouts_));
  try {
    known.facets->infer(known.bytes, shapes);
  } catch (error const&) { return false; }
  auto const out = shapes.outputs();
  if (out.size() != g_.outputs(o).size()) return false;
  for (std::size_t j = 0; j < out.size(); ++j)
    if (!(out[j].layout.type == g_.type(g_.outputs(o)[j]))) return false;
  return true;
}

NEAP_FUNC bool graph_editor::order_overwrites(plain_vector<std::uint64_t>& pairs) {
  for (auto& s : g_.t_->storages) s.overwritten = false;
  table<storage_id, std::uint32_t> of_storage;
  plain_vector<writer> writers;
  for (auto v : g_.values()) {
    auto const base = g_.overwrites(v);
    if (base == nothing<value_id>) continue;
    if (of_storage.empty()) of_storage.assign(g_.storage_count(), no_id);
    auto const s = g_.storage(base);
    g_.t_->storages[s].overwritten = true;
    writers.push_back({g_.producer(v), of_storage[s]});
    of_storage[s] = static_cast<std::uint32_t>(writers.size() - 1);
  }
  if (writers.empty()) return false;
  for (auto v : g_.values())
    for (auto w = of_storage[g_.storage(v)]; w != no_id; w = writers[w].next)
      for (auto const& u : g_.t_->uses[v])
        if (u.op != writers[w].op) pairs.push_back(pair_of(writers[w].op, u.op));
  return true;
}

NEAP_FUNC bool graph_editor::order_updates(plain_vector<std::uint64_t>& pairs) {
  plain_vector<std::uint32_t> first;  // where a storage's versions begin, in a list of all that are overwritten
  for (auto v : g_.values()) {
    auto const& r = g_.t_->values[v];
    if (r.alias != alias_kind::update) continue;
    if (first.empty()) first.assign(g_.storage_count() + 1, 0);
    auto& count = first[index(r.storage) + 1];
    count = std::max<std::uint32_t>(count, r.version);
  }
  if (first.empty()) return false;
  for (std::size_t s = 1; s < first.size(); ++s) first[s] += first[s - 1];
  plain_vector<writer> writers;
  plain_vector<std::uint32_t> of_version(first.back(), no_id);
  for (auto v : g_.values()) {
    auto const& r = g_.t_->values[v];
    if (r.alias != alias_kind::update) continue;
    auto& head = of_version[first[index(r.storage)] + r.version - 1];
    writers.push_back({r.producer, head});
    head = static_cast<std::uint32_t>(writers.size() - 1);
  }
  for (auto v : g_.values()) {
    auto const& r = g_.t_->values[v];
    auto const at = first[index(r.storage)] + r.version;
    if (at >= first[index(r.storage) + 1]) continue;
    for (auto w = of_version[at]; w != no_id; w = writers[w].next)
      for (auto const& u : g_.t_->uses[v])
        if (u.op != writers[w].op) pairs.push_back(pair_of(writers[w].op, u.op));
  }
  return true;
}

}}  // namespace neap::v0
