// expect: neap: the first argument of optimize is neither a neap graph nor a training step, nor a type that neap::graph_traits<G> adapts
#include <neap/mutate/rematerialize.hpp>
#include <neap/optimize/optimize.hpp>

namespace engine {
struct graph {};
}  // namespace engine

auto const found = [] { return neap::optimize(engine::graph{}, neap::rematerialize{}, neap::memory_limit(100)), 0; }();
