// The bodies of <neap/capture/recorder.hpp>.
#pragma once

#include <neap/capture/recorder.hpp>

#include <neap/capture/write_epoch.hpp>
#include <neap/core/separate_compilation.hpp>

#include <algorithm>
#include <cstring>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC bool are_alike(tensor const& a, tensor const& b) {
  if (a.node() == b.node() && a.output() == b.output()) return true;
  if (a.is_empty() || b.is_empty() || a.is_traced() || b.is_traced()) return false;
  auto const &m = *a.node(), &n = *b.node();
  return a.storage() == b.storage() && a.layout() == b.layout() && !m.facets && !n.facets &&
         m.wants_gradient == n.wants_gradient && m.though_frozen == n.though_frozen && m.of_gradient == n.of_gradient;
}

inline context_access::randomness thread_randomness() {
  auto const now = context_access::enter(eager_context::current(), {});
  context_access::enter(eager_context::current(), now);
  return now;
}

NEAP_FUNC recorder::recorder(argument_state const& begin, expression_tape& tape, host_log& log, bool with_data,
                             known_reads const* known)
    : state_(begin, tape, log, with_data, known),
      randomness_(thread_randomness()),
      storages_(state_),
      stages_(state_, storages_),
      tensors_(state_, storages_, stages_),
      scalars_(state_, storages_, stages_),
      host_(state_, storages_, stages_, scalars_),
      containers_(state_, storages_, stages_, scalars_) {
  state_.start({&tensors_, &scalars_, &host_, &containers_, nullptr});
}

NEAP_FUNC bool recorder::take_back(argument_state const& end, std::size_t tensors, std::size_t scalars,
                                   std::size_t plains, std::string_view form) {
  auto const& begin = state_.begin;
  tensors_.take_back();
  storages_.take_back();
  if (end.form != form || end.tensors.size() != tensors || end.scalars.size() != scalars || end.plains.size() != plains)
    return false;
  for (std::size_t k = 0; k < begin.handles.size(); ++k)
    if (auto const& h = begin.handles[k];
        state_.has_data && !h.is_empty() && argument_state::memory_of(h) != begin.memory[k])
      return false;
  if (state_.has_data) context_access::enter(eager_context::current(), randomness_);
  for (auto const& [container, restore] : state_.containers_begun) restore();
  for (std::size_t k = 0; k < tensors; ++k)
    if (auto const& t = begin.handles[k]; t.node() != end.tensors[k]->node() || t.output() != end.tensors[k]->output())
      *end.tensors[k] = t;
  scalars_.take_back(end, scalars);
  for (std::size_t k = 0; k < plains; ++k) {
    auto const& b = begin.plains[k];
    write_plain(end.plains[k], begin.plain_bytes.substr(b.at, b.bytes));
  }
  write_epoch::mark();
  return true;
}

NEAP_FUNC bool recorder::is_kept_outside(owner_counts const& owners) const {
  return std::ranges::any_of(state_.nodes_made, [&](auto const& made) {
    auto const n = made.lock();
    return n && n.use_count() > 1 + owners.of(n.get());
  });
}

NEAP_FUNC bool recorder::keeps_tracked(std::initializer_list<argument_state const*> parts) {
  for (auto const* p : parts)
    for (auto const& c : p->scalars) scalars_.destroyed(c.address);
  return !scalars_.own().empty();
}

NEAP_FUNC tensor_origin recorder::leave(tensor& t) {
  using origin = storage_table::origin;
  tensor_origin o;
  if (t.is_empty()) return o;
  if (auto const k = storages_.argument_of(t); k != storage_table::none) {
    o.what = tensor_origin::kind::argument, o.number = k;
    return o;
  }
  auto const id = t.is_traced() ? storage_table::none : storages_.find(*t.storage());
  if (id == storage_table::none) {
    state_.unusable = "it leaves behind a tensor that is no argument's and was not computed in it";
    return o;
  }
  auto const* n = t.node().get();
  o.layout = t.layout();
  bool const history = n->facets != nullptr;
  o.of_compiled = n->of_compiled || (history && n->wants_gradient);
  o.of_gradient = n->of_gradient || o.of_compiled;
  o.wants_gradient = !history && n->wants_gradient, o.though_frozen = n->though_frozen;
  if (storages_[id].what == origin::argument) {
    o.what = tensor_origin::kind::memory_of_argument, o.number = storages_[id].number;
    o.layout.offset -= storages_.argument(o.number).layout().offset;
  } else {
    o.what = tensor_origin::kind::made;
    o.number = storages_.kept(id);
    auto const& s = *t.storage();
    storages_.made()[o.number].as = {s.role(), s.is_frozen(), s.first_values()};
  }
  if (history) {
    t = make_leaf(t.storage(), t.layout());
    t.node()->of_gradient = o.of_gradient, t.node()->of_compiled = o.of_compiled;
  }
  return o;
}

NEAP_FUNC void recorder::leave_containers(captured_end& to) {
  for (auto const& r : containers_.records()) {
    if (!r->is_written) continue;
    captured_end::container_write w;
    w.scalar = r->scalar, w.is_whole = r->is_whole, w.from_front = r->from_front, w.from_back = r->from_back;
    auto const add = [&](container_record::item const& x, std::uint64_t now, std::uint64_t place) {
      auto& item = w.items.emplace_back();
      item.place = place, item.is_kept = x.is_entry, item.is_erased = x.is_erased;
      if (x.is_entry) item.from = x.place;
      if (x.is_entry || x.is_erased) return;
      if (auto const* t = r->container->tensor_at(now)) item.made = leave(const_cast<tensor&>(*t));
      else item.expression = x.expression;
    };
    for (auto const& [place, x] : r->replaced) add(x, r->is_keyed ? place : place - r->from_front, place);
    w.replaced = w.items.size();
    auto const first = r->is_whole ? 0 : r->container->element_count() - (r->is_keyed ? 0 : r->items.size());
    for (std::size_t k = 0; k < r->items.size(); ++k) add(r->items[k], first + k, k);
    to.containers.push_back(std::move(w));
  }
}

NEAP_FUNC void recorder::keep_thrown(captured_end& to) {
  auto& nodes = state_.nodes_made;
  for (auto made = nodes.rbegin(); made != nodes.rend(); ++made) {
    auto const n = made->lock();
    if (!n || !n->facets) continue;
    n->of_compiled = n->of_compiled || n->wants_gradient;
    n->of_gradient = n->of_gradient || n->wants_gradient, n->wants_gradient = false;
    n->facets = nullptr;
    n->in.clear(), n->in_version.clear(), n->in_data.clear();
  }
  for (auto& [storage, id] : storages_.held_outside()) {
    auto const number = storages_.kept(id);
    to.thrown_storages.push_back({std::move(storage), number});
  }
}

NEAP_FUNC tensor_type const* recorder::kept_outside() const {
  auto const held = storages_.held_outside();
  return held.empty() ? nullptr : &storages_.type_of(held.front().second);
}

NEAP_FUNC void recorder::finish(captured_path& p, std::vector<std::uint32_t> const& also_kept) {
  p.stages = stages_.finish(also_kept);
  p.end.made = std::move(storages_.made());
}

}}}  // namespace neap::v0::detail
