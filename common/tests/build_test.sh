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
cp common/build/{build.mk,stage.mk,once.py} "$tree/common/build/"
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
mkdir "$scratch/it's" && cp -r "$scratch"/moved/{common,01_answer} "$scratch/it's/"
expect 'a place with an apostrophe is refused' 2 'make cannot work in' make -C "$scratch/it's/01_answer" run
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then  # as another user, who may read the tree alone
  chmod 755 "$scratch"
  ends 'a tree of another user' '^error: .*/moved/build/cpu-uncounted belongs to [a-z]+, and you cannot write to it: copy the tree' \
    env --default-signal=QUIT setpriv --reuid=65534 --regid=65534 --clear-groups make -C "$scratch/moved/01_answer" run BACKEND=cpu COUNT=0
fi

# Two at once in one tree, of which neither meets what the other has half made.
rm -rf "$scratch/moved/build/cpu"*
answer "$scratch/moved" 42
pids=()
for one in first second; do
  make -C "$scratch/moved/01_answer" run BACKEND=cpu COUNT=0 CXX="${CXX:-g++}" >"$scratch/$one.log" 2>&1 &
  pids+=($!)
done
for pid in "${pids[@]}"; do
  wait "$pid"
  count 'two at once' $?
done
answer "$scratch/moved" 41

# A warning in a template comes once, an error as it is, and the status is the compiler's.
cat >"$scratch/compiler" <<'END'
#!/bin/sh
for n in 1 2 3; do
  echo "mine.cuh: In instantiation of 'void f(T*) [with T = float; int n = $n]':" >&2
  echo "stage.cu:9:5:   required from here" >&2
  echo "mine.cuh:7:3: warning: unused variable 'a$n' [-Wunused-variable]" >&2
  echo "    7 |   int a;" >&2
  echo "mine.cuh:7:3: note: declared here" >&2
done
echo "mine.cuh:8:3: warning: another [-Wother]" >&2
[ $# = 0 ] || { echo "mine.cuh: In function 'f':" >&2; echo "mine.cuh:9:3: error: wrong" >&2; exit 3; }
END
chmod +x "$scratch/compiler"
python3 common/build/once.py "$scratch/compiler" 2>"$scratch/said"
count 'a compiler that warns' $?
[ "$(grep -c warning "$scratch/said") $(wc -l <"$scratch/said")" = '2 4' ]
count 'each warning once, without its instantiation' $?
python3 common/build/once.py "$scratch/compiler" fails 2>"$scratch/said"
[ "$? $(tail -n 2 "$scratch/said" | tr '\n' ' ')" = "3 mine.cuh: In function 'f': mine.cuh:9:3: error: wrong " ]
count 'an error with its function' $?

# The rooms of common/ use what their READMEs say.
mkdir -p "$scratch/rooms/common"/{a,b/tests,c}
echo 'Uses: `b`.' >"$scratch/rooms/common/a/README.md"
printf 'Uses: no other room.\n\nIts tests use: `a`.\n' >"$scratch/rooms/common/b/README.md"
touch "$scratch/rooms/common/c/README.md"
echo '#include "b/b.hpp"' >"$scratch/rooms/common/a/a.cpp"
echo '#include "a/a.hpp"' | tee "$scratch/rooms/common/b/b.cpp" "$scratch/rooms/common/b/tests/b.cpp" >/dev/null
echo 'import b_module' >"$scratch/rooms/common/c/c.py"
touch "$scratch/rooms/common/b/b_module.py"
(cd common/build && python3 -c 'import sys, check_rooms, pathlib; print(*check_rooms.faults(pathlib.Path(sys.argv[1])), sep="\n")' \
  "$scratch/rooms/common") >"$scratch/said"
[ "$(cat "$scratch/said")" = 'common/b/b.cpp: uses a, which common/b/README.md does not allow
common/c/README.md: has no line '"'Uses: ...', which names rooms" ]
count 'a room that uses what it may not, and one that does not say' $?

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

# For a GPU: again for other architectures, if they are given.
printf '%s\n' '#!/bin/sh' "echo \"\$*\" | grep -o 'sm_[0-9]*' >>$scratch/architectures" \
  'while [ "$1" != -o ]; do [ "$1" != -MF ] || : >"$2"; shift; done' ': >"$2"' >"$scratch/nvcc"
chmod +x "$scratch/nvcc"
for given in CUDA_ARCHS=80 CUDA_ARCHS=80 CUDA_ARCHS=90 KERNELS=; do
  make -C "$scratch/moved/01_answer" BACKEND=cuda NVCC="$scratch/nvcc" $given \
    "$scratch/moved/build/cuda/01_answer/stage.cu.o" >"$scratch/log" 2>&1
done
[ "$(paste -sd' ' "$scratch/architectures")" = 'sm_80 sm_90' ]
count 'compiled again for other architectures, and not otherwise' $?

summary
