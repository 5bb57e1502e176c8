#!/usr/bin/env bash
# Tests of the conjugate gradients example: test.sh PROGRAM
set -euo pipefail
program=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "FAILED: the example: $*" >&2; exit 1; }

"$program" 20 >"$scratch/out" || fail "does not converge on a stencil"
grep -Eq '^400 rows, 1920 nonzeros: [0-9]+ iterations, residual [0-9.]+e-1[1-9]$' "$scratch/out" ||
  fail "prints $(cat "$scratch/out")"

# A tridiagonal matrix with one long row and column.
awk 'BEGIN { n = 300; print "%%MatrixMarket matrix coordinate real symmetric"; print "% a comment"
  print n, n, 3 * n - 3
  for (i = 1; i <= n; ++i) { print i, i, i == n ? 2 * n : 4; if (i > 1 && i < n) print i, i - 1, -1 }
  for (i = 1; i < n; ++i) print n, i, -1
  print n, 1, 0.5 }' >"$scratch/good.mtx"
"$program" "$scratch/good.mtx" >"$scratch/out" || fail "does not converge on a file"
grep -Eq '^300 rows, .* residual [0-9.]+e-1[1-9]$' "$scratch/out" || fail "prints $(cat "$scratch/out")"

refuses() {  # TEXT FILE: exit status 2 and an error that names the place
  local status=0
  "$program" "$2" >/dev/null 2>"$scratch/error" || status=$?
  [ $status = 2 ] && grep -Fq "$1" "$scratch/error" || fail "exit $status on $2: $(cat "$scratch/error")"
}
refuses 'nowhere.mtx:1: cannot be read' "$scratch/nowhere.mtx"
sed 's/ symmetric/ general/' "$scratch/good.mtx" >"$scratch/general.mtx"
refuses "general.mtx:1: not a 'matrix coordinate real symmetric'" "$scratch/general.mtx"
sed 's/^5 4 -1$/4 5 -1/' "$scratch/good.mtx" >"$scratch/upper.mtx"
refuses 'of the lower triangle' "$scratch/upper.mtx"
echo "example: all tests passed"
