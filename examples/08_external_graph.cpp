// Lesson 8: an external graph, owned by an engine, is planned in place. An engine's ops, in plain vectors, become a graph by
// one specialisation; what comes back is plain data in the engine's own ids.
#include <neap/neap.hpp>

#include <cstdio>
#include <vector>

struct engine_op {
  char const* name;
  std::vector<std::uint32_t> inputs;  // the ops whose results it reads
  neap::bytes_t bytes;                // of its result
  double seconds;
};
using engine_graph = std::vector<engine_op>;  // in execution order; each op makes one value, in a buffer of its own

template <>
struct neap::graph_traits<engine_graph> {
  using G = engine_graph;
  static std::size_t op_count(G const& g) { return g.size(); }
  static std::size_t value_count(G const& g) { return g.size(); }
  static std::size_t storage_count(G const& g) { return g.size(); }
  static auto inputs(G const& g, op_id o) {
    std::vector<value_id> in;
    for (auto i : g[index(o)].inputs) in.push_back(value_id{i});
    return in;
  }
  static std::vector<value_id> outputs(G const&, op_id o) { return {id_at<value_id>(index(o))}; }
  static storage_id storage(G const&, value_id v) { return id_at<storage_id>(index(v)); }
  static bytes_t bytes(G const& g, storage_id s) { return g[index(s)].bytes; }
  static bool is_recomputable(G const&, op_id) { return true; }  // every op may run again
  static double seconds(G const& g, op_id o) { return g[index(o)].seconds; }
};

int main() {
  engine_graph g{{"read", {}, 1 << 20, 1e-4}};  // eight layers forward, and backward again with what they made
  for (std::uint32_t i = 0; i < 8; ++i) g.push_back({"layer", {i}, 1 << 20, 1e-3});
  for (std::uint32_t i = 8; i > 0; --i)
    g.push_back({"gradient", {static_cast<std::uint32_t>(g.size() - 1), i}, 1 << 20, 2e-3});

  auto const found = neap::optimize(g, neap::rematerialize{}, neap::memory_limit::of_original(0.6));
  for (auto const& s : found.placed.steps)
    std::printf("%s %u at %lld%s\n", g[index(s.op)].name, static_cast<unsigned>(s.op),
                static_cast<long long>(found.placed.buffers[s.outputs[0].buffer].offset), s.copy ? ", again" : "");
  std::printf("%lld bytes instead of %lld\n", static_cast<long long>(found.placed.arena_bytes),
              static_cast<long long>(found.original.peak_bytes));
  return found.fits && 10 * found.placed.arena_bytes <= 6 * found.original.peak_bytes ? 0 : 1;
}
