#include "gpt_training.hpp"

training::outcome train_gpt_on_gpu(gpt_options const&) {
  neap::throw_error({"--backend cuda: this program was built without the CUDA toolkit"});
}
