// Programs that know nothing of the simulated device end with status 3, and a line each on stderr, if it has seen faults or
// races.
#include "simulated_device.hpp"

#include <unistd.h>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

void report() {
  std::string const text = neap::testing::simulated_device::faults() + neap::testing::simulated_device::races();
  if (text.empty()) return;
  std::fflush(stdout);
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
  _exit(3);
}
/// Before main(): what the program registers itself runs earlier, with its device memory given back.
int const registered = std::atexit(report);

}  // namespace
