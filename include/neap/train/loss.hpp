// Losses as values: cross_entropy{}, mse{}, huber{}, binary_cross_entropy_with_logits{}, or any callable. A loss is called
// with what the model made of the sample and the sample's last tensor; one that takes (model, sample) does all by itself.
//
//   neap::training_step(net, std::pair{images, labels}, neap::cross_entropy{}, ...);
//   neap::training_step(net, batch, [](auto& net, auto const& batch) { return neap::mse{}(net(batch.x), batch.y) * 2; }, ...);
//
// A loss may have several results: a struct of tensors, of which `loss` is differentiated and the others are outputs of
// the step under their names:
//
//   struct results { neap::tensor loss, logits, penalty; };
#pragma once

#include <neap/model/functions/losses.hpp>
#include <neap/model/functions/rows.hpp>
#include <neap/model/parameters.hpp>
#include <neap/model/program.hpp>

#include <tuple>
#include <type_traits>
#include <utility>

namespace neap { inline namespace v0 {

/// The mean over rows of -log softmax(logits)[target]; rows whose target is `ignored` do not count.
/// NaN, as in PyTorch, where no row counts: execution_options::watch names such a step.
/// With label smoothing s the target is 1 - s of the class and s / classes of each.
struct cross_entropy {
  std::int64_t ignored = -100;
  double label_smoothing = 0;
  tensor operator()(tensor const& logits, tensor const& targets,
                    std::source_location at = std::source_location::current()) const;
};

/// The mean of (prediction - target)^2.
struct mse {
  tensor operator()(tensor const& prediction, tensor const& target,
                    std::source_location at = std::source_location::current()) const;
};

/// The mean of -t log p - (1 - t) log(1 - p), p = sigmoid(logit); targets in [0, 1], booleans or whole numbers 0 and 1.
struct binary_cross_entropy_with_logits {
  tensor operator()(tensor const& logits, tensor const& targets,
                    std::source_location at = std::source_location::current()) const;
};
/// The same of probabilities; with logits it is exact where these are large.
struct binary_cross_entropy {
  tensor operator()(tensor const& probabilities, tensor const& targets,
                    std::source_location at = std::source_location::current()) const;
};

/// The mean over rows of the sum of t (log t - x): of log probabilities x and probabilities t, or their logarithms.
struct kl_divergence {
  bool log_target = false;
  tensor operator()(tensor const& log_probabilities, tensor const& targets,
                    std::source_location at = std::source_location::current()) const;
};

/// The mean of d^2 / 2 of each difference d up to delta in absolute value, beyond it of delta (|d| - delta / 2).
struct huber {
  double delta = 1;
  tensor operator()(tensor const& prediction, tensor const& target,
                    std::source_location at = std::source_location::current()) const;
};
/// The mean of d^2 / (2 beta) up to beta in absolute value, beyond it of |d| - beta / 2.
struct smooth_l1 {
  double beta = 1;
  tensor operator()(tensor const& prediction, tensor const& target,
                    std::source_location at = std::source_location::current()) const;
};

namespace detail {

/// What a loss gave: the number that is differentiated, and its other outputs, by name.
struct loss_result {
  tensor loss;
  std::vector<named_tensor> outputs;
};

/// A loss gives a tensor, or a struct of tensors of which one is called `loss`: the others are outputs of the step.
template <class R>
loss_result loss_and_outputs(R made) {
  if constexpr (std::is_convertible_v<R, tensor>) {
    return {std::move(made), {}};
  } else {
    static_assert(
        requires {
          { made.loss } -> std::convertible_to<tensor>;
        }, "neap: a loss gives a tensor, or a struct of tensors with a member  neap::tensor loss");
    loss_result r{made.loss, {}};
    for_each_tensor(made, [&](tensor& t, std::string const& path) {
      if (path != "loss" && !t.is_empty()) r.outputs.push_back({path, t});
    });
    return r;
  }
}

/// What the parts of a sample seem to be: whole numbers (labels, ids), floats, or some of both.
struct part_kinds {
  bool whole = false, floats = false;
  std::string first;  // its first tensor's type
};
part_kinds kinds_of(std::initializer_list<model_ref> parts);
/// To look into a part of a sample.
template <class Part>
model_ref look_into(Part const& part) {
  return model_ref(const_cast<Part&>(part));
}
/// Throws the error `e` that is being handled on, with a better reason where inputs and targets seem to have changed places: whole numbers were given to
/// the model, which refused their type, and the target is of floats; or the other way round.
[[noreturn]] void refuse_parts(error const& e, part_kinds const& inputs, part_kinds const& target);

/// loss(model, sample), or loss(model(all but the last...), last). In the second form what the model gave is the output
/// "prediction", if it is to be kept.
template <class Loss, class Model, class Sample>
loss_result loss_of(Loss const& loss, Model& model, Sample const& sample, bool keep_prediction) {
  if constexpr (std::is_invocable_v<Loss const&, Model&, Sample const&>) {
    return loss_and_outputs(loss(model, sample));
  } else {
    constexpr bool is_tuple_like = requires { std::tuple_size<Sample>::value; };
    static_assert(
        is_tuple_like,
        "neap: this loss needs a sample that is a pair or tuple (inputs..., target); for another sample, give a "
        "loss that takes (model, sample)");
    if constexpr (is_tuple_like) {
      constexpr std::size_t n = std::tuple_size_v<Sample>;
      static_assert(n >= 2, "neap: this loss needs a sample of at least two parts: (inputs..., target)");
      return [&]<std::size_t... I>(std::index_sequence<I...>) -> loss_result {
        static_assert(std::is_invocable_v<Model&, std::tuple_element_t<I, Sample> const&...>,
                      "neap: the model is called with all parts of the sample but the last, and does not take them");
        auto const made = [&] {
          try {
            return model(std::get<I>(sample)...);
          } catch (error const& e) {
            refuse_parts(e, kinds_of({look_into(std::get<I>(sample))...}),
                         kinds_of({look_into(std::get<n - 1>(sample))}));
          }
        }();
        static_assert(
            std::is_invocable_v<Loss const&, decltype(made)&, std::tuple_element_t<n - 1, Sample> const&>,
            "neap: a loss is called as a const object (a lambda is not mutable), with what the model gave and the last "
            "part of the sample, or with (model, sample); this one takes neither");
        auto r = loss_and_outputs(loss(made, std::get<n - 1>(sample)));
        if constexpr (std::is_convertible_v<decltype(made), tensor>)
          if (keep_prediction) r.outputs.push_back({"prediction", made});
        return r;
      }(std::make_index_sequence<n - 1>{});
    }
  }
}

/// A call of a loss with a model and a sample, erased, so that what a step does around it is compiled once. All three
/// outlive it; a function is given by a pointer to it.
class loss_call {
 public:
  template <class Loss, class Model, class Sample>
  loss_call(Loss const& loss, Model& model, Sample const& sample)
      : loss_(&loss),
        model_(const_cast<std::remove_const_t<Model>*>(std::addressof(model))),
        sample_(sample),
        call_([](void const* l, void* m, void const* s, bool keep_prediction) {
          return loss_of(*static_cast<Loss const*>(l), *static_cast<Model*>(m), *static_cast<Sample const*>(s),
                         keep_prediction);
        }),
        with_inputs_([](void const* s, tracer* t, loss_call& to, void* f, void (*then)(void*, loss_call const&)) {
          Sample const inputs = as_inputs(t, *static_cast<Sample const*>(s));
          to.sample_ = sample_ref(inputs);
          then(f, to);
        }) {}

  /// What the loss gives; with the model's output as "prediction", if it is to be kept (loss_of).
  loss_result operator()(bool keep_prediction) const { return call_(loss_, model_, sample_.get(), keep_prediction); }
  sample_ref const& sample() const { return sample_; }
  /// The same call with another loss and another sample of the same types.
  loss_call with(void const* loss, void const* sample) const {
    auto call = *this;
    call.loss_ = loss;
    call.sample_ = sample_.of(sample);
    return call;
  }
  /// Calls f(loss_call) with a sample whose tensors are inputs of the trace.
  template <class F>
  void with_inputs(tracer& t, F f) const {
    with_sample(&t, f);
  }
  /// The same with a sample whose tensors are data alone: without history, and none of a model's own.
  template <class F>
  void with_data(F f) const {
    with_sample(nullptr, f);
  }

 private:
  template <class F>
  void with_sample(tracer* t, F& f) const {
    auto call = *this;
    with_inputs_(sample_.get(), t, call, &f, [](void* to, loss_call const& made) { (*static_cast<F*>(to))(made); });
  }

  void const* loss_;
  void* model_;
  sample_ref sample_;
  loss_result (*call_)(void const* loss, void* model, void const* sample, bool keep_prediction);
  void (*with_inputs_)(void const* sample, tracer* t, loss_call& to, void* f, void (*then)(void*, loss_call const&));
};

}  // namespace detail

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/train/impl/loss.ipp>
#endif
