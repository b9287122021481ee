// Names and texts of the CUDA runtime's errors, as it has them.
#pragma once

#include <driver_types.h>

namespace neap::testing {

struct error_text {
  cudaError_t error;
  char const *name, *text;
};

inline error_text const& text_of_error(cudaError_t error) {
  static constexpr error_text all[] = {
      {cudaSuccess, "cudaSuccess", "no error"},
      {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
      {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
      {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
      {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
      {cudaErrorInvalidPitchValue, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
      {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
      {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
      {cudaErrorInsufficientDriver, "cudaErrorInsufficientDriver",
       "CUDA driver version is insufficient for CUDA runtime version"},
      {cudaErrorDevicesUnavailable, "cudaErrorDevicesUnavailable", "CUDA-capable device(s) is/are busy or unavailable"},
      {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
      {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
      {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
      {cudaErrorNoKernelImageForDevice, "cudaErrorNoKernelImageForDevice",
       "no kernel image is available for execution on the device"},
      {cudaErrorECCUncorrectable, "cudaErrorECCUncorrectable", "uncorrectable ECC error encountered"},
      {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
      {cudaErrorIllegalState, "cudaErrorIllegalState", "the operation cannot be performed in the present state"},
      {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
      {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
      {cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources", "too many resources requested for launch"},
      {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
      {cudaErrorAssert, "cudaErrorAssert", "device-side assert triggered"},
      {cudaErrorHostMemoryAlreadyRegistered, "cudaErrorHostMemoryAlreadyRegistered",
       "part or all of the requested memory range is already mapped"},
      {cudaErrorHostMemoryNotRegistered, "cudaErrorHostMemoryNotRegistered",
       "pointer does not correspond to a registered memory region"},
      {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
      {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
      {cudaErrorNotPermitted, "cudaErrorNotPermitted", "operation not permitted"},
      {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
      {cudaErrorSystemDriverMismatch, "cudaErrorSystemDriverMismatch",
       "system has unsupported display driver / cuda driver combination"},
      {cudaErrorStreamCaptureUnsupported, "cudaErrorStreamCaptureUnsupported",
       "operation not permitted when stream is capturing"},
      {cudaErrorStreamCaptureInvalidated, "cudaErrorStreamCaptureInvalidated",
       "operation failed due to a previous error during capture"},
      {cudaErrorStreamCaptureMerge, "cudaErrorStreamCaptureMerge",
       "operation would result in a merge of separate capture sequences"},
      {cudaErrorStreamCaptureUnmatched, "cudaErrorStreamCaptureUnmatched",
       "capture was not ended in the same stream as it began"},
      {cudaErrorStreamCaptureUnjoined, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
      {cudaErrorStreamCaptureIsolation, "cudaErrorStreamCaptureIsolation",
       "dependency created on uncaptured work in another stream"},
      {cudaErrorStreamCaptureImplicit, "cudaErrorStreamCaptureImplicit",
       "operation would make the legacy stream depend on a capturing blocking stream"},
      {cudaErrorCapturedEvent, "cudaErrorCapturedEvent",
       "operation not permitted on an event last recorded in a capturing stream"},
      {cudaErrorStreamCaptureWrongThread, "cudaErrorStreamCaptureWrongThread",
       "attempt to terminate a thread-local capture sequence from another thread"},
      {cudaErrorTimeout, "cudaErrorTimeout", "wait operation timed out"},
  };
  for (auto const& e : all)
    if (e.error == error) return e;
  static constexpr error_text unknown{cudaErrorUnknown, "cudaErrorUnknown", "unknown error"};
  return unknown;
}

}  // namespace neap::testing
