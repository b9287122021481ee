#!/bin/sh
# Checks neap on a machine with a GPU, in the folder that bench/gpu/run.sh has built.
#
#   ./check.sh [FOLDER]     results in FOLDER, in results/ by default
#   ./check.sh --help
#
# Parts run in order of worth, each with a time limit of its own, 8 minutes in all. Each leaves NAME.csv and NAME.log;
# table.txt has a line for each. A part is "ok", "failed" (with its first wrong row) or "not run" (with the reason).
# Exit status 0: no part that ran has failed.
#
#   NEAP_CHECK_SECONDS    limit of all parts together, 480
#   NEAP_PART_SECONDS     most that a part may take, whatever its own limit
#   NEAP_CHECK_SIZE       toys, small or full: of models; by default small ones, then full ones
here=$(cd "$(dirname "$0")" && pwd)
case $1 in
  -h | --help)
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
out=${1:-$here/results}
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
whole=${NEAP_CHECK_SECONDS:-480}
longest=${NEAP_PART_SECONDS:-480}
size=$NEAP_CHECK_SIZE
to_stop=2 # seconds from a request to end to the end by force
begin=$(date +%s)

# Shared libraries travel packed.
for file in "$here"/lib/*.gz; do
  [ ! -e "$file" ] || [ -e "${file%.gz}" ] || gzip -dc "$file" > "${file%.gz}" || exit 1
done

# cuBLASLt and cuDNN are the machine's: of the toolkit, or of PyTorch's packages.
for library in libcublasLt libcudnn; do
  for file in /usr/local/cuda/lib64/$library.so.* /usr/local/cuda/targets/*/lib/$library.so.* \
              /usr/lib/*/$library.so.* \
              /usr/lib/python3*/*-packages/nvidia/*/lib/$library.so.* \
              /usr/local/lib/python3*/*-packages/nvidia/*/lib/$library.so.* \
              /opt/*/lib/python3*/site-packages/nvidia/*/lib/$library.so.*; do
    [ -e "$file" ] || continue
    LD_LIBRARY_PATH=$(dirname "$file")${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    export LD_LIBRARY_PATH
    break
  done
done

device=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null | head -1)
[ -n "$device" ] || device="no GPU"
{
  echo "device: $device"
  echo "date: $(date -u +%Y-%m-%d)"
} > "$out/table.txt"
row() { printf '%-17s %8s  %s\n' "$1" "$2" "$3" >> "$out/table.txt"; }
row part seconds result
failed=0

# The first row of a CSV file that is not right, and the first line of a log.
wrong_row() { sed 1d "$out/$1.csv" | grep -v -e '"ok"' -e ',ok$' -e ',ok,' -e '"no kernel"' | head -1; }
log_line() { grep -v '^=' "$out/$1.log" | head -1; }

# part NAME LIMIT PROGRAM ARGUMENT...: limit in seconds. PROGRAM is in this folder, or a path.
part() {
  name=$1 limit=$2 program=$3
  shift 3
  case $program in
    /*) ;;
    *) program=$here/$program ;;
  esac
  left=$((whole - ($(date +%s) - begin) - to_stop))
  if [ ! -x "$program" ]; then
    row "$name" 0 "not run: there is no $(basename "$program")"
    return
  fi
  if [ "$left" -le 0 ]; then
    row "$name" 0 "not run: no time is left"
    return
  fi
  [ "$limit" -le "$longest" ] || limit=$longest
  [ "$limit" -le "$left" ] || limit=$left
  from=$(date +%s)
  timeout -k "$to_stop" "$limit" "$program" "$@" > "$out/$name.csv" 2> "$out/$name.log"
  status=$?
  seconds=$(($(date +%s) - from))
  rows=$(sed 1d "$out/$name.csv" | wc -l)
  case $status in
    0)
      sum=$(log_line "$name")
      result="ok, $rows rows${sum:+: $sum}"
      ;;
    2 | 127) result="not run: $(log_line "$name")" ;; # 127: a shared library is missing
    124 | 137) result="failed: over $limit s, after $rows rows" ;;
    *) result="failed ($status): $(wrong_row "$name") $(log_line "$name")" ;;
  esac
  case $result in failed*) failed=1 ;; esac
  without=$(grep -c '"no kernel"' "$out/$name.csv")
  [ "$without" -eq 0 ] || result="$result, $without without a kernel"
  row "$name" "$seconds" "$result"
}

# sanitizer TOOL LIMIT: toy models under a tool of compute-sanitizer, which is the machine's.
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
sanitize() {
  if [ -x "$sanitizer" ]; then
    part "$1" "$2" "$sanitizer" --tool "$1" --error-exitcode 9 --log-file "$out/$1.txt" "$here/gpu_check" toys
  else
    row "$1" 0 "not run: there is no compute-sanitizer"
  fi
}

part operators 90 gpu_check operators "$here/operators.bin"
part library_operators 60 gpu_libraries operators "$here/operators.bin"
part properties 10 gpu_check properties
part algorithms 20 gpu_algorithms
part memory 90 gpu_check memory $size
part bits 90 gpu_check bits $size
part step_time 210 steps.sh $size
part library_steps 90 gpu_libraries steps $size
part library_bits 60 gpu_libraries bits $size
part compiled 60 gpu_check compiled $size
part swaps 60 gpu_check swaps $size
part bandwidth 30 gpu_check bandwidth $size
part attention 30 gpu_attention
sanitize memcheck 40
sanitize racecheck 40

cat "$out/table.txt"
exit $failed
