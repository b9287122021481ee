// The bodies of <neap/execute/path_run.hpp>.
#pragma once

#include <neap/execute/path_run.hpp>

#include <neap/core/separate_compilation.hpp>

#include <algorithm>
#include <cstring>
#include <new>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC path_run::progress::progress(planned_path const& path, known_arguments const& begin,
                                       std::span<std::byte> arena)
    : tape(path.tape),
      values(*tape, scalars),
      free(arena.data() + arena.size()) {
  for (auto const& c : begin.places()) std::memcpy(&scalars.emplace_back(0), c.value, c.bytes);
  for (auto const& t : begin.tensors()) arguments.push_back(*t.now);
}

NEAP_FUNC known_reads path_run::reads() const {
  if (!more_) return {};
  return {more_->scalars.begin() + static_cast<std::ptrdiff_t>(begin_->places().size()), more_->scalars.end()};
}

NEAP_FUNC path_run::outcome path_run::operator()(compiled_call& now) {
  stage_ = &path_->first;
  if ((stage_->has_graph() || !path_->is_simple) && !enter()) return outcome::busy;
  try {
    for (;;) {
      auto& s = *stage_;
      auto const& c = s.captured;
      for (auto const& e : c.elements) elements_.push_back(*container_of(value(e.container)).tensor_at(value(e.place)));
      if (s.end && (!s.made.empty() || s.end->has_effects())) begin_end(s);
      if (s.has_graph()) run_graph(s);
      if (more_) serve(c);
      if (s.end) break;
      if (auto* const found = next()) {
        stage_ = found;
      } else {
        restore();
        return outcome::missed;
      }
    }
    auto const& end = *stage_->end;
    if (!made_.empty()) fill_made(*stage_);
    if (more_ && stage_->captured.needs_host()) prepare(end);
    if (more_ && on_->step_seconds) *on_->step_seconds = std::move(more_->seconds);
    if (lock_.owns_lock() && (!more_ || more_->pending.empty())) lock_.unlock();
    if (end.thrown) fill_thrown(end, made_);
    else now.fill(stage_->result.get(), *this);
    if (more_) perform_effects();
    if (end.has_effects()) commit(end);
    return outcome::ended;
  } catch (sharing_found const&) {
    restore();
    return outcome::shares;
  } catch (...) {
    if (is_unsaved_) throw;
    restore();
    if (on_->device && !log_->has_failed()) throw;  // the device's fault: the host does not compute instead
    return outcome::failed;
  }
}

NEAP_FUNC planned_stage* path_run::next() {
  auto const found = stage_->guards.find(more_->values);
  if (found.graph != guard_trie::none) return stage_->next[found.graph].get();
  more_->missed_at = stage_->guards.place(found.at);
  more_->missed_expr = stage_->guards.nodes()[found.at].expr;
  return nullptr;
}

inline void path_run::run_graph(planned_stage& s) {
  auto const& c = s.captured;
  auto const storage = [&](std::uint32_t k) -> tensor_storage& { return *argument(k).storage(); };
  if (!elements_.empty() && is_shared_element(c.sources, c.updated, storage)) throw sharing_found{};
  auto* const on_host = s.run ? &**s.run : nullptr;
  bind(s, on_host);
  // A device gives updated memory back by itself where its graph fails.
  bool const may_be_undone = !s.end || (on_host && (s.throws_late || on_host->spill() != nullptr)) ||
                             (more_ && more_->has_effects) ||
                             std::ranges::any_of(c.effects, [](auto const& e) { return e.function->may_throw(); });
  for (auto const u : c.updated) {
    recording_watch::uses(storage(u));
    storage(u).keep_for_readers();
    if (may_be_undone) save(storage(u));
    else is_unsaved_ = true;
  }
  try {
    if (on_host) (*on_host)();
    else (*s.on_device)();
  } catch (std::bad_alloc const&) { throw; } catch (...) {  // memory may lack in any operator
    if (c.may_throw) is_unsaved_ = false;                   // an operator before all updates has thrown
    throw;
  }
  for (auto const u : c.updated) storage(u).written();
  if (!more_) return;
  if (on_->step_seconds)
    more_->seconds.insert(more_->seconds.end(), on_->step_seconds->begin(), on_->step_seconds->end());
  if (s.on_device) return leave_on_device(s);
  for (std::size_t k = 0; k < c.kept.size(); ++k) place(c.kept[k].storage).host = kept_by(s, k);
  if (!s.end) move_to_end(s);
}

inline void path_run::bind(planned_stage& s, bound_graph::runnable* on_host) {
  using kind = captured_stage::source::kind;
  auto const to_memory = [&](std::size_t i, std::byte* memory) {
    if (on_host) on_host->bind(s.sources[i], memory);
    else s.on_device->bind(i, memory);
  };
  auto const to_storage = [&](std::size_t i, std::shared_ptr<tensor_storage> const& storage) {
    if (on_host) on_host->bind(s.sources[i], storage->data());
    else s.on_device->bind(i, storage);
  };
  auto const& sources = s.captured.sources;
  std::size_t k = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    auto const& from = sources[i];
    switch (from.what) {
      case kind::argument:
        if (from.is_part) to_memory(i, memory_of(from, argument(from.number)));
        else to_storage(i, argument(from.number).storage());
        break;
      case kind::storage:
        if (auto const& at = place(from.number); at.carried) to_storage(i, at.carried);
        else to_memory(i, at.host);
        break;
      case kind::external: to_storage(i, more_->externals[from.number].storage()); break;
      case kind::constant: break;
      case kind::scalar: {
        auto const bits = value(from.number);
        std::memcpy(s.scalars.data() + 64 * k++, &bits, sizeof bits);
      }
    }
  }
}

NEAP_FUNC void path_run::serve(captured_stage const& c) {
  for (auto const& r : c.reads) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, read(r.storage) + r.element * r.bytes, static_cast<std::size_t>(r.bytes));
    set_scalar(r.scalar, bits);
  }
  for (auto const& e : c.effects) {
    more_->pending.push_back(&e);
    more_->has_effects = more_->has_effects || e.function->may_throw();
  }
  if (c.external.empty()) return;
  perform_effects();
  auto const& e = c.external.front();
  auto const& r = perform(e);
  if (!e.gives_tensor) return set_scalar(e.result, r.bits);
  auto const& made = more_->externals.emplace_back(apart(r.made, {}));
  place(e.storage).host = made.storage()->data();
  set_scalar(e.result, mix_type({}, made.type()).low);
}

NEAP_FUNC void path_run::report_uses() const {
  for (auto const& t : begin_->tensors())
    if (!t.is_empty && may_be_window(*t.now->storage())) recording_watch::uses(*t.now->storage());
  for (auto const& p : begin_->places()) recording_watch::uses(p.value);
}

NEAP_FUNC path_run::location& path_run::place(std::uint32_t storage) {
  if (storage >= more_->locations.size()) more_->locations.resize(storage + std::size_t{1});
  return more_->locations[storage];
}

NEAP_FUNC std::byte const* path_run::read(std::uint32_t storage) {
  auto const& at = place(storage);
  return at.carried ? at.carried->data() : at.host;
}

NEAP_FUNC void path_run::set_scalar(std::uint32_t k, std::uint64_t bits) {
  auto& scalars = more_->scalars;
  if (k >= scalars.size()) scalars.resize(k + std::size_t{1});
  scalars[k] = bits;
}

NEAP_FUNC tensor path_run::tensor_from(tensor_origin const& o) const {
  return tensor_of_origin(
      o, [&](std::uint32_t k) -> tensor const& { return argument(k); }, made_);
}

NEAP_FUNC tracked_base& path_run::container_in(std::uint32_t scalar) const {
  return **static_cast<tracked_base**>(begin_->place(scalar).value);
}

NEAP_FUNC void path_run::leave_on_device(planned_stage& s) {
  auto const& kept = s.captured.kept;
  std::vector<device_graph::left> left;
  for (std::size_t k = 0; k < kept.size(); ++k) {
    auto& at = place(kept[k].storage);
    if (!s.end && on_->device->carries(kept[k].type)) {
      left.push_back({s.kept[k], on_->device->carried(kept[k].type, more_->carried_bytes)});
      more_->carried_bytes += align_up(kept[k].type.bytes(), 64);
      at = {nullptr, left.back().to.storage};
    } else {
      at = {kept_by(s, k), nullptr};
    }
  }
  s.on_device->leave(left);
}

NEAP_FUNC void path_run::move_to_end(planned_stage& s) {
  auto const& kept = s.captured.kept;
  std::vector<std::size_t> order(kept.size());
  for (std::size_t k = 0; k < kept.size(); ++k) order[k] = k;
  auto const at = [&](std::size_t k) -> std::byte*& { return place(kept[k].storage).host; };
  std::sort(order.begin(), order.end(), [&](auto a, auto b) { return at(a) > at(b); });
  auto const move = [&](std::size_t k, std::byte* from) {
    auto const bytes = kept[k].type.bytes();
    more_->free -= align_up(bytes, 64);
    if (bytes > 0) std::memmove(more_->free, from, static_cast<std::size_t>(bytes));
    at(k) = more_->free;
  };
  // What the plan has in one place is apart from now on.
  std::vector<std::pair<std::size_t, std::size_t>> twice;
  std::byte* last = nullptr;
  for (std::size_t i = 0; i < order.size(); ++i) {
    auto* const from = at(order[i]);
    if (i > 0 && from == last) twice.emplace_back(order[i], order[i - 1]);
    else move(order[i], from);
    last = from;
  }
  for (auto const& [k, other] : twice) move(k, at(other));
}

NEAP_FUNC void path_run::save(tensor_storage& s) {
  auto const bytes = static_cast<std::size_t>(std::max<bytes_t>(s.bytes(), 1));
  saved_.push_back({&s, byte_block(bytes, 64)});
  std::memcpy(saved_.back().bytes.data(), s.data(), static_cast<std::size_t>(s.bytes()));
}

NEAP_FUNC void path_run::restore() {
  for (; !saved_.empty(); saved_.pop_back()) {
    auto const& last = saved_.back();
    std::memcpy(last.storage->data_to_overwrite(), last.bytes.data(), static_cast<std::size_t>(last.storage->bytes()));
  }
}

NEAP_FUNC host_result const& path_run::perform(captured_stage::host_call const& c) {
  std::vector<tensor> tensors;
  for (std::size_t k = 0; k < c.storages.size(); ++k) {
    tensors.push_back(unwritten_tensor(c.types[k]));
    if (auto const bytes = static_cast<std::size_t>(c.types[k].bytes()); bytes > 0)
      std::memcpy(tensors.back().storage()->data(), read(c.storages[k]), bytes);
  }
  std::vector<std::uint64_t> scalars;
  for (auto const e : c.scalars) scalars.push_back(value(e));
  struct host_code {
    explicit host_code(path_run& r) : run(r) { run.on_->is_in_host_code = true, run.lock_.unlock(); }
    host_code(host_code const&) = delete;
    host_code& operator=(host_code const&) = delete;
    ~host_code() { run.lock_.lock(), run.on_->is_in_host_code = false; }
    path_run& run;
  } const meanwhile(*this);
  return log_->perform(c.function, tensors, scalars);
}

NEAP_FUNC void path_run::perform_effects() {
  for (auto const* e : more_->pending) (void)perform(*e);
  more_->pending.clear();
}

NEAP_FUNC void path_run::prepare(captured_end const& end) {
  if (more_)
    for (auto const& w : end.scalars) (void)value(w.expression);  // kept from now on
  if (end.containers.empty() && end.tensors.empty()) return;
  auto& all = changes_.emplace();
  for (auto const& w : end.containers) {
    all.containers.push_back(change_of(
        w, [&](tensor_origin const& o) { return tensor_from(o); }, [&](std::uint32_t e) { return value(e); }));
    container_in(w.scalar).prepare(all.containers.back());
  }
  all.tensors.reserve(end.tensors.size());
  for (auto const& w : end.tensors) all.tensors.push_back(tensor_from(w.from));
}

NEAP_FUNC void path_run::commit(captured_end const& end) {
  for (std::size_t k = 0; k < end.containers.size(); ++k)
    container_in(end.containers[k].scalar).commit(changes_->containers[k]);
  for (auto const& w : end.plains) write_plain(begin_->plain(w.to), w.bytes);
  for (auto const& w : end.scalars) {
    auto const& to = begin_->place(w.scalar);
    auto const bits = value(w.expression);
    recording_watch::writes(to.value);
    std::memcpy(to.value, &bits, to.bytes);
  }
  if (!end.scalars.empty()) {
    if (more_) write_epoch::mark();
    else begin_->has_written();
  }
  for (std::size_t k = 0; k < end.tensors.size(); ++k)
    *begin_->tensors()[end.tensors[k].to].now = std::move(changes_->tensors[k]);
}

}}}  // namespace neap::v0::detail
