#!/bin/sh
# Runs on a machine with a GPU, in the folder that bench/gpu/run.sh has built: the parts in order of worth, each with a time
# limit of its own, 8 minutes in all. Leaves a CSV file and a log for each part, and a table, in results/ (or in the folder
# that is named). Exit status 0: no part that ran has failed.
#
#   ./check.sh [FOLDER]
here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/results}
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
whole=480
begin=$(date +%s)

# cuBLASLt is the machine's: of the toolkit, or of PyTorch's packages.
for file in /usr/local/cuda/lib64/libcublasLt.so.* /usr/local/cuda/targets/*/lib/libcublasLt.so.* \
            /usr/lib/*/libcublasLt.so.* \
            /usr/lib/python3*/*-packages/nvidia/*/lib/libcublasLt.so.* \
            /usr/local/lib/python3*/*-packages/nvidia/*/lib/libcublasLt.so.* \
            /opt/*/lib/python3*/site-packages/nvidia/*/lib/libcublasLt.so.*; do
  [ -e "$file" ] || continue
  LD_LIBRARY_PATH=$(dirname "$file")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export LD_LIBRARY_PATH
  break
done

device=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1)
[ -n "$device" ] || device="no GPU"
{
  echo "device: $device"
  echo "date: $(date -u +%Y-%m-%d)"
} > "$out/table.txt"
printf '%-12s %8s  %s\n' part seconds result >> "$out/table.txt"
failed=0

# part NAME LIMIT PROGRAM ARGUMENT...: limit in seconds
part() {
  name=$1 limit=$2 program=$3
  shift 3
  left=$((whole - ($(date +%s) - begin)))
  seconds=0
  if [ ! -x "$here/$program" ]; then
    result="not run: there is no $program yet"
  elif [ "$left" -lt 5 ]; then
    result="not run: no time is left"
  else
    [ "$limit" -lt "$left" ] || limit=$left
    from=$(date +%s)
    timeout "$limit" "$here/$program" "$@" > "$out/$name.csv" 2> "$out/$name.log"
    status=$?
    seconds=$(($(date +%s) - from))
    rows=$(($(wc -l < "$out/$name.csv") - 1))
    case $status in
      0) result="ok, $rows rows" ;;
      2) result="not run: $(head -1 "$out/$name.log")" ;;
      124) result="failed: over $limit s"; failed=1 ;;
      *) result="failed ($status): $(grep -v -e '"ok"' -e ',ok$' -e 'no kernel' "$out/$name.csv" | sed -n 2p) $(head -1 "$out/$name.log")"
         failed=1 ;;
    esac
    without=$(grep -c '"no kernel"' "$out/$name.csv")
    [ "$without" -eq 0 ] || result="$result, $without without a kernel"
  fi
  printf '%-12s %8s  %s\n' "$name" "$seconds" "$result" >> "$out/table.txt"
}

part operators 90 gpu_check operators "$here/operators.bin"
part memory 90 gpu_check memory
part bits 90 gpu_check bits
part step_time 120 gpu_step_time
part swaps 60 gpu_swaps
part bandwidth 30 gpu_bandwidth
part attention 30 gpu_attention
part sanitizer 60 gpu_sanitizer
part properties 10 gpu_properties
part algorithms 20 gpu_algorithms

cat "$out/table.txt"
exit $failed
