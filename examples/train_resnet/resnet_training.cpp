#include "resnet_training.hpp"

#include <cmath>
#include <cstdlib>
#include <thread>

using namespace neap;

namespace {

/// The basic blocks of a ResNet in three stages, for small images of ten classes.
zoo::resnet_config small_model() {
  auto c = zoo::resnet_config::of({2, 2, 2}, false).narrow();
  c.width = 8, c.classes = 10;
  return c;
}

}  // namespace

resnet_options read_resnet_options(int argc, char const* const* argv) {
  resnet_options o;
  o.name = "train_resnet";
  o.rate = 0.05, o.steps = 20;
  o.model = small_model(), o.batch = 16, o.size = 24;
  for (int i = 1; i < argc; ++i) {
    std::string const name = argv[i];
    if (name == "--help" || name == "-h") {
      std::printf("train_resnet [--model toy|small|resnet18|resnet50] [--size N]\n%s\n", training::help);
      std::exit(0);
    }
    if (i + 1 >= argc) throw_error({name, ": a value is missing"});
    std::string const value = argv[++i];
    if (name == "--model") {  // options that follow change batch and size
      if (value == "toy") o.model = zoo::resnet_config::toy(), o.batch = 2, o.size = 8;
      else if (value == "small") o.model = small_model(), o.batch = 16, o.size = 24;
      else if (value == "resnet18") o.model = zoo::resnet_config::resnet18(), o.batch = 64, o.size = 224;
      else if (value == "resnet50") o.model = zoo::resnet_config::resnet50(), o.batch = 64, o.size = 224;
      else throw_error({"--model: \"", value, "\" is none of toy, small, resnet18 and resnet50"});
    } else if (name == "--size") o.size = training::number(name, value, 4, 4096);
    else if (!training::read(o, name, value)) throw_error({name, ": not an option; see --help"});
  }
  if (o.threads == 0) o.threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  return o;
}

image_batches::image_batches(resnet_options const& o) {
  for (std::uint64_t k = 0; k < 4; ++k) {
    random_stream draw(2024, k);
    tensor const images = tensor::randn({o.batch, o.model.channels, o.size, o.size}, k);
    std::vector<std::int64_t> labels;
    float* x = images.data<float>();
    for (std::int64_t b = 0; b < o.batch; ++b) {
      auto const label = draw.below(static_cast<std::uint32_t>(o.model.classes));
      labels.push_back(label);
      float const along = 0.2f + 0.1f * static_cast<float>(label % 8), down = 0.3f * static_cast<float>(label / 8 % 8);
      for (std::int64_t c = 0; c < o.model.channels; ++c)
        for (std::int64_t i = 0; i < o.size; ++i)
          for (std::int64_t j = 0; j < o.size; ++j, ++x)
            *x = 0.5f * *x + std::sin(down * static_cast<float>(i) + along * static_cast<float>(j) +
                                      static_cast<float>(label / 64) * static_cast<float>(c));
    }
    all_.emplace_back(images, tensor::from(labels, {o.batch}));
  }
}

zoo::resnet make_resnet(resnet_options const& o) {
  eager_context const fresh({.seed = 42, .threads = 1});  // the same first weights each time
  return zoo::resnet(o.model);
}

void describe(resnet_options const& o, zoo::resnet& model) {
  std::int64_t weights = 0;
  for (auto const& w : parameters(model)) weights += w.type().bytes() / 4;
  std::printf("ResNet: %zu blocks, %.3g million parameters; batch %lld of %lld x %lld; %s, %d threads\n",
              model.blocks.size(), static_cast<double>(weights) / 1e6, static_cast<long long>(o.batch),
              static_cast<long long>(o.size), static_cast<long long>(o.size), o.backend.c_str(), o.threads);
}

training::outcome train_resnet_on_host(resnet_options const& o) {
  host_backend backend(o.threads);
  roofline links = roofline::host(o.threads);
  links.to_host_bytes_per_second = links.to_device_bytes_per_second = 2e8;  // the spill file's
  return train_resnet(o, backend, links, {2e8, true});
}
