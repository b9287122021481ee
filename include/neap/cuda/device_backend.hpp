// What is a backend of a GPU. Kernels that the host runs in another form (loops over cores, tiles of its caches) have a
// form for these in cuda/kernels/: overloads of  run(Backend&, Op const&, kernel_arguments const&)  for a device_backend.
#pragma once

namespace neap::inline v0 {

/// launch(rows, functor, row_work) runs functors of the block abstraction on thread blocks, launch_blocks(blocks, functor)
/// those that lay out their threads themselves, in the order of the calls. scratch(bytes) is memory that they share.
/// Tensors are in the device's memory: the calls read no elements.
template <class Backend>
concept device_backend = requires { requires Backend::runs_on_device; };

}  // namespace neap::inline v0
