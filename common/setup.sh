#!/usr/bin/env bash
# setup.sh BACKEND OUTPUT.mk
set -eu
mkdir -p "$(dirname "$2")"
printf 'EXTRA_INCLUDES := -I/usr/include/eigen3\nEXTRA_LIBRARIES :=\n' > "$2"
