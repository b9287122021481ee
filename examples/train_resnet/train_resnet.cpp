// Trains a residual network on made-up images in a fraction of the memory that training takes without a plan, and shows
// that nothing else changes: the same losses and weights to the last bit. On a GPU it trains ResNet-50:
//
//   train_resnet
//   train_resnet --model resnet50 --backend cuda --precision bf16 --memory-limit 0.5
//
// Exit status: 0, 1 if losses or weights differ, 2 if something is wrong (one line on stderr).
#include "resnet_training.hpp"

int main(int argc, char** argv) {
  try {
    auto const o = read_resnet_options(argc, argv);
    return (o.backend == "cuda" ? train_resnet_on_gpu(o) : train_resnet_on_host(o)).equal ? 0 : 1;
  } catch (std::exception const& e) {
    std::fprintf(stderr, "train_resnet: %s\n", e.what());
    return 2;
  }
}
