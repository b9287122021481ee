// expect: neap: this is the answer of a search: give the plan in it, found.placed
#include <neap/execute/trainer.hpp>
#include <neap/mutate/rematerialize.hpp>
#include <neap/optimize/optimize.hpp>

void f(neap::training_program const& step, neap::host_backend& backend) {
  auto const found = neap::optimize(step, neap::rematerialize{});
  neap::trainer run(step, found, backend);
}
