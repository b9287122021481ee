// The tables of a GPU's kernels, of the host's, for tests of whole steps.
#include "host_kernels_on_device.hpp"

#include <array>
#include <cstddef>
#include <utility>

namespace neap { inline namespace v0 { namespace detail {

std::span<kernel_function<cuda_backend> const> standard_cuda_kernels() {
  static auto const rows = []<std::size_t... I>(std::index_sequence<I...>) {
    auto const all = standard_kernels();
    return std::array<kernel_function<cuda_backend>, sizeof...(I)>{all[I] ? &testing::run_host_kernel<I> : nullptr...};
  }(std::make_index_sequence<op::standard_list::size>{});
  return rows;
}
std::span<scratch_function const> standard_cuda_scratch() {
  static auto const rows = [] {
    std::array<scratch_function, op::standard_list::size> all{};
    all[testing::scratch_row] = testing::scratch_of_product;
    return all;
  }();
  return rows;
}
std::span<updates_function const> standard_cuda_updates() {
  static std::array<updates_function, op::standard_list::size> const none{};
  return none;
}

}}}  // namespace neap::v0::detail
