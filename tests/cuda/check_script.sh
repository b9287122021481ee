#!/bin/sh
# bench/gpu/check.sh with a stub for each program: the order of parts, limits of time, files and table, where parts are
# right, wrong, refuse, crash within a row, hang, ignore the request to end, or do not exist.
#
#   check_script.sh CHECK_SH SCRATCH
set -u
script=$1 folder=$2
rm -rf "$folder"
mkdir -p "$folder/tools" "$folder/lib"
cp "$script" "$folder/check.sh"
echo "a shared library" | gzip > "$folder/lib/libx.so.1.gz"
faults=0
expect() { # expect WHAT TEXT PATTERN
  printf '%s\n' "$2" | grep -Eq -e "$3" && return
  echo "$1: no line matches '$3' in:"
  printf '%s\n' "$2"
  faults=1
}
refuse() { # refuse WHAT TEXT PATTERN
  printf '%s\n' "$2" | grep -Eq -e "$3" || return 0
  echo "$1: a line matches '$3' in:"
  printf '%s\n' "$2"
  faults=1
}
stub() { # stub FILE: its text is read
  cat > "$folder/$1"
  chmod +x "$folder/$1"
}
stub tools/nvidia-smi <<'END'
#!/bin/sh
echo "NVIDIA Stub 9, 580.1"
echo "NVIDIA Stub 9, 580.1"
END
# What gpu_check does is in the files do_PART; none: two right rows.
stub gpu_check <<'END'
#!/bin/sh
here=$(dirname "$0")
echo "$*" | sed 's/ .*//' >> "$here/order"
[ ! -e "$here/do_$1" ] || exec sh "$here/do_$1"
echo "case,result"
echo 'a,"ok"'
echo "b,ok"
END
stub gpu_attention <<'END'
#!/bin/sh
echo attention >> "$(dirname "$0")/order"
echo "case,outcome"
echo '"GPT-2 small",ok'
END
# In place of Python with torch_steps.py, and where it has packages.
mkdir -p "$folder/packages/nvidia/cu13/lib"
touch "$folder/packages/nvidia/cu13/lib/libcudnn.so.9"
stub tools/python3 <<'END'
#!/bin/sh
here=$(dirname "$0")
[ "$1" != -c ] || { echo "$here/../packages"; exit; }
echo "torch, $NEAP_PART_LIMIT s, libraries: $LD_LIBRARY_PATH" >> "$here/../order"
[ ! -e "$here/../do_torch" ] || exec sh "$here/../do_torch"
echo "device,way,result"
echo "any,torch eager,ok"
END
stub tools/compute-sanitizer <<'END'
#!/bin/sh
echo "$2" >> "$(dirname "$0")/../order"
[ "$2" = memcheck ] || exit 9
while [ "$1" != --log-file ]; do shift; done
echo "========= ERROR SUMMARY: 0 errors" > "$2"
shift 2
exec "$@"
END
run() { # run [VARIABLE=VALUE...]: the output in $table, the exit status in $status
  rm -f "$folder/order"
  from=$(date +%s)
  table=$(env PATH="$folder/tools:$PATH" "$@" "$folder/check.sh" "$folder/results")
  status=$?
  took=$(($(date +%s) - from))
}

# All right but for a sanitizer that reports; a program that does not exist.
run NEAP_PART_SECONDS=60
expect "all right" "$table" '^device: NVIDIA Stub 9, 580.1$'
expect "all right" "$table" '^date: 20[0-9][0-9]-[0-9][0-9]-[0-9][0-9]$'
expect "all right" "$table" '^operators +[0-9]+  ok, 2 rows$'
expect "all right" "$table" '^attention +[0-9]+  ok, 1 rows$'
expect "all right" "$table" '^memcheck +[0-9]+  ok, 2 rows$'
expect "all right" "$table" '^racecheck +[0-9]+  failed \(9\)'
expect "all right" "$table" '^step_time +[0-9]+  ok, 2 rows$'
expect "all right" "$table" '^torch_time +[0-9]+  ok, 1 rows$'
expect "all right" "$table" '^algorithms +0  not run: there is no gpu_algorithms$'
[ "$status" -eq 1 ] || { echo "a sanitizer reports: exit status $status"; faults=1; }
expect "unpacked" "$(cat "$folder/lib/libx.so.1")" '^a shared library$'
expect "PyTorch's libraries are its own" "$(cat "$folder/order")" '^torch, 58 s, libraries: $'
order=$(sed 's/,.*//' "$folder/order" | tr '\n' ' ')
expect "order" "$order" '^operators properties memory bits steps torch torch compiled swaps bandwidth attention memcheck toys racecheck $'
names=$(sed 1,3d "$folder/results/table.txt" | cut -d' ' -f1 | tr '\n' ' ')
expect "table" "$names" '^operators library_operators properties library_properties algorithms memory bits library_bits step_time library_steps torch_time torch_door compiled swaps bandwidth attention memcheck racecheck $'
for name in operators memory bits compiled swaps bandwidth attention memcheck properties; do
  expect "$name.csv" "$(cat "$folder/results/$name.csv")" '^case,'
  [ -e "$folder/results/$name.log" ] || { echo "no $name.log"; faults=1; }
done
expect "memcheck.txt" "$(cat "$folder/results/memcheck.txt")" 'ERROR SUMMARY'

# Together, all parts have time for all of their limits: none takes a later one's.
"$folder/check.sh" --list > "$folder/list"
sum=$(awk '{ sum += $2 } END { print sum }' "$folder/list")
[ "$sum" -le 535 ] || { echo "the limits of all parts: $sum s, of 540"; faults=1; }
expect "list" "$(cut -d' ' -f1 "$folder/list" | tr '\n' ' ')" "^$names\$"

# Programs in the folder find libraries in Python's packages.
stub gpu_algorithms <<'END'
#!/bin/sh
echo "libraries: $LD_LIBRARY_PATH" >&2
printf 'algorithm\n1\n'
END
run NEAP_PART_SECONDS=60
expect "packages" "$table" '^algorithms +[0-9]+  ok, 1 rows: libraries: .*/packages/nvidia/cu13/lib'
rm "$folder/gpu_algorithms"

# A program whose libraries are not there is not run, with the loader's message.
stub gpu_libraries <<'END'
#!/bin/sh
echo "gpu_libraries: error while loading shared libraries: libcudnn.so.9: not found" >&2
exit 127
END
run NEAP_PART_SECONDS=60
expect "no library" "$table" '^library_steps +[0-9]+  not run: gpu_libraries: error while loading .* libcudnn'
rm "$folder/gpu_libraries"

# A part that is right may have a line that sums it up.
echo 'echo "operator,result"; echo "add,ok"; echo "1 of 1 at 0.8" >&2' > "$folder/do_bandwidth"
run NEAP_PART_SECONDS=60
expect "a line that sums up" "$table" '^bandwidth +[0-9]+  ok, 1 rows: 1 of 1 at 0.8$'

# A part without rows has failed, one that says that there is nothing to run has not; no PyTorch is the latter.
echo 'echo "operator,result"' > "$folder/do_bandwidth"
echo 'echo "device,way,result"; echo "no torch" >&2; exit 2' > "$folder/do_torch"
run NEAP_PART_SECONDS=60
expect "no rows" "$table" '^bandwidth +[0-9]+  failed: no rows$'
expect "no torch" "$table" '^torch_time +[0-9]+  not run: no torch$'
rm "$folder/do_torch"

# No sanitizer, no GPU: nothing fails.
rm "$folder/tools/compute-sanitizer" "$folder/tools/nvidia-smi"
for name in operators memory bits steps compiled swaps bandwidth properties; do
  echo 'echo "cuda: no GPU to be used: no driver" >&2; exit 2' > "$folder/do_$name"
done
if [ ! -x /usr/local/cuda/bin/compute-sanitizer ] && ! command -v compute-sanitizer > /dev/null; then
  run NEAP_PART_SECONDS=60
  expect "no GPU" "$table" '^step_time +[0-9]+  not run: cuda: no GPU to be used: no driver$'
  expect "no GPU" "$table" '^(operators|memory) +[0-9]+  not run: cuda: no GPU to be used: no driver$'
  expect "no sanitizer" "$table" '^memcheck +0  not run: there is no compute-sanitizer$'
  refuse "no GPU" "$table" 'failed'
  [ "$status" -eq 0 ] || { echo "no GPU: exit status $status"; faults=1; }
fi

# One part fails with a wrong row, one crashes, one hangs, one ignores the request to end; others run all the same.
rm "$folder"/do_*
cat > "$folder/do_operators" <<'END'
echo "operator,result,difference"
echo 'add,"ok",0'
echo 'topk,"no kernel",0'
echo 'gelu,"differs",1e-2'
echo "a line of the log" >&2
exit 1
END
printf 'echo "model,result"\necho "mlp,ok"\nprintf "gpt,0.6,12"\nkill -SEGV $$\n' > "$folder/do_memory"
printf 'echo "model,result"\necho "mlp,ok"\nexec sleep 100\n' > "$folder/do_bits"
printf 'trap "" TERM\nprintf "model,result\\nmlp,o"\nwhile :; do sleep 1; done\n' > "$folder/do_swaps"
run NEAP_PART_SECONDS=3
expect "a wrong row" "$table" '^operators +[0-9]+  failed \(1\), after 3 rows: gelu,"differs",1e-2 a line of the log, 1 without a kernel$'
expect "a crash within a row" "$table" '^memory +[0-9]+  failed \(139\), after 1 rows:'
expect "a crash within a row" "$(cat "$folder/results/memory.log")" '^part of a row: gpt,0.6,12$'
refuse "a crash within a row" "$(cat "$folder/results/memory.csv")" gpt
expect "a hang" "$table" '^bits +[0-9]+  failed: over 1 s, after 1 rows$'
expect "a hang that ignores TERM" "$table" '^swaps +[0-9]+  failed: over 1 s, after 0 rows$'
expect "after them" "$table" '^bandwidth +[0-9]+  ok, 2 rows$'
[ "$status" -eq 1 ] || { echo "parts fail: exit status $status"; faults=1; }

# The whole is limited. A part has its own limit, and as much again where time is left that is no later part's; what comes
# too late is not run, and has no files of an earlier run.
for name in operators memory bits; do echo 'exec sleep 100' > "$folder/do_$name"; done
rm "$folder/do_swaps"
run NEAP_PART_SECONDS=3 NEAP_CHECK_SECONDS=5
expect "the first two" "$table" '^operators +[0-9]+  failed: over 1 s, after 0 rows$'
expect "too late" "$table" '^attention +0  not run: no time is left: [0-2] s of 3$'
[ ! -e "$folder/results/attention.csv" ] || { echo "rows of an earlier run"; faults=1; }
[ "$took" -le 8 ] || { echo "5 seconds in all took $took"; faults=1; }

expect "help" "$("$folder/check.sh" --help)" '^  ./check.sh \[FOLDER\]'
[ $faults -eq 0 ] && echo "check.sh: ok"
exit $faults
