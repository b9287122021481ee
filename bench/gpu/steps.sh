#!/bin/sh
# Step times of neap and, where python3 has torch, of PyTorch, in one table: CSV on stdout. The exit status is gpu_check's,
# or, if that is 0, that of torch_steps.py.
#
#   steps.sh [SIZE]     toys, small or full; by default full
here=$(cd "$(dirname "$0")" && pwd)
size=${1:-full}
"$here/gpu_check" steps "$size"
status=$?
[ "$status" -ne 2 ] || exit 2
if command -v python3 > /dev/null; then
  python3 "$here/torch_steps.py" "$size" --no-header --seconds "${NEAP_TORCH_SECONDS:-150}"
  torch=$?
  [ "$status" -ne 0 ] || status=$torch
else
  echo ",,torch,,,,,,\"not run: no torch: there is no python3\""
fi
exit "$status"
