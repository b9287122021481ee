// Trains a small GPT on the bytes of a text in a fraction of the memory that training takes without a plan, and shows
// that nothing else changes: the same losses and weights to the last bit. On a GPU it trains GPT-2 as well:
//
//   train_gpt [--text FILE] [--memory-limit 0.5|90MiB] [--steps N] [--sample N] [--out FOLDER] [--threads N]
//   train_gpt --model gpt2-small --backend cuda --precision bf16 --memory-limit 0.5
//
// Exit status: 0, 1 if losses or weights differ, 2 if something is wrong (one line on stderr).
#include "gpt_training.hpp"

int main(int argc, char** argv) {
  try {
    auto const o = read_gpt_options(argc, argv);
    return (o.backend == "cuda" ? train_gpt_on_gpu(o) : train_gpt_on_host(o)).equal ? 0 : 1;
  } catch (std::exception const& e) {
    std::fprintf(stderr, "train_gpt: %s\n", e.what());
    return 2;
  }
}
