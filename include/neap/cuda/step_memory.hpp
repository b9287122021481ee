// The device memory of a planned step: one block for everything, which executables for several sizes of batches share.
//
//   | weights, states | small residents | inputs | buffers and workspaces of the plan |
//                     |<---- copied in before each step ---->|
//
// What a model trains stays on the device from step to step. Small residents (step numbers, rates, seeds) are the host's:
// they are copied in with the batch, and back where the step writes them. Needs the CUDA toolkit's headers.
#pragma once

#include <neap/core/units.hpp>
#include <neap/cuda/memory.hpp>
#include <neap/cuda/resident.hpp>
#include <neap/execute/executable.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// Of at most so many bytes a resident is the host's.
inline constexpr bytes_t small_resident_bytes = 256;

class cuda_step_memory final : public shared_device_memory {
 public:
  struct staying {
    tensor_storage* storage;
    std::shared_ptr<cuda_resident> there;
    bool comes_back;  // at the end: it is in this block, or steps write it
  };
  struct small {
    void const* key;  // the storage or, without one, the host's memory
    bytes_t offset;   // in the block
    bytes_t bytes;
  };

  std::shared_ptr<cuda_device_memory> block;
  std::vector<staying> residents;             // whose data stay on the device; of the first plan
  std::vector<small> fed;                     // small residents of the first plan
  bytes_t fed_begin = 0, inputs_begin = 0;    // in the block
  std::shared_ptr<cuda_pinned_memory> slots;  // of what is swapped

  std::shared_ptr<cuda_resident> find(tensor_storage const* s) const {
    for (auto const& r : residents)
      if (r.storage == s) return r.there;
    return nullptr;
  }
  small const* find_small(void const* key) const {
    for (auto const& f : fed)
      if (f.key == key) return &f;
    return nullptr;
  }
  /// Pinned memory of at least so many bytes; earlier results stay valid.
  std::shared_ptr<cuda_pinned_memory> slots_of(bytes_t bytes) {
    if (!slots || slots->bytes() < bytes) slots = std::make_shared<cuda_pinned_memory>(bytes, "swapped tensors");
    return slots;
  }
};

}}}  // namespace neap::v0::detail
