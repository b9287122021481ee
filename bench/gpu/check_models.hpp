// The models that a GPU is checked with, and their batches.
#pragma once

#include <neap/neap.hpp>

#include <neap/model/zoo/gpt.hpp>
#include <neap/model/zoo/resnet.hpp>

#include "../../examples/models/mlp.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <future>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace neap::bench {

/// toys: what an interpreter or a sanitizer runs in seconds. small: seconds on a host. full: GPT-2 small (batch 8) and
/// medium (4) of 1024 tokens and ResNet-50 (64), in bf16 with f32 sums.
enum class model_size { toys, small, full };

inline std::optional<model_size> model_size_of(std::string_view name) {
  if (name == "toys") return model_size::toys;
  if (name == "small") return model_size::small;
  if (name == "full") return model_size::full;
  return std::nullopt;
}

/// Rows of floats with a label each; images if `dims` has more axes than one.
struct labelled_rows {
  shape dims;  // the first axis is the batch
  std::int64_t classes;

  std::pair<tensor, tensor> operator()(std::uint64_t seed) const {
    std::vector<std::int64_t> labels;
    for (std::int64_t i = 0; i < dims[0]; ++i) labels.push_back((i * 7 + static_cast<std::int64_t>(seed)) % classes);
    return {tensor::randn(dims, seed), tensor::from(labels, {dims[0]})};
  }
};
/// Tokens, and the ones that follow.
struct token_rows {
  std::int64_t batch, length, vocabulary;

  std::pair<tensor, tensor> operator()(std::uint64_t seed) const {
    random_stream draw(seed, 3);
    std::vector<std::int64_t> ids, next;
    auto const limit = static_cast<std::uint32_t>(vocabulary);
    for (std::int64_t i = 0; i < batch * length; ++i)
      ids.push_back(draw.below(limit)), next.push_back(draw.below(limit));
    return {tensor::from(ids, {batch, length}), tensor::from(next, {batch, length})};
  }
};

/// Draws the weights now, on all cores: copies of the model have them, too.
template <class Model>
void draw_weights(Model& model) {
  auto const weights = named_tensors(model, role::weight);
  std::atomic<std::size_t> next = 0;
  std::vector<std::future<void>> drawn;
  for (unsigned k = 0; k < std::max(1u, std::thread::hardware_concurrency()); ++k)
    drawn.push_back(std::async(std::launch::async, [&] {
      for (std::size_t i = next++; i < weights.size(); i = next++) (void)weights[i].tensor.storage()->data();
    }));
  for (auto& d : drawn) d.get();
}

/// Calls f(name, model, batches, options) for the models of a size.
template <class F>
void each_model(model_size size, F const& f) {
  auto const with = [&](char const* name, auto model, auto const& batches, training_options const& options = {}) {
    initialise(model, 1);
    draw_weights(model);
    f(name, std::as_const(model), batches, options);
  };
  auto const gpt = [](std::int64_t vocabulary, std::int64_t context, std::int64_t width, std::int64_t heads,
                      std::int64_t layers, double dropout) {
    zoo::gpt_config c;
    c.vocabulary = vocabulary, c.context = context, c.width = width, c.heads = heads, c.layers = layers;
    c.dropout = dropout;
    return zoo::gpt(c);
  };
  if (size == model_size::toys) {
    with("mlp toy", zoo::mlp(zoo::mlp_config::toy()), labelled_rows{{6, 16}, 4});
    with("gpt toy", zoo::gpt(zoo::gpt_config::toy()), token_rows{2, 8, 16});
    with("resnet toy", zoo::resnet(zoo::resnet_config::toy()), labelled_rows{{2, 3, 8, 8}, 4});
  } else if (size == model_size::small) {
    with("mlp", zoo::mlp(), labelled_rows{{128, 784}, 10});
    with("tiny gpt", gpt(512, 64, 128, 4, 4, 0.1), token_rows{8, 64, 512});
  } else {
    training_options half;
    half.precision = mixed{dtype::bf16};
    with("gpt2 small b8", gpt(50257, 1024, 768, 12, 12, 0), token_rows{8, 1024, 50257}, half);
    with("gpt2 medium b4", gpt(50257, 1024, 1024, 16, 24, 0), token_rows{4, 1024, 50257}, half);
    with("resnet50 b64", zoo::resnet(zoo::resnet_config::resnet50()), labelled_rows{{64, 3, 224, 224}, 1000}, half);
  }
}

/// A short search for a plan within a share of what the step needs in its given order: 100 candidates, which is too few
/// for large steps: 2 seconds.
template <class Step, class Moves, class Cost>
auto planned(Step const& step, Moves const& moves, double ratio, Cost const& cost) {
  constexpr std::size_t large = 500;  // ops
  search_options few;
  if (step.program.op_count() > large) few.time = time_budget(std::chrono::seconds(2));
  else few.iterations = 100;
  return optimize(step, moves, few, cost, memory_limit::of_original(ratio));
}

}  // namespace neap::bench
