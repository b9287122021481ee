#include "../training/gpu.hpp"

#include "gpt_training.hpp"

training::outcome train_gpt_on_gpu(gpt_options const& o) {
  training::gpu gpu;
  return train_gpt(o, gpu.backend, gpu.figures, gpu.link);
}
