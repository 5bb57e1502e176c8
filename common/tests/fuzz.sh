#!/usr/bin/env bash
# Fuzzes the Matrix Market reader: fuzz.sh [SECONDS], 60 unless told.
#
# Starts from the malformed corpus, a few good files and whatever earlier runs found worth keeping
# (build/fuzz/corpus). Exits 1 when an input crashes the reader or breaks a check of fuzz_reader.cpp;
# the input is then kept as build/fuzz/crash-*. CXX_FUZZ names another clang++.
set -eu
cd "$(dirname "$0")/../.."
compiler=${CXX_FUZZ:-clang++}
out=build/fuzz
mkdir -p $out/seeds $out/corpus
sanitizers=-fsanitize=fuzzer,address,undefined
if ! echo 'extern "C" int LLVMFuzzerTestOneInput(const char*, unsigned long) { return 0; }' |
  "$compiler" $sanitizers -x c++ - -o $out/probe 2>$out/probe.log; then
  echo "fuzz: skipped, no $compiler with libFuzzer (apt-get install clang; libclang-rt-VERSION-dev)"
  exit 0
fi
flags="-std=c++20 -O1 -gline-tables-only $sanitizers -fno-sanitize-recover=undefined -Icommon -isystem .deps/usr/include"
printf '%s\n' tests/fuzz_reader sparse/{convert,matrix_market,memory} |
  xargs -P "$(nproc)" -I{} sh -c "$compiler $flags -DFMT_HEADER_ONLY -c common/{}.cpp -o $out/\$(basename {}).o"
"$compiler" $sanitizers $out/{fuzz_reader,convert,matrix_market,memory}.o -lz -o $out/fuzz_reader

# One good file of each kind: from them the fuzzer learns what gets past the header.
seed() { printf '%%%%MatrixMarket matrix coordinate %s\n%b' "$1" "$2" | tee "$out/seeds/${1// /_}" | gzip -n >"$out/seeds/${1// /_}.gz"; }
seed 'real general' '3 4 4\n1 1 1.5\n3 4 -2e3\n2 1 .25\n2 1 nan\n'
seed 'integer general' '2 2 2\n1 1 7\n2 2 -123456789012345678901\n'
seed 'pattern symmetric' '3 3 2\n3 1\n3 3\n'
seed 'complex hermitian' '2 2 2\n1 1 2 0\n2 1 3 -4\n'
seed 'real skew-symmetric' '% comment\r\n\r\n3 3 2\r\n3 1\t+2.5D+03 \r\n3 2 -1e400'
cp common/tests/malformed/*.mtx* $out/seeds/

status=0
$out/fuzz_reader -max_total_time="${1:-60}" -max_len=512 -timeout=10 -rss_limit_mb=1024 -artifact_prefix=$out/ \
  -print_final_stats=1 $out/corpus $out/seeds >$out/log 2>&1 || status=$?
executions=$(sed -n 's/^stat::number_of_executed_units: *//p' $out/log)
if [ "$status" -ne 0 ]; then
  grep -E 'does not hold|ERROR|SUMMARY|runtime error|Test unit written' $out/log >&2 || tail -n 5 $out/log >&2
  echo "fuzz: FAILED after ${executions:-an unknown number of} executions; see $out/log" >&2
  exit 1
fi
echo "fuzz: $executions executions, no fault found"
