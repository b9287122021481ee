#include "resnet_training.hpp"

training::outcome train_resnet_on_gpu(resnet_options const&) {
  neap::throw_error({"--backend cuda: this program was built without the CUDA toolkit"});
}
