#!/usr/bin/env bash
# minimal.cu on 1 to 4 emulated GPUs, or on the GPUs of this machine:  minimal_test.sh MINIMAL
# The number of rows is also the seed of the schedule. GPUs without peer access are a refusal, not a failure.
failed=0
for gpus in 1 2 3 4; do
  for rows in 1 3 300; do
    out=$(SIMT_DEVICES=$gpus SIMT_SEED=$rows timeout 120 "$1" $rows 5 2>&1) && [[ $out == *"5 steps: verified, 0 of $rows "* ]] ||
      [[ $out == *"peer access"* ]] || { failed=1 && echo "FAILED: minimal on $gpus GPUs, $rows rows: $out"; }
  done
done
"$1" 0 >/dev/null 2>&1
[ $? = 2 ] || { failed=1 && echo 'FAILED: minimal: 0 rows are refused'; }
[ $failed = 0 ] && echo 'minimal: all passed'
