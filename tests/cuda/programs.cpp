// The training programs of examples/ on a simulated device, by the GPU's own kernels: the host's losses, and equal bits with
// a plan and without.
#include "../../examples/train_gpt/gpt_training.hpp"
#include "../../examples/train_resnet/resnet_training.hpp"

#include "../support/device/simulated_device.hpp"
#include "../support/message.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace neap;
using namespace neap::testing;

namespace {

template <class Read>
auto options_of(Read const& read, std::vector<char const*> arguments) {
  arguments.insert(arguments.begin(), "program");
  return read(static_cast<int>(arguments.size()), arguments.data());
}

/// Trained on both: losses are within `tolerance`, and a plan within the limit changes no bit on either.
template <class Options, class OnHost, class OnGpu>
void check_both(Options o, OnHost const& on_host, OnGpu const& on_gpu, double tolerance) {
  o.backend = "host";
  auto const expected = on_host(o);
  CHECK(expected.equal);
  simulated_device::reset(5);
  o.backend = "cuda";
  auto const got = on_gpu(o);
  CHECK(simulated_device::faults() == "");
  CHECK(simulated_device::races() == "");
  CHECK(got.equal);
  CHECK(got.peak < got.unplanned_peak);
  CHECK(got.peak == got.arena);
  CHECK(got.step > 0);
  REQUIRE(got.losses.size() == expected.losses.size());
  for (std::size_t i = 0; i < got.losses.size(); ++i)
    CHECK(got.losses[i] == doctest::Approx(expected.losses[i]).epsilon(tolerance));
}

std::vector<char const*> gpt_arguments(char const* precision) {
  return {"--backend",   "cuda",   "--width",   "16", "--layers",         "1", "--heads",        "2",
          "--context",   "8",      "--batch",   "2",  "--steps",          "3", "--compare",      "2",
          "--sample",    "0",      "--threads", "1",  "--search-seconds", "1", "--memory-limit", "0.6",
          "--precision", precision};
}

}  // namespace

TEST_CASE("train_gpt --backend cuda has the host's losses") {
  check_both(options_of(read_gpt_options, gpt_arguments("f32")), train_gpt_on_host, train_gpt_on_gpu, 1e-4);
}

TEST_CASE("and in bf16 and f16") {
  for (auto const* precision : {"bf16", "f16"}) {
    CAPTURE(precision);
    check_both(options_of(read_gpt_options, gpt_arguments(precision)), train_gpt_on_host, train_gpt_on_gpu, 1e-2);
  }
}

TEST_CASE("train_resnet --backend cuda has the host's losses") {
  for (auto const& [precision, tolerance] : {std::pair{"f32", 1e-3}, {"bf16", 3e-2}}) {
    CAPTURE(precision);
    check_both(options_of(read_resnet_options,
                          {"--backend", "cuda", "--model", "toy", "--steps", "2", "--compare", "2", "--threads", "1",
                           "--search-seconds", "1", "--memory-limit", "0.8", "--precision", precision}),
               train_resnet_on_host, train_resnet_on_gpu, tolerance);
  }
}

TEST_CASE("without a GPU: one line") {
  simulated_device::reset(1, {.devices = 0});
  CHECK(message_of([] { train_gpt_on_gpu({}); }) == "cuda: no GPU to be used: the driver finds no device");
  CHECK(message_of([] { train_resnet_on_gpu({}); }) == "cuda: no GPU to be used: the driver finds no device");
  simulated_device::reset();
}

TEST_CASE("options that are wrong are one line each, with the option's name") {
  auto const gpt = [](std::vector<char const*> a) { return message_of([&] { options_of(read_gpt_options, a); }); };
  CHECK(gpt({"--backend", "gpu"}) == "--backend: \"gpu\" is neither host nor cuda");
  CHECK(gpt({"--precision", "fp8"}) == "--precision: \"fp8\" is none of f32, bf16 and f16");
  CHECK(gpt({"--model", "gpt3"}) == "--model: \"gpt3\" is none of demo, gpt2-small and gpt2-medium");
  CHECK(gpt({"--batch", "0"}) == "--batch: \"0\" is not a number from 1 to 65536");
  CHECK(gpt({"--width", "30", "--heads", "4"}) == "--width: must be a multiple of --heads");
  CHECK(gpt({"--width"}) == "--width: a value is missing");
  CHECK(gpt({"--size", "8"}) == "--size: not an option; see --help");
  auto const medium = options_of(read_gpt_options, {"--model", "gpt2-medium", "--batch", "2"});
  CHECK(medium.layers == 24);
  CHECK(medium.width == 1024);
  CHECK(medium.vocabulary == 50257);
  CHECK(medium.batch == 2);
  CHECK(medium.sample == 0);
  auto const resnet = options_of(read_resnet_options, {"--model", "resnet50", "--size", "64"});
  CHECK(resnet.model.blocks == std::vector<std::int64_t>{3, 4, 6, 3});
  CHECK(resnet.model.bottleneck);
  CHECK(resnet.size == 64);
  CHECK(resnet.batch == 64);
}
