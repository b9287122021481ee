// Gradients over parts of a batch (gradient accumulation), with the activations of one part at a time. The loss is
// traced for the whole batch, the sample's tensors are cut along axis 0, and each part makes its share of the loss,
// which is differentiated by itself; the gradients are added. Loss, gradients and outputs equal the whole batch's to
// rounding:
//
//   mean(x)                a part adds its mean over the number of parts
//   sum(l * m) / sum(m)    sum(m) is computed of the whole batch first, a part adds its sum over that
//   cross_entropy{}        likewise: the labels that count are counted first
//   sqrt(mean(x))          refused: its gradient needs the mean of the whole batch, which depends on weights
//   batch_norm             refused in training: it joins the samples of the batch
//
// See batch_use.hpp for what can be cut.
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/model/functions/movement.hpp>
#include <neap/model/functions/random.hpp>
#include <neap/model/program.hpp>
#include <neap/train/batch_parts.hpp>
#include <neap/train/grad.hpp>
#include <neap/train/loss.hpp>
#include <neap/train/step_numbers.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace neap::inline v0 {

struct loss_and_gradients {
  tensor loss;
  std::vector<named_tensor> outputs;  // of the loss function, beside the loss
  std::vector<tensor> gradients;      // one a weight; empty where it does not reach the loss
};

/// How a loss is differentiated.
struct gradient_options {
  std::int64_t parts = 1;                       // of the sample along axis 0, one after another
  bool keep_prediction = false;                 // as the output "prediction", where the loss takes it
  detail::step_numbers const* scale = nullptr;  // whose scale of the loss the gradients are made with, and freed of
  std::optional<dtype> precision{};             // that model and loss compute in (model/precision.hpp)
  bool only_these = false;                      // a weight that is none of those given, and could learn, is refused
};

namespace detail {

/// "f32[5,6] at model.cpp:45".
NEAP_ONCE std::string read_at(tensor_type const& t, std::source_location at) {
  auto place = error::place(at);
  if (place.size() > 2) place.resize(place.size() - 2);
  return to_string(t) + (place.empty() ? "" : " at " + place);
}

/// Refuses a loss with a way to weights that are none of `weights`, all of them at once: they would never learn.
NEAP_ONCE void require_no_others(tensor const& loss, std::vector<tensor> const& weights) {
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

/// A loss, or a part's share of it, and its gradients.
NEAP_ONCE loss_and_gradients differentiated(loss_result made, std::vector<tensor> const& weights,
                                            gradient_options const& o) {
  if (made.loss.is_empty())
    throw_error(context_access::place({}),
                {"training_step: the loss gave an empty tensor: it was never given a value"});
  tensor l = made.loss;
  bool const scales = o.scale && o.scale->scales_loss();
  if (scales) l = mul(l, cast(o.scale->scale(l.element()), l.element()));
  if (o.only_these) require_no_others(l, weights);
  auto* t = tracer::active();
  std::vector<tensor> used;  // a trace has no source for an unused weight
  for (auto const& w : weights)
    if (!t || t->reads(w)) used.push_back(w);
  auto some = gradients(l, used, false, std::source_location::current());
  loss_and_gradients all{std::move(made.loss), std::move(made.outputs), {}};
  auto next = some.begin();
  for (auto const& w : weights) {
    tensor g = !t || t->reads(w) ? std::move(*next++) : tensor();
    if (scales && !g.is_empty()) g = apply(op::scale_by{}, {g, o.scale->unscale()});
    all.gradients.push_back(std::move(g));
  }
  return all;
}

/// loss_of in the precision of the options; the loss itself is f32 at least.
template <class Loss, class Model, class Sample>
loss_result loss_in_precision(Loss const& loss, Model& model, Sample const& sample, gradient_options const& o) {
  std::optional<precision_scope> scope;
  if (o.precision) scope.emplace(*o.precision);
  auto made = loss_of(loss, model, sample, o.keep_prediction);
  made.loss = in_full(made.loss);
  return made;
}

/// Throws neap::error if a tensor of the sample, whose place in it is `path`, does not divide into parts.
NEAP_ONCE void require_divisible(tensor const& x, std::string const& path, std::int64_t parts,
                                 std::source_location at) {
  if (x.rank() > 0 && x.size(0) % parts != 0)
    throw_error(context_access::place(at), {"the sample's tensor ", (path.empty() ? "" : path + " "), x.type(),
                                            " does not divide into ", parts, " parts along axis 0"});
}

/// The random draws of a program that is traced by itself in the middle of a step: the keys go on, and the step is
/// counted by the other program's clock.
class draws_apart {
 public:
  draws_apart() : context_(eager_context::current()) {
    before_ = context_access::enter(context_, {});
    if (auto* c = static_cast<step_clock*>(before_.clock)) clock_.emplace(c->apart());
    context_access::enter(context_, {before_.seed, before_.draws, before_.stream, clock_ ? &*clock_ : nullptr});
  }
  draws_apart(draws_apart const&) = delete;
  draws_apart& operator=(draws_apart const&) = delete;
  ~draws_apart() {
    auto const now = context_access::enter(context_, before_);
    context_access::enter(context_, {before_.seed, now.draws, before_.stream, before_.clock});
    if (clock_ && clock_->is_used()) static_cast<step_clock*>(before_.clock)->note_increment();
  }

 private:
  eager_context& context_;
  context_access::randomness before_;
  std::optional<step_clock> clock_;
};

/// What a trace of a loss has made.
NEAP_ONCE traced_loss finished_loss(tracer& t, loss_result const& made) {
  if (made.loss.is_empty())
    throw_error(context_access::place({}),
                {"training_step: the loss gave an empty tensor: it was never given a value"});
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

/// The loss of the whole batch as a program by itself. `tensors`: the sample's, in their order.
template <class Loss, class Model, class Sample>
traced_loss trace_loss(Loss const& loss, Model& model, Sample const& sample, gradient_options const& o,
                       std::vector<tensor>& tensors, std::source_location at) {
  (void)with_tensors(sample, [&](tensor const& x, std::string const& path) {
    require_divisible(x, path, o.parts, at);
    tensors.push_back(x);
    return x;
  });
  draws_apart const draws;
  tracer::pause const other;
  tracer t({}, at);
  name_tensors(t, model);
  auto const made = loss_in_precision(loss, model, as_inputs(t, sample), o);
  return finished_loss(t, made);
}

/// The gradients of a traced loss over the parts of the batch.
NEAP_ONCE loss_and_gradients accumulate_parts(traced_loss const& traced, std::vector<tensor> const& sample,
                                              std::vector<tensor> const& weights, gradient_options const& o,
                                              std::source_location at) {
  batch_parts run(traced, sample, weights, o.parts, at);
  loss_and_gradients total{{}, {}, std::vector<tensor>(weights.size())};
  for (std::int64_t i = 0; i < o.parts; ++i) {
    tensor share = run.part(i);
    if (share.is_empty()) continue;
    auto p = differentiated({std::move(share), {}}, weights, o);
    no_gradient const off;
    tensor const l = p.loss.is_traced() ? p.loss : p.loss.detach(at);
    total.loss = total.loss.is_empty() ? l : total.loss + l;
    for (std::size_t k = 0; k < weights.size(); ++k) {
      auto& sum = total.gradients[k];
      if (p.gradients[k].is_empty()) continue;
      sum = sum.is_empty() ? p.gradients[k] : sum + p.gradients[k];
    }
  }
  auto outputs = run.finish();
  for (std::size_t k = 0; k < outputs.size(); ++k) total.outputs.push_back({traced.names[k], std::move(outputs[k])});
  return total;
}

}  // namespace detail

/// The loss of the sample, its outputs and gradients, equal to the whole sample's to rounding, over `parts` equal parts
/// along axis 0; a tensor of the sample without axes goes with every part. Throws neap::error if a tensor of the sample
/// does not divide, or the loss is no sum over the parts: the op, its line and why.
template <class Loss, class Model, class Sample>
loss_and_gradients accumulated(Loss const& loss, Model& model, Sample const& sample, std::vector<tensor> const& weights,
                               gradient_options const& o = {},
                               std::source_location at = std::source_location::current()) {
  caller_scope const here(at);
  if (o.parts == 1) return detail::differentiated(detail::loss_in_precision(loss, model, sample, o), weights, o);
  std::vector<tensor> tensors;
  auto const traced = detail::trace_loss(loss, model, sample, o, tensors, at);
  return detail::accumulate_parts(traced, tensors, weights, o, at);
}

}  // namespace neap::inline v0
