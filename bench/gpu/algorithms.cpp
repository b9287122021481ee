// The algorithms that cuBLASLt chooses on this device for the products of GPT-2 small and medium and for ResNet-50's layers
// of one tap, with the epilogues of fuse() and without, as a CSV table (cublaslt::text): bench/gpu/check.sh keeps it, cublaslt::read takes it. Exit status 2: there is
// no device, or no library.
#include <neap/cuda/backend.hpp>
#include <neap/cuda/cublaslt.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <exception>

namespace {

using namespace neap;

cuda_product product(dtype t, std::int64_t m, std::int64_t n, std::int64_t k, bool ta, bool tb,
                     std::int64_t batches = 1) {
  cuda_product p{t, m, n, k, ta, tb, ta ? m : k, tb ? k : n, n, batches};
  if (batches > 1) p.stride_a = m * k, p.stride_b = n * k, p.stride_y = m * n;
  auto const alignment = [&](std::int64_t ld) {
    auto const bytes = static_cast<std::uint64_t>(ld * size_of(t)) | 16u;
    return static_cast<int>(bytes & (~bytes + 1));
  };
  if (batches > 1)
    p.alignment_a = alignment(p.stride_a), p.alignment_b = alignment(p.stride_b), p.alignment_y = alignment(p.stride_y);
  return p;
}
/// What is near a layer of a perceptron in front of gelu, or behind it.
enum class near_gelu { none, before, behind };

/// x [rows, in] and w [out, in], and the gradients of x and w, with what each may be fused with.
void layer(cublaslt& library, dtype t, std::int64_t rows, std::int64_t in, std::int64_t out,
           near_gelu gelu = near_gelu::none) {
  auto const forward = product(t, rows, out, in, false, true), of_x = product(t, rows, in, out, false, false),
             of_w = product(t, out, in, rows, true, false);
  for (auto const& p : {forward, of_x, of_w}) library.way(p);
  library.way(forward, product_epilogue::bias);
  library.way(of_w, product_epilogue::sums_of_a);
  if (gelu == near_gelu::before)
    for (auto const e : {product_epilogue::bias_gelu, product_epilogue::bias_gelu_kept}) library.way(forward, e);
  if (gelu == near_gelu::behind)
    for (auto const e : {product_epilogue::gelu_grad, product_epilogue::gelu_grad_sums}) library.way(of_x, e);
}
void gpt2(cublaslt& library, dtype t, std::int64_t batch, std::int64_t time, std::int64_t width, std::int64_t heads) {
  constexpr std::int64_t vocabulary = 50257;
  for (std::int64_t out : {width, 3 * width, vocabulary}) layer(library, t, batch * time, width, out);
  layer(library, t, batch * time, width, 4 * width, near_gelu::before);
  layer(library, t, batch * time, 4 * width, width, near_gelu::behind);
  std::int64_t const size = width / heads;
  library.way(product(t, time, time, size, false, true, batch * heads));
  library.way(product(t, time, size, time, false, false, batch * heads));
  library.way(product(t, time, size, time, true, false, batch * heads));
}
void resnet50(cublaslt& library, dtype t, std::int64_t batch) {
  std::int64_t plane = 56 * 56, in = 64;
  for (std::int64_t width : {64, 128, 256, 512}) {
    for (auto [from, to] : {std::pair{in, width}, std::pair{width, 4 * width}, std::pair{4 * width, width}})
      if (plane >= 256) {
        auto forward = product(t, to, plane, from, false, false, batch),
             back = product(t, from, plane, to, true, false, batch);
        forward.stride_a = back.stride_a = 0;  // one filter for all images
        forward.alignment_a = back.alignment_a = 16;
        library.way(forward);
        library.way(back);
      }
    in = 4 * width, plane /= 4;
  }
  layer(library, t, batch, 2048, 1000);
}

}  // namespace

int main() {
  try {
    auto const device = find_cuda_device();
    if (!device) {
      std::fprintf(stderr, "%s\n", device.message().c_str());
      return 2;
    }
    check_cuda(cudaSetDevice(device->number), "choice of a device");
    cublaslt library(*device);
    for (dtype t : {dtype::bf16, dtype::f32}) {
      gpt2(library, t, 8, 1024, 768, 12);
      gpt2(library, t, 4, 1024, 1024, 16);
      resnet50(library, t, 64);
    }
    auto const text = library.text();
    std::fwrite(text.data(), 1, text.size(), stdout);
    return 0;
  } catch (std::exception const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
