// Random programs of the DSL, whatever they do, have all graphs: each op in one place, blocks that can run in turn.
#include <neap/blocks/all_graphs.hpp>

#include "../support/random_program.hpp"
#include "../support/sanitized.hpp"
#include "checks.hpp"

#include <doctest/doctest.h>

using namespace neap;
using namespace neap::testing;

TEST_CASE("training steps of random programs are cut, classed and drawn up") {
  for (std::uint64_t seed = 0; seed < (sanitized ? 40u : 150u); ++seed) {
    CAPTURE(seed);
    auto form = random_form(seed, 10);
    form.options.micro_batches = 1;
    random_program model(form);
    auto const batch = random_batch(form, 0);
    tracer t{operator_table(standard_operators::facets)};
    std::vector<tensor> inputs;
    for (auto const& x : batch) inputs.push_back(t.input(x));
    auto const value = model(inputs);
    if (value.count() != 1) continue;
    auto const weights = named_tensors(model, role::weight);
    std::vector<tensor> wrt;
    for (auto const& w : weights) wrt.push_back(w.tensor);
    auto const gradients = detail::gradients(value, wrt, false, false, {});
    t.keep(value, role::loss);
    for (std::size_t i = 0; i < wrt.size(); ++i) {
      if (gradients[i].is_empty()) continue;
      if (seed % 2) t.keep(gradients[i], role::gradient);
      else apply(op::sgd{}, {wrt[i], gradients[i]});
    }
    auto const g = graph(t.finish());
    block_options o;
    o.kind = static_cast<cut_kind>(seed % 4);
    o.simplify.small_bytes = seed % 3 ? 64 : 1 << 20;
    check_all(g, make_all_graphs(g, o));
  }
}
