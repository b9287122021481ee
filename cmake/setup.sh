#!/usr/bin/env bash
# Installs what neap's programs and tests need on Debian 12 or later: as root, or with sudo.
#   cmake/setup.sh          to build, test and run the demo
#   cmake/setup.sh --all    also the second compiler, clang-tidy and the benchmark library
# Packages that are there are left alone; if none is missing, nothing is fetched. No CUDA is needed.
set -euo pipefail

packages=(g++ cmake ninja-build librange-v3-dev libtbb-dev libopenblas-dev doctest-dev
          nlohmann-json3-dev zlib1g-dev libcli11-dev)
# Where there is a CUDA toolkit, Thrust and CUB come with it.
if ! command -v nvcc >/dev/null && [ ! -e /usr/local/cuda/include/cccl/thrust/version.h ]; then
  packages+=(libthrust-dev libcub-dev)
fi
if [ "${1:-}" = --all ]; then
  packages+=(clang-16 libclang-rt-16-dev clang-tidy-16 clang-format-16 libbenchmark-dev)
fi

missing=()
for package in "${packages[@]}"; do
  dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null | grep -qx installed || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

command -v apt-get >/dev/null || { echo "no apt-get here; neap needs the packages that Debian calls ${missing[*]}" >&2; exit 1; }
as_root=(env DEBIAN_FRONTEND=noninteractive)
if [ "$(id -u)" != 0 ]; then
  command -v sudo >/dev/null || { echo "run as root: apt-get install ${missing[*]}" >&2; exit 1; }
  as_root=(sudo "${as_root[@]}")
fi
"${as_root[@]}" apt-get -q update
"${as_root[@]}" apt-get -q install -y --no-install-recommends "${missing[@]}"
