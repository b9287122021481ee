// Where the graphs of a compiled function run, if not on the host: a device with one arena for all of them.
#pragma once

#include <neap/core/error.hpp>
#include <neap/core/tensor_ref.hpp>
#include <neap/execute/executable.hpp>
#include <neap/ir/standard_operators.hpp>
#include <neap/model/storage.hpp>
#include <neap/plan/plan.hpp>

#include <memory>
#include <vector>

namespace neap { inline namespace v0 { namespace detail {

/// Memory of the device in which graphs of one call leave a value to later ones. The host reads it by storage->data().
struct carried_value {
  std::shared_ptr<tensor_storage> storage;
  std::shared_ptr<storage_elsewhere> there;
};

/// A planned graph on a device. Its sources are numbered in the order of place().
class device_graph {
 public:
  device_graph() = default;
  device_graph(device_graph const&) = delete;
  device_graph& operator=(device_graph const&) = delete;
  virtual ~device_graph() = default;

  /// Source i is this storage in runs from now on.
  virtual void bind(std::size_t i, std::shared_ptr<tensor_storage> const& storage) = 0;
  /// Source i is this memory of the host, of the source's type, in runs from now on.
  virtual void bind(std::size_t i, void* memory) = 0;
  /// Runs the graph and waits for its end. Updated storages have their new data on the device, or in the host's memory.
  /// Throws neap::error if the device refuses it, or fails: updated storages have the data from before the run, or those
  /// that the message states.
  virtual void operator()() = 0;
  /// A value that the graph keeps, in the host's memory, until the next run.
  virtual tensor_ref value(value_id v) = 0;
  struct left {
    value_id value;  // dense
    carried_value to;
  };
  /// Copies values that the graph keeps, on the device, after a run.
  virtual void leave(std::vector<left> const& all) = 0;
};

class graph_device {
 public:
  graph_device() = default;
  graph_device(graph_device const&) = delete;
  graph_device& operator=(graph_device const&) = delete;
  virtual ~graph_device() = default;

  /// Places the plan in the arena, which grows where it has to. Sources are values of the plan: those with a storage or
  /// memory are bound to it, others before each run. `carried`: the numbers of sources that are bound to carried values.
  virtual std::unique_ptr<device_graph> place(plan p, std::vector<source_binding> const& sources,
                                              std::vector<std::size_t> const& carried) = 0;
  /// Whether a value of this type is carried on the device: smaller ones are copied with other small ones.
  virtual bool carries(tensor_type const& type) const = 0;
  /// Makes room for carried values of so many bytes in all, before a call.
  virtual void reserve_carried(bytes_t bytes) = 0;
  /// The memory at this offset of that room, the same from call to call.
  virtual carried_value carried(tensor_type const& type, bytes_t offset) = 0;
  /// The arena, the room of carried values, and the weights and states that stay on the device.
  virtual bytes_t device_bytes() const = 0;
};

}}}  // namespace neap::v0::detail
