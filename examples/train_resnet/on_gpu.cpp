#include "../training/gpu.hpp"

#include "resnet_training.hpp"

training::outcome train_resnet_on_gpu(resnet_options const& o) {
  training::gpu gpu;
  return train_resnet(o, gpu.backend, gpu.figures, gpu.link);
}
