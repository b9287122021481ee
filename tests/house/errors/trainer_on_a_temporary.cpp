// expect: neap: a backend lives longer than what runs on it: give a variable, not a temporary
#include <neap/execute/trainer.hpp>
#include <neap/memory/make_plan.hpp>

void f(neap::training_program const& step) {
  neap::trainer run(step, neap::plan_in_order(step.program), neap::host_backend(1));
}
