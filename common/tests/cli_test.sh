#!/usr/bin/env bash
# The programs as a user meets them: exit status, messages, records.
#   cli_test.sh SPMV BROKEN_SPMV
source "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
spmv=$1 broken=$2

# The CPU backend draws what a kernel moves, a GPU what share of the copy bandwidth it reaches.
case $("$spmv" --environment) in
  *'"backend": "cuda"'*) backend=cuda ;;
  *) backend=cpu ;;
esac

one_error_line() { [ "$(grep -c '' "$scratch/err")" = 1 ] && grep -q '^error: ' "$scratch/err"; }

# --- What is right ---------------------------------------------------------------------------------

expect 'help' 0 'powerlaw' "$spmv" --help
expect 'list' 0 '^02  csr_scalar' "$spmv" --list
expect 'list as JSON' 0 '^  "name": "csr_scalar",' "$spmv" --list --json
expect 'environment' 0 '^ "commit": "' "$spmv" --environment
expect 'run' 0 '^02 +csr_scalar' "$spmv" -m stencil2d:20x20 --json "$scratch/good.jsonl"
# What a kernel refused has a reason in the place of a measurement.
holds 'every record is verified' test "$(grep -c '"verified":true' "$scratch/good.jsonl")" = \
  "$(grep -v '"refused":"' "$scratch/good.jsonl" | grep -vc '^{"\(run\|matrix\|kernel\|code\)":{')"
holds 'nothing on stderr when it is no terminal' test ! -s "$scratch/err"
expect 'a record a kernel' 0 '"kernel":"csr_vector_4"' cat "$scratch/good.jsonl"
holds 'one run' test "$(grep -c '^{"run":{' "$scratch/good.jsonl")" = 1
expect 'records name commit and command' 0 '"commit":"[^"]+","command":"spmv' \
  cat "$scratch/good.jsonl"
expect 'one precision or the other' 0 'nonzeros, f32' "$spmv" -m diagonal:9 -p f32 -k csr_scalar
expect 'alpha and beta' 0 'csr_scalar' "$spmv" -m diagonal:9 --alpha 2 --beta -1 -k csr_scalar
expect 'several matrices end with a summary' 0 '^step +kernel +diagonal:9 +dense:4x5$' \
  "$spmv" -m diagonal:9 -m dense:4x5 -k 'csr_scalar,csr_vector'
last_line_is() { [ "$(tail -1 "$scratch/out")" = "Verified against sums in long double: $1." ]; }
holds 'and with how many results were verified' last_line_is 'all 4 results'
expect 'one result' 0 '^Verified against sums in long double: 1 result\.$' "$spmv" -m diagonal:9 -k csr_scalar
expect 'kernels that do not suit are no success' 0 'unsuitable' "$spmv" -m diagonal:9 -k csr_scalar,dia --padding-limit 0.5
holds 'and counted' last_line_is '1 of 2 results; unsuitable: 1'
# --- Another order: verified in the original numbering, and named in the records.
for order in columns degree rcm; do
  expect "--order $order" 0 "^powerlaw:300x300,nnz=3000,order=$order \\(generated\\): 300 rows" \
    "$spmv" -m powerlaw:300x300,nnz=3000 --order $order --beta 2 --json "$scratch/order.jsonl"
done
holds 'no kernel is wrong in another order' test "$(grep -c '"failed"' "$scratch/order.jsonl")" = 0
expect 'is another matrix in records' 0 '"matrix":"powerlaw:300x300,nnz=3000,order=rcm"' cat "$scratch/order.jsonl"
expect 'which say what it cost' 0 '"order_ms":' cat "$scratch/order.jsonl"
expect 'a reordered matrix is described' 0 '^stencil2d:9x9,order=rcm' "$spmv" info stencil2d:9x9 --order rcm
expect 'an unknown order' 2 '^error: --order: .*none,rcm,columns,degree' "$spmv" -m diagonal:9 --order amd
expect "no order in a step's program" 2 "^error: --order: a step's program" "$spmv" stationary -m m_2.1K --order rcm
expect 'stand-ins are named' 0 'stand-in' env SPMV_DATA="$scratch" "$spmv" -m epb2 -k csr_scalar
[ $backend = cpu ] && rung='[0-9.]+ +#+' || rung='[0-9.]+ +[0-9]+% *#*'
expect 'a ladder' 0 "^02 +csr_scalar .* $rung\$" "$spmv" -m stencil2d:20x20 --ladder
holds 'a ladder fits on a screen' awk 'length > 110 { exit 1 } END { exit NR > 36 }' "$scratch/out"
holds 'a ladder says that it was verified' grep -q '^Verified against sums in long double: all [0-9]* results\.$' "$scratch/out"
holds 'a ladder says what kernels chose' grep -q '^Chosen for this matrix: csr_vector: 2 lanes per row' "$scratch/out"
expect 'a ladder of two matrices' 0 '^ +diagonal:9 +powerlaw:900x900$' "$spmv" -m diagonal:9 -m powerlaw:900x900 -m diagonal:2 --ladder
holds 'side by side' grep -qE "^02 +csr_scalar .* ($([ $backend = cpu ] && echo '(launches|longest row) +[0-9.]+' || echo '[0-9]+%').*){2}\$" "$scratch/out"
holds 'fits on a screen, too' awk 'length > 110 { exit 1 } END { exit NR > 36 }' "$scratch/out"
holds 'and says what failed where' grep -q '^cds on powerlaw:900x900: ' "$scratch/out"
if [ $backend = cpu ]; then
  expect 'an estimate with its interval and limit' 0 '^02 +csr_scalar +[0-9.]+ \([0-9.]+ to [0-9.]+\) +launches ' \
    "$spmv" -m stencil2d:20x20 -k 'csr_*'
  holds 'a table is at most 110 columns wide' awk 'length > 110 { exit 1 }' <(grep -v '^backend: ' "$scratch/out")
  expect 'another GPU' 0 '^02 +csr_scalar +[0-9.]+ +launches ' "$spmv" -m stencil2d:20x20 -k csr_scalar --gpu t4
  holds 'whose times were never measured' grep -q '^Without an interval: scaled from the H200' "$scratch/out"
  expect 'a GPU without parameters' 0 '^No estimate for csr_scalar: .* no parameters of an NVIDIA Tesla C2050' \
    "$spmv" -m stencil2d:20x20 -k csr_scalar --gpu c2050
  expect 'an unknown GPU' 2 '^error: --gpu: .*h200,.*t4' "$spmv" -m stencil2d:20x20 --gpu gtx
  expect 'a limit in a profile' 0 '^NVIDIA H200: .* us, by the time model; limit: launches$' \
    "$spmv" -m stencil2d:20x20 -k csr_scalar --profile
  expect 'a profile, not a ladder' 0 '^=== csr_scalar' "$spmv" -m stencil2d:20x20 -k csr_scalar --ladder --profile
else
  expect 'no profile on a GPU' 2 '^error: --profile is an option of the CPU backend' "$spmv" -m stencil2d:20x20 --profile
  expect 'a table on a GPU' 0 '^02 +csr_scalar +[0-9.]+ ' "$spmv" -m stencil2d:20x20
  holds 'is at most 110 columns wide' awk 'length > 110 { exit 1 }' <(grep -v '^backend: ' "$scratch/out")
  expect 'all of its columns' 0 'setup ms .* quartiles .* pays off' "$spmv" -m stencil2d:20x20 -k csr_scalar --wide
fi
expect 'a ladder of wrong kernels' 1 '^-- +last_row_missing .*WRONG' \
  "$broken" -m stencil2d:20x20 -k 'right,last_row_missing' --ladder
holds 'and its last line' last_line_is '1 of 2 results; WRONG: 1'
expect 'info' 0 'onzeros' "$spmv" info stencil2d:20x20

# --- Programs of steps -----------------------------------------------------------------------------

expect 'the end of a chain' 0 '^02 +csr_scalar +[0-9]+ ' "$spmv" stationary -k csr_scalar \
  -m wlan:C=2,m=1,W=2 --json "$scratch/chains.jsonl"
expect 'its record' 0 '"program":"stationary",.*"kernel":"csr_scalar","verified":true' \
  cat "$scratch/chains.jsonl"
expect 'a chain at a time' 0 'at time 2, from state 0' "$spmv" transient --time 2 \
  -p f32 -k csr_scalar -m wlan:C=2,m=1,W=2
expect 'no answer in so few steps' 1 'FAILED: no answer after 9 steps' "$spmv" stationary \
  -k csr_scalar -m wlan:C=2,m=1,W=2 --max-steps 9 --json "$scratch/early.jsonl"
holds 'what has no answer leaves no record' test ! -s "$scratch/early.jsonl"

# --- What is wrong is found ------------------------------------------------------------------------

expect 'the right one of them' 0 'right' "$broken" -k right -m stencil2d:30x30
expect 'a row that is not written' 1 'FAILED: row 899 \(3 nonzeros\): expected .*got NaN: never written' \
  "$broken" -k last_row_missing -m stencil2d:30x30 --json "$scratch/bad.jsonl"
holds 'what failed leaves no record' test "$(grep -c '"kernel":"last_row_missing".*"verified"' "$scratch/bad.jsonl")" = 0
expect 'but a reason' 0 '"kernel":"last_row_missing","failed":"row 899 ' cat "$scratch/bad.jsonl"
expect 'a nonzero left out' 1 'FAILED: row .*900 of 900 rows are wrong' \
  "$broken" -k last_nonzero_missing -m stencil2d:30x30
if [ $backend = cpu ]; then
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
bad 'no such kernel' '^error: .*csr_scalar' "$spmv" -k csr_scaler -m diagonal:2
bad 'no such precision' '^error: ' "$spmv" -p f16 -m diagonal:2
bad 'no such option' '^error: .*--help' "$spmv" --fast
bad 'no chain' '^error: stencil2d:5x5: entry .* rates' "$spmv" stationary -m stencil2d:5x5
bad 'a tolerance that f32 cannot meet' '^error: --tolerance 1e-10: f32 cannot' "$spmv" stationary \
  -p f32 --tolerance 1e-10 -m wlan:C=2,m=1,W=2
bad 'a time that takes too many steps' '^error: --time: .*--max-steps' "$spmv" transient --time 1e9 \
  -k csr_scalar -m wlan:C=2,m=1,W=2
bad 'records without a file' '^error: --json: which file' "$spmv" -m diagonal:2 --json
bad 'records that cannot be written' '^error: .*place.jsonl: ' "$spmv" -m diagonal:2 -k csr_scalar \
  --json "$scratch/no/such/place.jsonl"

# Options: empty, out of range, no number. Each message names the option.
for option in kernel matrix json alpha beta seed workers padding-limit memory-limit; do
  bad "--$option without a text" "^error: .*--$option" "$spmv" -m diagonal:2 "--$option" ''
done
for option in alpha beta padding-limit; do
  for number in nan inf -inf 1e400 1e 0x; do
    bad "--$option $number" "^error: .*--$option" "$spmv" -m diagonal:2 "--$option=$number"
  done
done
for option in seed workers memory-limit; do
  for number in -1 1.5 nan 99999999999999999999; do
    bad "--$option $number" "^error: .*--$option" "$spmv" -m diagonal:2 "--$option=$number"
  done
done
bad 'a factor beyond f32' '^error: --alpha: 1e\+39 is beyond f32' "$spmv" -m diagonal:2 -p f32 --alpha 1e39
bad '--padding-limit 0' '^error: --padding-limit' "$spmv" -m diagonal:2 --padding-limit 0
bad '--time nan' '^error: --time' "$spmv" transient --time nan -m wlan:C=2,m=1,W=2
bad '--tolerance nan' '^error: --tolerance' "$spmv" stationary --tolerance nan -m wlan:C=2,m=1,W=2
bad 'an empty name among several' "^error: --kernel ''" "$spmv" -m diagonal:2 -k 'csr_scalar,,csr_*'

# --- Sizes that a file only claims -------------------------------------------------------------------

# frugal NAME PATTERN COMMAND...: refused with a line like PATTERN, within 10 s (as long as a busy
# machine may take; it takes 0.1 s) and with no more than 200 MB of memory.
frugal() {
  bad "$1" "$2" bash -c 'ulimit -t 10; exec "$@"' bash "${@:3}"
  holds "$1: little memory" python3 - "${@:3}" <<'PY'
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=30)
sys.exit(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss > 200e3)
PY
}
general='%%%%MatrixMarket matrix coordinate real general\n'
printf "${general}2147483646 1 1\n1 1 1\n" >"$scratch/tall.mtx"
printf "${general}2000000000 2000000000 0\n" >"$scratch/void.mtx"
printf "${general}9 9 100000000\n1 1 1\n" >"$scratch/claims.mtx"
frugal 'rows that are empty' 'tall.mtx:2: the matrix needs 16.0 GiB of memory, more than the limit of 8.0 GiB.*--memory-limit 16385M' \
  "$spmv" -m "$scratch/tall.mtx" --memory-limit 8G
frugal 'rows and columns without an entry' 'void.mtx:2: .* needs 14.9 GiB' "$spmv" info "$scratch/void.mtx" --memory-limit 8G
frugal 'entries that the file does not hold' 'claims.mtx:2: .*100000000 entries, but the file holds 1' "$spmv" -m "$scratch/claims.mtx" --memory-limit 8G
frugal 'the same for several GPUs' 'tall.mtx:2: ' "$spmv" multigpu --gpus 2 -m "$scratch/tall.mtx" --memory-limit 8G
python3 - "$scratch" <<'PY'
import gzip, sys
general, size = b"%%MatrixMarket matrix coordinate real general\n", 1 << 28
def bomb(name, head, byte):
    with gzip.open(f"{sys.argv[1]}/{name}.gz", "wb", 1) as file:
        file.write(head)
        for _ in range(64): file.write(byte * (size // 64 // len(byte)))
bomb("zeros", b"", b"\0")
bomb("zeros_behind", general + b"1 1 1\n1 1 1\n", b"\0")
bomb("surplus", general + b"1 1 1\n1 1 1\n", b"1 1 1\n  ")
PY
frugal 'a quarter of a gigabyte of zeros' 'zeros.gz: a line is longer than 1.0 MiB' "$spmv" -m "$scratch/zeros.gz"
frugal 'zeros behind a matrix' 'zeros_behind.gz: a line is longer' "$spmv" -m "$scratch/zeros_behind.gz"
frugal 'entries behind a matrix' 'surplus.gz:.*but more follow' "$spmv" -m "$scratch/surplus.gz"

# --- Output that cannot be written -------------------------------------------------------------------

if [ -w /dev/full ]; then
  lost() {  # NAME COMMAND...: ends with 2 and a line about standard output, which is full
    local name=$1
    shift
    bad "$name" '^error: .*(standard output|cannot write)' bash -c '"$@" >/dev/full' bash "$@"
  }
  lost 'a full standard output' "$spmv" -m diagonal:2 -k csr_scalar --json "$scratch/unseen.jsonl"
  holds 'no record of what nobody saw' test ! -e "$scratch/unseen.jsonl"
  for arguments in --help --list '--list --json' '--environment' 'info diagonal:2' \
    'info diagonal:2 --sizes' 'info diagonal:2 --json' 'stationary -k csr_scalar -m wlan:C=2,m=1,W=2' \
    'multigpu --gpus 1 -m stencil2d:9x9'; do
    # shellcheck disable=SC2086  # several words
    lost "a full standard output: $arguments" "$spmv" $arguments
  done
  bad 'a full file of records' '^error: /dev/full: ' "$spmv" -m diagonal:2 -k csr_scalar --json /dev/full
fi
bad 'a closed standard output' '^error: standard output' bash -c '"$@" >&-' bash \
  "$spmv" -m diagonal:2 -k csr_scalar --json "$scratch/unseen.jsonl"
holds 'no record of that either' test ! -e "$scratch/unseen.jsonl"
yes | tr -d '\n' | head -c 1000 >"$scratch/short.jsonl"
echo >>"$scratch/short.jsonl"
cp "$scratch/short.jsonl" "$scratch/before.jsonl"
bad 'no room for a record' '^error: .*short.jsonl: cannot be written \(File too large\)' \
  bash -c 'ulimit -f 1; exec "$@" >/dev/null' bash \
  "$spmv" -m diagonal:2 -k csr_scalar --json "$scratch/short.jsonl"
holds 'not even half of it' cmp "$scratch/short.jsonl" "$scratch/before.jsonl"
printf '{"half":' >"$scratch/half.jsonl"
bad 'half a record' '^error: .*half.jsonl: ends within a line' "$spmv" -m diagonal:2 -k csr_scalar \
  --json "$scratch/half.jsonl"

# --- Other input ---------------------------------------------------------------------------------------

printf '%%%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 3 4\n' >"$scratch/z.mtx"
bad 'complex values' '^error: .*--complex real' "$spmv" -m "$scratch/z.mtx" -k csr_scalar
expect 'their real parts' 0 'csr_scalar' "$spmv" -m "$scratch/z.mtx" -k csr_scalar --complex real
printf '%%%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 nan\n1 2 0\n1 2 1\n' \
  >"$scratch/odd.mtx"
expect 'oddities are said' 0 'duplicate' "$spmv" -m "$scratch/odd.mtx" -k csr_scalar
expect 'NaN is said' 0 'NaN' "$spmv" -m "$scratch/odd.mtx" -k csr_scalar

summary
