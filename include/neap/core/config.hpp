// What the compilers we meet need to be told.
#pragma once

#if defined(__CUDACC__)
#define NEAP_HD __host__ __device__  // a function for host and device
#else
#define NEAP_HD
#endif

#define NEAP_INLINE inline __attribute__((always_inline))
