// The second door: an external graph is searched in its image (ir/external_graph.hpp), which is made once
// from its graph_traits, and the plan found is given in the owner's ids.
//
//   auto found = optimize(engine_graph, rematerialize{}, memory_limit{2_GiB});
//   for (auto const& step : found.placed.steps) ...                            // plan/external_plan.hpp
//
// What runs again is what graph_traits call is_recomputable, views too; what is stored and loaded is what a `swap` among
// the mutators finds and is_swappable does not forbid. Mutators and schedulers of one's own work on the image, whose ops
// name the owner's by `g.as<op::external>(o)->id`.
#pragma once

#include <neap/core/plain_vector.hpp>
#include <neap/ir/external_graph.hpp>
#include <neap/ir/stored.hpp>
#include <neap/mutate/mutator.hpp>
#include <neap/optimize/once_reasons.hpp>
#include <neap/optimize/search_options.hpp>
#include <neap/plan/external_plan.hpp>
#include <neap/simulate/cost_model.hpp>

#include <string>
#include <utility>
#include <vector>

namespace neap { inline namespace v0 {

/// A search's answer for an external graph.
struct optimized_external : search_outcome {
  external_plan placed;  // the best that fits; if none does, the one nearest to fitting
  plan searched;         // the same plan, of the image: what a warm_start takes

  /// One line for a person where `fits` is false; empty otherwise.
  std::string why_not() const {
    return search_outcome::why_not(placed.arena_bytes, placed.peak_bytes, placed.resident_bytes, placed.latency);
  }
  /// The answer in at most ten lines (optimize/search_summary.hpp).
  std::string summary() const {
    return search_outcome::summary(placed.arena_bytes, placed.peak_bytes, placed.resident_bytes, placed.latency);
  }
  template <class Stream>
  friend Stream& operator<<(Stream& to, optimized_external const& found) {
    to << found.summary();
    return to;
  }
};

namespace detail {

/// What the ops of an image cost: by the owner's cost model; stores and loads by `transfers`.
template <class C>
struct image_cost {
  C const& transfers;
  seconds_t operator()(op_graph const& g, op_id o) const {
    auto const* x = g.as<op::external>(o);
    return x ? x->seconds : static_cast<seconds_t>(transfers(g, o));
  }
};
template <class C>
image_cost(C const&) -> image_cost<C>;

/// One static_assert a trait, so that the first line of the error names what is missing.
template <class G>
constexpr bool is_external_graph() {
  constexpr bool adapted = requires { sizeof(graph_traits<G>); };
  static_assert(adapted,
                "neap: the first argument of optimize is neither a neap graph nor a training step, nor a type that "
                "neap::graph_traits<G> adapts (see neap/ir/dataflow.hpp)");
  if constexpr (adapted) {
    static_assert(
        has_counts<G>,
        "neap: graph_traits of this graph lacks one of  static std::size_t op_count(G const&), "
        "value_count(G const&), storage_count(G const&); within it, graph and op are neap's own: write ::graph "
        "for a type of that name");
    static_assert(has_edges<G>,
                  "neap: graph_traits of this graph lacks one of  static auto inputs(G const&, "
                  "neap::op_id), outputs(G const&, neap::op_id)  returning ranges of neap::value_id");
    static_assert(has_storages<G>,
                  "neap: graph_traits of this graph lacks one of  static neap::storage_id "
                  "storage(G const&, neap::value_id), static neap::bytes_t bytes(G const&, "
                  "neap::storage_id)");
  }
  if constexpr (adapted) static_assert(optional_traits_fit<G>());
  return adapted && dataflow_graph<G>;
}

/// Translates a plan of an image into the owner's ids.
template <class G>
class external_teller {
 public:
  external_teller(G const& owner, external_image const& image, plan const& p)
      : owner_(owner),
        image_(image),
        plan_(p),
        g_(p.graph),
        step_of_(positions(p.order())),
        buffer_of_(g_.storage_count(), no_id) {}

  external_plan tell() {
    external_plan out;
    out.options = plan_.options;
    out.waits = plan_.waits;
    out.peak_bytes = plan_.peak_bytes;
    out.resident_bytes = plan_.resident_bytes;
    out.arena_bytes = plan_.arena_bytes;
    out.lower_bound_bytes = plan_.lower_bound_bytes;
    out.latency = plan_.latency;
    tell_buffers(out.buffers);
    plain_vector<std::uint32_t> runs(flow::op_count(owner_));
    out.steps.reserve(plan_.steps.size());
    for (auto const& s : plan_.steps) out.steps.push_back(step(s, runs));
    return out;
  }

 private:
  /// What is written in place stays in the buffer that it is written in.
  void tell_buffers(std::vector<external_buffer>& out) {
    auto const root_of = [&](storage_id s) {
      for (auto base = g_.overwrites(g_.record(s).first); base != nothing<value_id>;
           base = g_.overwrites(g_.record(s).first))
        s = g_.storage(base);
      return s;
    };
    table<storage_id, std::uint32_t> row(g_.storage_count(), no_id);
    for (auto const& b : plan_.buffers) {
      auto const root = root_of(b.storage);
      if (row[root] == no_id) {
        row[root] = static_cast<std::uint32_t>(out.size());
        out.push_back({storage_of(g_.record(root).first), b.offset, b.bytes, b.first, b.last, no_id, b.resident});
      }
      auto& joined = out[buffer_of_[b.storage] = row[root]];
      joined.first = std::min(joined.first, b.first), joined.last = std::max(joined.last, b.last);
    }
    for (auto const& b : plan_.buffers)
      if (b.takes_over != nothing<storage_id> && buffer_of_[b.takes_over] != buffer_of_[b.storage])
        out[buffer_of_[b.storage]].takes_over = buffer_of_[b.takes_over];
  }
  external_step step(plan_step const& s, plain_vector<std::uint32_t>& runs) const {
    external_step t;
    t.stream = s.stream;
    t.start = s.start, t.end = s.end;
    t.workspace_bytes = s.workspace_bytes, t.workspace_offset = s.workspace_offset;
    if (auto const* x = g_.as<op::external>(s.op)) {
      t.op = id_at<op_id>(static_cast<std::size_t>(x->id));
      t.copy = runs[index(t.op)]++;
      std::size_t i = 0, j = 0;
      for (value_id v : flow::inputs(owner_, t.op)) t.inputs.push_back(instance(g_.inputs(s.op)[i++], v));
      for (value_id v : flow::outputs(owner_, t.op)) t.outputs.push_back(instance(g_.outputs(s.op)[j++], v));
    } else if (g_.as<op::store>(s.op)) {
      t.kind = external_step::store;
      t.inputs.push_back(instance(g_.inputs(s.op)[0]));
    } else if (g_.as<op::wait>(s.op)) {
      t.kind = external_step::wait;
      t.stored_by = step_of_[store_of(g_, g_.inputs(s.op)[0])];
    } else {
      t.kind = external_step::load;
      t.stored_by = step_of_[store_of(g_, g_.inputs(s.op)[0])];
      t.outputs.push_back(instance(g_.output(s.op)));
    }
    return t;
  }
  external_value instance(value_id v) const { return instance(v, owners(v)); }
  external_value instance(value_id v, value_id owners) const {
    auto const p = g_.producer(v);
    return {owners, p == nothing<op_id> ? std::uint32_t{no_id} : step_of_[p], buffer_of_[g_.storage(v)]};
  }
  /// The owner's value that one of the image's is an instance of; nothing for what only the image has.
  value_id owners(value_id v) const {
    auto const p = g_.producer(v);
    if (p == nothing<op_id>) return image_.sources[index(v)].value;
    auto const* x = g_.as<op::external>(p);
    if (!x) return owners(g_.inputs(p)[0]);  // a load is what was stored, a handle what its store stores
    auto j = index(v) - index(g_.outputs(p).front());
    for (value_id out : flow::outputs(owner_, id_at<op_id>(static_cast<std::size_t>(x->id))))
      if (j-- == 0) return out;
    return nothing<value_id>;
  }
  storage_id storage_of(value_id first) const {
    if (g_.producer(first) == nothing<op_id>) return image_.sources[index(first)].storage;
    return flow::storage(owner_, owners(first));
  }

  G const& owner_;
  external_image const& image_;
  plan const& plan_;
  op_graph const& g_;
  table<op_id, std::uint32_t> step_of_;
  table<storage_id, std::uint32_t> buffer_of_;
};

/// The plan of an image, and all figures of the search, for the image's owner. `original` is of the owner's graph.
template <class G>
optimized_external tell_owner(G const& owner, external_image const& image, optimized&& found) {
  optimized_external out;
  if (!found.fits)
    for (auto& line : once_reasons(found.best)) found.reasons.push_back(std::move(line));
  static_cast<search_outcome&>(out) = std::move(static_cast<search_outcome&>(found));
  out.placed = external_teller<G>(owner, image, found.placed).tell();
  out.searched = std::move(found.placed);
  return out;
}

}  // namespace detail

}}  // namespace neap::v0
