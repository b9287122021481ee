// The bodies of <neap/model/context.hpp>.
#pragma once

#include <neap/model/context.hpp>

#include <neap/core/separate_compilation.hpp>

namespace neap::inline v0 {

NEAP_FUNC eager_context::~eager_context() {
  if (active() == this) active() = outer_;
}

}  // namespace neap::inline v0
