#include <neap/neap.hpp>

#include <cstdio>

int main() {
  std::printf("neap %d.%d.%d\n", NEAP_VERSION_MAJOR, NEAP_VERSION_MINOR, NEAP_VERSION_PATCH);
  return NEAP_VERSION > 0 ? 0 : 1;
}
