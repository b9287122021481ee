// What the snippets of the pages take for granted: a model, a step, a backend, an engine's own graph.
#pragma once

#include <neap/neap.hpp>

#include <chrono>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

using namespace neap::literals;
using namespace std::chrono_literals;

struct network {
  std::vector<neap::nn::linear> blocks{{64, 64}, {64, 64}};
  neap::nn::linear head{64, 10};
  neap::tensor operator()(neap::tensor x) const {
    for (auto const& l : blocks) x = neap::gelu(l(x));
    return head(x);
  }
};

namespace prelude {
struct engine {
  std::size_t ops = 0;
};
}  // namespace prelude
template <>
struct neap::graph_traits<prelude::engine> {  // a chain of ops, each of which reads the one before
  using G = prelude::engine;
  static std::size_t op_count(G const& g) { return g.ops; }
  static std::size_t value_count(G const& g) { return g.ops; }
  static std::size_t storage_count(G const& g) { return g.ops; }
  static std::vector<value_id> inputs(G const&, op_id o) {
    if (index(o) == 0) return {};
    return {id_at<value_id>(index(o) - 1)};
  }
  static std::vector<value_id> outputs(G const&, op_id o) { return {id_at<value_id>(index(o))}; }
  static storage_id storage(G const&, value_id v) { return id_at<storage_id>(index(v)); }
  static bytes_t bytes(G const&, storage_id) { return 64; }
  static bool is_recomputable(G const&, op_id) { return true; }
  static double seconds(G const&, op_id) { return 1e-3; }
};

extern network model;
extern std::pair<neap::tensor, neap::tensor> const batch, small_batch;
extern neap::training_program const step;
extern neap::optimized const found;
extern neap::host_backend backend;
extern neap::graph const g;
extern prelude::engine const engine;
