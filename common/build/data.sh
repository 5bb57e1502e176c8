#!/usr/bin/env bash
# Downloads the papers' matrices from the SuiteSparse collection. `make data` calls this.
#
#   data.sh [NAME...]
#
# Without names: every matrix of the catalogue with at most 50 million nonzeros. What is here
# already stays; what an interrupted run left behind is continued; what fails does not stop the
# rest. Exit status 1 if anything failed.
#
#   SPMV           the program, which reads what arrives
#   SPMV_CATALOGUE the list of matrices (sparse/catalogue.tsv)
#   SPMV_DATA      where files go (data/ in the repository)
#   SPMV_DATA_URL  where they come from
set -uo pipefail

root=$(cd "$(dirname "$0")/../.." && pwd)
spmv=${SPMV:-$root/build/cpu/spmv}
data=${SPMV_DATA:-$root/data}
url=${SPMV_DATA_URL:-https://suitesparse-collection-website.herokuapp.com/MM}
catalogue=${SPMV_CATALOGUE:-$root/common/sparse/catalogue.tsv}
max_nnz=50000000
partial=$data/.partial  # nothing under its final name until it is whole and checked

die() {
  echo "error: $*" >&2
  exit 2
}

[[ ${1:-} != -* ]] || die "no option is called $1; give names of matrices"
names=" $* "
command -v curl >/dev/null || die "curl is not here; install it to download matrices"
[ -x "$spmv" ] || die "$spmv is not built; run 'make data' instead of this script"
mkdir -p "$partial" || die "cannot write to $data"

# --- One matrix. Every function sets `reason` and returns 1 when it fails. --------------------------

download() { # URL FILE
  local progress=--silent message status again
  [ -t 2 ] && progress=--progress-bar
  for again in '--continue-at -' ''; do
    # shellcheck disable=SC2086  # an option and its value
    message=$(curl --fail --location --retry 2 --connect-timeout 30 $progress --write-out '%{errormsg}' $again --output "$2.part" "$1")
    status=$?
    [ $status != 0 ] || { mv "$2.part" "$2"; return; }
    [[ $status =~ ^(22|33|36)$ ]] || break  # else the server cannot continue, or there is nothing to continue
    rm -f "$2.part"
  done
  reason="cannot be downloaded from $1: $message"
  return 1
}

check_sizes() { # FILE ROWS COLS NNZ
  local found
  found=$("$spmv" --complex real info --sizes "$1" 2>&1) || { reason="cannot be read: $(tail -n 1 <<<"$found")"; return 1; }
  found=${found//$'\t'/ }
  [ "$found" = "$2 $3 $4" ] && return
  reason="is not the matrix of the catalogue: rows, columns, nonzeros are $found, not $2 $3 $4"
  return 1
}

fetch() { # NAME GROUP STEM ROWS COLS NNZ
  local file=$1.mtx.gz archive=$partial/$3.tar.gz
  if [ -e "$data/$file" ]; then  # perhaps put there by hand
    check_sizes "$data/$file" "$4" "$5" "$6"
    return
  fi
  echo "$1: $2/$3, $6 nonzeros"
  [ -s "$archive" ] || download "$url/$2/$3.tar.gz" "$archive" || return 1
  if ! tar -xzOf "$archive" "$3/$3.mtx" 2>"$partial/error" | gzip -n >"$partial/$file"; then
    reason="arrived damaged and was removed: $(head -n 1 "$partial/error")"
    rm -f "$archive" "$partial/$file"
    return 1
  fi
  rm -f "$archive"
  check_sizes "$partial/$file" "$4" "$5" "$6" || { rm -f "$partial/$file"; return 1; }
  mv "$partial/$file" "$data/$file" || { reason="cannot be written to $data"; return 1; }
}

# --- All of them ----------------------------------------------------------------------------------

here=0 too_large=() failed=()
while IFS=$'\t' read -r name group stem rows cols nnz _; do
  [[ -n $group && ! $group =~ ^(-|scipy)$ ]] || continue
  if [ $# -gt 0 ]; then
    [[ $names == *" $name "* ]] || continue
    names=${names/ $name / }
  elif [ "$nnz" -gt "$max_nnz" ] && [ ! -e "$data/$name.mtx.gz" ]; then
    too_large+=("$name")
    continue
  fi
  if fetch "$name" "$group" "$stem" "$rows" "$cols" "$nnz" </dev/null; then
    here=$((here + 1))
  else
    failed+=("$name $reason")
  fi
done <"$catalogue"
[ $# = 0 ] || for name in $names; do
  failed+=("$name is not a matrix that can be downloaded; $catalogue lists them")
done
rm -f "$partial/error"  # only what may be continued is left
rmdir "$partial" 2>/dev/null

echo "$here matrices are in $data, checked."
if [ ${#too_large[@]} -gt 0 ]; then
  echo "Skipped, more than $max_nnz nonzeros: ${too_large[*]}. Give their names."
fi
[ ${#failed[@]} = 0 ] || { printf 'Failed:\n'; printf '  %s\n' "${failed[@]}"; exit 1; }
