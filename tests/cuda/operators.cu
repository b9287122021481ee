// Kernels in the form that devices run, of the standard operators that are neither elementwise maps nor copies
// (elementwise.cu): in f32 and the few other types that they are computed in. tests/cuda/operators.cpp runs each.
#include <neap/cuda/kernels/standard.cuh>
#include <neap/cuda/launch.cuh>

#include <source_location>

using namespace neap;
using namespace neap::detail;

#define ROWS(...)                                                                                          \
  template void neap::launch_on<__VA_ARGS__>(cudaStream_t, std::int64_t, __VA_ARGS__ const&, std::int64_t, \
                                             std::source_location);

// updates
ROWS(map_kernel<device_sgd, float, 2, 1>)
ROWS(map_kernel<device_momentum, float, 3, 2>)
ROWS(map_kernel<device_lion, float, 3, 2>)
ROWS(map_kernel<device_adam, float, 4, 3>)
ROWS(map_kernel<device_take_back, float, 1, 1>)
ROWS(increment_kernel)
ROWS(count_back_kernel)
ROWS(loss_scale_kernel)
ROWS(clip_kernel)
ROWS(device_fresh<square_means<float>, float>)
ROWS(device_fresh<square_means<bf16>, float>)
ROWS(device_fresh<column_means<float>, float>)
ROWS(square_chunks<float>)
ROWS(square_chunks<bf16>)
ROWS(add_partials)
ROWS(mean_of_rows<float>)
ROWS(device_adafactor_step<float>)
ROWS(device_adafactor_step<bf16>)
ROWS(device_adafactor_length)

// norms between chains
#define BETWEEN_SUMS(T)                            \
  ROWS(norm_between_chains<norm_rows<T>>)          \
  ROWS(norm_between_chains<norm_backward_rows<T>>) \
  ROWS(add_groups<T>)
BETWEEN_SUMS(float)
BETWEEN_SUMS(bf16)

// norms of channels between chains
#define BETWEEN_CHAINS(T)                                           \
  ROWS(norm_between_chains<batch_norm_channels<T>>)                 \
  ROWS(norm_between_chains<batch_norm_backward_channels<T, false>>) \
  ROWS(norm_between_chains<batch_norm_backward_channels<T, true>>)  \
  ROWS(norm_between_chains<group_norm_groups<T>>)                   \
  ROWS(norm_between_chains<group_norm_backward_groups<T>>)
BETWEEN_CHAINS(float)
BETWEEN_CHAINS(bf16)

ROWS(dropout_kernel<float>)
ROWS(dropout_kernel<double>)

#define REDUCED_IN(C)    \
  ROWS(reduce_kernel<C>) \
  ROWS(add_splits<C>)
REDUCED_IN(float)
REDUCED_IN(double)
REDUCED_IN(std::int64_t)

// numbers
ROWS(map_kernel<identity_of, float, 1, 1>)
ROWS(copy_kernel<std::uint32_t>)
ROWS(copy_kernel<std::uint64_t>)
ROWS(pick_kernel<std::uint16_t>)
ROWS(pick_kernel<std::uint32_t>)
ROWS(pick_kernel<std::uint64_t>)
ROWS(scatter_lines<float>)
ROWS(scatter_lines<std::int64_t>)
ROWS(one_hot_kernel<std::uint16_t>)
ROWS(one_hot_kernel<std::uint32_t>)
ROWS(rank_positions)
ROWS(row_starts)
ROWS(add_picked_rows<float>)
ROWS(add_picked_rows<bf16>)

// lines
ROWS(sum_columns<double>)
ROWS(sum_columns<std::int64_t>)
ROWS(sum_lines<double>)
ROWS(sum_lines<std::int64_t>)
ROWS(arg_max_lines<float>)
ROWS(arg_max_loaded<float>)
ROWS(arg_max_loaded<std::int64_t>)
ROWS(topk_lines<double>)
ROWS(topk_lines<std::int64_t>)
ROWS(multinomial_rows)

// images
ROWS(image_kernel<max_pool_pixel<float>>)
ROWS(image_kernel<max_pool_gradient_pixel<float>>)
ROWS(image_kernel<average_pixel<float>>)
ROWS(image_kernel<average_gradient_pixel<float>>)
ROWS(image_kernel<resized_pixel<float>>)
ROWS(image_kernel<resized_gradient_pixel<float>>)
