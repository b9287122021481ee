// The training of train_gpt.cpp, on any backend.
#pragma once

#include "../training/training.hpp"

#include <neap/model/zoo/gpt.hpp>

#include <thread>

struct gpt_options : training::options {
  std::string text;
  int sample = 120;
  std::int64_t vocabulary = 256, context = 256, width = 256, layers = 6, heads = 8;
};

/// Reads the options; the first of the arguments is the program. Throws neap::error for those that are wrong.
gpt_options read_gpt_options(int argc, char const* const* argv);

/// Random windows of a text, the same ones for the same step: ids and the ids that follow them.
class text_batches {
 public:
  explicit text_batches(gpt_options const& o);
  std::pair<neap::tensor, neap::tensor> const& operator()(int step);
  std::size_t text_bytes() const { return text_.size(); }

 private:
  std::string text_;
  std::int64_t batch_, context_;
  neap::tensor ids_, next_;
  std::pair<neap::tensor, neap::tensor> pair_;
};

neap::zoo::gpt make_gpt(gpt_options const& o);
void describe(gpt_options const& o, neap::zoo::gpt& model, std::size_t text_bytes);
/// Continues a prompt from the model, the likeliest bytes more often.
void write_sample(neap::zoo::gpt const& model, std::string const& prompt, gpt_options const& o);

training::outcome train_gpt_on_host(gpt_options const& o);
/// Throws neap::error, in one line, where there is no GPU, or the program was built without CUDA.
training::outcome train_gpt_on_gpu(gpt_options const& o);

template <class Backend>
training::outcome train_gpt(gpt_options const& o, Backend& backend, neap::roofline const& figures,
                            training::swap_link link) {
  neap::eager_context const computing({.seed = 1, .threads = o.threads});
  text_batches data(o);
  neap::zoo::gpt model = make_gpt(o);
  describe(o, model, data.text_bytes());
  auto const out = training::train(
      o, model, [&] { return make_gpt(o); }, data, neap::adamw{.rate = o.rate}, backend, figures, link,
      static_cast<double>(o.batch * o.context), "tokens");
  if (o.sample > 0) write_sample(model, "The licence", o);
  return out;
}
