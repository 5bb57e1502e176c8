#!/usr/bin/env bash
# Fuzzes what reads text from outside: fuzz.sh [SECONDS [TARGET]], 60 s unless told, shared by the
# targets: matrix_market (the reader of files), reply (what the judge of coursework reads from the
# process with a student's kernels).
#
# Starts from the malformed corpus, a few good inputs and whatever earlier runs found worth keeping
# (build/fuzz/corpus-TARGET). Exits 1 when an input crashes a target or breaks one of its checks; the
# input is then kept as build/fuzz/crash-*. CXX_FUZZ names another clang++, FUZZ_FLAGS adds libFuzzer
# options.
set -eu

seconds=${1:-60}
case $seconds in
  '' | *[!0-9]*) echo "error: '$seconds' is not a number of seconds; usage: fuzz.sh [SECONDS [TARGET]]" >&2
                 exit 2 ;;
esac
cd "$(dirname "$0")/../.."
compiler=${CXX_FUZZ:-clang++}
out=build/fuzz
targets=${2:-matrix_market reply}
for target in matrix_market reply; do mkdir -p $out/seeds-$target $out/corpus-$target; done

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

flags="-std=c++20 -O1 -gline-tables-only $sanitizers -fno-sanitize-recover=undefined -Wno-unknown-pragmas -Icommon \
  -isystem .deps/usr/include -DFMT_HEADER_ONLY"
# What a target is made of, in common/.
sources_of() {
  echo "tests/fuzz_$1"
  case $1 in
    reply) echo coursework/protocol ;;
    *) for name in convert matrix_market_header matrix_market_reader memory text_file; do echo sparse/$name; done ;;
  esac
}
for target in $targets; do sources_of "$target"; done | sort -u |
  xargs -P "$(nproc)" -I{} sh -c "$compiler $flags -c common/{}.cpp -o $out/\$(basename {}).o"
for target in $targets; do
  # shellcheck disable=SC2086,SC2046  # lists
  "$compiler" $sanitizers $(for source in $(sources_of "$target"); do echo $out/$(basename "$source").o; done) \
    -lz -pthread -o $out/fuzz_$target
done

# Good files, one of each kind: from them the fuzzer learns what gets past the header.
seed() { printf "$2" > "$out/seeds-matrix_market/$1"; }
banner='%%%%MatrixMarket matrix'
seed general "$banner coordinate real general\n3 4 4\n1 1 1.5\n3 4 -2e3\n2 1 .25\n2 1 1e-7\n"
seed integer "$banner coordinate integer general\n2 2 2\n1 1 7\n2 2 -123456789012345678901\n"
seed pattern "$banner coordinate pattern general\n3 3 2\n3 1\n1 3\n"
seed complex "$banner coordinate complex general\n2 2 2\n1 1 3 4\n2 1 -5 12.0\n"
seed symmetric "$banner coordinate real symmetric\n3 3 3\n3 1 2.5\n2 2 7\n2 1 -1\n"
seed skew "$banner coordinate real skew-symmetric\n3 3 2\n3 1 2.5\n3 2 -1\n"
seed hermitian "$banner coordinate complex hermitian\n2 2 2\n1 1 2 0\n2 1 3 -4\n"
seed crlf "$banner coordinate real general\r\n%% comment\r\n\r\n2 2 2\r\n1 1 1\r\n\t2 2\t+1.5D+03 \r\n"
seed odd_values "$banner coordinate real general\n1 1 5\n1 1 nan\n1 1 -Inf\n1 1 1e400\n1 1 4.9e-324\n\
1 1 16777217.0000000000000000001"
seed empty "$banner coordinate real general\n0 0 0\n"
if command -v gzip > /dev/null; then
  gzip -n < $out/seeds-matrix_market/general > $out/seeds-matrix_market/general.gz
  gzip -n < $out/seeds-matrix_market/symmetric > $out/seeds-matrix_market/symmetric.gz
  cat $out/seeds-matrix_market/{general,symmetric}.gz > $out/seeds-matrix_market/two_members.gz
fi
for file in common/tests/malformed/*; do
  case $file in *.tsv) ;; *) cp "$file" $out/seeds-matrix_market/ ;; esac
done

for word in '%%MatrixMarket' ' matrix' ' vector' ' coordinate' ' array' ' real' ' double' \
  ' integer' ' pattern' ' complex' ' general' ' symmetric' ' skew-symmetric' ' hermitian' \
  '% ' '\x0a' '\x0d\x0a' '\x09' '\x00' '\x1f\x8b\x08' 'nan' '-inf' 'infinity' 'e+' 'E-' 'D+' '.' \
  '0x' '1 1 1' '2 1 ' '0 0 0' '2147483647' '2147483648' '4294967297' '9223372036854775808' \
  '18446744073709551617' '9007199254740993' '16777217' '1e400' '4.9e-324' '1e22' '1e23'; do
  printf '"%s"\n' "$word"
done > $out/matrix_market.dict

# Replies: refused with a reason; the counters of a line.
echo '{"answer":"refused","text":"no fit"}' >$out/seeds-reply/refused
echo '{"answer":"done","steps":7,"time":"3 us","counts":[{"array":"values","space":"global","access":"load","file":"k.cuh",'\
'"line":17,"requests":1,"lanes":2,"sectors":3,"ideal_sectors":4,"addresses":5,"bank_passes":6}]}' >$out/seeds-reply/counters
for word in answer done refused failed text steps time counts global shared none load store atomic texture barrier 'warp operation'; do
  printf '"%s"\n' "$word"
done >$out/reply.dict

seconds=$(((seconds + 1) / $(echo "$targets" | wc -w)))
for target in $targets; do
  log=$out/$target.log
  status=0
  # shellcheck disable=SC2086  # FUZZ_FLAGS is a list
  $out/fuzz_$target -max_total_time="$seconds" -max_len=512 -timeout=10 -rss_limit_mb=1024 \
    -dict=$out/$target.dict -artifact_prefix=$out/ -print_final_stats=1 ${FUZZ_FLAGS:-} \
    $out/corpus-$target $out/seeds-$target > $log 2>&1 || status=$?
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' $log)
  rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' $log)
  if [ "$status" -ne 0 ]; then
    grep -E 'does not hold|ERROR|SUMMARY|runtime error|Test unit written' $log >&2 || tail -n 5 $log >&2
    echo "fuzz: $target: FAILED after ${executions:-an unknown number of} executions; see $log" >&2
    exit 1
  fi
  covered=$(sed -n 's/.* cov: \([0-9]*\) ft: \([0-9]*\) .*/\1 edges, \2 features/p' $log | tail -n 1)
  echo "fuzz: $target: $executions executions, $rate per second, $covered covered, no fault found"
done
