#!/usr/bin/env bash
# What the lessons claim of one GPU, checked and measured on the first GPU of this machine. (Of
# several: 10_multigpu/measure.sh.)
#
#   plots/measure.sh WHAT...   in the root of the repository, after `make build BACKEND=cuda`
#
#   tests       all tests of the repository
#   sanitizers  every kernel of the steps under the four tools of compute-sanitizer
#   race        step 06: one pass and cuSPARSE, on the files in MATRICES and on generated matrices
#   chains      step 08: the formats on Markov chains
#   markov      step 08: how long each format takes to a chain's distribution
#   grids       step 09: CDS and its rivals, 1 to 8 unknowns a point, and sizes that leave the caches
#   counters    Nsight Compute's counts, for plots/prove_counters.py compare
#   check       `make check` in the steps that coursework begins with
#
# Records are appended to files in RECORDS, which is plots/results/DEVICE if not given; MATRICES is
# data, where `make data` puts files; `counters` begins nothing new after LIMIT seconds.
set -euo pipefail
cd "$(dirname "$0")/.."
spmv=${SPMV:-build/cuda/spmv}
device=$("$spmv" --environment --json | sed -nE 's/^ "device": "(.*)",/\1/p' | tr ' ' _)
records=${RECORDS:-plots/results/$device}
mkdir -p "$records"

# FILE KERNELS MATRIX...: both precisions, a process each, of a PROGRAM of a step's own if one is set.
measure() {
  local precision
  for precision in f64 f32; do
    # Unquoted: a program and its options, and a list.
    "$spmv" ${PROGRAM:-} $(printf -- '-m %s ' "${@:3}") --complex real -p $precision -k "$2" --json "$records/$1"
  done
}

generated=(stencil2d:1000x1000 stencil3d:160x160x160 stencil3d:100x100x100,points=27
  stencil3d:140x140x140,points=27 fem:100000,block=3 random:400000x400000,nnz_per_row=3
  random:2000000x2000000,nnz_per_row=16 powerlaw:1000000x1000000,nnz=12000000 rmat:scale=19
  dense:2000x2000)
chains=(m_2.1K m_2.3K m_3K m_14K m_40K m_50K m_68K m_130K m_650K m_1M m_2.6M m_3.7M)
grids=() large=(stencil2d:900x900,dof=4 stencil2d:1300x1300,dof=4 stencil3d:104x104x104,dof=3
  stencil3d:126x126x126,dof=3)
for dof in 1 2 3 4 5 6 7 8; do
  for grid in stencil2d:256x256 stencil2d:512x512 stencil3d:32x32x32 stencil3d:64x64x64; do
    grids+=("$grid,dof=$dof")
  done
done

for what; do
  case $what in
    tests)
      make test BACKEND=cuda ;;
    sanitizers)
      kernels=$("$spmv" --list | awk '/^0[2-9]  / && !/thrust|cub/ { printf "%s%s", comma, $2; comma = "," }')
      for tool in 'memcheck --leak-check full' racecheck initcheck synccheck; do
        for precision in f64 f32; do
          echo "$tool, $precision"
          # Unquoted: a tool and its option.
          compute-sanitizer --error-exitcode 3 --tool $tool "$spmv" -m stencil2d:40x30 -m dense:3x3000 \
            -m powerlaw:2000x2000,nnz=20000 -m diagonal:1 -p $precision -k "$kernels" --verify-only
        done
      done ;;
    race)
      shopt -s nullglob
      measure steps_06_race.jsonl 'pcsr_one_pass,csr_vector,cusparse_csr*,cusparse_coo*' \
        "${generated[@]}" "${MATRICES:-data}"/*.mtx.gz ;;
    chains)
      measure step_08.jsonl 'csr_scalar,csr_vector*,pcsr_one_pass,csr,coo,ell,hyb,dia*,sell*,eigen_csr,csr_openmp,cusparse_csr*,cusparse_coo*,cusparse_sell*' \
        "${chains[@]}" ;;
    markov)
      for program in stationary 'transient --time 100'; do
        # Unquoted: a program and its option.
        PROGRAM=$program measure markov.jsonl \
          'csr,coo,ell,hyb,dia_csr,sell*,csr_vector,pcsr_one_pass,cusparse_*_pre,cusparse_sell_32' m_14K m_130K m_1M m_3.7M
      done ;;
    grids)
      measure step_09.jsonl 'cds*,dia,ell,pcsr_one_pass,cusparse_csr_*,cusparse_sell_*,cusparse_bsr' \
        "${grids[@]}" "${large[@]}" ;;
    counters)
      python3 plots/prove_counters.py measure --device "$device" --seconds "${LIMIT:-3600}" ;;
    check)
      for step in 03_csr_vector 06_pcsr; do make -C $step check BACKEND=cuda; done ;;
    *) echo "measure.sh: '$what' is none of tests, sanitizers, race, chains, markov, grids, counters, check" >&2; exit 2 ;;
  esac
done
