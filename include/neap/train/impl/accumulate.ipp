// The bodies of <neap/train/accumulate.hpp>.
#pragma once

#include <neap/train/accumulate.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC std::string read_at(tensor_type const& t, std::source_location at) {
  auto place = error::place(at);
  if (place.size() > 2) place.resize(place.size() - 2);
  return to_string(t) + (place.empty() ? "" : " at " + place);
}

NEAP_FUNC void require_no_others(tensor const& loss, std::vector<tensor> const& weights) {
  std::vector<tensor_storage const*> seen_storages;
  for (auto const& w : weights) seen_storages.push_back(w.storage().get());
  std::string first, others;
  auto const meet = [&](tensor_storage const& s, std::source_location at) {
    if (std::find(seen_storages.begin(), seen_storages.end(), &s) != seen_storages.end()) return;
    seen_storages.push_back(&s);
    if (first.empty()) first = read_at(s.type(), at);
    else others += (others.empty() ? " (and so are " : ", ") + read_at(s.type(), at);
  };
  if (auto* t = tracer::active()) {
    value_id const last = t->value(loss);
    auto const& g = t->editor().graph();
    plain_vector<bool> seen(g.value_count());
    for (auto v : t->unrecorded()) seen[index(v)] = true;  // no gradient goes through
    plain_vector<bool> reached(g.value_count());
    plain_vector<value_id> open{last};
    while (!open.empty()) {
      auto const v = open.back();
      open.pop_back();
      if (seen[index(v)] || !is_floating(g.type(v).element)) continue;
      seen[index(v)] = reached[index(v)] = true;
      if (g.producer(v) != nothing<op_id>)
        for (auto x : g.inputs(g.producer(v))) open.push_back(x);
    }
    for (std::size_t k = 0; k < t->residents().size(); ++k) {
      auto const& r = t->residents()[k];
      if (!reached[index(r.value)] || g.role(r.value) != role::weight) continue;
      if (g.record(r.value).alias == alias_kind::view) continue;  // a detached one
      if (!r.holder.storage()->is_frozen()) meet(*r.holder.storage(), t->first_read(k));
    }
  } else {
    for (auto const* n : recorded_nodes(loss))
      for (auto const& x : n->in)
        if (!x.node()->facets && x.wants_gradient() && x.storage()->role() == role::weight)
          meet(*x.storage(), n->place);
  }
  if (first.empty()) return;
  throw_error(context_access::place({}),
              {"training_step: the program reads a weight ", first,
               " that is no part of the model and would never learn", others, others.empty() ? "" : ")",
               ": list it in neap_fields, and use modules by reference (a copy has weights of its own); if that is "
               "meant, detach it, or say training_options{.other_weights = true}"});
}

NEAP_FUNC loss_and_gradients differentiated(loss_result made, std::vector<tensor> const& weights,
                                            gradient_options const& o) {
  if (made.loss.is_empty())
    throw_error(context_access::place({}), {"training_step: the loss returns an empty tensor: it has no value"});
  tensor l = made.loss;
  bool const scales = o.scale && o.scale->scales_loss();
  if (scales) l = mul(l, cast(o.scale->scale(l.element()), l.element()));
  if (o.only_these) require_no_others(l, weights);
  auto* t = tracer::active();
  std::vector<tensor> used;  // a trace has no source for an unused weight
  for (auto const& w : weights)
    if (!t || t->reads(w)) used.push_back(w);
  auto some = gradients(l, used, false, false, std::source_location::current());
  loss_and_gradients all{std::move(made.loss), std::move(made.outputs), {}};
  auto next = some.begin();
  for (auto const& w : weights) {
    tensor g = !t || t->reads(w) ? std::move(*next++) : tensor();
    if (scales && !g.is_empty()) g = apply(op::scale_by{}, {g, o.scale->unscale()});
    all.gradients.push_back(std::move(g));
  }
  return all;
}

NEAP_FUNC traced_loss finished_loss(tracer& t, loss_result const& made) {
  if (made.loss.is_empty())
    throw_error(context_access::place({}), {"training_step: the loss returns an empty tensor: it has no value"});
  traced_loss p;
  p.loss = t.keep(made.loss, role::loss);
  for (auto const& x : made.outputs) {
    p.names.push_back(x.name);
    p.outputs.push_back(t.keep(x.tensor, role::output));
  }
  p.inputs = t.inputs();
  p.residents = t.residents();
  p.fixed = t.unrecorded();
  for (auto const& r : p.residents)
    if (r.holder.storage()->is_frozen()) p.fixed.push_back(r.value);
  for (auto o : t.editor().graph().ops()) p.places.push_back(t.place(o));
  p.program = t.finish();
  return p;
}

NEAP_FUNC loss_and_gradients accumulate_parts(traced_loss const& traced, std::vector<tensor> const& sample,
                                              std::vector<tensor> const& weights, gradient_options const& o,
                                              std::source_location at) {
  std::vector<tensor_type> types;
  for (auto const& x : sample) types.push_back(x.type());
  auto const cuts = cuts_of(types, o.parts);
  auto const makes_parts = [&](batch_cut const& c) {
    batch_uses const uses(traced.program, span_of(traced.inputs), span_of(traced.outputs), span_of(traced.fixed), c);
    return c.parts == 1 || uses.of(traced.loss).use == batch_use::partial;
  };
  auto const found = std::find_if(cuts.begin(), cuts.end(), makes_parts);
  auto const cut = found != cuts.end() ? *found : cuts.front();
  batch_parts run(traced, sample, weights, cut, at);
  loss_and_gradients total{{}, {}, std::vector<tensor>(weights.size())};
  auto const add = [](tensor& sum, tensor const& x) {  // bf16 and f16 in f32, rounded once at the end
    tensor const term = is_low(x.element()) ? cast(x, dtype::f32) : x;
    sum = sum.is_empty() ? term : sum + term;
  };
  auto loss_type = dtype::f32;
  for (std::int64_t i = 0; i < cut.parts; ++i) {
    tensor share = run.part(i);
    if (share.is_empty()) continue;
    auto p = differentiated({std::move(share), {}}, weights, o);
    no_gradient const off;
    tensor const l = p.loss.is_traced() ? p.loss : p.loss.detach(at);
    add(total.loss, l);
    for (std::size_t k = 0; k < weights.size(); ++k)
      if (!p.gradients[k].is_empty()) add(total.gradients[k], p.gradients[k]);
    loss_type = l.element();
  }
  no_gradient const off;
  if (!total.loss.is_empty()) total.loss = cast(total.loss, loss_type);
  for (std::size_t k = 0; k < weights.size(); ++k)
    if (auto& sum = total.gradients[k]; !sum.is_empty()) sum = cast(sum, weights[k].element());
  auto outputs = run.finish();
  for (std::size_t k = 0; k < outputs.size(); ++k) total.outputs.push_back({traced.names[k], std::move(outputs[k])});
  return total;
}

NEAP_FUNC loss_result loss_in_precision(loss_call const& loss, gradient_options const& o) {
  std::optional<precision_scope> scope;
  if (o.precision) scope.emplace(*o.precision);
  auto made = loss(o.keep_prediction);
  made.loss = in_full(made.loss);
  return made;
}

NEAP_FUNC traced_loss trace_loss(loss_call const& loss, model_ref model, gradient_options const& o,
                                 std::vector<tensor>& tensors, std::source_location at) {
  loss.sample().tensors().each_tensor([&](tensor const& x, std::string const&) {
    if (x.is_empty()) return;
    tensors.push_back(x);
  });
  draws_apart const draws;
  tracer::pause const other;
  tracer t({}, at);
  name_tensors(t, model);
  traced_loss traced;
  loss.with_inputs(t, [&](loss_call const& call) { traced = finished_loss(t, loss_in_precision(call, o)); });
  return traced;
}

NEAP_FUNC loss_and_gradients accumulated_of(loss_call const& loss, model_ref model, std::vector<tensor> const& weights,
                                            gradient_options const& o, std::source_location at) {
  caller_scope const here(at);
  if (o.parts == 1) return differentiated(loss_in_precision(loss, o), weights, o);
  std::vector<tensor> tensors;
  auto const traced = trace_loss(loss, model, o, tensors, at);
  return accumulate_parts(traced, tensors, weights, o, at);
}

}  // namespace detail
}}  // namespace neap::v0

namespace neap { inline namespace v0 { namespace detail {

NEAP_FUNC draws_apart::draws_apart() : context_(eager_context::current()) {
  before_ = context_access::enter(context_, {});
  if (auto* c = static_cast<step_clock*>(before_.clock)) clock_.emplace(c->apart());
  context_access::enter(context_, {before_.seed, before_.draws, before_.stream, clock_ ? &*clock_ : nullptr});
}

NEAP_FUNC draws_apart::~draws_apart() {
  auto const now = context_access::enter(context_, before_);
  context_access::enter(context_, {before_.seed, now.draws, before_.stream, before_.clock});
  if (clock_ && clock_->is_used()) static_cast<step_clock*>(before_.clock)->note_increment();
}

}  // namespace detail
}}  // namespace neap::v0
