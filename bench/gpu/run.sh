#!/bin/sh
# Builds a folder that checks a GPU, complete in itself, of at most 60 MiB: programs for sm_90 and PTX, the shared libraries
# that they need beside what every machine with a GPU has, results of the host, and check.sh. Where there is a GPU, runs it;
# else the folder is copied to a machine that has one, and ./check.sh is run there.
#
#   bench/gpu/run.sh [--no-build] [BUILD]     BUILD: build folder, build/gpu by default; the folder is BUILD/check
#                                             --no-build: takes the programs that are in BUILD/bin
#   bench/gpu/run.sh --help
#
#   NEAP_JOBS     compilers at a time, 2
set -e
case $1 in
  -h | --help)
    sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
source=$(cd "$(dirname "$0")/../.." && pwd)
builds=yes
[ "$1" != "--no-build" ] || { builds=no; shift; }
build=${1:-$source/build/gpu}
folder=$build/check

if [ $builds = yes ]; then
  mkdir -p "$(dirname "$build")"
  cmake -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=Release -DNEAP_CUDA=ON -DNEAP_NATIVE=OFF -DNEAP_BUILD_TESTS=OFF \
    -DNEAP_BUILD_EXAMPLES=ON -DNEAP_BUILD_BENCH=ON > "$build.log" 2>&1 || { cat "$build.log"; exit 1; }
  cmake --build "$build" --target gpu_programs neap -j "${NEAP_JOBS:-2}"
fi

rm -rf "$folder"
mkdir -p "$folder/lib"
cp "$source/bench/gpu/check.sh" "$source/bench/gpu/torch_steps.py" "$source/bench/torch_door.py" "$folder/"
mkdir -p "$folder/torch/tests"
cp -r "$source/examples/torch/neap_torch" "$folder/torch/"
cp "$source/examples/torch/tests/models.py" "$folder/torch/tests/"
for program in gpu_check gpu_attention gpu_algorithms; do
  [ -x "$build/bin/$program" ] || continue
  cp "$build/bin/$program" "$folder/"
  strip "$folder/$program"
done
cp "$build/bin/neap" "$folder/planner"
strip "$folder/planner"
cat > "$folder/neap" << 'END'
#!/bin/sh
here=$(dirname "$0")
LD_LIBRARY_PATH=$here/lib exec "$here/planner" "$@"
END
chmod +x "$folder/neap"
if [ -e "$build/bin/libgpu_libraries.so" ]; then
  cp "$build/bin/libgpu_libraries.so" "$folder/"
  cp "$source/bench/gpu/gpu_libraries.sh" "$folder/gpu_libraries"
  strip "$folder/libgpu_libraries.so"
fi
programs=$(ls "$folder"/gpu_* "$folder"/libgpu_*.so "$folder/planner" 2> /dev/null | grep -v '/gpu_libraries$')
# The C and C++ libraries are the machine's.
ldd $programs | while read -r name arrow file rest; do
  [ "$arrow" = "=>" ] || continue
  case $name in
    linux-vdso* | libc.* | libm.* | libdl.* | librt.* | libpthread.* | libstdc++.* | libgcc_s.* | ld-linux* | libcu*) ;;
    *) [ -e "$folder/lib/$name" ] || cp -L "$file" "$folder/lib/" && strip "$folder/lib/$(basename "$file")" 2> /dev/null || true ;;
  esac
done
# All that they need is there, and found there, or is the machine's.
missing=$(LD_LIBRARY_PATH=$folder/lib ldd $programs | grep 'not found' | grep -v -e 'libcuda\.' -e 'libcublas' -e 'libcudnn' || true)
[ -z "$missing" ] || { echo "shared libraries are missing: $missing" >&2; exit 1; }
for library in "$folder"/lib/*; do
  name=$(basename "$library")
  elsewhere=$(LD_LIBRARY_PATH=$folder/lib ldd $programs | grep "$name => " | grep -v -F "=> $library " || true)
  [ -z "$elsewhere" ] || { echo "not taken from the folder: $elsewhere" >&2; exit 1; }
done
"$folder/gpu_check" record "$folder/operators.bin"

gzip -9 "$folder"/lib/*  # check.sh unpacks them

kib=$(du -sk "$folder" | cut -f1)
echo "$folder: $((kib / 1024)) MiB"
[ "$kib" -le 61440 ] || { echo "more than 60 MiB" >&2; exit 1; }
if "$folder/gpu_check" properties > /dev/null 2>&1; then
  "$folder/check.sh" "$build/results"
else
  "$folder/check.sh" "$build/results" | sed 's/^/  /'
  for file in "$folder"/lib/*.gz; do rm -f "${file%.gz}"; done
  echo "no GPU here: copy $folder to a machine that has one, and run ./check.sh there"
fi
