// What all functions of the simulated runtime have in common.
#pragma once

#include "simulation.hpp"

#include <new>
#include <string>

namespace neap::testing {

/// The last error of the calling thread (cudaGetLastError).
inline thread_local cudaError_t last_error = cudaSuccess;

/// Whether there is a device, and a driver that is new enough.
inline cudaError_t availability(device_options const& o) {
  if (o.driver / 1000 < CUDART_VERSION / 1000) return cudaErrorInsufficientDriver;
  return o.devices > 0 ? cudaSuccess : cudaErrorNoDevice;
}

/// Sees to it that the program's accesses of memory that is in use are noticed, whoever handles signals beside.
void watch_accesses();

/// Runs the body of a function of the runtime: f(simulation&) gives its result.
template <class F>
cudaError_t call(char const* function, F&& f) {
  std::lock_guard const held(simulation::lock());
  simulation& s = simulation::current();
  ++s.calls[function];
  watch_accesses();
  s.close_pinned();
  cudaError_t e = availability(s.options);
  if (e == cudaSuccess) e = s.planted_failure(function);
  if (e == cudaSuccess) e = s.lost();
  if (e == cudaSuccess) {
    try {
      e = f(s);
    } catch (ptx::error const& problem) {
      s.report(std::string(function) + ": " + problem.what());
      e = cudaErrorUnknown;
    } catch (std::bad_alloc const&) { e = cudaErrorMemoryAllocation; }
  }
  if (e != cudaSuccess) last_error = e;
  return e;
}

}  // namespace neap::testing
