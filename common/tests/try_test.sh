#!/usr/bin/env bash
# What `make try` runs and notes, with commands that stand for make and for GPUs': try_test.sh
source "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
mkdir -p "$scratch"/tree/{common/tests,02_csr_scalar,10_multigpu,build/cuda} "$scratch/bin"
cp "$(dirname "${BASH_SOURCE[0]}")/try.sh" "$scratch/tree/common/tests"
touch "$scratch/tree/02_csr_scalar/exercise.ini"
command_that() { printf '#!/bin/sh\n%s\n' "$2" >"$1" && chmod +x "$1"; }
command_that "$scratch/bin/make" "echo \"GPUs \$CUDA_VISIBLE_DEVICES: \$*\" >>$scratch/made"'
case "$*" in *10_multigpu*) echo FAILED: it; exit 1 ;; esac'
command_that "$scratch/bin/nvcc" true
command_that "$scratch/tree/build/cuda/spmv" \
  'printf "%s\n" "step kernel" "02 csr_scalar" "05 segscan_thrust" "-- cusparse_csr_alg1"'
command_that "$scratch/bin/compute-sanitizer" true
command_that "$scratch/bin/nvidia-smi" 'case "$*" in -L) ;; *index*) printf "0\n1\n" ;; "-i 5 "*) echo "A Card, 580.1" ;; *) echo "Another, 580.1" ;; esac'
tried=(env -u CUDA_VISIBLE_DEVICES "PATH=$scratch/bin:$PATH")
script=$scratch/tree/common/tests/try.sh

expect 'a failure is one, on a GPU of two' 1 '12 passed, 2 failed' "${tried[@]}" CUDA_VISIBLE_DEVICES=5 bash "$script"
note=$scratch/tree/plots/results/A_Card/try.txt
expect 'date' 0 '^date: 20[0-9-]+T[0-9:]+Z$' cat "$note"
expect 'card' 0 '^device: A Card, 1 of them$' cat "$note"
expect 'driver' 0 '^driver: 580.1$' cat "$note"
expect 'a check' 0 '^1 GPU +make -C 02_csr_scalar check +[0-9]+ s  passed$' cat "$note"
expect 'what failed' 0 '^1 GPU +make -C 10_multigpu run .*FAILED with status 1' cat "$note"
expect 'the sanitizer, of the steps alone' 0 'compute-sanitizer --tool racecheck .* --verify-only -k csr_scalar +[0-9]' cat "$note"
holds 'the sum stands last' test "$(tail -n 1 "$note")" = '12 passed, 2 failed'
holds 'only the GPU that is visible' test "$(grep -vc '^GPUs 5: ' "$scratch/made")" = 0

rm -r "$scratch"/{tree/plots,made,bin/compute-sanitizer}
expect 'all GPUs' 1 '^2 GPUs +make -C 10_multigpu test .*FAILED' "${tried[@]}" bash "$script"
holds 'one, then two' grep -qx 'GPUs 0,1: -C 10_multigpu run' <(grep -A 99 -x 'GPUs 0: run' "$scratch/made")
expect 'how many' 0 '^device: Another, 2 of them$' cat "$scratch/tree/plots/results/Another/try.txt"

rm -r "$scratch/tree/plots"
command_that "$scratch/bin/nvidia-smi" 'echo "NVIDIA-SMI has failed"; exit 9'
expect 'no GPU, whatever is to be visible' 1 '6 passed, 2 failed' "${tried[@]}" CUDA_VISIBLE_DEVICES=0 bash "$script"
holds 'as it says' test "$(grep -c 'GPUs* ' "$scratch/out")" = "$(grep -c '^no GPU ' "$scratch/out")"
holds 'writes nothing into the tree' test ! -e "$scratch/tree/plots"
summary
