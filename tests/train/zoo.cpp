// Every model of the zoo at toy size: its program is a valid graph, a few steps of it lower the loss, and they give the
// bits of the same steps taken eagerly. The large ones are traced with types only.
#include <neap/model/zoo/bert.hpp>
#include <neap/model/zoo/densenet.hpp>
#include <neap/model/zoo/gpt.hpp>
#include <neap/model/zoo/llama.hpp>
#include <neap/model/zoo/mlp.hpp>
#include <neap/model/zoo/resnet.hpp>
#include <neap/model/zoo/unet.hpp>
#include <neap/model/zoo/vgg.hpp>
#include <neap/model/zoo/vit.hpp>

#include <neap/ir/verify.hpp>
#include <neap/model/model.hpp>
#include <neap/train/training_step.hpp>

#include "run_program.hpp"

#include <doctest/doctest.h>

using namespace neap;

namespace {

tensor numbers(shape const& s, std::uint64_t seed, std::uint32_t below) {
  random_stream r(seed);
  std::vector<std::int64_t> v;
  for (std::int64_t i = 0; i < elements(s); ++i) v.push_back(r.below(below));
  return tensor::from(v, s);
}

/// The mean over pixels of the cross-entropy: (n, c, h, w) against (n, h, w).
struct pixel_loss {
  tensor operator()(tensor const& y, tensor const& classes) const {
    return cross_entropy{}(permute(y, {0, 2, 3, 1}), classes);
  }
};

template <class Model, class Sample, class Loss>
void check_training(Model model, Sample const& sample, Loss const& loss, int steps = 8) {
  initialise(model, 5);
  auto eager = model;
  adamw const optimizer{.rate = 0.01};
  auto const program = training_step(model, sample, loss, optimizer, {.clip_norm = 5});
  auto const valid = verify(program.program);
  REQUIRE_MESSAGE(valid.ok(), valid.message());
  CHECK(program.weights.size() == parameters(model).size());
  for (auto const& [name, t] : named_tensors(model, role::weight)) CHECK(name.find_first_not_of("0123456789.") != name.npos);
  support::program_runner run(program);
  training_state state;
  double first = 0, last = 0;
  for (int i = 0; i < steps; ++i) {
    last = run({sample.first, sample.second});
    if (i == 0) first = last;
    if (i < 3) {
      double const e = eager_step(eager, sample, loss, optimizer, state, {.clip_norm = 5}).template item<double>();
      CHECK(last == e);
    }
  }
  CHECK(last < 0.95 * first);
}

std::pair<tensor, tensor> images(std::int64_t size = 16) {
  return {tensor::randn({4, 3, size, size}, 1), numbers({4}, 2, 4)};
}
std::pair<tensor, tensor> text() { return {numbers({3, 8}, 1, 16), numbers({3, 8}, 2, 16)}; }

}  // namespace

TEST_CASE("mlp") {
  check_training(zoo::mlp(zoo::mlp_config::toy()), std::pair{tensor::randn({8, 16}, 1), numbers({8}, 2, 4)}, cross_entropy{});
}
TEST_CASE("vgg") { check_training(zoo::vgg(zoo::vgg_config::toy()), images(), cross_entropy{}); }
TEST_CASE("resnet") {
  check_training(zoo::resnet(zoo::resnet_config::toy()), images(), cross_entropy{});
  check_training(zoo::resnet(zoo::resnet_config::resnet18().narrow()), images(), cross_entropy{});
  check_training(zoo::resnet(zoo::resnet_config::resnet34().narrow()), images(8), cross_entropy{});
}
TEST_CASE("resnet with bottlenecks") {
  check_training(zoo::resnet(zoo::resnet_config::resnet50().narrow()), images(8), cross_entropy{});
  check_training(zoo::resnet(zoo::resnet_config::resnet101().narrow()), images(8), cross_entropy{}, 10);
  check_training(zoo::resnet(zoo::resnet_config::resnet152().narrow()), images(8), cross_entropy{}, 10);
}
TEST_CASE("densenet") { check_training(zoo::densenet(zoo::densenet_config::toy()), images(), cross_entropy{}); }
TEST_CASE("unet, unet++") {
  auto const sample = std::pair{tensor::randn({2, 3, 8, 8}, 1), numbers({2, 8, 8}, 2, 2)};
  check_training(zoo::unet(zoo::unet_config::toy()), sample, pixel_loss{});
  check_training(zoo::unet_plus_plus(zoo::unet_config::toy()), sample, pixel_loss{});
}
TEST_CASE("bert") { check_training(zoo::bert(zoo::bert_config::toy()), text(), cross_entropy{}); }
TEST_CASE("gpt") {
  check_training(zoo::gpt(zoo::gpt_config::toy()), text(), cross_entropy{});
  auto plain = zoo::gpt_config::toy();
  plain.fused_attention = false, plain.tied_head = false, plain.dropout = 0.1;
  check_training(zoo::gpt(plain), text(), cross_entropy{});
}
TEST_CASE("vit") { check_training(zoo::vit(zoo::vit_config::toy()), images(), cross_entropy{}); }
TEST_CASE("llama") { check_training(zoo::llama(zoo::llama_config::toy()), text(), cross_entropy{}); }

TEST_CASE("the real sizes are traced with types only, and count the weights that their papers do") {
  auto const check = [](auto model, tensor const& x, tensor const& y, std::int64_t weights) {
    CHECK(parameter_count(model) == weights);
    auto const p = training_step(model, std::pair{x, y}, cross_entropy{}, sgd{});
    CHECK(p.program.op_count() > 30);
    for (auto const& r : p.residents)
      if (p.program.role(r.value) == role::weight) CHECK_FALSE(r.holder.has_data());
  };
  auto const image = tensor::lazy({dtype::f32, {2, 3, 224, 224}}), label = tensor::lazy({dtype::i64, {2}});
  auto const ids = tensor::lazy({dtype::i64, {2, 128}});
  check(zoo::vgg(zoo::vgg_config::vgg16()), image, label, 138'357'544);
  check(zoo::resnet(zoo::resnet_config::resnet18()), image, label, 11'689'512);
  check(zoo::resnet(zoo::resnet_config::resnet34()), image, label, 21'797'672);
  check(zoo::resnet(zoo::resnet_config::resnet50()), image, label, 25'557'032);
  check(zoo::resnet(zoo::resnet_config::resnet101()), image, label, 44'549'160);
  check(zoo::resnet(zoo::resnet_config::resnet152()), image, label, 60'192'808);
  check(zoo::densenet(zoo::densenet_config::densenet121()), image, label, 7'978'856);
  check(zoo::vit(zoo::vit_config::base()), image, label, 86'567'656);
  check(zoo::gpt(zoo::gpt_config::gpt2()), ids, ids, 124'439'808);
  check(zoo::llama(zoo::llama_config::llama7b()), ids, ids, 6'738'415'616);
}
