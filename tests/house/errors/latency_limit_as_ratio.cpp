// expect: neap: a latency limit is latency_limit::in_seconds(0.25), or so many times what the step takes without a plan, latency_limit::of_original(1.1)
#include <neap/plan/limits.hpp>

int main() {
  auto const limit = neap::latency_limit{0.5};
  return limit.resolve(1) == 0;
}
