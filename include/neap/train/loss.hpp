// Losses as values: cross_entropy{}, mse{}, or any callable. A loss is called with what the model made of the sample and
// the sample's last tensor; one that takes (model, sample) does all by itself.
//
//   neap::training_step(net, std::pair{images, labels}, neap::cross_entropy{}, ...);
//   neap::training_step(net, batch, [](auto& net, auto const& batch) { return neap::mse{}(net(batch.x), batch.y) * 2; }, ...);
//
// A loss may tell more than one number: a struct of tensors, of which `loss` is differentiated and the others are outputs of
// the step under their names:
//
//   struct told { neap::tensor loss, logits, penalty; };
#pragma once

#include <neap/model/functions/rows.hpp>
#include <neap/model/parameters.hpp>

#include <tuple>
#include <type_traits>
#include <utility>

namespace neap::inline v0 {

/// The mean over rows of -log softmax(logits)[target]; rows whose target is `ignored` do not count.
struct cross_entropy {
  std::int64_t ignored = -100;
  tensor operator()(tensor const& logits, tensor const& targets,
                    std::source_location at = std::source_location::current()) const {
    return cross_entropy_loss(logits, targets, ignored, at);
  }
};

/// The mean of (prediction - target)^2.
struct mse {
  tensor operator()(tensor const& prediction, tensor const& target,
                    std::source_location at = std::source_location::current()) const {
    return mse_loss(prediction, target, at);
  }
};

namespace detail {

/// What a loss gave: the number that is differentiated, and what else it told, by name.
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
        auto const made = model(std::get<I>(sample)...);
        auto r = loss_and_outputs(loss(made, std::get<n - 1>(sample)));
        if constexpr (std::is_convertible_v<decltype(made), tensor>)
          if (keep_prediction) r.outputs.push_back({"prediction", made});
        return r;
      }(std::make_index_sequence<n - 1>{});
    }
  }
}

}  // namespace detail

}  // namespace neap::inline v0
