// expect: neap: a time budget has a unit: time_budget(std::chrono::seconds(2)), or time_budget{2s}
#include <neap/plan/limits.hpp>

int main() {
  neap::time_budget const budget{2};
  return budget.limit.count() > 1;
}
