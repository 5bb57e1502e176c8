#!/usr/bin/env bash
# Each step stands on its own: in a directory with nothing but the step, common/ and the steps that its Makefile
# declares with NEEDS, it builds, runs and passes its tests.
#   alone_test.sh [STEP...]
# What build/cpu has of them is copied, too. If an object was compiled from a file that the directory lacks, make
# compiles it again there, and that fails.
set -u
cd "$(dirname "$0")/../.." || exit 1
unset MAKEFLAGS MAKELEVEL MFLAGS

# copy DIRECTORY PART...: sources and what was compiled of them, whose lists of headers name the new place.
copy() {
  local directory=$1
  shift
  tar c --exclude=__pycache__ "$@" | tar x -C "$directory"
  for part; do
    [ ! -d "build/cpu/$part" ] || find "build/cpu/$part" \( -name '*.[od]' -o -name '*.cuh' \) -print0 | tar c --null -T - | tar x -C "$directory"
  done
  find "$directory/build" -name '*.d' -exec sed -i "s|$PWD/|$directory/|g" {} +
}

# alone DIRECTORY STEP: the test of one step, in a directory that holds common/ already, or nothing.
alone() {
  local step=$2 built
  local places=(build/setup-cpu.mk build/cpu/precompiled build/cpu/precompiled-light)
  # Without its mark make takes no source for newer than what was compiled of it (build.mk).
  rm -rf "$1"/[0-9][0-9]_* "$1"/build/cpu/{[0-9][0-9]_*,looked}
  if [ ! -e "$1/common" ]; then
    mkdir -p "$1/build"
    copy "$1" common
    for built in "${places[@]}"; do
      [ ! -e $built ] || tar c $built | tar x -C "$1"
    done
  fi
  copy "$1" "$step" $(sed -n 's/^NEEDS *:= *//p' "$step/Makefile")
  timeout -k 10 1200 make -C "$1/$step" BACKEND=cpu run MATRIX=stencil2d:40x30 &&
    timeout -k 10 1200 make -C "$1/$step" BACKEND=cpu test
}

if [ "${1:-}" = --in ]; then
  if alone "$2-$slot" "$3" >"$2-$3.log" 2>&1; then
    { echo "$3: passed alone, in $SECONDS s"; grep -E '^ *skipped: |^All tests passed|^[0-9]+ passed, ' "$2-$3.log"; }
  else
    { echo "FAILED: $3 alone"; tail -n 60 "$2-$3.log"; }
  fi
  exit
fi

scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
# The steps whose tests take longest first, as many at a time as there are processors.
[ $# -gt 0 ] || set -- $(ls -d [0-9][0-9]_* | sort -r)
printf '%s\n' "$@" | xargs -P "$(nproc)" -I STEP --process-slot-var=slot bash "$0" --in "$scratch/tree" STEP | tee "$scratch/told"
passed=$(grep -c ': passed alone, ' "$scratch/told")
echo "$passed passed, $(($# - passed)) failed"
[ "$passed" = $# ]
