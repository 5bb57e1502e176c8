#!/usr/bin/env bash
# Step 10's programs as a user meets them: several GPUs in one process, several processes.
#   test.sh SPMV MINIMAL CONJUGATE_GRADIENTS [SPMV_MPI MPIRUN]
source "$(dirname "${BASH_SOURCE[0]}")/../../common/tests/checks.sh"
spmv=$1 minimal=$2 solver=$3 spmv_mpi=${4:-} mpirun=${5:-}
export ASAN_OPTIONS=detect_leaks=0  # MPI keeps what it has until the end
export OMP_NUM_THREADS=1
limit=60

checksum() { grep -o 'checksum of the result .*' "$scratch/out"; }
# On 1 to 4 emulated GPUs, or on those of this machine. The number of rows is also the seed of the schedule.
for gpus in 1 2 3 4; do
  for rows in 1 3 300; do
    expect "minimal.cu on $gpus GPUs, $rows rows" 0 "^5 steps: verified, 0 of $rows " \
      env SIMT_DEVICES=$gpus SIMT_SEED=$rows "$minimal" $rows 5
  done
done
expect 'minimal.cu without rows' 2 '^usage' "$minimal" 0
for gpus in 1 2 3; do
  expect "conjugate gradients on $gpus GPUs" 0 '^23 iterations, a sequential solver 23; .*: verified' \
    env SIMT_DEVICES=$gpus "$solver" stencil3d:7x8x9,points=27
done
expect 'a matrix that is not symmetric' 2 '^error: powerlaw.*: not symmetric and positive definite' \
  env SIMT_DEVICES=3 "$solver" powerlaw:300x300,nnz=2000
expect 'a matrix that is not square' 2 '^error: random:9x8: not a square matrix' "$solver" random:9x8
expect 'no matrix' 2 '^usage' "$solver"
small="--matrix stencil2d:9x8 --iterate 4"
expect 'a table of parts' 0 '^ +2 +24 ' "$spmv" multigpu $small --gpus 3 --exchange packed,stores,parts \
  --partition rows --json "$scratch/records"
if grep -q '3 parts on' "$scratch/out"; then
  echo 'skipped: a record for each way: there are fewer than 3 GPUs'
else
  holds 'a record for each way' test "$(grep -c '"exchange":"[a-z]*","steps":4' "$scratch/records")" = 3
fi
expect 'a trace' 2 '^error: .*--trace' "$spmv" multigpu $small --trace "$scratch/trace"
expect 'a matrix that is not square' 2 '^error: --exchange packed: random:9x8 has 9 rows' \
  "$spmv" multigpu --gpus 2 --exchange packed --matrix random:9x8
expect 'but a product of it' 0 'verified' "$spmv" multigpu --gpus 2 --matrix random:9x8
expect 'a number of GPUs that no machine has' 2 '^error: .*--gpus' "$spmv" multigpu --gpus 99
expect 'a kernel that is not for parts' 2 "^error: --kernel '?csr_sequential" \
  "$spmv" multigpu --gpus 2 --kernel csr_sequential
expect 'a kernel that no persistent kernel is' 2 '^error: --kernel pcsr: .*--exchange stores' "$spmv" multigpu $small \
  --exchange stores --kernel pcsr
expect 'single precision' 2 '^error: multigpu: it multiplies in double' "$spmv" multigpu $small --precision f32
expect 'steps after which x is too large' 2 '^error: after 5000 steps .*--iterate' "$spmv" multigpu \
  --matrix dense:4x4 --gpus 1 --exchange packed --iterate 5000
expect 'the result' 0 'checksum' "$spmv" multigpu $small --gpus 1 --exchange packed --kernel pcsr
result=$(checksum)

if [ -n "$spmv_mpi" ]; then
  for ranks in 1 3; do
    expect "$ranks ranks" 0 'verified: the first step and the last' $mpirun -np $ranks "$spmv_mpi" \
      $small --exchange mpi --kernel pcsr
    holds "$ranks ranks have the bits of one process" test "$(checksum)" = "$result"
  done
  {
    echo '%%MatrixMarket matrix coordinate real symmetric'
    echo '5 5 6'
    printf '%s\n' '1 1 4' '2 1 -1' '3 3 2' '5 1 1.5' '5 5 3' '4 4 1'
  } >"$scratch/small.mtx"
  gzip -c "$scratch/small.mtx" >"$scratch/packed.mtx.gz"
  expect 'the result of a file' 0 checksum "$spmv" multigpu --matrix "$scratch/small.mtx" --gpus 1 \
    --exchange packed --kernel pcsr --iterate 4
  result=$(checksum)
  for file in small.mtx packed.mtx.gz; do
    expect "each rank reads its rows of $file" 0 '^ +1 +[0-9]+' $mpirun -np 3 "$spmv_mpi" \
      --matrix "$scratch/$file" --exchange mpi --kernel pcsr --iterate 4
    holds 'with the same result' test "$(checksum)" = "$result"
  done
  # A fault in the last line: all ranks hear of it, and one says so.
  printf '%s\n' '%%MatrixMarket matrix coordinate real general' '2 2 2' '1 1 5' '3 1 5' \
    >"$scratch/bad.mtx"
  expect 'a file that is wrong' 2 '^error: .*bad.mtx:4: ' $mpirun -np 3 "$spmv_mpi" \
    --matrix "$scratch/bad.mtx" --exchange mpi
  holds 'gives one error message' test "$(grep -c '^error: ' "$scratch/err")" = 1
  # One rank alone cannot do its part: it is given another matrix, which is not there. (A shell tells
  # the ranks apart; programs with a colon between are too much for Open MPI 5.0.7.)
  expect 'a rank that fails alone ends all' 2 '^error: .*nothing.mtx: no such file' \
    $mpirun -np 3 bash -c '[ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-}}" = 2 ] && matrix=nothing || matrix=small
      exec "$0" --matrix "$1/$matrix.mtx" --exchange mpi' "$spmv_mpi" "$scratch"
  holds 'with one message' test "$(grep -c '^error: ' "$scratch/err")" = 1

  expect 'parts without rows' 0 verified $mpirun -np 3 "$spmv_mpi" --matrix diagonal:1
  expect 'no rows at all' 0 verified $mpirun -np 2 "$spmv_mpi" --matrix stencil2d:0x0
  expect 'two ranks, recorded' 0 verified $mpirun -np 2 "$spmv_mpi" $small --json "$scratch/of_ranks"
  if grep -q '^ranks share GPUs' "$scratch/out"; then
    holds 'no times of ranks that share a GPU' test ! -e "$scratch/of_ranks"
  else
    holds 'as what it is' grep -q '"ranks":2,.*"exchange":"mpi","steps":4,' "$scratch/of_ranks"
  fi
  expect 'a rank that dies ends all' 137 'signal 9' $mpirun -np 2 bash -c '
    [ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-}}" = 1 ] && { sleep 3; kill -KILL $$; } &
    exec "$0" --matrix stencil2d:9x8 --iterate 1000000' "$spmv_mpi"
  expect 'an exchange that is none' 2 '^error: .*--exchange' $mpirun -np 2 "$spmv_mpi" $small --exchange stores
  expect 'a part above the limit of memory' 2 '^error: .*: the part of rank [01] needs .*--memory-limit' \
    $mpirun -np 2 "$spmv_mpi" --matrix stencil2d:300x300 --memory-limit 1M --exchange mpi
  expect 'help' 0 'iterate' $mpirun -np 2 "$spmv_mpi" --help
  expect 'no such option' 2 '^error: .*--help' $mpirun -np 2 "$spmv_mpi" --fast
else
  echo 'skipped: several processes: no MPI was found'
fi

summary
