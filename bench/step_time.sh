#!/bin/sh
# Training steps of neap and of PyTorch in turn, so that both see the same machine; then the ratio of their medians.
#
#   bench/step_time.sh BENCH_STEP_TIME PYTHON [ROUNDS=3] [THREADS=2] [STEPS=15] [OPTIMIZER=adamw] [MODELS=mlp,cnn,gpt] \
#     > rows.csv
#
# Rows go to standard output, with the round in front; the ratios to standard error. Of PyTorch's ways (the optimizer as
# it is or fused, attention plain or fused, images with channels first or last, eager or compiled) the fastest counts, and
# for peaks the one that needs least. To hold both sides to AVX2 on a machine with more: build with -march=haswell, let
# machine_vectors() (kernels/conv2d_tiles.hpp) answer avx2, and set OPENBLAS_CORETYPE=Haswell ATEN_CPU_CAPABILITY=avx2
# ONEDNN_MAX_CPU_ISA=AVX2 MKL_ENABLE_INSTRUCTIONS=AVX2. OPTIMIZER is adamw or sgd: AdamW's two states a weight are the same bytes on both sides, and count in both peaks.
set -eu
bench=$1 python=$2 rounds=${3:-3} threads=${4:-2} steps=${5:-15} optimizer=${6:-adamw} models=${7:-mlp,cnn,gpt}
here=$(dirname "$0")
[ -x "$bench" ] || { echo "step_time.sh: $bench is no program" >&2; exit 2; }
rows=$(mktemp)
trap 'rm -f "$rows"' EXIT
echo "round,model,way,optimizer,threads,step_ms,min_ms,cpu_ms,peak_bytes"
for round in $(seq "$rounds"); do
  for model in $(echo "$models" | tr , ' '); do
    for run in "$bench" "$python $here/step_time_torch.py"; do
      # shellcheck disable=SC2086
      $run --model "$model" --optimizer "$optimizer" --threads "$threads" --steps "$steps" 2>/dev/null | sed -n "2,\$s/^/$round,/p" | tee -a "$rows"
    done
  done
done
awk -F, '
function median(list,   n, a, i, j, t) {
  n = split(list, a, " ")
  for (i = 2; i <= n; ++i) for (j = i; j > 1 && a[j] + 0 < a[j - 1] + 0; --j) { t = a[j]; a[j] = a[j - 1]; a[j - 1] = t }
  return a[int((n + 1) / 2)]
}
{ key = $2 "," $3; time[key] = time[key] " " $6; cpu[key] = cpu[key] " " $8; peak[key] = $9; seen[key] = 1; model[$2] = 1
  if (!(key in least) || $7 + 0 < least[key]) least[key] = $7 + 0 }
END {
  for (m in model) {
    t = l = c = p = 0
    for (key in seen) {
      split(key, part, ",")
      if (part[1] != m || part[2] !~ /^torch/) continue
      if (!t || median(time[key]) < t) t = median(time[key])
      if (!l || least[key] < l) l = least[key]
      if (!c || median(cpu[key]) < c) c = median(cpu[key])
      if (!p || peak[key] < p) p = peak[key]
    }
    for (i = 1; i <= 2; ++i) {
      key = m "," (i == 1 ? "plain" : "planned")
      printf "%s: step %.2f of PyTorch (median), %.2f (least), %.2f (processor time); peak %.3f\n",
             key, median(time[key]) / t, least[key] / l, median(cpu[key]) / c, peak[key] / p > "/dev/stderr"
    }
  }
}' "$rows"
