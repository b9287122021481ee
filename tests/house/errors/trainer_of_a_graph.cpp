// expect: neap: a trainer is made of a training step, a plan of it and a backend: trainer run(step, found.placed, backend)
#include <neap/execute/trainer.hpp>
#include <neap/memory/make_plan.hpp>

void f(neap::training_program const& step, neap::host_backend& backend) {
  neap::trainer run(step.program, neap::plan_in_order(step.program), backend);
}
