// Losses as values: cross_entropy{}, mse{}, or any callable. A loss is called with what the model made of the sample and
// the sample's last tensor; one that takes (model, sample) does all by itself.
//
//   neap::training_step(net, std::pair{images, labels}, neap::cross_entropy{}, ...);
//   neap::training_step(net, batch, [](auto& net, auto const& batch) { return neap::mse{}(net(batch.x), batch.y) * 2; }, ...);
#pragma once

#include <neap/model/functions/rows.hpp>

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

/// loss(model, sample), or loss(model(all but the last...), last).
template <class Loss, class Model, class Sample>
tensor loss_of(Loss const& loss, Model& model, Sample const& sample) {
  if constexpr (std::is_invocable_v<Loss const&, Model&, Sample const&>) {
    return loss(model, sample);
  } else {
    constexpr bool is_tuple_like = requires { std::tuple_size<Sample>::value; };
    static_assert(
        is_tuple_like,
        "neap: this loss needs a sample that is a pair or tuple (inputs..., target); for another sample, give a "
        "loss that takes (model, sample)");
    if constexpr (is_tuple_like) {
      constexpr std::size_t n = std::tuple_size_v<Sample>;
      static_assert(n >= 2, "neap: this loss needs a sample of at least two parts: (inputs..., target)");
      return [&]<std::size_t... I>(std::index_sequence<I...>) -> tensor {
        return loss(model(std::get<I>(sample)...), std::get<n - 1>(sample));
      }(std::make_index_sequence<n - 1>{});
    }
  }
}

}  // namespace detail

}  // namespace neap::inline v0
