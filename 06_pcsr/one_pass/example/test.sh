#!/usr/bin/env bash
# Tests of the examples: test.sh CONJUGATE_GRADIENTS FIRST_PRODUCT
source "$(dirname "${BASH_SOURCE[0]}")/../../../common/tests/checks.sh"
program=$1

expect 'one product' 0 '^0 0 4$' "$2"
expect 'the example converges on a stencil' 0 '^100 rows, 460 nonzeros: [0-9]+ iterations, residual [0-9.]+e-1[1-9]$' \
  "$program" 10
expect 'a grid without points' 2 '^usage' "$program" none

summary
