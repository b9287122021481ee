#!/usr/bin/env bash
# The tests of neap_torch with each version of torch that it is for. Each is installed in an environment of its own in the
# cache folder (6 GB with CUDA's libraries), which is removed when its tests have ended, unless --keep comes first.
#   examples/torch/test_versions.sh [--keep] NEAP [VERSION...]     NEAP: the command line of neap; versions: 2.10.0 to 2.15.0
# Prints one CSV row a version: torch, torchvision, passed, failed, seconds, and the tests that failed.
set -uo pipefail
keep=no
[ "${1:-}" != --keep ] || { keep=yes; shift; }
neap=$(realpath "$1")
shift
cd "$(dirname "$0")"
folder=${XDG_CACHE_HOME:-$HOME/.cache}/neap/torch-versions
export NEAP_EXECUTABLE=$neap PYTHONDONTWRITEBYTECODE=1
[ $# -gt 0 ] || set -- 2.10.0 2.11.0 2.12.0 2.13.0 2.14.0 2.15.0
status=0
echo "torch,torchvision,passed,failed,seconds,which"
for version; do
  environment=$folder/$version
  if [ ! -e "$environment/made" ]; then
    rm -rf "$environment"
    mkdir -p "$folder"
    python3 -m venv "$environment" &&
      "$environment/bin/python" -m pip install -q "torch==$version" torchvision transformers pytest pytest-xdist >&2 &&
      touch "$environment/made" || { echo "$version,,,,,cannot be installed"; status=1; rm -rf "$environment"; continue; }
  fi
  begin=$(date +%s)
  "$environment/bin/python" -m pytest -q -n 2 -p no:cacheprovider --tb=line -rfE tests > "$folder/$version.log" 2>&1 || status=1
  seconds=$(($(date +%s) - begin))
  count() { grep -oE "[0-9]+ $1" "$folder/$version.log" | tail -1 | grep -oE '[0-9]+' || echo 0; }
  failed=$(($(count failed) + $(count error)))
  which=$(sed -nE 's/^(FAILED|ERROR) tests\/([^ ]*).*/\2/p' "$folder/$version.log" | tr '\n' ' ')
  installed=$("$environment/bin/python" -m pip list 2> /dev/null | awk '$1 == "torchvision" { print $2 }')
  echo "$version,$installed,$(count passed),$failed,$seconds,${which% }"
  [ $keep = yes ] || rm -rf "$environment"
done
exit $status
