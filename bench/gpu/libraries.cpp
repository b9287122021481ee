#include "libraries.hpp"

#include <neap/cuda/cublaslt.hpp>
#if defined(NEAP_CHECK_CUDNN)
#include <neap/cuda/cudnn.hpp>
#endif

#include <memory>

extern "C" void neap_check_libraries(neap::cuda_device const& device, neap::bench::check_libraries& out) {
  out.products = std::make_shared<neap::cublaslt>(device);
#if defined(NEAP_CHECK_CUDNN)
  auto const library = std::make_shared<neap::cudnn>(device);
  out.convolutions = library, out.attention = library;
  out.properties = [library] {
    neap::bench::library_properties made{library->text(), library->properties()};
    made.library = made.library.substr(2, made.library.find('\n') - 2);  // of "# cuDNN 91900 on NVIDIA H200"
    neap::cudnn const elsewhere(made.text);                              // throws if the library does not take it
    return made;
  };
#endif
}
