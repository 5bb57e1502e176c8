#!/usr/bin/env bash
# Downloads the papers' matrices from the SuiteSparse collection. `make data` calls this.
#
#   data.sh [--max-nnz N] [NAME...]
#
# Without names: every matrix of the catalogue with at most N nonzeros (50 million). What is here
# already is checked against the checksums of the day it arrived; what an interrupted run left
# behind is continued; what fails does not stop the rest. Exit status 1 if anything failed.
#
#   SPMV           the program, which reads what arrives
#   SPMV_CATALOGUE the list of matrices (sparse/catalogue.tsv)
#   SPMV_DATA      where files go (data/ in the repository)
#   SPMV_DATA_URL  where they come from
set -uo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
spmv=${SPMV:-$root/build/cpu/spmv}
data=${SPMV_DATA:-$root/data}
url=${SPMV_DATA_URL:-https://suitesparse-collection-website.herokuapp.com/MM}
max_nnz=50000000
partial=$data/.partial  # nothing under its final name until it is whole and checked
sums=$data/SHA256SUMS

die() {
  echo "error: $*" >&2
  exit 2
}

# --- Arguments ------------------------------------------------------------------------------------

names=()
while [ $# -gt 0 ]; do
  case $1 in
    --max-nnz)
      [[ ${2:-} =~ ^[0-9]+$ ]] || die "--max-nnz needs a whole number"
      max_nnz=$2
      shift
      ;;
    -h | --help)
      sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//p;}' "$0"
      exit 0
      ;;
    -*) die "no option is called $1; there are --max-nnz N and --help" ;;
    *) names+=("$1") ;;
  esac
  shift
done

command -v curl > /dev/null || die "curl is not here; install it to download matrices"
[ -x "$spmv" ] || die "$spmv is not built; run 'make data' instead of this script"
if command -v sha256sum > /dev/null; then
  checksum() { sha256sum "$1" | cut -d ' ' -f 1; }
else
  checksum() { shasum -a 256 "$1" | cut -d ' ' -f 1; }  # macOS
fi
catalogue=${SPMV_CATALOGUE:-$root/common/sparse/catalogue.tsv}
mkdir -p "$partial" || die "cannot write to $data"
touch "$sums" || die "cannot write $sums"

# --- One matrix -----------------------------------------------------------------------------------

recorded_checksum() { awk -v file="$1" '$2 == file { print $1 }' "$sums"; }

record_checksum() { # FILE CHECKSUM
  {
    awk -v file="$1" '$2 != file' "$sums"
    echo "$2  $1"
  } > "$partial/SHA256SUMS" && mv "$partial/SHA256SUMS" "$sums"
}

# Every function below sets `reason` and returns 1 when it fails.

download() { # URL FILE
  local progress=--silent message status=22
  [ -t 2 ] && progress=--progress-bar
  local get=(curl --fail --location --retry 2 --connect-timeout 30 "$progress"
    --write-out '%{errormsg}' --output "$2.part")
  if [ -s "$2.part" ]; then
    echo "  continuing after $(wc -c < "$2.part" | tr -d ' ') bytes"
    message=$("${get[@]}" --continue-at - "$1")
    status=$?
  fi
  # There is nothing to continue, or the server cannot (33), or will not (22, 36).
  if [[ $status =~ ^(22|33|36)$ ]]; then
    rm -f "$2.part"
    message=$("${get[@]}" "$1")
    status=$?
  fi
  if [ $status -ne 0 ]; then
    reason="cannot be downloaded from $1: $message"
    return 1
  fi
  mv "$2.part" "$2"
}

check_sizes() { # FILE ROWS COLS NNZ
  local found
  if ! found=$("$spmv" --complex real info --sizes "$1" 2>&1); then
    reason="cannot be read: $(tail -n 1 <<< "$found")"
    return 1
  fi
  found=$(tr '\t' ' ' <<< "$found")
  if [ "$found" != "$2 $3 $4" ]; then
    reason="is not the matrix of the catalogue: rows, columns, nonzeros are $found, not $2 $3 $4"
    return 1
  fi
}

fetch() { # NAME GROUP STEM ROWS COLS NNZ
  local file=$1.mtx.gz archive=$partial/$3.tar.gz recorded
  if [ -e "$data/$file" ]; then
    recorded=$(recorded_checksum "$file")
    if [ -n "$recorded" ]; then
      [ "$(checksum "$data/$file")" = "$recorded" ] && return 0
      reason="has changed since it arrived; remove $data/$file to download it again"
      return 1
    fi
    check_sizes "$data/$file" "$4" "$5" "$6" || return 1
    record_checksum "$file" "$(checksum "$data/$file")"
    return 0
  fi

  echo "$1: $2/$3, $6 nonzeros"
  [ -s "$archive" ] || download "$url/$2/$3.tar.gz" "$archive" || return 1
  if ! tar -xzOf "$archive" "$3/$3.mtx" 2> "$partial/error" | gzip -n > "$partial/$file"; then
    reason="arrived damaged and was removed: $(head -n 1 "$partial/error")"
    rm -f "$archive" "$partial/$file"
    return 1
  fi
  rm -f "$archive"
  if ! check_sizes "$partial/$file" "$4" "$5" "$6"; then
    rm -f "$partial/$file"
    return 1
  fi
  record_checksum "$file" "$(checksum "$partial/$file")" && mv "$partial/$file" "$data/$file" && return 0
  reason="cannot be written to $data"
  return 1
}

# --- All of them ----------------------------------------------------------------------------------

here=0
too_large=()
failed=()
known=()
while IFS=$'\t' read -r name group stem rows cols nnz _; do
  [[ -n $group && $group != - ]] || continue
  known+=("$name")
  if [ ${#names[@]} -gt 0 ]; then
    [[ " ${names[*]} " == *" $name "* ]] || continue
  elif [ "$nnz" -gt "$max_nnz" ]; then
    [ -e "$data/$name.mtx.gz" ] || { too_large+=("$name"); continue; }
  fi
  reason=
  if fetch "$name" "$group" "$stem" "$rows" "$cols" "$nnz" < /dev/null; then
    here=$((here + 1))
  else
    echo "$name: $reason" >&2
    failed+=("$name $reason")
  fi
done < "$catalogue"
for name in ${names[@]+"${names[@]}"}; do
  [[ " ${known[*]} " == *" $name "* ]] && continue
  failed+=("$name is not a matrix that can be downloaded; $catalogue lists them")
done
rm -f "$partial/error"  # only what may be continued is left
rmdir "$partial" 2> /dev/null

echo "$here matrices are in $data, checked."
if [ ${#too_large[@]} -gt 0 ]; then
  echo "Skipped, more than $max_nnz nonzeros: ${too_large[*]}. Give their names, or --max-nnz."
fi
if [ ${#failed[@]} -gt 0 ]; then
  echo "Failed:"
  printf '  %s\n' "${failed[@]}"
  exit 1
fi
