// The training of train_resnet.cpp, on any backend.
#pragma once

#include "../training/training.hpp"

#include <neap/model/zoo/resnet.hpp>

#include <vector>

struct resnet_options : training::options {
  neap::zoo::resnet_config model;
  std::int64_t size = 224;  // of the images, along both axes
};

/// Reads the options; the first of the arguments is the program. Throws neap::error for those that are wrong.
resnet_options read_resnet_options(int argc, char const* const* argv);

/// Images of noise and of waves that depend on the class. There are four batches, in turn.
class image_batches {
 public:
  explicit image_batches(resnet_options const& o);
  std::pair<neap::tensor, neap::tensor> const& operator()(int step) const {
    return all_[static_cast<std::size_t>(step) % all_.size()];
  }

 private:
  std::vector<std::pair<neap::tensor, neap::tensor>> all_;
};

neap::zoo::resnet make_resnet(resnet_options const& o);
void describe(resnet_options const& o, neap::zoo::resnet& model);

training::outcome train_resnet_on_host(resnet_options const& o);
/// Throws neap::error, in one line, where there is no GPU, or the program was built without CUDA.
training::outcome train_resnet_on_gpu(resnet_options const& o);

template <class Backend>
training::outcome train_resnet(resnet_options const& o, Backend& backend, neap::roofline const& figures,
                               training::swap_link link) {
  neap::eager_context const computing({.seed = 1, .threads = o.threads});
  image_batches const data(o);
  neap::zoo::resnet model = make_resnet(o);
  describe(o, model);
  return training::train(
      o, model, [&] { return make_resnet(o); }, data, neap::momentum{.rate = o.rate}, backend, figures, link,
      static_cast<double>(o.batch), "images");
}
