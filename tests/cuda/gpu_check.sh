#!/bin/sh
# All of bench/gpu/check.sh with gpu_check on the simulated device, on toy models: every part runs and every row is right.
# Times of a simulated device mean nothing.
#
#   gpu_check.sh CHECK_SH PROGRAMS SCRATCH
set -eu
script=$1 programs=$2 folder=$3
rm -rf "$folder"
mkdir -p "$folder"
for name in check.sh torch_steps.py ../torch_door.py; do cp "$(dirname "$script")/$name" "$folder/"; done
for name in gpu_check gpu_algorithms; do ln -s "$programs/simulated_$name" "$folder/$name"; done
cp "$(dirname "$script")/gpu_libraries.sh" "$folder/gpu_libraries"
"$folder/gpu_check" record "$folder/operators.bin"
"$folder/gpu_check" toys > "$folder/toys.csv" || { cat "$folder/toys.csv"; exit 1; }
NEAP_CHECK_SECONDS=1500 NEAP_CHECK_SIZE=toys "$folder/check.sh" "$folder/results"
# PyTorch may be there or not.
grep -Eq '^torch_time +[0-9]+  (ok|not run: )' "$folder/results/table.txt" || { echo "torch_time has failed"; exit 1; }
grep -Eq '^torch_door +[0-9]+  (ok|not run: )' "$folder/results/table.txt" || { echo "torch_door has failed"; exit 1; }
# Where the simulated libraries have no cuDNN, it has no properties.
no_cudnn='^library_properties +[0-9]+  not run: library_properties: there is no cuDNN$'
! grep -Eq "$no_cudnn" "$folder/results/table.txt" || skipped=library_properties
for name in operators library_operators memory bits step_time library_steps library_bits compiled swaps bandwidth properties \
  library_properties algorithms; do
  [ "$name" != "${skipped:-}" ] || continue
  grep -Eq "^$name +[0-9]+  ok, [1-9]" "$folder/results/table.txt" || { echo "$name is not ok"; exit 1; }
  # As many columns in each row as in the header; no commas within quotes.
  awk -F, '/^#/ { next } !n { n = NF } NF != n { print FILENAME ": row " NR " has " NF " columns, of " n; bad = 1 } END { exit bad }' \
    "$folder/results/$name.csv"
done
