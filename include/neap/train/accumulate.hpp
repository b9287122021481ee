// Gradients over parts of a batch: the sample is cut along axis 0, each part's loss is differentiated by itself, and the
// gradients are added. Equal to the whole batch's to rounding (except where the model mixes rows: batch norm), with the
// activations of one part at a time.
#pragma once

#include <neap/model/functions/elementwise.hpp>
#include <neap/model/program.hpp>
#include <neap/train/grad.hpp>
#include <neap/train/loss.hpp>

#include <vector>

namespace neap::inline v0 {

struct loss_and_gradients {
  tensor loss;
  std::vector<tensor> gradients;  // one a weight; empty where it does not reach the loss
};

namespace detail {
template <class Loss, class Model, class Sample>
loss_and_gradients differentiated(Loss const& loss, Model& model, Sample const& sample, double scale,
                                  std::vector<tensor> const& weights, std::source_location at) {
  tensor l = loss_of(loss, model, sample);
  if (scale != 1) l = apply(op::mul_scalar{scale}, {l}, at);
  auto* t = tracer::active();
  std::vector<tensor> used;  // a trace has no source for a weight that nobody reads
  for (auto const& w : weights)
    if (!t || t->reads(w)) used.push_back(w);
  auto some = gradients(l, used, false, at);
  loss_and_gradients all{std::move(l), {}};
  auto next = some.begin();
  for (auto const& w : weights) all.gradients.push_back(!t || t->reads(w) ? std::move(*next++) : tensor());
  return all;
}
}  // namespace detail

/// The mean over `parts` equal parts of the sample of the loss, and its gradients. Throws neap::error if a tensor of the
/// sample does not divide.
template <class Loss, class Model, class Sample>
loss_and_gradients accumulated(Loss const& loss, Model& model, Sample const& sample, std::vector<tensor> const& weights,
                               std::int64_t parts = 1, std::source_location at = std::source_location::current()) {
  caller_scope const here(at);
  if (parts == 1) return detail::differentiated(loss, model, sample, 1, weights, at);
  loss_and_gradients total;
  for (std::int64_t i = 0; i < parts; ++i) {
    auto const part = detail::with_tensors(sample, [&](tensor const& x, std::string const& path) {
      if (x.rank() == 0 || x.size(0) % parts != 0)
        throw error(context_access::place(at), "the sample's tensor " + (path.empty() ? "" : path + " ") +
                                                   to_string(x.type()) + " does not divide into " +
                                                   std::to_string(parts) + " parts along axis 0");
      auto const n = x.size(0) / parts;
      return slice(x, 0, i * n, (i + 1) * n, at);
    });
    auto p = detail::differentiated(loss, model, part, 1 / static_cast<double>(parts), weights, at);
    if (i == 0) {
      total = std::move(p);
      continue;
    }
    total.loss = add(total.loss, p.loss, at);
    for (std::size_t k = 0; k < weights.size(); ++k) {
      auto& sum = total.gradients[k];
      if (p.gradients[k].is_empty()) continue;
      sum = sum.is_empty() ? p.gradients[k] : add(sum, p.gradients[k], at);
    }
  }
  return total;
}

}  // namespace neap::inline v0
