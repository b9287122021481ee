// expect: neap: behind the plan a backend is needed:  neap::host_backend backend(2);
#include <neap/execute/trainer.hpp>
#include <neap/memory/make_plan.hpp>

void f(neap::training_program const& step) { neap::trainer run(step, neap::plan_in_order(step.program)); }
