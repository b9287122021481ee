// The bodies of <neap/plan/memory_plan.hpp>.
#pragma once

#include <neap/plan/memory_plan.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap { inline namespace v0 {

NEAP_FUNC std::string plan_fault::message() const {
  std::string line;
  if (other >= 0) line = "records " + std::to_string(record) + " and " + std::to_string(other) + ": ";
  else if (record >= 0) line = "record " + std::to_string(record) + ": ";
  return line += what;
}

}}  // namespace neap::v0
