#!/usr/bin/env bash
# The tests of neap_torch, with PyPI's torch, torchvision and transformers in an environment in the user's cache folder,
# which is made once and kept.
#   examples/torch/run_tests.sh NEAP [pytest's options]     NEAP: the command line of neap
# Where the environment cannot be had within ten minutes, a line says that the tests are skipped, and the status is 0.
set -euo pipefail
neap=$(realpath "$1")
shift
cd "$(dirname "$0")"
environment=${XDG_CACHE_HOME:-$HOME/.cache}/neap/torch
packages=(torch torchvision transformers pytest pytest-xdist)

made() {
  [ "$(cat "$environment/made" 2> /dev/null)" = "${packages[*]}" ] && return
  mkdir -p "$(dirname "$environment")"
  [ -e "$environment/made" ] || rm -rf "$environment"
  [ -e "$environment" ] || python3 -m venv "$environment" || return
  timeout 600 "$environment/bin/python" -m pip install -q "${packages[@]}" && echo "${packages[*]}" > "$environment/made"
}
if ! made >&2; then
  echo "skipped: tests of neap_torch: no environment with ${packages[*]}"
  exit 0
fi
export NEAP_EXECUTABLE=$neap PYTHONDONTWRITEBYTECODE=1
exec "$environment/bin/python" -m pytest -q -n 2 -p no:cacheprovider "$@" tests
