#include "libraries.hpp"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace neap::bench {

namespace {

using maker = void (*)(cuda_device const&, check_libraries&);

maker find_maker() {
#if defined(NEAP_CHECK_LINKED)
  return &neap_check_libraries;
#else
  void* const file = dlopen(std::getenv("NEAP_CHECK_LIBRARIES"), RTLD_NOW);
  void* const found = file ? dlsym(file, "neap_check_libraries") : nullptr;
  if (!found) {
    std::fprintf(stderr, "%s\n", dlerror());
    std::exit(2);
  }
  return reinterpret_cast<maker>(found);
#endif
}

}  // namespace

bool has_libraries() { return std::getenv("NEAP_CHECK_LIBRARIES") != nullptr; }

void use_libraries(cuda_backend& backend) {
  if (!has_libraries()) return;
  check_libraries made;
  static maker const make = find_maker();
  make(backend.device(), made);
  backend.use_products(made.products);
  backend.use_convolutions(made.convolutions);
  backend.use_attention(made.attention);
}

int save_library_properties(char const* file) {
  cuda_backend device;
  check_libraries made;
  if (has_libraries()) find_maker()(device.device(), made);
  if (!made.properties) {
    std::fputs("library_properties: there is no cuDNN\n", stderr);
    return 2;
  }
  auto const p = made.properties();
  std::FILE* const f = std::fopen(file, "wb");
  bool const written = f && std::fwrite(p.text.data(), 1, p.text.size(), f) == p.text.size();
  if ((f && std::fclose(f) != 0) || !written) throw_error({file, ": cannot be written"});
  std::printf("library,bytes,result\n\"%s\",%zu,ok\n", p.library.c_str(), p.text.size());
  return 0;
}

char const* ways_name() {
#if defined(NEAP_CHECK_CUDNN)
  return has_libraries() ? "neap with cuBLASLt and cuDNN" : "neap";
#else
  return has_libraries() ? "neap with cuBLASLt" : "neap";
#endif
}

}  // namespace neap::bench
