// The models of the zoo at toy size, with a batch and a loss each.
#pragma once

#include <neap/model/zoo/gpt.hpp>
#include <neap/model/zoo/llama.hpp>
#include <neap/model/zoo/resnet.hpp>

#include <neap/train/training_step.hpp>

#include "../../examples/models/bert.hpp"
#include "../../examples/models/densenet.hpp"
#include "../../examples/models/lstm.hpp"
#include "../../examples/models/mixtral.hpp"
#include "../../examples/models/mlp.hpp"
#include "../../examples/models/unet.hpp"
#include "../../examples/models/vgg.hpp"
#include "../../examples/models/vit.hpp"
#include "numbers.hpp"

#include <cstdint>
#include <utility>

namespace neap::testing {

/// The mean over pixels of the cross-entropy: (n, c, h, w) against (n, h, w).
struct loss_of_pixels {
  tensor operator()(tensor const& y, tensor const& classes) const {
    return cross_entropy{}(permute(y, {0, 2, 3, 1}), classes);
  }
};

/// Calls f(name, model, batch, loss) for each.
template <class F>
void for_each_zoo_toy(F const& f) {
  auto const images = [](std::int64_t size) {
    return std::pair{tensor::randn({4, 3, size, size}, 1), whole_numbers({4}, 2, 4)};
  };
  std::pair const text{whole_numbers({3, 8}, 1, 16), whole_numbers({3, 8}, 2, 16)};
  std::pair const pixels{tensor::randn({2, 3, 8, 8}, 1), whole_numbers({2, 8, 8}, 2, 2)};
  cross_entropy const loss{};
  f("mlp", zoo::mlp(zoo::mlp_config::toy()), std::pair{tensor::randn({8, 16}, 1), whole_numbers({8}, 2, 4)}, loss);
  f("vgg", zoo::vgg(zoo::vgg_config::toy()), images(16), loss);
  f("resnet", zoo::resnet(zoo::resnet_config::toy()), images(16), loss);
  f("resnet50, narrow", zoo::resnet(zoo::resnet_config::resnet50().narrow()), images(8), loss);
  f("densenet", zoo::densenet(zoo::densenet_config::toy()), images(16), loss);
  f("unet", zoo::unet(zoo::unet_config::toy()), pixels, loss_of_pixels{});
  f("unet++", zoo::unet_plus_plus(zoo::unet_config::toy()), pixels, loss_of_pixels{});
  f("bert", zoo::bert(zoo::bert_config::toy()), text, loss);
  f("gpt", zoo::gpt(zoo::gpt_config::toy()), text, loss);
  f("vit", zoo::vit(zoo::vit_config::toy()), images(16), loss);
  f("llama", zoo::llama(zoo::llama_config::toy()), text, loss);
  f("mixtral", zoo::mixtral(zoo::mixtral_config::toy()), text, loss);
  f("lstm", zoo::lstm(zoo::lstm_config::toy()), text, loss);
}

}  // namespace neap::testing
