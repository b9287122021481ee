// Kernels of the kinds that a training step has. The interpreter runs their PTX; results are compared with the host's.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <cub/block/block_load.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cuda/functional>

// y = a x + y, four elements a thread, the rest one by one.
extern "C" __global__ void saxpy(float a, float const* x, float* y, int n) {
  int const i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;
  if (i + 3 < n) {
    float4 const p = *reinterpret_cast<float4 const*>(x + i);
    float4 q = *reinterpret_cast<float4*>(y + i);
    q.x += a * p.x;
    q.y += a * p.y;
    q.z += a * p.z;
    q.w += a * p.w;
    *reinterpret_cast<float4*>(y + i) = q;
  } else {
    for (int j = i; j < n; ++j) y[j] += a * x[j];
  }
}

// One sum a block.
template <cub::BlockReduceAlgorithm Algorithm>
__device__ void sum_of_block(float const* x, float* sums, int n) {
  using reduce = cub::BlockReduce<float, 128, Algorithm>;
  __shared__ typename reduce::TempStorage storage;
  float sum = 0;
  for (int i = blockIdx.x * 128 + threadIdx.x; i < n; i += 128 * gridDim.x) sum += x[i];
  sum = reduce(storage).Sum(sum);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}
extern "C" __global__ void sum_warps(float const* x, float* sums, int n) {
  sum_of_block<cub::BLOCK_REDUCE_WARP_REDUCTIONS>(x, sums, n);
}
extern "C" __global__ void sum_raking(float const* x, float* sums, int n) {
  sum_of_block<cub::BLOCK_REDUCE_RAKING>(x, sums, n);
}
extern "C" __global__ void sum_commutative(float const* x, float* sums, int n) {
  sum_of_block<cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>(x, sums, n);
}

extern "C" __global__ void sum_of_doubles(double const* x, double* sum, int n) {
  using reduce = cub::BlockReduce<double, 96>;
  __shared__ typename reduce::TempStorage storage;
  double part = 0;
  for (int i = threadIdx.x; i < n; i += 96) part += x[i];
  part = reduce(storage).Sum(part);
  if (threadIdx.x == 0) *sum = part;
}

// Inclusive sums of 4 elements a thread of one block of 64, and the whole sum.
template <cub::BlockScanAlgorithm Algorithm>
__device__ void scan_of_block(int const* x, int* sums, int* whole) {
  using scan = cub::BlockScan<int, 64, Algorithm>;
  __shared__ typename scan::TempStorage storage;
  int items[4];
  for (int i = 0; i < 4; ++i) items[i] = x[threadIdx.x * 4 + i];
  int aggregate;
  scan(storage).InclusiveSum(items, items, aggregate);
  for (int i = 0; i < 4; ++i) sums[threadIdx.x * 4 + i] = items[i];
  if (threadIdx.x == 0) *whole = aggregate;
}
extern "C" __global__ void scan_warps(int const* x, int* sums, int* whole) {
  scan_of_block<cub::BLOCK_SCAN_WARP_SCANS>(x, sums, whole);
}
extern "C" __global__ void scan_raking(int const* x, int* sums, int* whole) {
  scan_of_block<cub::BLOCK_SCAN_RAKING>(x, sums, whole);
}

// Sorts 4 x 64 keys with their values.
extern "C" __global__ void radix_sort(float* keys, int* values) {
  using sort = cub::BlockRadixSort<float, 64, 4, int>;
  __shared__ typename sort::TempStorage storage;
  float k[4];
  int v[4];
  for (int i = 0; i < 4; ++i) {
    k[i] = keys[threadIdx.x * 4 + i];
    v[i] = values[threadIdx.x * 4 + i];
  }
  sort(storage).Sort(k, v);
  for (int i = 0; i < 4; ++i) {
    keys[threadIdx.x * 4 + i] = k[i];
    values[threadIdx.x * 4 + i] = v[i];
  }
}

// (rows, columns) -> (columns, rows), tiles of 32 x 32 by 32 x 8 threads.
template <int Pitch>
__device__ void transpose_by_tiles(float const* in, float* out, int rows, int columns) {
  __shared__ float tile[32][Pitch];
  int const x = blockIdx.x * 32 + threadIdx.x;
  int const y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < columns && y + j < rows) tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * columns + x];
  __syncthreads();
  int const u = blockIdx.y * 32 + threadIdx.x;
  int const v = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (u < rows && v + j < columns) out[(v + j) * rows + u] = tile[threadIdx.x][threadIdx.y + j];
}
extern "C" __global__ void transpose(float const* in, float* out, int rows, int columns) {
  transpose_by_tiles<33>(in, out, rows, columns);
}
extern "C" __global__ void transpose_with_conflicts(float const* in, float* out, int rows, int columns) {
  transpose_by_tiles<32>(in, out, rows, columns);
}

// A row a block.
extern "C" __global__ void softmax(float const* x, float* y, int columns) {
  using reduce = cub::BlockReduce<float, 128>;
  __shared__ typename reduce::TempStorage storage;
  __shared__ float shared_max, shared_sum;
  float const* row = x + blockIdx.x * columns;
  float max = -INFINITY;
  for (int i = threadIdx.x; i < columns; i += 128) max = fmaxf(max, row[i]);
  max = reduce(storage).Reduce(max, cuda::maximum<float>{});
  if (threadIdx.x == 0) shared_max = max;
  __syncthreads();
  max = shared_max;
  float sum = 0;
  for (int i = threadIdx.x; i < columns; i += 128) sum += expf(row[i] - max);
  sum = reduce(storage).Sum(sum);
  if (threadIdx.x == 0) shared_sum = sum;
  __syncthreads();
  for (int i = threadIdx.x; i < columns; i += 128) y[blockIdx.x * columns + i] = expf(row[i] - max) / shared_sum;
}

// What a warp exchanges: all shuffles, votes, matches and reductions; 16 words a thread.
extern "C" __global__ void warps(unsigned const* x, unsigned* out) {
  unsigned const all = 0xffffffffu;
  unsigned const v = x[threadIdx.x];
  unsigned* o = out + threadIdx.x * 16;
  o[0] = __shfl_sync(all, v, 5);
  o[1] = __shfl_up_sync(all, v, 3);
  o[2] = __shfl_down_sync(all, v, 3, 16);
  o[3] = __shfl_xor_sync(all, v, 9);
  o[4] = __ballot_sync(all, v & 1);
  o[5] = __any_sync(all, v == 7) * 2 + __all_sync(all, v < 1000);
  o[6] = __match_any_sync(all, v % 5);
  int same;
  o[7] = __match_all_sync(all, v / 1000, &same) + same;
  o[8] = __reduce_add_sync(all, v);
  o[9] = __reduce_min_sync(all, v);
  o[10] = __reduce_xor_sync(all, v);
  o[11] = __popc(v) * 100 + __clz(v);
  o[12] = __brev(v);
  o[13] = __ffs(v) + __byte_perm(v, ~v, 0x3715);
  o[14] = __funnelshift_l(v, v + 1, 9);
  if (v & 1) {
    o[15] = __reduce_max_sync(__activemask(), v);
  } else {
    o[15] = __popc(__activemask());
  }
}

extern "C" __global__ void histogram(unsigned char const* x, unsigned* counts, int n) {
  __shared__ unsigned local[256];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += blockDim.x * gridDim.x) atomicAdd(&local[x[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&counts[i], local[i]);
}

extern "C" __global__ void atomics(int const* x, int* o, float* f, unsigned long long* u) {
  int const v = x[blockIdx.x * blockDim.x + threadIdx.x];
  atomicAdd(&o[0], v);
  atomicMax(&o[1], v);
  atomicMin(&o[2], v);
  atomicOr(&o[3], v);
  atomicXor(&o[4], v);
  atomicAnd(&o[5], v);
  int old = *static_cast<int volatile*>(&o[6]);
  int seen;
  do {
    seen = old;
    old = atomicCAS(&o[6], seen, seen + v);
  } while (old != seen);
  o[16 + atomicInc(reinterpret_cast<unsigned*>(&o[7]), 1000)] = 1;
  atomicAdd(f, static_cast<float>(v));
  atomicAdd(u, static_cast<unsigned long long>(v));
}

// The last block that has written its part adds all of them.
extern "C" __global__ void sum_last_block(float const* x, float volatile* parts, unsigned* arrived, float* sum) {
  __shared__ bool last;
  using reduce = cub::WarpReduce<float>;
  __shared__ typename reduce::TempStorage storage;
  float const part = reduce(storage).Sum(x[blockIdx.x * 32 + threadIdx.x]);
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = part;
    __threadfence();
    last = atomicAdd(arrived, 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    __threadfence();
    float s = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) s += parts[i];
    *sum = s;
  }
}

// ---- matmul on tensor cores: c (m, n) = a (m, k) b (k, n), bf16 in, f32 out -----------------------------------------
// A block of 64 threads gives 32 x 32; tiles of 32 are copied two stages ahead.
__device__ inline unsigned shared_address(void const* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

extern "C" __global__ void matmul_bf16(__nv_bfloat16 const* a, __nv_bfloat16 const* b, float* c, int m, int n, int k) {
  __shared__ __align__(16) __nv_bfloat16 as[2][32][40];
  __shared__ __align__(16) __nv_bfloat16 bs[2][32][40];
  int const warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int const row0 = blockIdx.y * 32, column0 = blockIdx.x * 32;
  auto const load = [&](int stage, int k0) {
    for (int i = threadIdx.x; i < 128; i += 64) {
      int const r = i / 4, q = i % 4 * 8;
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(&as[stage][r][q])),
                   "l"(a + (row0 + r) * k + k0 + q));
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(&bs[stage][r][q])),
                   "l"(b + (k0 + r) * n + column0 + q));
    }
    asm volatile("cp.async.commit_group;");
  };
  float acc[4][4] = {};
  load(0, 0);
  int const tiles = k / 32;
  for (int t = 0; t < tiles; ++t) {
    if (t + 1 < tiles) {
      load((t + 1) % 2, (t + 1) * 32);
      asm volatile("cp.async.wait_group 1;");
    } else {
      asm volatile("cp.async.wait_group 0;");
    }
    __syncthreads();
    for (int k0 = 0; k0 < 32; k0 += 16) {
      unsigned x[4];
      asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                   : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                   : "r"(shared_address(&as[t % 2][warp * 16 + lane % 16][k0 + lane / 16 * 8])));
      for (int j = 0; j < 4; ++j) {
        unsigned y[2];
        asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%0,%1}, [%2];"
                     : "=r"(y[0]), "=r"(y[1])
                     : "r"(shared_address(&bs[t % 2][k0 + lane % 16][j * 8])));
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(acc[j][0]), "+f"(acc[j][1]), "+f"(acc[j][2]), "+f"(acc[j][3])
            : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
      }
    }
    __syncthreads();
  }
  for (int j = 0; j < 4; ++j) {
    int const r = row0 + warp * 16 + lane / 4, q = column0 + j * 8 + lane % 4 * 2;
    *reinterpret_cast<float2*>(&c[r * n + q]) = {acc[j][0], acc[j][1]};
    *reinterpret_cast<float2*>(&c[(r + 8) * n + q]) = {acc[j][2], acc[j][3]};
  }
}

// One warp, the fragments loaded by hand. Shapes (16, 8) and (8, 8).
extern "C" __global__ void matmul_tf32(float const* a, float const* b, float* c) {
  int const g = threadIdx.x / 4, t = threadIdx.x % 4;
  auto const tf32 = [](float x) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
  };
  float d[4] = {};
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(tf32(a[g * 8 + t])), "r"(tf32(a[(g + 8) * 8 + t])), "r"(tf32(a[g * 8 + t + 4])),
        "r"(tf32(a[(g + 8) * 8 + t + 4])), "r"(tf32(b[t * 8 + g])), "r"(tf32(b[(t + 4) * 8 + g])));
  c[g * 8 + t * 2] = d[0];
  c[g * 8 + t * 2 + 1] = d[1];
  c[(g + 8) * 8 + t * 2] = d[2];
  c[(g + 8) * 8 + t * 2 + 1] = d[3];
}

// ---- arithmetic ----------------------------------------------------------------------------------------------------
extern "C" __global__ void halves(__half const* x, __half const* y, __half* o) {
  int const i = threadIdx.x;
  o[i * 8 + 0] = x[i] + y[i];
  o[i * 8 + 1] = x[i] * y[i];
  o[i * 8 + 2] = __hfma(x[i], y[i], x[i]);
  o[i * 8 + 3] = __hmax(x[i], y[i]);
  o[i * 8 + 4] = __float2half(__half2float(x[i]) / 3);
  o[i * 8 + 5] = __hlt(x[i], y[i]) ? x[i] : __hneg(y[i]);
  __half2 const p = __halves2half2(x[i], y[i]);
  __half2 const q = __hfma2(p, p, __hadd2(p, p));
  o[i * 8 + 6] = __low2half(q);
  o[i * 8 + 7] = __high2half(q);
}

extern "C" __global__ void bfloats(__nv_bfloat16 const* x, __nv_bfloat16 const* y, __nv_bfloat16* o) {
  int const i = threadIdx.x;
  o[i * 8 + 0] = x[i] + y[i];
  o[i * 8 + 1] = x[i] * y[i];
  o[i * 8 + 2] = __hfma(x[i], y[i], x[i]);
  o[i * 8 + 3] = __hmin(x[i], y[i]);
  o[i * 8 + 4] = __float2bfloat16(__bfloat162float(x[i]) / 3);
  o[i * 8 + 5] = __habs(y[i]);
  __nv_bfloat162 const p = __halves2bfloat162(x[i], y[i]);
  __nv_bfloat162 const q = __hfma2(p, p, __hadd2(p, p));
  o[i * 8 + 6] = __low2bfloat16(q);
  o[i * 8 + 7] = __high2bfloat16(q);
}

// Functions of one float: exact ones first, then those of the library, then approximate ones.
extern "C" __global__ void functions(float const* x, float* o, int n) {
  int const i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float const v = x[i];
  float* p = o + i * 16;
  p[0] = sqrtf(fabsf(v));
  p[1] = 1 / v;
  p[2] = fmaf(v, v, 1.0f);
  p[3] = rintf(v);
  p[4] = floorf(v);
  p[5] = static_cast<float>(static_cast<int>(v));
  p[6] = expf(v);
  p[7] = logf(fabsf(v) + 1);
  p[8] = tanhf(v);
  p[9] = erff(v);
  p[10] = sinf(v);
  p[11] = powf(fabsf(v), 1.5f);
  p[12] = __expf(v);
  p[13] = __fdividef(1, 1 + __expf(-v));
  p[14] = rsqrtf(fabsf(v) + 1);
  p[15] = cosf(v * 1e6f);
}

// Integers: division, remainder, 64 bits, high words, shifts; 12 words a thread.
extern "C" __global__ void integers(int const* x, int const* y, long long* o) {
  int const a = x[threadIdx.x], b = y[threadIdx.x];
  long long* p = o + threadIdx.x * 12;
  p[0] = a / b;
  p[1] = a % b;
  p[2] = static_cast<unsigned>(a) / static_cast<unsigned>(b);
  p[3] = static_cast<long long>(a) * b * 1000003;
  p[4] = (static_cast<long long>(a) << 20) / b;
  p[5] = __mulhi(a, b);
  p[6] = __umulhi(a, b);
  p[7] = static_cast<long long>(__umul64hi(a * 0x123456789abcdefll, b));
  p[8] = a >> (b & 31);
  p[9] = static_cast<long long>(static_cast<unsigned long long>(a) >> (b & 63));
  p[10] = min(a, b) * 3 + max(a, b) + abs(a);
  p[11] = static_cast<short>(a) * static_cast<signed char>(b);
}

// A function that is not inlined, an array in local memory, a switch.
__device__ __noinline__ float polynomial(float const* c, int degree, float x) {
  float r = 0;
  for (int i = degree; i >= 0; --i) r = r * x + c[i];
  return r;
}
extern "C" __global__ void calls(float const* x, float* o, int degree) {
  float c[8];
  for (int i = 0; i <= degree; ++i) c[i] = static_cast<float>(i + 1);
  float const v = x[threadIdx.x];
  float r = polynomial(c, degree, v);
  switch (threadIdx.x % 6) {
    case 0: r += 1; break;
    case 1: r *= 2; break;
    case 2: r -= v; break;
    case 3: r = -r; break;
    case 4: r = r * r; break;
    default: break;
  }
  o[threadIdx.x] = r;
}

// What must give no fault: exchange within a warp after __syncwarp, reads of one address by all, own words rewritten.
extern "C" __global__ void quiet(int const* x, int* o) {
  extern __shared__ int s[];
  int const t = threadIdx.x, lane = t % 32;
  s[t] = x[t];
  __syncwarp();
  int v = s[t - lane + (lane + 1) % 32];
  __syncwarp();
  s[t] = v;
  s[t] += 1;
  __syncthreads();
  v += s[0] + s[t] + x[0];
  __syncthreads();
  if (t == 0) s[0] = 5;
  __syncthreads();
  o[t] = v + s[0];
  o[t] += 1;
}

struct settings {
  float scale;
  int shift;
  int* out;
  char bytes[5];
};
__constant__ int const_table[4] = {10, 20, 30, 40};
__device__ int device_counter = 3;
extern "C" __global__ void by_value(settings s, int const* x) {
  int const i = threadIdx.x;
  s.out[i] = static_cast<int>(x[i] * s.scale) + s.shift + s.bytes[i % 5] + const_table[i % 4] + device_counter;
}
