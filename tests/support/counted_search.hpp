// A search under a limit of memory that candidates end, not a clock, counting bytes plainly.
#pragma once

#include <neap/optimize/search_options.hpp>

namespace neap::testing {

inline search_options limited(bytes_t limit, std::size_t iterations) {
  search_options o;
  o.memory = {.alignment = 1, .takeover = false};
  o.memory_at_most = memory_limit(limit);
  o.iterations = iterations;
  o.time = time_budget(std::chrono::seconds(600));
  return o;
}

}  // namespace neap::testing
