#!/usr/bin/env bash
# What `make try` notes of a run, with commands that stand for make and for a GPU's: try_test.sh
source "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
mkdir -p "$scratch"/tree/{common/tests,02_csr_scalar,10_multigpu} "$scratch/bin"
cp "$(dirname "${BASH_SOURCE[0]}")/try.sh" "$scratch/tree/common/tests"
touch "$scratch/tree/02_csr_scalar/exercise.ini"
command_that() { printf '#!/bin/sh\n%s\n' "$2" >"$scratch/bin/$1" && chmod +x "$scratch/bin/$1"; }
command_that make 'case "$*" in *10_multigpu*) echo FAILED: it; exit 1 ;; esac'
command_that nvcc true
mkdir -p "$scratch/tree/build/cuda"
printf '#!/bin/sh\necho "step kernel"\necho "02 csr_scalar"\necho "05 segscan_thrust"\necho "-- cusparse_csr_alg1"\n' >"$scratch/tree/build/cuda/spmv"
chmod +x "$scratch/tree/build/cuda/spmv"
command_that compute-sanitizer true
command_that nvidia-smi 'case $1 in -L) echo "GPU 0: A Card" ;; *) echo "A Card, 580.1" ;; esac'
tried=(env "PATH=$scratch/bin:$PATH" bash "$scratch/tree/common/tests/try.sh")

expect 'a failure is one' 1 '12 passed, 2 failed' "${tried[@]}"
note=$scratch/tree/plots/results/A_Card/try.txt
expect 'date' 0 '^date: 20[0-9-]+T[0-9:]+Z$' cat "$note"
expect 'card' 0 '^device: A Card, 1 of them$' cat "$note"
expect 'driver' 0 '^driver: 580.1$' cat "$note"
expect 'a check' 0 '^1 GPU +make -C 02_csr_scalar check +[0-9]+ s  passed$' cat "$note"
expect 'what failed' 0 '^1 GPU +make -C 10_multigpu run .*FAILED with status 1' cat "$note"
expect 'the sanitizer, of the steps alone' 0 'compute-sanitizer --tool racecheck .* --verify-only -k csr_scalar +[0-9]' cat "$note"
holds 'the sum stands last' test "$(tail -n 1 "$note")" = '12 passed, 2 failed'

rm -r "$scratch/tree/plots" && rm "$scratch/bin/compute-sanitizer"
command_that nvidia-smi 'exit 1'
expect 'no GPU' 1 '6 passed, 2 failed' "${tried[@]}"
holds 'writes nothing into the tree' test ! -e "$scratch/tree/plots"
summary
