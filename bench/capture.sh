#!/bin/sh
# The programs of bench/capture.cpp and of bench/capture_torch.py in turn, so that both see the same machine.
#
#   bench/capture.sh BENCH_CAPTURE PYTHON [ROUNDS=2] [THREADS=1] > rows.csv
#
# Each round runs a program by neap, then by PyTorch. Rows go to standard output, with the round in front.
set -eu
bench=$1 python=$2 rounds=${3:-2} threads=${4:-1}
here=$(dirname "$0")
[ -x "$bench" ] || { echo "capture.sh: $bench is no program" >&2; exit 2; }
echo "round,program,way,graphs,breaks,ms,peak_bytes"
for round in $(seq "$rounds"); do
  for program in branch_on_state early_exit history features random_depth recurrent loss_scaling logging; do
    "$bench" --only "$program" --threads "$threads" | sed -n "2,\$s/\(.*,.*,.*\),\(.*,.*\)/$round,\1,,\2/p"
    "$python" "$here/capture_torch.py" --only "$program" --threads "$threads" 2>/dev/null | sed -n "2,\$s/^/$round,/p"
  done
done
