// The bodies of <neap/capture/storage_table.hpp>.
#pragma once

#include <neap/capture/storage_table.hpp>

#include <neap/core/separate_compilation.hpp>
#include <neap/core/span_of.hpp>
#include <neap/ir/operators/movement.hpp>
#include <neap/model/apply.hpp>

#include <algorithm>
#include <cstring>

namespace neap { inline namespace v0 { namespace detail {

inline constexpr char const* written_elements =
    "elements of a tensor are written after its use, other than by an operator";

inline std::unique_ptr<storage_table::working_memory>& spare_working_memory() {
  thread_local std::unique_ptr<storage_table::working_memory> spare;
  return spare;
}

NEAP_FUNC storage_table::storage_table(recording_state& of) : state_(of), memory_(std::move(spare_working_memory())) {
  if (!memory_) memory_ = std::make_unique<working_memory>();
  auto const& first = of.begin;
  for (std::uint32_t k = 0; k < first.handles.size(); ++k)
    if (auto const& h = first.handles[k]; !h.is_empty() && !is_argument(*h.storage()))
      add_argument(h.storage(), k, first.windows[k].is_part ? first.windows[k].type : h.storage()->type());
  begin_graph();
}

NEAP_FUNC storage_table::~storage_table() {
  auto& m = *memory_;
  constexpr std::size_t max_kept = std::size_t{4} << 20;
  if (m.log.bytes() + m.entries.size() * sizeof(entry) > max_kept) return;
  m.log.clear(), m.entries.clear(), m.next.clear(), m.inputs.clear();
  spare_working_memory() = std::move(memory_);
}

NEAP_FUNC std::uint32_t storage_table::find(tensor_storage const& s) const {
  if (auto const& r = s.recorded(); r.capture == state_.serial) return r.id;
  return arguments_.find(&s);
}

NEAP_FUNC std::uint32_t storage_table::id_of(tensor_storage const& s, std::source_location at) const {
  auto const id = find(s);
  if (id == none)
    state_.refuse(context_access::place(at),
                  {"compile: the function uses a tensor that is neither an argument nor a part of one, ", s.type(),
                   ": a later call would use it as it is now. Pass it, or the object that has it, to the function"});
  return id;
}

NEAP_FUNC storage_table::entry& storage_table::add_entry(origin what, std::uint32_t number, tensor_type const& type) {
  memory_->entries.push_back({what, number, log().layout_number(tensor_layout::dense(type))});
  return memory_->entries.back();
}

NEAP_FUNC storage_table::entry& storage_table::add_argument(std::shared_ptr<tensor_storage> const& s,
                                                            std::uint32_t number, tensor_type const& type) {
  arguments_.add(s.get(), size());
  storages_begun_.emplace_back(s, s->writes());
  state_.watch(s.get());
  return add_entry(origin::argument, number, type);
}

NEAP_FUNC storage_table::entry& storage_table::know(std::shared_ptr<tensor_storage> const& s, origin what,
                                                    std::uint32_t value) {
  s->set_recorded({state_.serial, size()});
  if (!state_.has_data) storages_made_.push_back(s);
  if (value == none) return add_entry(what, none, s->type());
  memory_->entries.push_back({what, none, log().layout_of(value)});
  set_value(memory_->entries.back(), value);
  return memory_->entries.back();
}

NEAP_FUNC void storage_table::ran(operator_view op, std::span<tensor const> in, std::span<tensor const> out,
                                  std::span<output_rule const> outputs, std::source_location where) {
  auto const at = state_.place_of(where);
  auto& rules = memory_->rules;  // of views of a part of a storage, in terms of that part
  rules.clear(), rules.append(outputs.data(), outputs.size());
  for (std::size_t j = 0; j < rules.size(); ++j)
    if (rules[j].alias != alias_kind::fresh)
      if (auto const id = find(*out[j].storage()); id != none)
        if (auto const* w = window_of((*this)[id])) {
          rules[j].layout.offset -= w->base;
          if (op.facets->name == op::as_strided::name) state_.set_needs_whole();
        }
  auto& ids = memory_->inputs;
  ids.clear();
  for (auto const& t : in) ids.push_back(value(*t.storage(), t.layout(), at));
  std::uint32_t first = 0;
  with_place(at, [&] { first = log().add(op, span_of(ids), span_of(rules), at); });
  graphs_.back().may_throw = may_throw() || op.facets->checks_numbers;
  for (std::size_t j = 0; j < rules.size(); ++j) {
    auto const v = first + static_cast<std::uint32_t>(j);
    auto const& s = out[j].storage();
    if (rules[j].alias == alias_kind::fresh) {
      know(s, origin::computed, v);
      continue;
    }
    auto const id = id_of(*s, at);
    auto& e = (*this)[id];
    if (rules[j].alias != alias_kind::update) {
      add_value(e, v);
      continue;
    }
    state_.require_own_storage(id);
    if (++e.updates > 0xffff) state_.refuse(at, {"graph: more than 65535 updates of one storage"});
    if (e.numbers != none && numbers_[e.numbers].is_seen)
      state_.unusable = "an operator writes a tensor of whose elements the program has the address";
    set_value(e, v);
    if (e.what == origin::number) e.what = origin::computed;  // its elements are numbers no more
  }
}

NEAP_FUNC void storage_table::know_numbers(std::shared_ptr<tensor_storage> const& s) {
  know(s, origin::number, none).numbers = static_cast<std::uint32_t>(numbers_.size());
  numbers_.push_back({s, {}, false});
}

NEAP_FUNC void storage_table::know_scalar(std::shared_ptr<tensor_storage> const& s, std::uint32_t expression) {
  know(s, origin::computed,
       add_source(role::input, s->type(), "scalar", captured_stage::source::kind::scalar, expression));
}

NEAP_FUNC void storage_table::know_copy(std::shared_ptr<tensor_storage> const& s, tensor_storage const& from) {
  auto const id = find(from);
  if (id == none) return;  // one of no concern: who reads the copy is refused
  bool const is_part = window_of((*this)[id]);
  if (is_part) state_.set_needs_whole();
  know(s, origin::computed,
       is_part ? none : copy_of(value(from, tensor_layout::dense(from.type()), {}), from.type(), {}));
}

NEAP_FUNC bool storage_table::has_numbers(tensor_storage const& s, bool is_seen) {
  auto const id = find(s);
  if (id == none || (*this)[id].what != origin::number) return false;
  auto& n = numbers_[(*this)[id].numbers];
  n.is_seen = n.is_seen || is_seen;
  if (is_seen && (*this)[id].first_value != none && n.copy.is_empty()) n.copy = copy_of_data(*n.storage);
  return true;
}

NEAP_FUNC std::uint32_t storage_table::copy_for_host(tensor const& t, std::source_location at) {
  if (t.is_empty()) no_tensor(at);
  auto const v = copy_of(value(*t.storage(), t.layout(), at), t.type(), context_access::place(at));
  auto const id = size();
  set_value(add_entry(origin::computed, none, t.type()), v);
  needed_.add(id, 0);
  return id;
}

NEAP_FUNC tensor const& storage_table::argument(std::uint32_t number) const {
  auto const n = state_.begin.handles.size();
  return number < n ? state_.begin.handles[number] : elements_[number - n];
}

NEAP_FUNC void storage_table::add_element(tensor const& t) {
  auto const number = static_cast<std::uint32_t>(state_.begin.handles.size() + elements_.size());
  elements_.push_back(t);
  add_argument(t.storage(), number, t.storage()->type());
}

NEAP_FUNC std::uint32_t storage_table::argument_of(tensor const& t) {
  auto const n = state_.begin.handles.size() + elements_.size();
  for (; found_ < n; ++found_)
    if (auto const& h = argument(found_); !h.is_empty()) by_node_.add(h.node().get(), found_);
  for (auto k = by_node_.find(t.node().get()); k < n; ++k)
    if (auto const& h = argument(k); h.node() == t.node() && h.output() == t.output()) return k;
  return none;
}

NEAP_FUNC void storage_table::begin_graph() {
  graphs_.emplace_back();
  log().begin_section();
}

NEAP_FUNC void storage_table::end_graph() {
  auto const k = static_cast<std::uint32_t>(graphs_.size() - 1);
  for (auto& e : memory_->entries) {
    if (e.first_value == none) continue;
    if (e.what == origin::computed && e.home == none)
      e.home = k, e.first_home = e.first_value, e.last_home = e.last_value;
    e.first_value = e.last_value = none;
    e.updates = 0;
  }
}

NEAP_FUNC std::uint32_t storage_table::kept(std::uint32_t id) {
  auto& e = (*this)[id];
  if (e.made != none) return e.made;
  if (e.what == origin::number) {  // an operator copies it
    if (e.first_value == none) begin(e);
    e.what = origin::computed;
  }
  needed_.add(id, 0);
  made_.push_back({id, type_of(id)});
  return e.made = static_cast<std::uint32_t>(made_.size() - 1);
}

NEAP_FUNC void storage_table::finish(std::vector<captured_stage>& stages, std::vector<std::uint32_t> const& also_kept) {
  for (auto const& n : numbers_)
    if (n.is_seen && !n.copy.is_empty() && !n.is_unchanged()) state_.unusable = written_elements;
  for (auto const id : also_kept) needed_.add(id, 0);
  std::vector<std::vector<std::uint32_t>> kept_in(graphs_.size());
  for (std::uint32_t id = 0; id < size(); ++id)
    if (needed_.contains(std::uint64_t{id}) && (*this)[id].home != none) kept_in[(*this)[id].home].push_back(id);
  std::uint32_t k = 0;
  for (auto& s : stages)
    if (s.computes) finish(s, k, kept_in[k]), ++k;
}

NEAP_FUNC void storage_table::finish(captured_stage& s, std::uint32_t section, std::vector<std::uint32_t> const& kept) {
  auto& g = graphs_[section];
  graph_editor edit{table_of<standard_operators>()};
  log().build(section, edit, s.places);
  s.op_count = edit.graph().op_count();
  for (auto const id : kept) {
    auto const& e = (*this)[id];
    auto const type = type_of(id);
    auto const whole = tensor_layout::dense(type);
    auto v = nothing<value_id>;
    for (auto x = e.first_home; x != none; x = next_of(x))
      if (log().layout(log().layout_of(x)) == whole) v = log().in_section(section, x);
    if (v == nothing<value_id>)
      v = edit.add(op::as_strided{whole.type.dims, whole.strides, whole.offset},
                   {log().in_section(section, e.last_home)})
              .front();
    if (edit.graph().producer(v) == nothing<op_id>) v = edit.add(op::copy{}, {v}).front();
    edit.keep(v, role::output);
    s.kept.push_back({id, v, type});
  }
  for (auto const& from : g.sources)
    if (from.what == captured_stage::source::kind::argument) {
      auto const& built = edit.graph();
      if (built.record(built.storage(from.value)).updates > 0) s.updated.push_back(from.number);
    }
  s.places.resize(edit.graph().op_count());
  s.sources = std::move(g.sources), s.constants = std::move(g.constants);
  s.may_throw = g.may_throw, s.program = std::move(edit).finish();
}

NEAP_FUNC std::vector<std::pair<std::shared_ptr<tensor_storage>, std::uint32_t>> storage_table::held_outside() const {
  std::vector<std::pair<std::shared_ptr<tensor_storage>, std::uint32_t>> all;
  for (auto const& each : storages_made_) {
    auto s = each.lock();
    if (!s) continue;
    auto const id = s->recorded().id;
    auto const& e = (*this)[id];
    auto const own = e.numbers == none ? 1 : 2;
    if (e.what != origin::number && s.use_count() > own) all.emplace_back(std::move(s), id);
  }
  return all;
}

NEAP_FUNC void storage_table::take_back() const {
  for (auto const& [storage, writes] : storages_begun_) storage->take_back(writes);
}

// Values.

NEAP_FUNC void storage_table::set_value(entry& e, std::uint32_t v) {
  next_of(v) = none;
  e.first_value = e.last_value = v;
}

NEAP_FUNC void storage_table::add_value(entry& e, std::uint32_t v) {
  next_of(v) = none;
  next_of(e.last_value) = v;
  e.last_value = v;
}

NEAP_FUNC std::uint32_t& storage_table::next_of(std::uint32_t v) {
  auto& next = memory_->next;
  if (v >= next.size()) next.resize(log().value_count(), none);
  return next[v];
}

NEAP_FUNC std::uint32_t storage_table::value(tensor_storage const& s, tensor_layout l, std::source_location at) {
  auto& e = (*this)[id_of(s, at)];
  if (auto const* w = window_of(e)) {
    l.offset -= w->base;
    if (l.offset < 0 || reach(l) > w->type.count()) {
      state_.set_needs_whole();
      if (e.first_value == none) begin(e);
      return e.first_value;  // the log is not used
    }
  }
  if (e.first_value == none) begin(e);
  for (auto v = e.first_value; v != none; v = next_of(v))
    if (log().layout(log().layout_of(v)) == l) return v;
  auto const last = e.last_value;
  auto const v =
      log().add(op::as_strided{l.type.dims, l.strides, l.offset}, span_of(&last, 1), {l, alias_kind::view, 0}, at);
  add_value(e, v);
  return v;
}

NEAP_FUNC argument_state::window const* storage_table::window_of(entry const& e) const {
  auto const& windows = state_.begin.windows;
  if (e.what != origin::argument || e.number >= windows.size()) return nullptr;
  return windows[e.number].is_part ? &windows[e.number] : nullptr;
}

NEAP_FUNC std::uint32_t storage_table::copy_of(std::uint32_t value, tensor_type const& type, std::source_location at) {
  return log().add(op::copy{}, span_of(&value, 1), {tensor_layout::dense(type)}, at);
}

NEAP_FUNC std::uint32_t storage_table::add_source(role r, tensor_type const& type, char const* name,
                                                  captured_stage::source::kind what, std::uint32_t number) {
  auto const v = log().add_source(r, log().layout_number(tensor_layout::dense(type)), name);
  auto const in_graph = log().in_section(static_cast<std::uint32_t>(graphs_.size() - 1), v);
  graphs_.back().sources.push_back({in_graph, what, number});
  return v;
}

NEAP_FUNC void storage_table::begin(entry& e) {
  using kind = captured_stage::source::kind;
  auto const id = static_cast<std::uint32_t>(&e - memory_->entries.data());
  auto const type = type_of(id);
  switch (e.what) {
    case origin::argument: {
      auto const r = argument(e.number).storage()->role();
      set_value(e, add_source(is_source(r) ? r : role::input, type, "argument", kind::argument, e.number));
      if (auto const* w = window_of(e)) {
        auto& source = graphs_.back().sources.back();
        source.is_part = true, source.within = argument(e.number).layout().offset - w->base;
      }
      return;
    }
    case origin::external: return set_value(e, add_source(role::input, type, "external", kind::external, e.number));
    case origin::computed:
      needed_.add(id, 0);
      return set_value(e, add_source(role::input, type, "made before", kind::storage, id));
    case origin::number: return begin_numbers(e, type);
  }
}

NEAP_FUNC void storage_table::begin_numbers(entry& e, tensor_type const& type) {
  // Unseen, its elements were as they were made until an operator wrote them: this one, perhaps.
  auto& n = numbers_[e.numbers];
  if (auto const& first = n.storage->first_values(); first.how == initialiser::kind::constant && !n.is_seen) {
    set_value(e, log().add(op::fill{type.dims, type.element, first.a}, {}, {tensor_layout::dense(type)}, {}));
    return;
  }
  if (!n.copy.is_empty() && !n.is_unchanged()) state_.unusable = written_elements;
  n.copy = copy_of_data(*n.storage);
  auto& constants = graphs_.back().constants;
  auto const v = add_source(role::constant, type, "numbers", captured_stage::source::kind::constant,
                            static_cast<std::uint32_t>(constants.size()));
  constants.push_back(n.copy);
  set_value(e, copy_of(v, type, {}));  // an operator may write it
}

NEAP_FUNC bool storage_table::numbers_record::is_unchanged() const {
  return std::memcmp(storage->data(), copy.storage()->data(), static_cast<std::size_t>(storage->bytes())) == 0;
}

NEAP_FUNC tensor copy_of_data(tensor_storage& s) {
  tensor copy = make_leaf(std::make_shared<tensor_storage>(s.type(), initialiser{}, role::constant),
                          tensor_layout::dense(s.type()));
  std::memcpy(copy.storage()->data_to_overwrite(), s.data(), static_cast<std::size_t>(s.bytes()));
  return copy;
}

}}}  // namespace neap::v0::detail
