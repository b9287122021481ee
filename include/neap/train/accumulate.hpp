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

namespace neap { inline namespace v0 {

struct loss_and_gradients {
  tensor loss;
  std::vector<named_tensor> outputs;  // of the loss function, beside the loss
  std::vector<tensor> gradients;      // one a weight; empty where it does not reach the loss
};

/// How a loss is differentiated.
struct gradient_options {
  std::int64_t parts = 1;                       // of the sample along axis 0 at most, one after another
  bool keep_prediction = false;                 // as the output "prediction", where the loss takes it
  detail::step_numbers const* scale = nullptr;  // whose scale of the loss the gradients are made with, and freed of
  std::optional<dtype> precision{};             // that model and loss compute in (model/precision.hpp)
  bool only_these = false;                      // a weight that is none of those given, and could learn, is refused
};

namespace detail {

/// "f32[5,6] at model.cpp:45".
std::string read_at(tensor_type const& t, std::source_location at);

/// Refuses a loss with a way to weights that are none of `weights`, all of them at once: they would never learn.
void require_no_others(tensor const& loss, std::vector<tensor> const& weights);

/// A loss, or a part's share of it, and its gradients.
loss_and_gradients differentiated(loss_result made, std::vector<tensor> const& weights, gradient_options const& o);

/// The loss in the precision of the options; the loss itself is f32 at least.
loss_result loss_in_precision(loss_call const& loss, gradient_options const& o);

/// The random draws of a program that is traced by itself in the middle of a step: the keys go on, and the step is
/// counted by the other program's clock.
class draws_apart {
 public:
  draws_apart();
  draws_apart(draws_apart const&) = delete;
  draws_apart& operator=(draws_apart const&) = delete;
  ~draws_apart();

 private:
  eager_context& context_;
  context_access::randomness before_;
  std::optional<step_clock> clock_;
};

/// What a trace of a loss has made.
traced_loss finished_loss(tracer& t, loss_result const& made);

/// The loss of the whole batch as a program by itself. `tensors`: the sample's, in their order.
traced_loss trace_loss(loss_call const& loss, model_ref model, gradient_options const& o, std::vector<tensor>& tensors,
                       std::source_location at);

/// The gradients of a traced loss over the parts of the batch.
loss_and_gradients accumulate_parts(traced_loss const& traced, std::vector<tensor> const& sample,
                                    std::vector<tensor> const& weights, gradient_options const& o,
                                    std::source_location at);

/// accumulated(); `model`: the one that the loss is called with.
loss_and_gradients accumulated_of(loss_call const& loss, model_ref model, std::vector<tensor> const& weights,
                                  gradient_options const& o, std::source_location at);

}  // namespace detail

/// The loss of the sample, its outputs and gradients, equal to the whole sample's to rounding, over parts along axis 0 whose
/// extents differ by one sample at most. A tensor of the sample that does not divide as the others do (class weights, a mask)
/// goes with every part. Throws neap::error if the loss is no sum over the parts: the op, its line and why.
template <class Loss, class Model, class Sample>
loss_and_gradients accumulated(Loss const& loss, Model& model, Sample const& sample, std::vector<tensor> const& weights,
                               gradient_options const& o = {},
                               std::source_location at = std::source_location::current()) {
  std::decay_t<Loss> const& function = loss;  // a function by its address
  return detail::accumulated_of({function, model, sample}, detail::model_ref(model), weights, o, at);
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/accumulate.ipp>
#endif
