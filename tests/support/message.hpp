// The message of the error that a call throws.
#pragma once

#include <neap/core/error.hpp>

#include <string>

namespace neap::testing {

/// What f's neap::error says; "no error" if it throws none.
template <class F>
std::string message_of(F const& f) {
  try {
    f();
  } catch (error const& e) { return e.what(); }
  return "no error";
}

}  // namespace neap::testing
