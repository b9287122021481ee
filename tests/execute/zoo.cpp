// Every model of the zoo at toy size: its program is a valid graph, a few steps of it lower the loss, and they give the
// bits of the same steps taken eagerly; so does a plan that reorders, recomputes and swaps, in the arena that was planned
// and without taking memory. The large ones are traced with types only.
#include <neap/model/zoo/gpt.hpp>
#include <neap/model/zoo/llama.hpp>
#include <neap/model/zoo/resnet.hpp>

#include <neap/execute/trainer.hpp>
#include <neap/ir/verify.hpp>
#include <neap/memory/make_plan.hpp>
#include <neap/model/model.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/mutate/swap.hpp>
#include <neap/mutate/truncate.hpp>
#include <neap/mutate/zip.hpp>
#include <neap/optimize/optimize.hpp>
#include <neap/schedule/order.hpp>
#include <neap/train/fuse.hpp>
#include <neap/train/training_step.hpp>
#include <neap/verify/plan_verifier.hpp>

#include "../../examples/models/bert.hpp"
#include "../../examples/models/densenet.hpp"
#include "../../examples/models/lstm.hpp"
#include "../../examples/models/mixtral.hpp"
#include "../../examples/models/mlp.hpp"
#include "../../examples/models/unet.hpp"
#include "../../examples/models/vgg.hpp"
#include "../../examples/models/vit.hpp"
#include "../support/numbers.hpp"
#include "../support/sanitized.hpp"
#include "../train/run_program.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>

using namespace neap;
using neap::testing::whole_numbers;

// Allocations of this program, counted; a sanitizer has its own and counts none.
namespace {
std::atomic<long> allocations{0};
}  // namespace
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {
void* counted(std::size_t n, std::size_t alignment) {
  ++allocations;
  void* const p = alignment > alignof(std::max_align_t)
                      ? std::aligned_alloc(alignment, (n + alignment - 1) / alignment * alignment)
                      : std::malloc(n ? n : 1);
  if (!p) throw std::bad_alloc();
  return p;
}
}  // namespace
#ifndef __clang__  // what g++ inlines of one side alone does not match the other
#pragma GCC diagnostic ignored "-Wmismatched-new-delete"
#endif
void* operator new(std::size_t n) { return counted(n, 0); }
void* operator new[](std::size_t n) { return counted(n, 0); }
void* operator new(std::size_t n, std::nothrow_t const&) noexcept { return ++allocations, std::malloc(n ? n : 1); }
void* operator new[](std::size_t n, std::nothrow_t const&) noexcept { return ++allocations, std::malloc(n ? n : 1); }
void* operator new(std::size_t n, std::align_val_t a) { return counted(n, static_cast<std::size_t>(a)); }
void* operator new[](std::size_t n, std::align_val_t a) { return counted(n, static_cast<std::size_t>(a)); }
void operator delete(void* p) noexcept { std::free(p); }
void operator delete[](void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }
#endif

namespace {

/// The mean over pixels of the cross-entropy: (n, c, h, w) against (n, h, w).
struct pixel_loss {
  tensor operator()(tensor const& y, tensor const& classes) const {
    return cross_entropy{}(permute(y, {0, 2, 3, 1}), classes);
  }
};

template <class Model, class Sample, class Loss>
void check_training(Model model, Sample const& sample, Loss const& loss, int steps = 8,
                    training_options const& options = {.clip_norm = 5}, std::size_t fused = 0) {
  initialise(model, 5);
  auto eager = model;
  auto planned = model;
  adamw const optimizer{.rate = 0.01};
  auto const program = training_step(model, sample, loss, optimizer, options);
  auto const valid = verify(program.program);
  REQUIRE_MESSAGE(valid.ok(), valid.message());
  for (auto o : program.program.ops())
    if (program.program.facets(o).name == "matmul_adamw") --fused;
  CHECK(fused == 0);
  CHECK(program.weights.size() == parameters(model).size());
  for (auto const& [name, t] : named_tensors(model, role::weight))
    CHECK(name.find_first_not_of("0123456789.") != name.npos);
  auto const same_program = training_step(planned, sample, loss, optimizer, options);
  REQUIRE(same_program.program.digest() == program.program.digest());
  search_options search;
  search.memory_at_most = memory_limit::of_original(0.5);
  search.iterations = testing::sanitized ? 12 : 150;
  auto const found = optimize(same_program, zip(rematerialize{} | truncate(12), neap::swap{1e9} | truncate(4)), search);
  auto const verdict = verify_plan(same_program.program, found.placed);
  REQUIRE_MESSAGE(verdict.ok(), verdict.message());
  CHECK(found.best.result.peak_bytes <= found.original.peak_bytes);
  auto& backend = eager_context::current().backend();
  trainer train_planned(same_program, found.placed, backend);

  support::program_runner run(program);
  training_state state;
  double first = 0, last = 0;
  for (int i = 0; i < steps; ++i) {
    last = run({sample.first, sample.second});
    if (i == 0) first = last;
    long const before = allocations;
    double const with_plan = train_planned(sample);
    long const taken = allocations - before;
    CHECK(with_plan == last);
    if (i > 0) CHECK(taken == 0);
    if (i < 3) {
      double const e = eager_step(eager, sample, loss, optimizer, state, options).template item<double>();
      CHECK(last == e);
    }
  }
  CHECK(last < 0.95 * first);
  CHECK(train_planned.program().high_water_bytes() == found.placed.arena_bytes);
  auto const plain_weights = parameters(model), planned_weights = parameters(planned);
  for (std::size_t i = 0; i < plain_weights.size(); ++i)
    CHECK(std::memcmp(plain_weights[i].ref().data, planned_weights[i].ref().data,
                      static_cast<std::size_t>(plain_weights[i].type().bytes())) == 0);
}

std::pair<tensor, tensor> images(std::int64_t size = 16) {
  return {tensor::randn({4, 3, size, size}, 1), whole_numbers({4}, 2, 4)};
}
std::pair<tensor, tensor> text() { return {whole_numbers({3, 8}, 1, 16), whole_numbers({3, 8}, 2, 16)}; }

}  // namespace

TEST_CASE("mlp") {
  check_training(zoo::mlp(zoo::mlp_config::toy()), std::pair{tensor::randn({8, 16}, 1), whole_numbers({8}, 2, 4)},
                 cross_entropy{});
}
TEST_CASE("mlp whose weights are larger than its activations: their updates are fused with the gradients") {
  check_training(zoo::mlp({{512, 1024, 512, 4}}), std::pair{tensor::randn({64, 512}, 1), whole_numbers({64}, 2, 4)},
                 cross_entropy{}, 12, {}, 2);
}
TEST_CASE("vgg") { check_training(zoo::vgg(zoo::vgg_config::toy()), images(), cross_entropy{}); }
TEST_CASE("resnet") {
  check_training(zoo::resnet(zoo::resnet_config::toy()), images(), cross_entropy{});
  check_training(zoo::resnet(zoo::resnet_config::resnet18().narrow()), images(), cross_entropy{});
  check_training(zoo::resnet(zoo::resnet_config::resnet34().narrow()), images(8), cross_entropy{});
}
TEST_CASE("resnet with bottlenecks") {
  check_training(zoo::resnet(zoo::resnet_config::resnet50().narrow()), images(8), cross_entropy{});
  if (testing::sanitized) return;
  check_training(zoo::resnet(zoo::resnet_config::resnet101().narrow()), images(8), cross_entropy{}, 10);
  check_training(zoo::resnet(zoo::resnet_config::resnet152().narrow()), images(8), cross_entropy{}, 10);
}
TEST_CASE("densenet") { check_training(zoo::densenet(zoo::densenet_config::toy()), images(), cross_entropy{}); }
TEST_CASE("unet, unet++") {
  auto const sample = std::pair{tensor::randn({2, 3, 8, 8}, 1), whole_numbers({2, 8, 8}, 2, 2)};
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
TEST_CASE("mixtral, with and without the load-balancing loss") {
  check_training(zoo::mixtral(zoo::mixtral_config::toy()), text(), cross_entropy{});
  check_training(zoo::mixtral(zoo::mixtral_config::toy()), text(), [](auto const& model, auto const& sample) {
    tensor balance;
    tensor const logits = model(sample.first, &balance);
    return cross_entropy{}(logits, sample.second) + 0.02 * balance;
  });
}
TEST_CASE("lstm") { check_training(zoo::lstm(zoo::lstm_config::toy()), text(), cross_entropy{}, 16); }
TEST_CASE("gru, convolutions of sequences and transposed ones") {
  struct {
    nn::embedding tokens{16, 8};
    nn::conv1d narrow{8, 12, 3, {.stride = 2, .padding = 1}};
    nn::gru recurrent{12, 12, {.layers = 2, .dropout = 0.1}};
    nn::conv_transpose1d wide{12, 16, 4, {.stride = 2, .padding = 1}};

    tensor operator()(tensor const& ids) const {
      tensor const x = relu(narrow(transpose(tokens(ids), 1, 2)));  // (b, 12, t / 2)
      tensor const y = recurrent(transpose(x, 1, 2)).output;        // (b, t / 2, 12)
      return transpose(wide(transpose(y, 1, 2)), 1, 2);             // (b, t, 16)
    }
  } model;
  check_training(model, text(), cross_entropy{});
}

TEST_CASE("fused steps take no memory when they run, and give the losses of the plain ones") {
  auto const check = [](auto model, auto const& sample, bool low) {
    initialise(model, 5);
    auto apart = model;
    training_options options{.clip_norm = 5};
    if (low) options.precision = mixed{dtype::bf16};
    auto const step = [&](auto& of) {
      return training_step(of, sample, cross_entropy{}, adamw{.rate = 0.01}, options);
    };
    auto const in_order = [](graph const& g) {
      auto order = given_order{}(g);
      auto result = simulate(g, order, roofline::h100_like());
      return make_plan(candidate{g, std::move(order), std::move(result)}, g);
    };
    auto const plain = step(model), fused = fuse(step(apart));
    std::size_t kinds[4]{};  // chains, reductions, rows and channels, products
    for (auto o : fused.program.ops())
      if (auto const* p = fused.program.template as<op::fused>(o))
        ++kinds[!p->has_anchor() ? 0 : p->is_reduction() ? 1 : p->is_product() ? 3 : 2];
    auto& backend = eager_context::current().backend();
    trainer run_plain(plain, in_order(plain.program), backend), run_fused(fused, in_order(fused.program), backend);
    for (int i = 0; i < 3; ++i) {
      double const expected = run_plain(sample);
      long const before = allocations;
      double const loss = run_fused(sample);
      if (i > 0) CHECK(allocations == before);
      CHECK(loss == expected);
    }
    return std::vector<std::size_t>(kinds, kinds + 4);
  };
  for (bool const low : {false, true}) {
    auto const of_gpt = check(zoo::gpt(zoo::gpt_config::toy()), text(), low);
    CHECK(of_gpt[2] > 0);
    CHECK(of_gpt[3] > 0);
    CHECK(check(zoo::llama(zoo::llama_config::toy()), text(), low)[0] > 0);
    CHECK(check(zoo::resnet(zoo::resnet_config::toy()), images(), low)[2] > 0);
    struct {
      nn::linear in{16, 8}, out{8, 4};
      tensor operator()(tensor const& x) const { return out(in(x)*in(x)); }
    } gated;
    check(gated, std::pair{tensor::randn({8, 16}, 1), whole_numbers({8}, 2, 4)}, low);
  }
}

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
  check(zoo::mixtral(zoo::mixtral_config::mixtral8x7b()), ids, ids, 46'702'792'704);
  check(zoo::lstm(zoo::lstm_config::medium()), ids, ids, 19'775'200);
}
