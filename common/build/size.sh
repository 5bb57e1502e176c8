#!/usr/bin/env bash
# size.sh: lines of code per room, a line counted once per 100 columns begun (`make size`). The formatters break lines at
# 100 columns; what they cannot break, and shell and make, which have no formatter, count as what they would fold to.
cd "$(dirname "$0")/../.." || exit
git ls-files | grep -E '\.(cu|cuh|cpp|hpp|h|py|js|css|html|sh|mk)$|(^|/)Makefile$|^\.ci/run$' | xargs -d '\n' awk '
  {
    split(FILENAME, part, "/")
    room = FILENAME !~ "/" ? "." : part[1] ~ /^(common|plots)$/ ? part[1] "/" part[2] : part[1]
    folded = length($0) > 100 ? int((length($0) + 99) / 100) : 1
    lines[room] += folded
    all += folded
  }
  END {
    for (room in lines) printf "%6d  %s\n", lines[room], room
    printf "%6d  in all\n", all
  }' | sort -n
