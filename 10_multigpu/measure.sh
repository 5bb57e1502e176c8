#!/usr/bin/env bash
# Everything that this step claims of GPUs, measured and verified; records go to RECORDS.
#
#   measure.sh RECORDS WHAT...   on a machine with GPUs, in the root of the repository
#
#   claims   450 million nonzeros: products of one x, and an iteration by every exchange
#   skewed   R-MAT of scale 24: equal rows against equal nonzeros
#   papers   the matrices of He and Gao's tables 3 to 6, files in data/ or stand-ins
#   weak     as many points a GPU on every number of GPUs
#   huge     a matrix of more than 2^31 nonzeros, on all GPUs
#
# GPUS=1,2,4 says on how many; the last is taken where one number is wanted. SPMV is the program,
# as `make build` leaves it.
set -eu
records=$1
shift
gpus=${GPUS:-1,2,4}
most=${gpus##*,}
spmv=${SPMV:-$(ls build/cuda/spmv build/cuda/10_multigpu/spmv 2>/dev/null | head -n 1)}

# Where the machine has no NCCL, that way is left out.
ways=packed,parts,loads
if "$spmv" multigpu --matrix diagonal:1000 --gpus "$most" --exchange nccl >/dev/null 2>&1; then ways+=,nccl; fi

run() { "$spmv" multigpu --json "$records" "$@"; }

for what; do
  case $what in
    claims) run --matrix stencil3d:256x256x256,points=27 --gpus "$gpus" --exchange "none,$ways" ;;
    skewed) run --matrix rmat:scale=24 --gpus "1,$most" --partition rows,nonzeros --exchange none,packed ;;
    papers)
      for matrix in 2cubes_sphere scircuit Ga41As41H72 F1 ASIC_680ks ecology2 Hamrle3 thermal2 cage14 \
        Transport G3_circuit kkt_power CurlCurl_4 memchip Freescale1; do
        run --matrix $matrix --gpus "$gpus" --partition rows,nonzeros --exchange none,packed --drive loop,graph
      done ;;
    weak)
      for count in ${gpus//,/ }; do
        run --matrix "stencil3d:256x256x$((64 * count)),points=27" --gpus "$count" --exchange none,packed --drive graph
      done ;;
    huge) run --matrix stencil3d:432x432x432,points=27 --gpus "$most" --exchange packed --drive graph ;;
    *) echo "measure.sh: '$what' is none of claims, skewed, papers, weak, huge" >&2; exit 2 ;;
  esac
done
