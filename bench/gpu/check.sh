#!/bin/sh
# Checks neap on a machine with a GPU, in the folder that bench/gpu/run.sh has built.
#
#   ./check.sh [FOLDER]     results in FOLDER, in results/ by default
#   ./check.sh --help
#
# Parts run in order of worth, 9 minutes in all. Each has a limit of its own, and up to twice as long where earlier
# parts have left time: no part takes time that is a later one's. Each leaves NAME.csv and NAME.log; table.txt has a
# line for each. A part is "ok", "failed" (with its first wrong row) or "not run" (with the reason). Exit status 0: no
# part that ran has failed.
#
#   ./check.sh --list       the parts and their limits in seconds
#
#   NEAP_CHECK_SECONDS    limit of all parts together, 540. Of less, last parts that do not fit are not run; of more,
#                         each part has more in proportion
#   NEAP_PART_SECONDS     most that a part may take, whatever its own limit
#   NEAP_CHECK_SIZE       toys, small or full: of models; by default small ones, then full ones
here=$(cd "$(dirname "$0")" && pwd)
case $1 in
  -h | --help)
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
# Parts in order of worth: NAME, seconds, PROGRAM and its arguments. PROGRAM is in this folder, or a path.
all_parts() {
  part operators 40 gpu_check operators "$here/operators.bin"
  part library_operators 25 gpu_libraries operators "$here/operators.bin"
  part properties 8 gpu_check properties
  part library_properties 10 gpu_libraries library_properties "$out/cudnn_properties.json"
  part algorithms 10 gpu_algorithms
  part memory 50 gpu_check memory $size
  part bits 25 gpu_check bits $size
  part library_bits 20 gpu_libraries bits $size
  part step_time 65 gpu_check steps "${size:-full}"
  part library_steps 45 gpu_libraries steps "${size:-full}"
  part torch_time 70 "$python" "$here/torch_steps.py" $size
  part torch_door 60 "$python" "$here/torch_door.py" --device cuda --models "$door" --budgets 0.5,0.1 --solvers dp --rounds 5
  part compiled 15 gpu_check compiled $size
  part swaps 25 gpu_check swaps $size
  part bandwidth 15 gpu_check bandwidth $size
  part attention 12 gpu_attention
  for tool in memcheck racecheck; do
    part $tool 20 "$sanitizer" --tool $tool --error-exitcode 9 --log-file "$out/$tool.txt" "$here/gpu_check" toys
  done
}
size=$NEAP_CHECK_SIZE
door=gpt-124m
[ "$size" != toys ] || door=gpt-toy
export NEAP_EXECUTABLE="$here/neap" # of neap_torch
sanitizer=$(command -v compute-sanitizer || echo /usr/local/cuda/bin/compute-sanitizer)
python=$(command -v python3 || echo /usr/bin/python3)

if [ "$1" = --list ]; then
  part() { echo "$1 $2"; }
  all_parts
  exit 0
fi

begin=$(date +%s)
out=${1:-$here/results}
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd)
whole=${NEAP_CHECK_SECONDS:-540}
longest=${NEAP_PART_SECONDS:-$whole}
to_stop=2 # seconds from a request to end to the end by force, of a part's limit

# Shared libraries travel packed.
for file in "$here"/lib/*.gz; do
  [ ! -e "$file" ] || [ -e "${file%.gz}" ] || gzip -dc "$file" > "${file%.gz}" || exit 1
done

# cuBLASLt and cuDNN are the machine's: of the toolkit, or of PyTorch's packages. PyTorch finds its own by itself.
packages=$(timeout 10 "$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' 2> /dev/null)
libraries=
for folder in /usr/local/cuda/lib64 /usr/local/cuda/lib /usr/local/cuda/targets/*/lib "$packages"/nvidia/*/lib \
              /usr/lib/python3*/*-packages/nvidia/*/lib /usr/local/lib/python3*/*-packages/nvidia/*/lib \
              /opt/*/lib/python3*/site-packages/nvidia/*/lib /usr/lib/*-linux-gnu; do
  for file in "$folder"/libcublasLt.so.* "$folder"/libcudnn.so.*; do
    [ -e "$file" ] || continue
    libraries=${libraries:+$libraries:}$folder
    break
  done
done
libraries=${libraries}${libraries:+${LD_LIBRARY_PATH:+:}}$LD_LIBRARY_PATH

device=$(timeout 20 nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2> /dev/null | head -1)
[ -n "$device" ] ||
  device=$(timeout 20 "$here/gpu_check" properties 2> /dev/null | sed -n 's/^name,"\(.*\)"$/\1/p')
[ -n "$device" ] || device="no GPU"
{
  echo "device: $device"
  echo "date: $(date -u +%Y-%m-%d)"
} > "$out/table.txt"
row() { printf '%-18s %8s  %s\n' "$1" "$2" "$3" >> "$out/table.txt"; }
row part seconds result
failed=0

# The first row of a CSV file that is not right, and the first line of a log.
wrong_row() { sed 1d "$out/$1.csv" | grep -v -e '"ok"' -e ',ok$' -e ',ok,' -e '"no kernel"' | head -1; }
log_line() { grep -v '^=' "$out/$1.log" | head -1; }
# A program that was stopped may leave a part of a row, which is none: to the log.
drop_part_of_row() {
  [ -n "$(tail -c 1 "$out/$1.csv")" ] || return 0
  echo "part of a row: $(tail -n 1 "$out/$1.csv")" >> "$out/$1.log"
  sed -i '$d' "$out/$1.csv"
}
smaller() { if [ "$1" -le "$2" ]; then echo "$1"; else echo "$2"; fi; }
limit_of() { # limit_of SECONDS: in this run
  limit=$1
  [ "$whole" -le 540 ] || limit=$((limit * whole / 540))
  smaller "$limit" "$longest"
}

later=0 # seconds that are kept for the parts to come
part() { later=$((later + $(limit_of "$2"))); }
all_parts

part() {
  name=$1 own=$(limit_of "$2") program=$3
  shift 3
  case $program in
    /*) path=$LD_LIBRARY_PATH ;;
    *) program=$here/$program path=$libraries ;;
  esac
  later=$((later - own))
  rm -f "$out/$name.csv" "$out/$name.log"
  left=$((whole - ($(date +%s) - begin)))
  if [ ! -x "$program" ]; then
    row "$name" 0 "not run: there is no $(basename "$program")"
    return
  fi
  if [ "$left" -lt "$own" ]; then
    row "$name" 0 "not run: no time is left: $left s of $own"
    return
  fi
  limit=$(smaller $((left - later)) $((2 * own)))
  limit=$(smaller "$limit" "$longest")
  [ "$limit" -ge "$own" ] || limit=$own
  in_time=$((limit - to_stop))
  [ "$in_time" -ge 1 ] || in_time=1
  from=$(date +%s)
  LD_LIBRARY_PATH=$path NEAP_PART_LIMIT=$in_time \
    timeout -k "$to_stop" "$in_time" "$program" "$@" > "$out/$name.csv" 2> "$out/$name.log"
  status=$?
  seconds=$(($(date +%s) - from))
  drop_part_of_row "$name"
  rows=$(sed 1d "$out/$name.csv" | wc -l)
  case $status in
    0)
      sum=$(log_line "$name")
      result="ok, $rows rows${sum:+: $sum}"
      [ "$rows" -gt 0 ] || result="failed: no rows"
      ;;
    2 | 127) result="not run: $(log_line "$name")" ;; # 127: a shared library is missing
    124 | 137) result="failed: over $in_time s, after $rows rows" ;;
    *) result="failed ($status), after $rows rows: $(wrong_row "$name") $(log_line "$name")" ;;
  esac
  case $result in failed*) failed=1 ;; esac
  without=$(grep -c '"no kernel"' "$out/$name.csv")
  [ "$without" -eq 0 ] || result="$result, $without without a kernel"
  row "$name" "$seconds" "$result"
}
all_parts

cat "$out/table.txt"
exit $failed
