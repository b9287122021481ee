// What is a backend of a GPU. A kernel that the host runs in another form (loops over cores, tiles of its caches) calls the
// device's form there, which is found by its arguments: neap/cuda.hpp has all of them (cuda/kernels/).
#pragma once

namespace neap { inline namespace v0 {

/// launch(rows, functor, row_work) runs functors of the block abstraction on thread blocks, launch_blocks(blocks, functor)
/// those that lay out their threads themselves, in the order of the calls. scratch(bytes) is memory that they share.
/// Tensors are in the device's memory: the calls read no elements.
template <class Backend>
concept device_backend = requires { requires Backend::runs_on_device; };

}}  // namespace neap::v0
