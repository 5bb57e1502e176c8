#!/usr/bin/env bash
# Tests of common/build/data.sh with a catalogue of its own and no network.
#
#   data_test.sh SPMV
#
# They download from file:// URLs.
set -uo pipefail

if ! command -v curl > /dev/null; then
  echo 'no curl here: the tests of make data were left out'
  echo '0 passed, 0 failed'
  exit 0
fi
spmv=$(cd "$(dirname "${1:?usage: data_test.sh SPMV}")" && pwd)/$(basename "$1")
script=$(cd "$(dirname "$0")/.." && pwd)/build/data.sh
source "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
work=$scratch

check() { # WHAT COMMAND...
  "${@:2}"
  count "$case: $1" $?
}
says() { grep -qF -- "$1" "$work/out"; }
exits_with() { [ "$status" -eq "$1" ]; }
absent() { [ ! -e "$1" ]; }

# --- The collection that these tests pretend to have ------------------------------------------------

make_archive() { # GROUP NAME ROWS COLS NNZ
  mkdir -p "$work/site/$1" "$work/pack/$2"
  {
    echo '%%MatrixMarket matrix coordinate real general'
    echo "$3 $4 $5"
    for ((k = 0; k < $5; k++)); do echo "$((k % $3 + 1)) $((k / $3 + 1)) $RANDOM.5"; done
  } > "$work/pack/$2/$2.mtx"
  echo 'a right-hand side, which must not be mistaken for the matrix' > "$work/pack/$2/$2_b.mtx"
  tar -czf "$work/site/$1/$2.tar.gz" -C "$work/pack" "$2"
}
make_archive Good small 40 30 200
make_archive Good aliased 10 10 20
make_archive Good large 90 90 5000
make_archive Bad wrong 40 30 199
make_archive Bad truncated 90 90 5000
head -c 4000 "$work/site/Bad/truncated.tar.gz" > "$work/cut" && mv "$work/cut" "$work/site/Bad/truncated.tar.gz"

printf '%s\t%s\t%s\t%s\t%s\t%s\n' \
  small Good small 40 30 200 \
  alias Good aliased 10 10 20 \
  large Good large 90 90 5000 \
  huge Good huge 90000 90000 50000001 \
  wrong Bad wrong 40 30 200 \
  truncated Bad truncated 90 90 5000 \
  missing Bad missing 5 5 5 \
  chain - chain 5 5 5 \
  made scipy made 5 5 5 > "$work/catalogue"

fetch() { # ARGUMENTS...
  SPMV=$spmv SPMV_CATALOGUE=$work/catalogue SPMV_DATA=$work/data SPMV_DATA_URL=$url bash "$script" "$@" > "$work/out" 2>&1
  status=$?
}
begin() {
  case=$1
  rm -rf "$work/data"
}
url=file://$work/site

# --- The downloads --------------------------------------------------------------------------------

begin 'a matrix arrives'
fetch small
check 'exits with 0' exits_with 0
check 'is under its final name' gzip -t "$work/data/small.mtx.gz"
check 'is the matrix' cmp -s <(gzip -dc "$work/data/small.mtx.gz") "$work/pack/small/small.mtx"
check 'leaves nothing else' [ "$(ls -A "$work/data" | wc -l)" -eq 1 ]

case='a second run'
rm "$work/site/Good/small.tar.gz"
fetch small
check 'downloads nothing' exits_with 0
check 'says that it checked' says '1 matrices are in'

case='a file that changed'
gzip -c "$work/pack/aliased/aliased.mtx" > "$work/data/small.mtx.gz"
fetch small
check 'exits with 1' exits_with 1
check 'says so' says 'small is not the matrix of the catalogue'
make_archive Good small 40 30 200

begin 'another name in the collection'
fetch alias
check 'exits with 0' exits_with 0
check 'is stored under ours' [ -e "$work/data/alias.mtx.gz" ]

begin 'a file put there by hand'
mkdir -p "$work/data"
gzip -c "$work/pack/small/small.mtx" > "$work/data/small.mtx.gz"
fetch small
check 'is accepted' exits_with 0

begin 'everything'
fetch
check 'exits with 1, since some fail' exits_with 1
check 'keeps what arrived' [ -e "$work/data/small.mtx.gz" -a -e "$work/data/large.mtx.gz" ]
check 'names what is missing' says 'missing cannot be downloaded'
check 'names what has other sizes' says 'wrong is not the matrix of the catalogue: rows, columns, nonzeros are 40 30 199, not 40 30 200'
check 'names what is damaged' says 'truncated arrived damaged'
check 'leaves no bad file' absent "$work/data/wrong.mtx.gz"
check 'leaves no half file' absent "$work/data/truncated.mtx.gz"
check 'skips what is larger' absent "$work/data/huge.mtx.gz"
check 'says what it skipped' says 'Skipped, more than 50000000 nonzeros: huge. Give their names.'
fetch huge
check 'but not what is named' says 'huge cannot be downloaded'

begin 'a download that was interrupted'
mkdir -p "$work/data/.partial"
head -c 3000 "$work/site/Good/large.tar.gz" > "$work/data/.partial/large.tar.gz.part"
fetch large
check 'exits with 0' exits_with 0
check 'is whole' cmp -s <(gzip -dc "$work/data/large.mtx.gz") "$work/pack/large/large.mtx"

begin 'a download that was complete'
mkdir -p "$work/data/.partial"
cp "$work/site/Good/large.tar.gz" "$work/data/.partial/large.tar.gz.part"
fetch large
check 'is no obstacle' cmp -s <(gzip -dc "$work/data/large.mtx.gz") "$work/pack/large/large.mtx"

begin 'wrong use'
fetch nosuch chain made
check 'an unknown name fails' exits_with 1
check 'and is said' says 'nosuch is not a matrix that can be downloaded'
check 'nor can what no collection has' says 'chain is not a matrix that can be downloaded'
check 'nor can what SciPy makes' says 'made is not a matrix that can be downloaded'
fetch --frob
check 'an unknown option exits with 2' exits_with 2

summary
