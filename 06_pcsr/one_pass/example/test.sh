#!/usr/bin/env bash
# Tests of the examples: test.sh CONJUGATE_GRADIENTS FIRST_PRODUCT
source "$(dirname "${BASH_SOURCE[0]}")/../../../common/tests/checks.sh"
program=$1

expect 'one product' 0 '^0 0 4$' "$2"
expect 'the example converges on a stencil' 0 '^100 rows, 460 nonzeros: [0-9]+ iterations, residual [0-9.]+e-1[1-9]$' \
  "$program" 10

# A tridiagonal matrix with one long row and column.
awk 'BEGIN { n = 300; print "%%MatrixMarket matrix coordinate real symmetric"; print "% a comment"
  print n, n, 3 * n - 3
  for (i = 1; i <= n; ++i) { print i, i, i == n ? 2 * n : 40; if (i > 1 && i < n) print i, i - 1, -1 }
  for (i = 1; i < n; ++i) print n, i, -1
  print n, 1, 0.5 }' >"$scratch/good.mtx"
sed '1s/real/integer/; s/^300 1 0.5$/300 1 1/' "$scratch/good.mtx" >"$scratch/integers.mtx"
for file in good integers; do
  expect "and on a file: $file" 0 '^300 rows, .* residual [0-9.]+e-1[1-9]$' "$program" "$scratch/$file.mtx"
done

sed 's/ symmetric/ general/' "$scratch/good.mtx" >"$scratch/general.mtx"
sed '1s/real/complex/' "$scratch/good.mtx" >"$scratch/complex.mtx"
sed 's/^5 4 -1$/4 5 -1/' "$scratch/good.mtx" >"$scratch/upper.mtx"
expect 'no file' 2 'nowhere.mtx:1: cannot be read' "$program" "$scratch/nowhere.mtx"
for file in general complex; do
  expect "$file" 2 "$file.mtx:1: not a 'matrix coordinate real symmetric' .or integer" "$program" "$scratch/$file.mtx"
done
expect 'an upper triangle' 2 'of the lower triangle' "$program" "$scratch/upper.mtx"

summary
