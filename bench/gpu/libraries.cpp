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
#endif
}
