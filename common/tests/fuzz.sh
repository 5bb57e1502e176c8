#!/bin/sh
# Fuzzes the Matrix Market reader: fuzz.sh [seconds], 60 unless told.
#
# Starts from the malformed corpus, a few good files and whatever earlier runs found worth keeping
# (build/fuzz/corpus). Exits 1 when an input crashes the reader or breaks one of the target's checks;
# the input is then kept as build/fuzz/crash-*. CXX_FUZZ names another clang++, FUZZ_FLAGS adds
# libFuzzer options.
set -eu

seconds=${1:-60}
case $seconds in
  '' | *[!0-9]*) echo "error: '$seconds' is not a number of seconds; usage: fuzz.sh [seconds]" >&2
                 exit 2 ;;
esac
cd "$(dirname "$0")/../.."
compiler=${CXX_FUZZ:-clang++}
out=build/fuzz
mkdir -p $out/seeds $out/corpus

if ! command -v "$compiler" > /dev/null; then
  echo "fuzz: skipped, $compiler is not installed (clang with its libFuzzer runtime)"
  exit 0
fi
sanitizers=-fsanitize=fuzzer,address,undefined
printf '%s\n' '#include <cstddef>' '#include <cstdint>' \
  'extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t*, std::size_t) { return 0; }' \
  > $out/probe.cpp
if ! "$compiler" -std=c++20 $sanitizers $out/probe.cpp -o $out/probe 2> $out/probe.log; then
  echo "fuzz: skipped, $compiler has no libFuzzer (Debian, Ubuntu: libclang-rt-VERSION-dev)"
  exit 0
fi

fuzzer() {
  "$compiler" -std=c++20 -O1 -g $sanitizers -fno-sanitize-recover=undefined -Icommon \
    -isystem .deps/usr/include common/tests/fuzz_matrix_market.cpp \
    common/sparse/matrix_market_*.cpp common/sparse/input_file.cpp common/sparse/memory.cpp \
    common/sparse/convert.cpp "$@" -lz -pthread -o $out/fuzz_matrix_market
}
fuzzer -lfmt 2> /dev/null || fuzzer -DFMT_HEADER_ONLY

# Good files, one of each kind: from them the fuzzer learns what gets past the header.
seed() { printf "$2" > "$out/seeds/$1"; }
banner='%%%%MatrixMarket matrix'
seed general "$banner coordinate real general\n3 4 4\n1 1 1.5\n3 4 -2e3\n2 1 .25\n2 1 1e-7\n"
seed integer "$banner coordinate integer general\n2 2 2\n1 1 7\n2 2 -123456789012345678901\n"
seed pattern "$banner coordinate pattern general\n3 3 2\n3 1\n1 3\n"
seed complex "$banner coordinate complex general\n2 2 2\n1 1 3 4\n2 1 -5 12.0\n"
seed symmetric "$banner coordinate real symmetric\n3 3 3\n3 1 2.5\n2 2 7\n2 1 -1\n"
seed skew "$banner coordinate real skew-symmetric\n3 3 2\n3 1 2.5\n3 2 -1\n"
seed hermitian "$banner coordinate complex hermitian\n2 2 2\n1 1 2 0\n2 1 3 -4\n"
seed array "$banner array real general\n2 3\n1\n2\n3\n0\n5\n6\n"
seed array_symmetric "$banner array integer symmetric\n3 3\n1\n2\n3\n4\n5\n6\n"
seed array_skew "$banner array real skew-symmetric\n3 3\n1\n2\n3\n"
seed array_complex "$banner array complex hermitian\n2 2\n1 0\n2 5\n3 0\n"
seed crlf "$banner coordinate real general\r\n%% comment\r\n\r\n2 2 2\r\n1 1 1\r\n\t2 2\t+1.5D+03 \r\n"
seed odd_values "$banner coordinate real general\n1 1 5\n1 1 nan\n1 1 -Inf\n1 1 1e400\n1 1 4.9e-324\n\
1 1 16777217.0000000000000000001"
seed empty "$banner coordinate real general\n0 0 0\n"
if command -v gzip > /dev/null; then
  gzip -n < $out/seeds/general > $out/seeds/general.gz
  gzip -n < $out/seeds/array > $out/seeds/array.gz
  cat $out/seeds/general.gz $out/seeds/array.gz > $out/seeds/two_members.gz
fi
for file in common/tests/malformed/*; do
  case $file in *.tsv) ;; *) cp "$file" $out/seeds/ ;; esac
done

for word in '%%MatrixMarket' ' matrix' ' vector' ' coordinate' ' array' ' real' ' double' \
  ' integer' ' pattern' ' complex' ' general' ' symmetric' ' skew-symmetric' ' hermitian' \
  '% ' '\x0a' '\x0d\x0a' '\x09' '\x00' '\x1f\x8b\x08' 'nan' '-inf' 'infinity' 'e+' 'E-' 'D+' '.' \
  '0x' '1 1 1' '2 1 ' '0 0 0' '2147483647' '2147483648' '4294967297' '9223372036854775808' \
  '18446744073709551617' '9007199254740993' '16777217' '1e400' '4.9e-324' '1e22' '1e23'; do
  printf '"%s"\n' "$word"
done > $out/keywords.dict

log=$out/fuzz.log
status=0
# shellcheck disable=SC2086  # FUZZ_FLAGS is a list
$out/fuzz_matrix_market -max_total_time="$seconds" -max_len=1024 -timeout=10 -rss_limit_mb=1024 \
  -dict=$out/keywords.dict -artifact_prefix=$out/ -print_final_stats=1 ${FUZZ_FLAGS:-} \
  $out/corpus $out/seeds > $log 2>&1 || status=$?
executions=$(sed -n 's/^stat::number_of_executed_units: *//p' $log)
rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' $log)
if [ "$status" -ne 0 ]; then
  grep -E 'does not hold|ERROR|SUMMARY|runtime error|Test unit written' $log >&2 || tail -n 5 $log >&2
  echo "fuzz: FAILED after ${executions:-an unknown number of} executions; see $log" >&2
  exit 1
fi
echo "fuzz: $executions executions, $rate a second, no fault found"
