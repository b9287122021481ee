#include "libraries.hpp"

#include <neap/cuda/cublaslt.hpp>
#if defined(NEAP_CHECK_CUDNN)
#include <neap/cuda/cudnn.hpp>
#endif

#include <memory>

namespace neap::bench {

void use_libraries(cuda_backend& backend) {
  backend.use_products(std::make_shared<cublaslt>(backend.device()));
#if defined(NEAP_CHECK_CUDNN)
  auto const library = std::make_shared<cudnn>(backend.device());
  backend.use_convolutions(library);
  backend.use_attention(library);
#endif
}
char const* ways_name() {
#if defined(NEAP_CHECK_CUDNN)
  return "neap with cuBLASLt and cuDNN";
#else
  return "neap with cuBLASLt";
#endif
}
bool has_libraries() { return true; }

}  // namespace neap::bench
