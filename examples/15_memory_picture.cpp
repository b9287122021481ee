// Lesson 15: a picture of memory over time, before and after planning. The first argument names the file; README.md shows
// what this program writes.
#include <neap/model/zoo/gpt.hpp>
#include <neap/neap.hpp>
#include <neap/report/memory_svg.hpp>

#include <cstdio>
#include <fstream>
#include <vector>

int main(int count, char** arguments) {
  neap::zoo::gpt model({.vocabulary = 1024, .context = 256, .width = 256, .heads = 8, .layers = 12});
  std::vector<std::int64_t> text(8 * 256);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::int64_t>(i * i % 1024);
  auto const tokens = neap::tensor::from(text, {8, 256});

  auto const step =
      neap::training_step(model, std::pair{tokens, tokens}, neap::cross_entropy{}, neap::sgd{.rate = 0.1});
  auto const cost = neap::roofline::host(2);
  neap::search_options options;
  options.iterations = 2000;  // in place of a time budget: the same plan each time
  auto const found = neap::optimize(step, neap::rematerialize{} | neap::truncate(24), cost,
                                    neap::memory_limit::of_original(0.4), options);

  std::vector const curves{neap::curve_of("without a plan", found.original),
                           neap::curve_of("planned", found.best.result)};
  std::string const path = count > 1 ? arguments[1] : "memory.svg";
  std::ofstream(path) << neap::memory_svg("Memory of one training step: a GPT of 12 layers", curves);
  std::printf(
      "%.0f %% of the memory in %.0f %% of the time: %s\n",
      100.0 * static_cast<double>(found.best.result.peak_bytes) / static_cast<double>(found.original.peak_bytes),
      100.0 * found.best.result.latency / found.original.latency, path.c_str());
  return found.fits ? 0 : 1;
}
