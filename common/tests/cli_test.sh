#!/usr/bin/env bash
# The programs as a user meets them: exit status, messages, records.
#   cli_test.sh SPMV BROKEN_SPMV
set -u
spmv=$1 broken=$2
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0

# expect NAME STATUS PATTERN COMMAND...: the command ends with STATUS, and a line of what it prints
# on either stream matches the extended regular expression PATTERN.
expect() {
  local name=$1 status=$2 pattern=$3 got
  shift 3
  "$@" >"$scratch/out" 2>"$scratch/err" </dev/null
  got=$?
  if [ $got = "$status" ] && cat "$scratch/out" "$scratch/err" | grep -Eq -- "$pattern"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $name: status $got, expected $status and a line like: $pattern"
    cat "$scratch/out" "$scratch/err" | head -20
  fi
}

# holds NAME COMMAND...: the command succeeds.
holds() {
  local name=$1
  shift
  if "$@" >/dev/null 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $name"
  fi
}

one_error_line() { [ "$(grep -c '' "$scratch/err")" = 1 ] && grep -q '^error: ' "$scratch/err"; }

# --- What is right ---------------------------------------------------------------------------------

expect 'help' 0 'powerlaw' "$spmv" --help
expect 'list' 0 '^02  csr_scalar' "$spmv" --list
expect 'list as JSON' 0 '^  "name": "csr_scalar",' "$spmv" --list --json
expect 'environment' 0 '^backend: c' "$spmv" --environment
expect 'environment as JSON' 0 '^ "commit": "' "$spmv" --environment --json
expect 'run' 0 '^02 +csr_scalar' "$spmv" -m stencil2d:20x20 --json "$scratch/good.jsonl"
holds 'every record is verified' test "$(grep -c '"verified":true' "$scratch/good.jsonl")" = \
  "$(grep -vc '^{"\(run\|matrix\|kernel\)":{' "$scratch/good.jsonl")"
holds 'nothing on stderr when it is no terminal' test ! -s "$scratch/err"
expect 'a record a kernel' 0 '"kernel":"csr_vector_4"' cat "$scratch/good.jsonl"
holds 'one run' test "$(grep -c '^{"run":{' "$scratch/good.jsonl")" = 1
expect 'records name commit and command' 0 '"commit":"[^"]+","command":"spmv' \
  cat "$scratch/good.jsonl"
expect 'one precision or the other' 0 'nonzeros, f32' "$spmv" -m diagonal:9 -p f32 -k csr_scalar
expect 'alpha and beta' 0 'csr_scalar' "$spmv" -m diagonal:9 --alpha 2 --beta -1 -k csr_scalar
expect 'several matrices end with a summary' 0 'verified:$' \
  "$spmv" -m diagonal:9 -m dense:4x5 -k 'csr_*'
expect 'stand-ins are named' 0 'stand-in' env SPMV_DATA="$scratch" "$spmv" -m epb2 -k csr_scalar
expect 'a ladder' 0 '^02 +csr_scalar .* [0-9.]+ +#+$' "$spmv" -m stencil2d:20x20 --ladder
holds 'a ladder fits on a screen' awk 'length > 110 { exit 1 } END { exit NR > 36 }' "$scratch/out"
expect 'a ladder of wrong kernels' 1 '^-- .*WRONG' "$broken" -m stencil2d:20x20 --ladder
expect 'info' 0 'onzeros' "$spmv" info stencil2d:20x20

# --- Programs of steps -----------------------------------------------------------------------------

expect 'the end of a chain' 0 '^02 +csr_scalar +[0-9]+ ' "$spmv" stationary -k csr_scalar \
  -m wlan:C=2,m=1,W=2 --json "$scratch/chains.jsonl"
expect 'its record' 0 '"program":"stationary",.*"kernel":"csr_scalar","verified":true' \
  cat "$scratch/chains.jsonl"
expect 'a chain at a time, from a state' 0 'at time 2, from state 3' "$spmv" transient --time 2 \
  --start 3 -p f32 -k csr_scalar -m wlan:C=2,m=1,W=2
expect 'no answer in so few steps' 1 'FAILED: no answer after 9 steps' "$spmv" stationary \
  -k csr_scalar -m wlan:C=2,m=1,W=2 --max-steps 9 --json "$scratch/early.jsonl"
holds 'what has no answer leaves no record' test ! -s "$scratch/early.jsonl"

# --- What is wrong is found ------------------------------------------------------------------------

expect 'the right one of them' 0 'right' "$broken" -k right -m stencil2d:30x30
expect 'a row that is not written' 1 'FAILED: row 899 \(3 nonzeros\): expected .*got -?nan' \
  "$broken" -k last_row_missing -m stencil2d:30x30 --json "$scratch/bad.jsonl"
holds 'what failed leaves no record' test "$(grep -c '"verified"' "$scratch/bad.jsonl")" = 0
expect 'but a reason' 0 '"kernel":"last_row_missing","failed":"row 899 ' cat "$scratch/bad.jsonl"
expect 'a nonzero left out' 1 'FAILED: row .*900 of 900 rows are wrong' \
  "$broken" -k last_nonzero_missing -m stencil2d:30x30
expect 'the right one has its record, the wrong one has none' 1 'right' \
  "$broken" -k 'right,last_row_missing' -m stencil2d:30x30 --json "$scratch/mixed.jsonl"
holds 'one record' test "$(grep -c '"verified"' "$scratch/mixed.jsonl")" = 1
if "$spmv" -m diagonal:2 -k csr_scalar 2>/dev/null | grep -q '^backend: cpu'; then
  expect 'lanes that never meet' 1 'deadlock: thread .*__syncwarp.*broken.cu:[0-9]+.*__syncthreads' \
    "$broken" -k never_meets -m stencil2d:30x30
  if "$spmv" -m diagonal:2 -k csr_scalar 2>/dev/null | grep -Eq '^02 +csr_scalar +[0-9.]+ +[0-9.]+ '; then
    expect 'a read past the end' 1 "broken.cu:[0-9]+, block .*, thread .*: reads 8 bytes.*'values'" \
      "$broken" -k past_the_end -m stencil2d:30x30
  fi
fi

# --- Bad input -------------------------------------------------------------------------------------

bad() {
  expect "$1" 2 "$2" "${@:3}"
  holds "$1: one line" one_error_line
}
printf '%%%%MatrixMarket matrix coordinate real general\n2 2 1\n3 1 5\n' >"$scratch/bad.mtx"
bad 'an index too large' "^error: $scratch/bad.mtx:3: " "$spmv" -m "$scratch/bad.mtx" \
  --json "$scratch/none.jsonl"
holds 'no record of it' test ! -e "$scratch/none.jsonl"
bad 'no such file' '^error: .*/nothing.mtx: ' "$spmv" -m "$scratch/nothing.mtx"
bad 'a directory' "^error: $scratch" "$spmv" -m "$scratch/"
bad 'no such generator' '^error: ' "$spmv" -m stencil9d:5x5
bad 'a bad size' '^error: ' "$spmv" -m stencil2d:5
bad 'no such matrix' '^error: .*scircuit' "$spmv" -m scircut
bad 'no such kernel' '^error: .*csr_scalar' "$spmv" -k csr_scaler -m diagonal:2
bad 'no such precision' '^error: ' "$spmv" -p f16 -m diagonal:2
bad 'no such option' '^error: .*--help' "$spmv" --fast
bad 'no chain' '^error: stencil2d:5x5: entry .* rates' "$spmv" stationary -m stencil2d:5x5
bad 'a tolerance that f32 cannot meet' '^error: --tolerance 1e-10: f32 cannot' "$spmv" stationary \
  -p f32 --tolerance 1e-10 -m wlan:C=2,m=1,W=2
bad 'a time that takes too many steps' '^error: --time: .*--max-steps' "$spmv" transient --time 1e9 \
  -k csr_scalar -m wlan:C=2,m=1,W=2
bad 'a state that is not there' '^error: --start 99: .* states 0 to ' "$spmv" transient \
  --start 99 -m wlan:C=2,m=1,W=2
bad 'two programs at once' '^error: ' "$spmv" stationary transient
bad 'records without a file' '^error: --json: which file' "$spmv" -m diagonal:2 --json
bad 'records that cannot be written' '^error: ' "$spmv" -m diagonal:2 -k csr_scalar \
  --json "$scratch/no/such/place.jsonl"
printf '%%%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 3 4\n' >"$scratch/z.mtx"
bad 'complex values' '^error: .*--complex real' "$spmv" -m "$scratch/z.mtx" -k csr_scalar
expect 'their magnitude' 0 'csr_scalar' "$spmv" -m "$scratch/z.mtx" -k csr_scalar --complex magnitude
printf '%%%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 nan\n1 2 0\n1 2 1\n' \
  >"$scratch/odd.mtx"
expect 'oddities are said' 0 'duplicate' "$spmv" -m "$scratch/odd.mtx" -k csr_scalar
expect 'NaN is said' 0 'NaN' "$spmv" -m "$scratch/odd.mtx" -k csr_scalar

echo "$passed passed, $failed failed"
[ $failed = 0 ]
