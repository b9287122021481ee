// Hints and attributes for the supported compilers.
#pragma once

#if defined(__CUDACC__)
#define NEAP_HD __host__ __device__  // a function for host and device
#else
#define NEAP_HD
#endif

#define NEAP_INLINE inline __attribute__((always_inline))

// Before what is rare on the host and would make its callers longer; on a device a call costs more than it saves.
#if defined(__CUDA_ARCH__)
#define NEAP_NOINLINE_ON_HOST
#else
#define NEAP_NOINLINE_ON_HOST __attribute__((noinline))
#endif
