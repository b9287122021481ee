// The image of an external graph: an op_graph whose ops carry what the owner's graph_traits say of them
// (op::external), so that the search can copy and edit it while the owner's graph is only read, once.
//
//   auto const image = image_of(engine_graph, [&](op_id o) { return seconds of o; });
//   image.program                                       // ops have the ids that the engine gives them
//
// How the traits are understood:
//   - A value lies in a storage. The first value of a storage is made by an op, or by none (a source). Every other value
//     on it comes from an op that reads one of the storage's values: of an op that says is_view, it is a view; of any
//     other op, a write in place, which makes the storage's next version. Readers of a version run before the op that
//     overwrites it. A storage that is resident, or has a source, may also be written unread, once.
//   - An op that writes on a temporary, whole or in part, may run again if is_recomputable says so: on a copy of what it
//     overwrites, for which the op that makes it, and the writers in between, run again too. Each version is a storage
//     of the image, written over the one before it (op_graph::overwrites). An op that writes on a resident storage
//     never runs again.
//   - Several ops may each make a value on one temporary without reading it, where graph_traits::part says which bytes
//     each covers and no two cover the same: parts of one whole, as in a concatenation without a copy. They run in the order
//     of the topological sort; the whole is a view of a part, made by an op that reads the parts.
//   - order_after beyond that is an edge like any other. An op that another one must follow in this way has an effect
//     that values do not show: it never runs again, whatever is_recomputable says. Readers of a temporary that precede
//     the op that overwrites it are no such ops; where that op writes on a copy instead, they may run after it.
//   - A storage with a source that is not resident is donated: there from the beginning, freed after its last reader.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/ir/dataflow.hpp>
#include <neap/ir/editor.hpp>
#include <neap/ir/external.hpp>

#include <string_view>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// An external graph's image, and whose its sources are.
struct external_image {
  struct source {
    storage_id storage = nothing<storage_id>;  // the owner's
    value_id value = nothing<value_id>;        // the owner's; nothing: a resident storage that only ops put values on
  };
  op_graph program;
  std::vector<source> sources;  // by value id of `program`: sources come first
};

namespace detail {

/// What an image is made of, whatever the type of the owner's graph: its traits, as functions of one interface.
class traits_reader {
 public:
  virtual ~traits_reader() = default;
  virtual std::size_t op_count() const = 0;
  virtual std::size_t value_count() const = 0;
  virtual std::size_t storage_count() const = 0;
  virtual plain_vector<value_id> inputs(op_id o) const = 0;
  virtual plain_vector<value_id> outputs(op_id o) const = 0;
  virtual plain_vector<op_id> order_after(op_id o) const = 0;
  virtual storage_id storage(value_id v) const = 0;
  virtual bytes_t bytes(storage_id s) const = 0;
  virtual std::vector<bool> residents() const = 0;
  virtual plain_vector<value_id> kept() const = 0;
  virtual bool is_view(op_id o) const = 0;
  /// `all`: the bytes of a whole storage.
  virtual std::pair<bytes_t, bytes_t> part(value_id v, std::pair<bytes_t, bytes_t> all) const = 0;
  virtual bool is_recomputable(op_id o) const = 0;
  virtual bool is_swappable(storage_id s) const = 0;
  virtual bool takes_over(op_id o) const = 0;
  virtual bool may_take_over(op_id o, std::size_t input, std::size_t output) const = 0;
  virtual bytes_t workspace(op_id o) const = 0;
  virtual op_stream stream(op_id o) const = 0;
  virtual std::string_view name(op_id o) const = 0;
  virtual pin_set pins(op_id o) const = 0;
  virtual pin_set pins(value_id v) const = 0;
  /// The latency that comes with the graph, and what the op takes in the image.
  virtual double given_seconds(op_id o) const = 0;
  virtual double seconds(op_id o) const = 0;
};

template <class G, class Seconds>
class traits_reader_of final : public traits_reader {
 public:
  traits_reader_of(G const& g, Seconds const& seconds) : g_(g), seconds_(seconds) {}
  std::size_t op_count() const override { return flow::op_count(g_); }
  std::size_t value_count() const override { return flow::value_count(g_); }
  std::size_t storage_count() const override { return flow::storage_count(g_); }
  plain_vector<value_id> inputs(op_id o) const override { return list<value_id>(flow::inputs(g_, o)); }
  plain_vector<value_id> outputs(op_id o) const override { return list<value_id>(flow::outputs(g_, o)); }
  plain_vector<op_id> order_after(op_id o) const override { return list<op_id>(flow::order_after(g_, o)); }
  storage_id storage(value_id v) const override { return flow::storage(g_, v); }
  bytes_t bytes(storage_id s) const override { return flow::bytes(g_, s); }
  std::vector<bool> residents() const override { return flow::residents(g_); }
  plain_vector<value_id> kept() const override { return list<value_id>(flow::kept(g_)); }
  bool is_view(op_id o) const override { return flow::is_view(g_, o); }
  std::pair<bytes_t, bytes_t> part([[maybe_unused]] value_id v, std::pair<bytes_t, bytes_t> all) const override {
    if constexpr (requires { graph_traits<G>::part(g_, v); }) return graph_traits<G>::part(g_, v);
    else return all;
  }
  bool is_recomputable(op_id o) const override { return flow::is_recomputable(g_, o); }
  bool is_swappable(storage_id s) const override { return flow::is_swappable(g_, s); }
  bool takes_over(op_id o) const override { return flow::takes_over(g_, o); }
  bool may_take_over(op_id o, std::size_t input, std::size_t output) const override {
    return flow::may_take_over(g_, o, input, output);
  }
  bytes_t workspace(op_id o) const override { return flow::workspace(g_, o); }
  op_stream stream(op_id o) const override { return flow::stream(g_, o); }
  std::string_view name(op_id o) const override { return flow::name(g_, o); }
  pin_set pins(op_id o) const override { return flow::pins(g_, o); }
  pin_set pins(value_id v) const override { return flow::pins(g_, v); }
  double given_seconds(op_id o) const override { return flow::seconds(g_, o); }
  double seconds(op_id o) const override { return static_cast<double>(seconds_(o)); }

 private:
  template <class Id, class Range>
  static plain_vector<Id> list(Range&& range) {
    plain_vector<Id> ids;
    for (Id id : range) ids.push_back(id);
    return ids;
  }
  G const& g_;
  Seconds const& seconds_;
};

external_image image_of(traits_reader const& owner);

}  // namespace detail

/// The image of a graph; `seconds(op)` is what each op takes. Throws neap::error where the graph makes no sense: ids out
/// of range, a value made twice, two ops that overwrite one version of a storage, ops that wait for each other, sizes and
/// times that are none. O(ops + edges).
template <dataflow_graph G, class Seconds>
external_image image_of(G const& g, Seconds const& seconds) {
  return detail::image_of(detail::traits_reader_of<G, Seconds>(g, seconds));
}

}}  // namespace neap::v0

#if !defined(NEAP_SEPARATE_COMPILATION)
#include <neap/ir/impl/external_graph.ipp>
#endif
