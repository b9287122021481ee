// Gradients over parts of a batch: the sample is cut along axis 0, each part's loss is differentiated by itself, and the
// gradients are added. Equal to the whole batch's to rounding (except where the model mixes rows: batch norm), with the
// activations of one part at a time.
#pragma once

#include <neap/core/compiled_once.hpp>
#include <neap/model/functions/movement.hpp>
#include <neap/model/program.hpp>
#include <neap/train/grad.hpp>
#include <neap/train/loss.hpp>
#include <neap/train/step_numbers.hpp>

#include <algorithm>
#include <string>
#include <vector>

namespace neap::inline v0 {

struct loss_and_gradients {
  tensor loss;
  std::vector<named_tensor> outputs;  // what the loss told besides
  std::vector<tensor> gradients;      // one a weight; empty where it does not reach the loss
};

/// How a loss is differentiated.
struct gradient_options {
  std::int64_t parts = 1;                       // of the sample along axis 0, one after another
  bool keep_prediction = false;                 // as the output "prediction", where the loss takes it
  detail::step_numbers const* scale = nullptr;  // whose scale of the loss the gradients are made with, and freed of
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

/// A loss as it was made over one of `o.parts` parts, and its gradients.
NEAP_ONCE loss_and_gradients differentiated(loss_result made, std::vector<tensor> const& weights,
                                            gradient_options const& o) {
  if (made.loss.is_empty())
    throw_error(context_access::place({}),
                {"training_step: the loss gave an empty tensor: it was never given a value"});
  if (o.parts != 1) made.loss = made.loss * (1 / static_cast<double>(o.parts));
  tensor l = made.loss;
  bool const scales = o.scale && o.scale->scales_loss();
  if (scales) l = mul(l, cast(o.scale->scale(l.element()), l.element()));
  if (o.only_these) require_no_others(l, weights);
  auto* t = tracer::active();
  std::vector<tensor> used;  // a trace has no source for a weight that nobody reads
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

/// Part i of a tensor of the sample, whose place in it is `path`; one number is a part of all.
NEAP_ONCE tensor part_of(tensor const& x, std::string const& path, std::int64_t i, std::int64_t parts,
                         std::source_location at) {
  if (x.rank() == 0) return x;
  if (x.size(0) % parts != 0)
    throw_error(context_access::place(at), {"the sample's tensor ", (path.empty() ? "" : path + " "), x.type(),
                                            " does not divide into ", parts, " parts along axis 0"});
  auto const n = x.size(0) / parts;
  return slice(x, 0, i * n, (i + 1) * n);
}

/// The sum over the parts as they come.
class sum_of_parts {
 public:
  NEAP_ONCE void add(loss_and_gradients p) {
    outputs_.emplace_back();
    for (auto const& x : p.outputs) outputs_.back().push_back(x.tensor);
    if (outputs_.size() == 1) {
      total_ = std::move(p);
      return;
    }
    total_.loss = total_.loss + p.loss;
    for (std::size_t k = 0; k < total_.gradients.size(); ++k) {
      auto& sum = total_.gradients[k];
      if (p.gradients[k].is_empty()) continue;
      sum = sum.is_empty() ? p.gradients[k] : sum + p.gradients[k];
    }
  }
  NEAP_ONCE loss_and_gradients finish() && {
    for (std::size_t k = 0; k < total_.outputs.size(); ++k) {
      std::vector<tensor> all;
      for (auto const& part : outputs_) all.push_back(part.at(k));
      auto& to = total_.outputs[k].tensor;
      if (to.rank() > 0) {
        to = concat(all);
        continue;
      }
      auto const element = to.element();
      for (std::size_t i = 1; i < all.size(); ++i) to = element == dtype::boolean ? maximum(to, all[i]) : to + all[i];
      if (is_floating(element)) to = to * (1 / static_cast<double>(outputs_.size()));
    }
    return std::move(total_);
  }

 private:
  loss_and_gradients total_;
  std::vector<std::vector<tensor>> outputs_;  // of each part
};

}  // namespace detail

/// The mean over `parts` equal parts of the sample of the loss, and its gradients; a tensor of the sample without axes
/// goes with every part. Outputs of the parts stand one after another along axis 0; of those without axes it is the mean,
/// the sum of whole numbers, whether a truth value holds in one of them. Throws neap::error if a tensor of the sample does
/// not divide.
template <class Loss, class Model, class Sample>
loss_and_gradients accumulated(Loss const& loss, Model& model, Sample const& sample, std::vector<tensor> const& weights,
                               gradient_options const& o = {},
                               std::source_location at = std::source_location::current()) {
  caller_scope const here(at);
  if (o.parts == 1) return detail::differentiated(detail::loss_of(loss, model, sample, o.keep_prediction), weights, o);
  detail::sum_of_parts sum;
  for (std::int64_t i = 0; i < o.parts; ++i) {
    auto const part = detail::with_tensors(
        sample, [&](tensor const& x, std::string const& path) { return detail::part_of(x, path, i, o.parts, at); });
    sum.add(detail::differentiated(detail::loss_of(loss, model, part, o.keep_prediction), weights, o));
  }
  return std::move(sum).finish();
}

}  // namespace neap::inline v0
