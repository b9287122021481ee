// expect: neap: a memory limit is a whole number of bytes, as memory_limit{2_GiB}; a part of what the step needs without a plan is memory_limit::of_original(0.4)
#include <neap/plan/limits.hpp>

int main() {
  auto const limit = neap::memory_limit(0.4);
  return limit.resolve(1) == 0;
}
