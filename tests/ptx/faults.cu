// Kernels with one fault each: tests/ptx/faults.cpp has what the interpreter must find in each. Blocks of 64 threads.
#include <cstdint>

#define KERNEL extern "C" __global__ void __launch_bounds__(64)

// ---- races within a block
KERNEL missing_barrier(int const* x, int* o) {
  __shared__ int s[64];
  int const t = threadIdx.x;
  s[t] = x[t];
  o[t] = s[63 - t];
}
KERNEL missing_second_barrier(int const* x, int* o) {
  __shared__ int s[64];
  int const t = threadIdx.x;
  for (int k = 0; k < 2; ++k) {
    s[t] = x[t] + k;
    __syncthreads();
    o[t + 64 * k] = s[63 - t];  // the next turn overwrites what others still read
  }
}
KERNEL missing_warp_barrier(int const* x, int* o) {
  __shared__ int s[64];
  int const t = threadIdx.x;
  s[t] = x[t];
  o[t] = s[t ^ 1];
}
KERNEL shuffle_is_no_barrier(int const* x, int* o) {
  __shared__ int s[64];
  int const t = threadIdx.x;
  s[t] = x[t];
  int const v = __shfl_xor_sync(0xffffffffu, x[t], 1);
  o[t] = s[t ^ 1] + v;
}
KERNEL warp_barrier_of_halves(int const* x, int* o) {
  __shared__ int s[64];
  int const t = threadIdx.x;
  s[t] = x[t];
  __syncwarp(t % 32 < 16 ? 0xffffu : 0xffff0000u);
  o[t] = s[t ^ 16];
}
KERNEL same_place(int const* x, int* o) {
  __shared__ int s;
  s = x[threadIdx.x];
  __syncthreads();
  o[threadIdx.x] = s;
}
KERNEL same_place_global(int const* x, int* o) { o[threadIdx.x / 2] = x[threadIdx.x]; }
KERNEL lost_update(int const* x, int* o) {
  __shared__ int s;
  if (threadIdx.x == 0) s = 0;
  __syncthreads();
  s += x[threadIdx.x];
  __syncthreads();
  o[threadIdx.x] = s;
}
KERNEL plain_read_beside_atomics(int const* x, int* o) {
  atomicAdd(o, x[threadIdx.x]);
  o[1 + threadIdx.x] = o[0];
}
KERNEL one_byte_overlaps(std::uint8_t const* x, std::uint8_t* o) {
  __shared__ std::uint8_t s[66];
  int const t = threadIdx.x;
  s[t] = x[t];
  if (t == 63) s[t + 1] = 0, s[t + 2] = 0;
  __syncthreads();
  s[t + (t == 5)] = x[t];  // thread 5 writes the byte of thread 6
  __syncthreads();
  o[t] = s[t];
}

// ---- races between blocks
KERNEL blocks_write_one_place(int const* x, int* o) {
  if (threadIdx.x == 0) o[0] = x[blockIdx.x] + static_cast<int>(blockIdx.x);
}
KERNEL block_reads_its_neighbour(int const* x, int* o) {
  int const n = blockDim.x * gridDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  o[i] = x[i];
  o[n + i] = o[(i + blockDim.x) % n];
}
KERNEL last_block_without_fence(int const* x, int* parts, unsigned* arrived, int* sum) {
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = x[blockIdx.x];
    if (atomicAdd(arrived, 1) == gridDim.x - 1) {
      int s = 0;
      for (unsigned b = 0; b < gridDim.x; ++b) s += *static_cast<int volatile*>(&parts[b]);
      *sum = s;
    }
  }
}
KERNEL fence_of_the_block_only(int const* x, int* parts, unsigned* arrived, int* sum) {
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = x[blockIdx.x];
    __threadfence_block();
    if (atomicAdd(arrived, 1) == gridDim.x - 1) {
      __threadfence_block();
      int s = 0;
      for (unsigned b = 0; b < gridDim.x; ++b) s += parts[b];
      *sum = s;
    }
  }
}

// ---- barriers
KERNEL barrier_of_some(int const* x, int* o) {
  if (threadIdx.x < 48) __syncthreads();
  o[threadIdx.x] = x[threadIdx.x];
}
KERNEL barrier_after_early_exit(int const* x, int* o, int n) {
  int const t = threadIdx.x;
  if (t >= n) return;
  o[t] = x[t];
  __syncthreads();
  o[64 + t] = o[n - 1 - t];
}
KERNEL two_barriers_that_differ(int const* x, int* o) {
  int const t = threadIdx.x;
  if (t < 32) {
    o[t] = x[t];
    asm volatile("bar.sync 0;");
  } else {
    o[t] = -x[t];
    asm volatile("bar.sync 0;");
    o[t] += 1;
  }
}
KERNEL barriers_that_wait_for_each_other(int const* x, int* o) {
  int const t = threadIdx.x;
  o[t] = x[t];
  if (t < 32) asm volatile("bar.sync 1, 64;");
  else asm volatile("bar.sync 2, 64;");
}
KERNEL barrier_within_a_loop(int const* x, int* o) {
  for (int k = 0; k < x[threadIdx.x]; ++k) __syncthreads();  // turns differ by thread
  o[threadIdx.x] = 1;
}

// ---- addresses
KERNEL one_past_the_end(float const* x, float* o, int n) {
  for (int i = threadIdx.x; i <= n; i += 64) o[i] = x[i < n ? i : 0];
}
KERNEL one_before_the_start(float const* x, float* o) { o[threadIdx.x] = x[static_cast<int>(threadIdx.x) - 1]; }
KERNEL past_by_one_byte(std::uint8_t const* x, std::uint8_t* o, int n) {
  if (threadIdx.x == 0) o[0] = x[n];
}
KERNEL vector_past_the_end(float4 const* x, float4* o, int n) {
  if (static_cast<int>(threadIdx.x) * 4 < n) o[threadIdx.x] = x[threadIdx.x];  // n is no multiple of 4
}
KERNEL shared_past_the_end(int const* x, int* o) {
  __shared__ int s[64];
  __shared__ int other[64];
  int const t = threadIdx.x;
  s[t + 1] = x[t];  // the last one writes other[0]
  other[t] = x[t];
  __syncthreads();
  o[t] = s[t + (t == 0)] + other[t];
}
KERNEL too_little_dynamic_shared(int const* x, int* o) {
  extern __shared__ int dynamic[];
  dynamic[threadIdx.x] = x[threadIdx.x];
  o[threadIdx.x] = dynamic[threadIdx.x];
}
KERNEL null_pointer(int const* x, int* o, int const* null) { o[threadIdx.x] = x[threadIdx.x] + null[threadIdx.x]; }
KERNEL misaligned_vector(float const* x, float* o) {
  reinterpret_cast<float4*>(o)[threadIdx.x] = *reinterpret_cast<float4 const*>(x + threadIdx.x);
}
KERNEL misaligned_int(std::uint8_t const* x, int* o) {
  o[threadIdx.x] = *reinterpret_cast<int const*>(x + threadIdx.x);
}

// ---- memory that was never written
KERNEL uninitialised_shared(int const* x, int* o) {
  __shared__ int s[65];
  int const t = threadIdx.x;
  s[t] = x[t];
  __syncthreads();
  o[t] = s[t + 1];
}
KERNEL uninitialised_global(int const* x, int* o) { o[threadIdx.x] += x[threadIdx.x]; }

// ---- cp.async
__device__ inline unsigned shared_address(void const* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }
KERNEL copy_without_wait(int const* x, int* o) {
  __shared__ __align__(16) int s[64];
  int const t = threadIdx.x;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&s[t])), "l"(x + t));
  asm volatile("cp.async.commit_group;");
  __syncthreads();
  o[t] = s[t];
}
KERNEL copy_waits_for_the_wrong_group(int const* x, int* o) {
  __shared__ __align__(16) int s[128];
  int const t = threadIdx.x;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&s[t])), "l"(x + t));
  asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&s[t + 64])), "l"(x + t));
  asm volatile("cp.async.commit_group;");
  asm volatile("cp.async.wait_group 1;");
  __syncthreads();
  o[t] = s[t] + s[t + 64];
}
KERNEL copy_without_barrier(int const* x, int* o) {
  __shared__ __align__(16) int s[64];
  int const t = threadIdx.x;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&s[t])), "l"(x + t));
  asm volatile("cp.async.wait_all;");
  o[t] = s[63 - t];
}
KERNEL copy_over_what_is_read(int const* x, int* o) {
  __shared__ __align__(16) int s[64];
  int const t = threadIdx.x;
  s[t] = x[t];
  __syncthreads();
  o[t] = s[63 - t];
  asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(shared_address(&s[t])), "l"(x + t));
  asm volatile("cp.async.wait_all;");
}

// ---- warps
KERNEL mask_names_lanes_that_left(int const* x, int* o, int n) {
  int const t = threadIdx.x;
  if (t >= n) return;
  o[t] = __shfl_down_sync(0xffffffffu, x[t], 1);
}
KERNEL lanes_that_do_not_come(int const* x, int* o) {
  int const t = threadIdx.x;
  if (t % 2) o[t] = __shfl_xor_sync(0xffffffffu, x[t], 2);
  else o[t] = 0;
}
KERNEL source_takes_no_part(int const* x, int* o) {
  int const t = threadIdx.x;
  if (t % 32 < 16) o[t] = __shfl_sync(0xffffu, x[t], 20);
}
KERNEL waits_for_ever(int const* x, int volatile* o) {
  while (o[0] != 12345) {}
  o[1] = x[0];
}

// ---- right kernels that look like the ones above
KERNEL right_last_block(int const* x, int* parts, unsigned* arrived, int* sum) {
  __shared__ bool last;
  parts[blockIdx.x * 64 + threadIdx.x] = x[threadIdx.x];
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    last = atomicAdd(arrived, 1) == gridDim.x - 1;
    __threadfence();
  }
  __syncthreads();
  if (last) {
    int s = 0;
    for (unsigned b = 0; b < gridDim.x; ++b) s += parts[b * 64 + threadIdx.x];
    atomicAdd(sum, s);
  }
}
KERNEL right_waiting_blocks(int const* x, int* o, unsigned* flag) {  // each block waits for the one before it
  if (threadIdx.x == 0) {
    while (atomicAdd(flag, 0) != blockIdx.x) {}
    __threadfence();
    o[0] += x[blockIdx.x];
    __threadfence();
    atomicAdd(flag, 1);
  }
}
KERNEL right_named_barriers(int const* x, int* o) {  // the first warp makes, the second one uses
  __shared__ int s[32];
  int const t = threadIdx.x;
  if (t < 32) {
    s[t] = x[t];
    asm volatile("bar.arrive 1, 64;" ::: "memory");
    o[t] = 0;
  } else {
    asm volatile("bar.sync 1, 64;" ::: "memory");
    o[t] = s[t % 32 ^ 5];
  }
}
KERNEL right_halves(int const* x, int* o) {
  __shared__ int s[64];
  int const t = threadIdx.x;
  s[t] = x[t];
  __syncwarp(t % 32 < 16 ? 0xffffu : 0xffff0000u);
  o[t] = s[t ^ 8];
}
KERNEL right_same_value(int const* x, int* o) {
  __shared__ int any;
  if (threadIdx.x == 0) any = 0;
  __syncthreads();
  if (x[threadIdx.x] > 3) any = 1;
  __syncthreads();
  o[threadIdx.x] = any;
}
KERNEL right_partial_warp(int const* x, int* o, int n) {
  int const t = threadIdx.x;
  unsigned const mask = __ballot_sync(0xffffffffu, t < n);
  if (t < n) o[t] = __reduce_add_sync(mask, x[t]);
  __syncthreads();
}
KERNEL right_bytes(std::uint8_t const* x, std::uint8_t* o) {  // neighbours in one word
  __shared__ std::uint8_t s[64];
  s[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  o[threadIdx.x] = s[63 - threadIdx.x];
}
