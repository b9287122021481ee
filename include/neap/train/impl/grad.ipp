// The bodies of <neap/train/grad.hpp>.
#pragma once

#include <neap/train/grad.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC plain_vector<tensor_node const*> recorded_nodes(tensor const& loss) {
  plain_vector<tensor_node const*> found, open{loss.node().get()};
  number_map seen;  // as a set
  seen.add(open.front(), 0);
  while (!open.empty()) {
    auto const* n = open.back();
    open.pop_back();
    if (!n->facets) continue;
    found.push_back(n);
    for (auto const& t : n->in)
      if (auto const* m = t.node().get(); seen.add(m, 0)) open.push_back(m);
  }
  detail::sort_list(found, [](auto const* a, auto const* b) { return a->order < b->order; });
  return found;
}

NEAP_FUNC recorded_graph::recorded_graph(operator_table ops, tensor const& loss, std::span<tensor const> wrt,
                                         std::source_location at)
    : edit_(ops) {
  auto* const listener = computation_listener::active();
  for (auto const* n : recorded_nodes(loss)) {
    if (listener) listener->differentiates(n->order, at);
    std::vector<value_id> in;
    for (std::size_t i = 0; i < n->in.size(); ++i) {
      auto const& t = n->in[i];
      require_history(t, at);
      assert((!t.node()->facets || first_output_.contains(t.node().get())) && "an operator ran before its input");
      auto const* data = n->in_data.empty() ? nullptr : n->in_data[i].get();
      in.push_back(data && !t.node()->facets && !t.wants_gradient() ? buffer_value(t, *data) : value(t));
    }
    auto const out = edit_.emit({n->facets, n->attributes.data()}, span_of(in));
    bool computes = false;
    for (auto v : out) computes = computes || edit_.graph().record(v).alias != alias_kind::view;
    if (computes)
      for (std::size_t i = 0; i < in.size(); ++i)
        if (!memory_[index(in[i])].of_buffer) read(n->in[i], in[i], n->in_version[i], n->facets->name, at);
    for (std::size_t j = 0; j < out.size(); ++j) {
      bool const fresh = edit_.graph().record(out[j]).alias == alias_kind::fresh;
      place(out[j], n->out[j], fresh);
      if (fresh) meet(n->out[j].storage.get(), n->out[j].version);
    }
    first_output_.set(n, static_cast<std::uint32_t>(index(out.front())));
  }
  for (auto const& t : wrt) value(t);
  require_history(loss, at);
}

NEAP_FUNC value_id recorded_graph::value(tensor const& t) {
  auto const* n = t.node().get();
  if (!first_output_.contains(n)) {
    // All outputs of the node, so that output j is value first + j. (A leaf of several outputs is an operator that
    // was not recorded.)
    for (auto const& o : n->out) {
      value_id const v = edit_.add_source_at(role::input, o.layout);
      first_output_.add(n, static_cast<std::uint32_t>(index(v)));
      place(v, o, false);
    }
  }
  return id_at<value_id>(first_output_.find(n) + t.output());
}

NEAP_FUNC std::vector<tensor> recorded_graph::handles(tensor const& loss, std::span<tensor const> wrt) const {
  std::vector<tensor> all(memory_.size());
  auto const note = [&](tensor const& t) {
    auto const* n = t.node().get();
    if (!first_output_.contains(n)) return;
    for (std::size_t j = 0; j < n->out.size(); ++j)
      all[first_output_.find(n) + j] = tensor(t.node(), static_cast<std::uint32_t>(j));
  };
  for (auto const* n : recorded_nodes(loss))
    for (auto const& t : n->in) note(t);
  for (auto const& t : wrt) note(t);
  note(loss);
  for (std::size_t v = 0; v < all.size(); ++v)  // what a buffer was
    if (all[v].is_empty() && memory_[v].storage)
      all[v] = make_leaf(memory_[v].storage, edit_.graph().layout(id_at<value_id>(v)));
  return all;
}

NEAP_FUNC value_id recorded_graph::buffer_value(tensor const& t, read_data const& data) {
  for (auto const& b : buffers_)
    if (b.node == t.node().get() && b.output == t.output() && b.data == &data) return b.value;
  auto const& x = t.node()->out[t.output()];
  value_id const v = edit_.add_source_at(role::input, x.layout);
  place(v, x, true);
  auto& m = memory_[index(v)];
  m.of_buffer = true, m.version = data.version;
  if (data.kept) m.storage = data.kept, m.version = data.kept->version();
  buffers_.push_back({t.node().get(), t.output(), &data, v});
  return v;
}

NEAP_FUNC void recorded_graph::read(tensor const& t, value_id v, std::uint32_t version, std::string_view who,
                                    std::source_location at) {
  auto& m = memory_[index(v)];
  if (!m.counts) m.version = version, m.counts = true;
  // A gradient may flow through one version only: it does not know what happened between two. (An update that is itself
  // on the way is differentiate's to refuse.)
  if (t.wants_gradient() && edit_.graph().record(v).alias != alias_kind::update &&
      meet(m.storage.get(), version) != version)
    throw_error(context_access::place(at), {"grad: a tensor that ", who, " reads, ", t.type(),
                                            ", was changed in place after an earlier use: change a neap::copy of it"});
}

/// Throws neap::error where op o of a gradient reads a recorded value that is there no more.
NEAP_FUNC void require_unchanged(op_graph const& g, op_id o, value_id v, recorded_graph const& recorded,
                                 std::source_location at) {
  if (index(v) >= recorded.value_count() || !recorded.of(v).counts) return;
  if (recorded.of(v).storage->version() == recorded.of(v).version) return;
  throw_error(context_access::place(at),
              {"grad: a tensor that the gradient needs for ", g.facets(o).name, ", ", g.type(v),
               ", was changed in place after it was used: change a neap::copy of it"});
}

NEAP_FUNC std::vector<tensor> run_with_history(op_graph const& g, std::size_t first, recorded_graph const& recorded,
                                               std::vector<tensor> values, std::span<value_id const> results,
                                               std::source_location at) {
  plain_vector<bool> needed(g.value_count());
  for (auto v : results)
    if (v != nothing<value_id>) needed[index(v)] = true;
  auto const is_needed = [&](op_id o) {
    bool need = false;
    for (auto v : g.outputs(o)) need = need || needed[index(v)] || g.record(v).alias == alias_kind::update;
    return need;
  };
  for (std::size_t o = g.op_count(); o-- > first;)
    if (is_needed(id_at<op_id>(o)))
      for (auto v : g.inputs(id_at<op_id>(o))) needed[index(v)] = true;
  values.resize(g.value_count());
  for (std::size_t o = first; o < g.op_count(); ++o) {
    op_id const id = id_at<op_id>(o);
    if (!is_needed(id)) continue;
    std::vector<tensor> in;
    for (auto v : g.inputs(id)) {
      require_unchanged(g, id, v, recorded, at);
      in.push_back(values[index(v)]);
    }
    auto const made = run_eagerly(g.view(id), span_of(in), at);
    for (std::size_t j = 0; j < made.size(); ++j) values[index(g.outputs(id)[j])] = made[j];
  }
  std::vector<tensor> out;
  for (auto v : results) out.push_back(v == nothing<value_id> ? tensor() : values[index(v)]);
  return out;
}

NEAP_FUNC std::vector<tensor> run_recorded(op_graph const& g, std::size_t first, recorded_graph const& recorded,
                                           std::span<value_id const> results, std::source_location at) {
  // What is needed, and who reads each storage last.
  plain_vector<bool> needed(g.op_count());
  plain_vector<std::size_t> last(g.storage_count(), 0);
  plain_vector<bool> wanted(g.value_count()), kept(g.storage_count());
  for (auto v : results)
    if (v != nothing<value_id>) wanted[index(v)] = true, kept[index(g.storage(v))] = true;
  for (std::size_t o = g.op_count(); o-- > first;) {
    op_id const id = id_at<op_id>(o);
    bool need = false;
    for (auto v : g.outputs(id)) need = need || wanted[index(v)] || g.record(v).alias == alias_kind::update;
    if (!need) continue;
    needed[o] = true;
    for (auto v : g.inputs(id)) {
      wanted[index(v)] = true;
      auto& l = last[index(g.storage(v))];
      l = std::max(l, o);
    }
    for (auto v : g.outputs(id)) last[index(g.storage(v))] = std::max(last[index(g.storage(v))], o);
  }

  auto& context = eager_context::current();
  auto& backend = context.backend();
  std::vector<std::shared_ptr<tensor_storage>> memory(g.storage_count());  // of what is made here
  auto const storage_of = [&](value_id v) -> std::shared_ptr<tensor_storage> const& {
    return index(v) < recorded.value_count() && recorded.of(v).storage ? recorded.of(v).storage
                                                                       : memory[index(g.storage(v))];
  };
  plain_vector<tensor_ref> refs;
  plain_vector<tensor_layout> layouts;
  for (std::size_t o = first; o < g.op_count(); ++o) {
    if (!needed[o]) continue;
    op_id const id = id_at<op_id>(o);
    refs.clear(), layouts.clear();
    bool computes = false;
    for (auto v : g.outputs(id)) {
      auto const alias = g.record(v).alias;
      computes = computes || alias != alias_kind::view;
      if (alias == alias_kind::fresh)
        memory[index(g.storage(v))] = std::make_shared<tensor_storage>(g.type(v), initialiser{}, role::activation);
      else if (auto& m = memory[index(g.storage(v))]; !m)  // a view of something recorded
        m = storage_of(g.inputs(id)[static_cast<std::size_t>(g.record(v).of)]);
    }
    for (auto v : g.inputs(id)) require_unchanged(g, id, v, recorded, at);
    if (computes && computation_listener::computes()) {
      for (auto v : g.inputs(id)) {
        refs.push_back(tensor_ref::place(storage_of(v)->data(), g.layout(v)));
        layouts.push_back(g.layout(v));
      }
      auto const arity = refs.size();
      for (auto v : g.outputs(id)) {
        refs.push_back(tensor_ref::place(memory[index(g.storage(v))]->data(), g.layout(v)));
        layouts.push_back(g.layout(v));
      }
      void* scratch = nullptr;
      auto const l = span_of(layouts);
      if (auto const& f = g.facets(id); f.workspace)
        if (auto const bytes = f.workspace(g.attributes(id), {l.first(arity), l.subspan(arity)}); bytes > 0)
          scratch = context.workspace(bytes);
      auto const r = span_of(refs);
      auto const kernel = host_kernel(g.facets(id));
      if (!kernel) throw_error({g.facets(id).name, ": the backend has no kernel for it"});
      with_place(at, [&] {
        reporting_failure([&] { kernel(backend, g.attributes(id), {r.first(arity), r.subspan(arity), scratch}); });
      });
    }
    if (auto* l = computation_listener::active()) {
      std::vector<tensor> in, made;
      for (auto v : g.inputs(id)) in.push_back(make_leaf(storage_of(v), g.layout(v)));
      plain_vector<output_rule> rules;
      for (auto v : g.outputs(id)) {
        made.push_back(make_leaf(memory[index(g.storage(v))], g.layout(v)));
        rules.push_back({g.layout(v), g.record(v).alias, g.record(v).of});
      }
      l->ran(g.view(id), span_of(in), span_of(made), span_of(rules), at);
    }
    for (auto v : g.inputs(id))
      if (auto s = index(g.storage(v)); last[s] == o && !kept[s]) memory[s].reset();
    for (auto v : g.outputs(id))
      if (auto s = index(g.storage(v)); last[s] == o && !kept[s]) memory[s].reset();
  }

  std::vector<tensor> out;
  for (auto v : results) {
    out.push_back(v == nothing<value_id> ? tensor() : make_leaf(storage_of(v), g.layout(v)));
    if (v != nothing<value_id>) out.back().node()->of_gradient = true;
  }
  return out;
}

NEAP_FUNC std::vector<tensor> gradients(tensor const& loss, std::span<tensor const> wrt, bool zeros, bool history,
                                        std::source_location at) {
  if (loss.is_empty()) detail::no_tensor(at);
  if (loss.count() != 1)
    throw_error(context_access::place(at),
                {"grad: the loss must be one number, this is ", loss.type(), ": take its mean() or sum()"});
  for (auto const& x : wrt)
    if (x.is_frozen())
      throw_error(context_access::place(at), {"grad: the weight ", x.type(),
                                              " is frozen: neap::trained_parameters(model) are those that are not, ",
                                              "and requires_gradient(true) lets it train again"});
  if (auto* t = tracer::active()) {
    std::vector<value_id> wanted;
    for (auto const& x : wrt) wanted.push_back(t->value(x, at));
    std::vector<tensor> out;
    value_id const of = t->value(loss, at);
    detail::with_place(at, [&] {
      // Of a leaf that was updated in place, what is there now; what was read of it before has no part in that.
      auto fixed = t->unrecorded();
      auto all = wanted;
      for (auto v : wanted) earlier_values(t->editor().graph(), v, all, fixed);
      auto const found = differentiate(t->editor(), of, all, false, fixed, t->outdated());
      for (std::size_t i = wanted.size(); i < all.size(); ++i)
        if (found[i] != nothing<value_id>)
          throw_error({"grad: ", t->editor().graph().type(all[i]),
                       " was changed in place after an earlier use: change a neap::copy of it"});
      for (std::size_t i = 0; i < wanted.size(); ++i)
        if (found[i] != nothing<value_id>) {
          out.push_back(t->wrap(found[i]));
        } else if (zeros) {
          auto const x = t->editor().layout_of(wanted[i]).type;
          out.push_back(t->wrap(t->editor().add(op::fill{x.dims, x.element, 0}, {}).front()));
        } else {
          out.emplace_back();
        }
    });
    return out;
  }
  if (loss.is_traced()) no_trace(at);
  for (auto const& x : wrt) {
    if (x.is_empty()) detail::no_tensor(at);
    if (x.is_traced()) no_trace(at);
    if (zeros && !x.wants_gradient())
      throw_error(context_access::place(at),
                  {"grad: ", x.type(), " does not require a gradient: compute with x.with_gradient()"});
  }
  detail::recorded_graph recorded({}, loss, wrt, at);  // operators join as they come
  std::vector<value_id> sources;
  for (auto const& x : wrt) sources.push_back(recorded.value(x));
  value_id const of = recorded.value(loss);
  auto const first = recorded.editor().graph().op_count();
  std::vector<value_id> gradients;
  detail::with_place(at, [&] { gradients = differentiate(recorded.editor(), of, sources, zeros); });
  auto const& g = recorded.editor().graph();
  if (history && context_access::is_recording())
    return detail::run_with_history(g, first, recorded, recorded.handles(loss, wrt), gradients, at);
  return detail::run_recorded(g, first, recorded, gradients, at);
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC void recorded_graph::require_history(tensor const& t, std::source_location at) {
  if (!t.node()->facets && t.node()->of_compiled)
    throw_error(context_access::place(at),
                {"grad: the loss depends on a tensor, ", t.type(),
                 ", that a call of a compiled function gave, without its history: take the gradient in that call, or "
                 "detach() the tensor"});
  if (!t.node()->facets && t.node()->of_gradient)
    throw_error(
        context_access::place(at),
        {"grad: the loss depends on a gradient or a result of a compiled function, ", t.type(),
         ", which has no history where ops run at once: take a gradient by grad(loss, wrt, {.history = true}), that of a "
         "compiled function's result inside the function, or detach() it"});
}

NEAP_FUNC void recorded_graph::place(value_id v, tensor_value const& x, bool counts) {
  if (memory_.size() <= index(v)) memory_.resize(index(v) + 1);
  memory_[index(v)] = {x.storage, x.version, counts, false};
}

NEAP_FUNC std::uint32_t recorded_graph::meet(void const* storage, std::uint32_t version) {
  return versions_.add(storage, version) ? version : versions_.find(storage);
}

NEAP_FUNC void earlier_values(op_graph const& g, value_id v, std::vector<value_id>& all, std::vector<value_id>& fixed) {
  auto const s = g.storage(v);
  if (g.producer(v) == nothing<op_id> || g.producer(g.record(s).first) != nothing<op_id>) return;
  if (g.record(v).version == 0) return;
  fixed.push_back(v);
  for (std::size_t i = 0; i < index(v); ++i)
    if (value_id const u = id_at<value_id>(i); g.storage(u) == s && g.record(u).version < g.record(v).version)
      if (g.producer(u) == nothing<op_id> || g.record(u).alias == alias_kind::update) {
        all.push_back(u);
        if (g.producer(u) != nothing<op_id>) fixed.push_back(u);
      }
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 {

NEAP_FUNC std::vector<tensor> grad(tensor const& loss, std::span<tensor const> wrt, grad_options how,
                                   std::source_location at) {
  return detail::gradients(loss, wrt, true, how.history || context_access::is_in_step(), at);
}

NEAP_FUNC std::vector<tensor> grad(tensor const& loss, std::vector<tensor> const& wrt, grad_options how,
                                   std::source_location at) {
  return grad(loss, std::span<tensor const>(wrt), how, at);
}

NEAP_FUNC std::vector<tensor> grad(tensor const& loss, std::initializer_list<tensor> wrt, grad_options how,
                                   std::source_location at) {
  return grad(loss, span_of(wrt.begin(), wrt.size()), how, at);
}

}}  // namespace neap::v0
