#!/bin/bash
# Runs every litmus test on a GPU, optimised and not: run.sh BUILD_DIRECTORY [ARCHITECTURE]
# Prints CSV: program, what it is by CUDA's documentation, optimisation, what came, runs with wrong
# results, runs, most wrong results of a run, error. A program that takes more than 6 s "hangs".
set -u
here=$(cd "$(dirname "$0")" && pwd)
build=$1 arch=${2:-90}
mkdir -p "$build"
compile() {  # NAME OPTIONS...
  nvcc -std=c++20 -arch=sm_"$arch" -DSPMV_CUDA -I "$here/../../.." -I "$here" \
    -diag-suppress 177,550,3012,20091,20092 "${@:2}" "$here/gpu.cu" "$here/../../../device/error.cpp" \
    -o "$build/litmus_$1"
}
compile O3 -O3 & compile O0 -O0 -G & wait
echo program,by_documentation,optimisation,outcome,wrong_runs,runs,most_wrong,error
for name in $("$build/litmus_O3" --list); do
  for level in O3 O0; do
    line=$(timeout -k 2 6 "$build/litmus_$level" "$name" 2>/dev/null | tail -1)
    if [ -n "$line" ]; then
      echo "$line" | sed "s/^\([^,]*,[^,]*\),/\1,$level,/"
    else
      echo "$name,,$level,hangs,,,,"
    fi
  done
done
