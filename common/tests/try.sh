#!/usr/bin/env bash
# try.sh: runs the README's two commands, and run, test and check of every step, as a user would, and prints a line
# per command with its time, and the commands of the pages: `make try`. Where there are GPUs (those of
# CUDA_VISIBLE_DEVICES, if that is set) it does so with one of them, then with two (make run, make test and step 10),
# and compute-sanitizer on every kernel of the steps; beside it, in a copy, what needs none (make run and make test on
# the CPU backend, the pages' commands).
# What came of each stands in build/try/try.txt, with date, commit, card and driver, and of a GPU in
# plots/results/DEVICE/try.txt, to be committed (plots/REPRODUCE.md). Output: build/try/*.log.
set -u
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit
logs=$PWD/build/try
mkdir -p "$logs"
# Each command is a user's own: it inherits nothing from the make that called this script.
unset MAKEFLAGS MAKELEVEL MFLAGS BACKEND SPMV_BACKEND_REASON

try() {  # CONFIGURATION COMMAND...
  local configuration=$1 said log start=$SECONDS status
  shift
  said=$*
  [ ${#said} -le 130 ] || said="${said:0:127}..."
  log=$logs/$(tr -cs 'a-zA-Z0-9_' - <<<"$configuration $said").log
  timeout --kill-after=10 1200 "$@" >"$log" 2>&1 </dev/null
  status=$?
  printf '%-8s %-42s %4d s  %s\n' "$configuration" "$said" $((SECONDS - start)) \
    "$([ $status = 0 ] && echo passed || echo "FAILED with status $status: build/try/${log##*/}")" | tee -a "$logs/try.txt"
  [ $status = 0 ] || grep -E -A 12 '^FAILED|FAILED:|^error:|Error [0-9]' "$log" | head -n 30 | sed 's/^/           /'
}

both() { try "$1" make run && try "$1" make test; }
step() {  # CONFIGURATION STEP
  local goal
  for goal in run test $([ ! -e "$2/exercise.ini" ] || echo check); do
    try "$1" make -C "$2" "$goal"
  done
}

gpus=()
if nvidia-smi -L >/dev/null 2>&1 && { command -v nvcc >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]; }; then
  IFS=, read -ra gpus <<<"${CUDA_VISIBLE_DEVICES-$(nvidia-smi --query-gpu=index --format=csv,noheader | paste -sd,)}"
fi
device=
commit=$(git rev-parse --short=12 HEAD 2>/dev/null)$([ -z "$(git status --porcelain 2>/dev/null)" ] || echo ' and changes')
printf 'date: %s\ncommit: %s\n' "$(date -u +%FT%TZ)" "$commit" >"$logs/try.txt"
if [ ${#gpus[@]} -gt 0 ]; then
  IFS=, read -r device driver < <(nvidia-smi -i "${gpus[0]}" --query-gpu=name,driver_version --format=csv,noheader)
  printf 'device: %s, %d of them\ndriver: %s\n' "$device" ${#gpus[@]} "${driver# }" >>"$logs/try.txt"
  rm -rf build/copy
  mkdir build/copy
  tar c --exclude=./build . | tar x -C build/copy
  (cd build/copy || exit; BACKEND=cpu both 'no GPU'; BACKEND=cpu try pages make test-commands) &
  export CUDA_VISIBLE_DEVICES=${gpus[0]}
  both '1 GPU'
  for directory in [0-9][0-9]_*/; do
    step '1 GPU' "${directory%/}"
  done
  if command -v compute-sanitizer >/dev/null; then
    # Those of the steps: in cuSPARSE's csrmv_v3_kernel racecheck finds races, which are not ours to mend.
    ours=$(build/cuda/spmv --list | awk '$1 ~ /^[0-9]+$/ && $2 !~ /thrust|cub/ {print $2}' | paste -sd,)
    for tool in memcheck racecheck initcheck synccheck; do
      try '1 GPU' compute-sanitizer --tool $tool --error-exitcode 1 build/cuda/spmv -m stencil2d:40x30 --verify-only \
        -k "$ours"
    done
  else
    echo 'skipped: compute-sanitizer, which is not in PATH' | tee -a "$logs/try.txt"
  fi
  if [ ${#gpus[@]} -gt 1 ]; then
    export CUDA_VISIBLE_DEVICES=${gpus[0]},${gpus[1]}
    both '2 GPUs'
    step '2 GPUs' 10_multigpu
  fi
  wait
else
  both 'no GPU'
  for directory in [0-9][0-9]_*/; do
    step 'no GPU' "${directory%/}"
  done
  BACKEND=cpu try pages make test-commands
fi
passed=$(grep -c ' s  passed$' "$logs/try.txt") failed=$(grep -c ' s  FAILED with' "$logs/try.txt")
echo "$passed passed, $failed failed" | tee -a "$logs/try.txt"
if [ -n "$device" ]; then
  mkdir -p "plots/results/${device// /_}"
  cp "$logs/try.txt" "plots/results/${device// /_}/try.txt"
  echo "plots/results/${device// /_}/try.txt says so: commit it"
fi
[ $failed = 0 ]
