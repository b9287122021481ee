# Parts of a run of tests, for .ci/run and .ci/nightly: part NAME COMMAND..., and last `summary`.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export CTEST_OUTPUT_ON_FAILURE=1

log=$(mktemp)
more_logs=
trap 'rm -f "$log" $more_logs' EXIT
failed_parts=()
times=()
part() {
  local name=$1 start=$SECONDS
  shift
  printf '\n==== %s\n' "$name"
  "$@" 2>&1 | tee -a "$log"
  [ "${PIPESTATUS[0]}" = 0 ] || failed_parts+=("$name")
  times+=("$(printf '%5d s  %s' $((SECONDS - start)) "$name")")
}

# Times, what failed and what was skipped; the last line is `N passed, N failed`, summed over all test runs. Status 0 only
# if everything was built and nothing failed.
summary() {
  printf '\n==== time\n'
  printf '%s\n' "${times[@]}"
  for name in ${failed_parts[@]+"${failed_parts[@]}"}; do echo "failed: $name"; done

  grep '^skipped: ' "$log"
  # "97% tests passed, 3 tests failed out of 100"; skipped tests are counted as passed there. And pytest's "1 failed, 40 passed".
  local passed failed
  read -r passed failed < <(awk '
    / tests failed out of / { f += $4; p += $NF - $4 }
    /^([0-9]+ failed, )?[0-9]+ passed.* in [0-9.]+s/ { for (i = 2; i <= NF; ++i) if ($i ~ /^failed/) f += $(i - 1); else if ($i ~ /^passed/) p += $(i - 1) }
    END { print p + 0, f + 0 }' "$log")
  # A part that did not get as far as its tests counts as one failure.
  [ ${#failed_parts[@]} -gt 0 ] && [ "$failed" = 0 ] && failed=${#failed_parts[@]}
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}
