// What an executable works out of a plan beforehand, on any backend: which function runs at each step, on which
// addresses. Where the memory is, and how transfers run, is the executable's.
#pragma once

#include <neap/backend/host.hpp>
#include <neap/core/element.hpp>
#include <neap/core/plain_vector.hpp>
#include <neap/core/separate_compilation.hpp>
#include <neap/core/span_of.hpp>
#include <neap/core/tensor_ref.hpp>
#include <neap/execute/kernel_check.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/ir/stored.hpp>
#include <neap/plan/plan.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

template <class Backend>
class launch_list {
 public:
 protected:
  enum class action : std::uint8_t { compute, view, store, load };
  struct launch {
    kernel_function<Backend> kernel = nullptr;
    void const* attributes = nullptr;
    std::uint32_t refs = 0;  // first of inputs, then outputs, in refs_
    std::uint16_t inputs = 0, outputs = 0;
    action what = action::view;
    void* workspace = nullptr;
    bytes_t top = 0;                                // the end of the highest buffer or workspace it is given
    std::uint32_t first_wait = 0, waits = 0;        // in plan_.waits
    std::uint32_t slot = 0;                         // of what is stored, in slots_
    std::uint32_t first_journal = 0, journals = 0;  // residents to save first
  };
  struct fixup {
    std::uint32_t ref;
    storage_id storage;
    bytes_t offset;
  };
  struct donated_input {
    storage_id storage = nothing<storage_id>;
    void const* from = nullptr;
  };

  /// Throws neap::error if the plan's alignment is not a multiple of the 64 bytes that kernels build on.
  launch_list(plan p, Backend& backend)
      : plan_(std::move(p)),
        backend_(&backend),
        address_(plan_.graph.storage_count(), nullptr) {
    if (plan_.options.alignment % 64 != 0)
      throw_error({"executable: the plan aligns buffers to ", plan_.options.alignment,
                   " bytes, kernels need a multiple of 64"});
  }

  /// Gives what is not resident its addresses: the plan's offsets, from the end of the residents on.
  void place_buffers(std::byte* memory) {
    memory_ = memory;
    for (auto const& b : plan_.buffers)
      if (!b.resident) {
        address_[b.storage] = memory_ + (b.offset - plan_.resident_bytes);
        if (plan_.graph.is_source(b.storage)) donated_.push_back({b.storage});
      }
  }
  /// A resident storage is there from now on.
  void point_to(storage_id s, std::byte* there) {
    auto& at = address_[s];
    if (at == there) return;
    at = there;
    for (auto const& f : fixups_)
      if (f.storage == s) refs_[f.ref].data = at + f.offset;
  }
  /// Makes launches_, refs_ and slots_ of the plan and the addresses. Throws neap::error if a source other than an input
  /// has no address, an op has no kernel, or the kernel does not read an input's layout.
  void build();

  void launch_kernel(launch const& l) {
    auto const* const in = refs_.data() + l.refs;
    l.kernel(*backend_, l.attributes, {span_of(in, l.inputs), span_of(in + l.inputs, l.outputs), l.workspace});
  }
  /// A transfer moves the whole storage, whatever part of it the value shows.
  storage_id moved_storage(std::uint32_t step) const {
    auto const o = plan_.steps[step].op;
    auto const& g = plan_.graph;
    return g.storage(launches_[step].what == action::store ? g.inputs(o)[0] : g.output(o));
  }

  plan plan_;
  Backend* backend_;
  std::byte* memory_ = nullptr;
  table<storage_id, std::byte*> address_;
  plain_vector<launch> launches_;
  plain_vector<tensor_ref> refs_;
  plain_vector<fixup> fixups_;
  plain_vector<donated_input> donated_;
  std::vector<bytes_t> slots_;    // bytes of each stored tensor
  std::uint32_t final_wait_ = 0;  // the first wait of the step's end, in plan_.waits
  std::uint32_t last_wait_ = 0;   // the last step that waits for a transfer, or one after the last

 private:
  void add_ref(value_id v, op_id o);
};

template <class Backend>
void launch_list<Backend>::build() {
  auto const& g = plan_.graph;
  auto const n = static_cast<std::uint32_t>(plan_.steps.size());
  std::size_t refs = 0;
  for (auto o : g.ops()) refs += g.inputs(o).size() + g.outputs(o).size();
  refs_.reserve(refs);
  launches_.resize(n);
  std::vector<std::uint32_t> slot_of(g.value_count(), no_id);
  table<storage_id, bytes_t> end_of(g.storage_count(), 0);
  for (auto const& b : plan_.buffers) end_of[b.storage] = b.offset + b.bytes;
  for (std::uint32_t i = 0; i < n; ++i) {
    op_id const o = plan_.steps[i].op;
    auto& l = launches_[i];
    l.refs = static_cast<std::uint32_t>(refs_.size());
    l.inputs = static_cast<std::uint16_t>(g.inputs(o).size());
    l.outputs = static_cast<std::uint16_t>(g.outputs(o).size());
    l.attributes = g.attributes(o);
    for (auto v : g.inputs(o)) l.top = std::max(l.top, end_of[g.storage(v)]);
    for (auto v : g.outputs(o)) l.top = std::max(l.top, end_of[g.storage(v)]);
    if (g.template as<op::store>(o)) {
      l.what = action::store;
      l.slot = slot_of[index(g.output(o))] = static_cast<std::uint32_t>(slots_.size());
      slots_.push_back(g.bytes(g.storage(g.inputs(o)[0])));
      add_ref(g.inputs(o)[0], o);
      continue;
    }
    if (g.template as<op::load>(o)) {
      l.what = action::load;
      l.slot = slot_of[index(g.output(store_of(g, g.inputs(o)[0])))];
      add_ref(g.output(o), o);
      continue;
    }
    bool all_views = !g.outputs(o).empty();
    for (auto v : g.outputs(o)) all_views &= g.record(v).alias == alias_kind::view;
    if (all_views) continue;
    l.what = action::compute;
    l.kernel = kernel_on(*backend_, g.facets(o));
    if (!l.kernel) {
      auto const* x = g.template as<op::opaque>(o);
      if (x) throw_error({"executable: ", g.text(x->target), " has no kernel: its meaning is not known"});
      std::string where;
      if constexpr (requires { Backend::name; }) where = " on the backend " + std::string(Backend::name);
      throw_error({"executable: ", g.facets(o).name, " has no kernel", where});
    }
    if constexpr (std::is_same_v<Backend, host_backend>)
      if (g.facets(o).f32_or_f64)
        for (auto v : g.outputs(o))
          if (auto const t = g.type(v).element; is_floating(t) && t != dtype::f32 && t != dtype::f64)
            refuse_on_host(g.facets(o).name, t);
    for (auto v : g.inputs(o)) {
      if (!fits(g.facets(o).takes, g.layout(v)))
        throw_error({"executable: ", g.facets(o).name, " #", index(o), " cannot read an input with strides ",
                     g.layout(v).strides});
      add_ref(v, o);
    }
    for (auto v : g.outputs(o)) add_ref(v, o);
    if (auto const& s = plan_.steps[i]; s.workspace_bytes) {
      l.workspace = memory_ + (s.workspace_offset - plan_.resident_bytes);
      l.top = std::max(l.top, s.workspace_offset + s.workspace_bytes);
    }
  }
  std::uint32_t w = 0;
  for (std::uint32_t i = 0; i < n; ++i) {
    launches_[i].first_wait = w;
    while (w < plan_.waits.size() && plan_.waits[w].step == i) ++w;
    launches_[i].waits = w - launches_[i].first_wait;
    if (launches_[i].waits) last_wait_ = i;
  }
  final_wait_ = w;
  if (final_wait_ < plan_.waits.size()) last_wait_ = n;
}

template <class Backend>
void launch_list<Backend>::add_ref(value_id v, op_id o) {
  auto const& g = plan_.graph;
  auto const s = g.storage(v);
  std::byte* const at = address_[s];
  value_id const first = g.record(s).first;  // v may be a view of it
  if (!at && g.bytes(s) > 0 && g.is_resident(s) && g.role(first) != role::input)
    throw_error({"executable: the ", name_of(g.role(first)), " \"", g.name(first), "\" that ", g.facets(o).name,
                 " reads is bound to no memory"});
  if (g.is_resident(s))
    fixups_.push_back({static_cast<std::uint32_t>(refs_.size()), s, g.layout(v).offset * size_of(g.type(v).element)});
  refs_.push_back(tensor_ref::place(at, g.layout(v)));
  if (!at) refs_.back().data = nullptr;
}

NEAP_INSTANTIATE_ONCE(class launch_list<host_backend>);

}}}  // namespace neap::v0::detail
