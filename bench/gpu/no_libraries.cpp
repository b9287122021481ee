#include "libraries.hpp"

namespace neap::bench {

void use_libraries(cuda_backend&) {}
char const* ways_name() { return "neap"; }
bool has_libraries() { return false; }

}  // namespace neap::bench
