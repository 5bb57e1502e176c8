#!/usr/bin/env bash
# Builds notice what has changed, say how far they are, and end with what the program said: in a step of two files
# around the real build.mk and stage.mk, which is moved, with all that was built in it.
source "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
cd "$(dirname "$0")/../.." || exit 1

run() { make -C "$1/01_answer" run BACKEND=cpu COUNT=0 CXX="${CXX:-g++}" >"$scratch/log" 2>&1; }

# ends_with NAME STATUS DIRECTORY: the step there builds, and its program ends with STATUS.
ends_with() {
  local got=0
  run "$3" || got=1
  [ $got = "$2" ] && { [ $got = 0 ] || grep -q 'the answer is wrong' "$scratch/log"; }
  count "$1: ended with $got, expected $2" $?
}

answer() { echo "inline int answer() { return $2; }" >"$1/01_answer/answer.cuh"; }

tree=$scratch/first
mkdir -p "$tree/01_answer" "$tree/common/build" "$tree/common/harness" "$tree/common/simt/include"
cp common/build/build.mk common/build/stage.mk "$tree/common/build/"
[ -e build/setup-cpu.mk ] || common/build/setup.sh cpu build/setup-cpu.mk
# The libraries are those that were found for this tree (setup_test.sh tests how).
printf '%s\n' '#!/bin/sh' "mkdir -p \"\${2%/*}\" && sed 's|\$(ROOT)|$PWD|g' '$PWD/build/setup-cpu.mk' >\"\$2\"" >"$tree/common/build/setup.sh"
chmod +x "$tree/common/build/setup.sh"
echo "#include <cstdio>" >"$tree/common/build/precompiled.hpp"
echo 'include ../common/build/stage.mk' >"$tree/01_answer/Makefile"
printf '%s\n' '#include "answer.cuh"' 'int of_step() { return answer(); }' >"$tree/01_answer/stage.cu"
printf '%s\n' '#include <cstdio>' 'int of_step();' 'int main() {' \
  '  if (of_step() != 42) std::puts("the answer is wrong");' '  return of_step() != 42;' '}' \
  >"$tree/common/harness/main.cpp"

answer "$tree" 42
ends_with 'the right one' 0 "$tree"
mv "$tree" "$scratch/moved"
answer "$scratch/moved" 41
ends_with 'broken after it was moved' 1 "$scratch/moved"
answer "$scratch/moved" 42
ends_with 'mended after it was moved' 0 "$scratch/moved"

# A file out of an archive over the one that was compiled: its date is that of its packing.
answer "$scratch/moved" 41
touch -d '2020-01-01' "$scratch/moved/01_answer/answer.cuh"
tar cf "$scratch/old.tar" -C "$scratch/moved" 01_answer/answer.cuh
answer "$scratch/moved" 42
ends_with 'before the archive' 0 "$scratch/moved"
sleep 1.1  # as fine as some file systems' dates are
tar xf "$scratch/old.tar" -C "$scratch/moved"
ends_with 'broken by a file from an archive, older than what was built' 1 "$scratch/moved"

# ends NAME PATTERN COMMAND...: the command fails, its last line matches, and make says nothing of its own
# but the directory in which it began.
ends() {
  "${@:3}" >"$scratch/log" 2>&1
  [ $? != 0 ] && tail -n 1 "$scratch/log" | grep -Eq "$2" && ! grep -q '\*\*\*' "$scratch/log"
  count "$1" $?
}

fails=(env --default-signal=QUIT make -C "$scratch/moved/01_answer" run BACKEND=cpu COUNT=0 CXX="${CXX:-g++}")
ends 'a program that fails' '^the answer is wrong$' "${fails[@]}"
ends 'a profile of the CUDA backend' '^error: PROFILE=1: .* BACKEND=cpu PROFILE=1$' "${fails[@]}" PROFILE=1 BACKEND=cuda NVCC=true
ends 'no such backend' '^error: BACKEND=gpu: give cpu or cuda$' "${fails[@]}" BACKEND=gpu
(trap '' QUIT && ends_with 'a failure where make ignores the signal' 1 "$scratch/moved" && exit $failed) || failed=$((failed + 1))
rm -rf "$scratch/moved/build/cpu"*
answer "$scratch/moved" 42
ends_with 'a new build' 0 "$scratch/moved"
mv "$scratch/log" "$scratch/build"
case ${CXX:-g++} in g++*)
  # -H lists what is read, precompiled headers with a !.
  rm -rf "$scratch/moved/build/cpu"*
  CXXFLAGS='-O2 -g1 -H' run "$scratch/moved"
  [ "$(grep -c '^! .*/precompiled.hpp.gch/' "$scratch/log")" = 2 ]
  count 'the precompiled headers are used' $? ;;
esac
ends 'its progress' '^  compile 4/4 ' bash -c 'grep "^  compile" "$0" | sort; false' "$scratch/build"

summary
