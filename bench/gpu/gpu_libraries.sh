#!/bin/sh
# gpu_check with the libraries of the device's vendor.
here=$(cd "$(dirname "$0")" && pwd)
NEAP_CHECK_LIBRARIES=$here/libgpu_libraries.so exec "$here/gpu_check" "$@"
