#!/usr/bin/env bash
# Sees to it that whitelist.py has libclang: as root from Debian's packages, else into .deps/python.
# Where it cannot be had that is said in one line, and nothing fails.
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
has_it() { python3 "$here/whitelist.py" >/dev/null 2>&1; }

has_it && exit
if [ "${SPMV_DEPS:-}" != none ]; then
  as_root=()
  if [ "$(id -u)" != 0 ]; then as_root=(sudo -n); fi
  if command -v apt-get >/dev/null && "${as_root[@]}" true 2>/dev/null; then
    echo 'setup: installing python3-clang with apt-get' >&2
    install=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends python3-clang)
    { "${install[@]}" || { "${as_root[@]}" apt-get update -qq && "${install[@]}"; }; } </dev/null >/dev/null 2>&1
    has_it && exit
  fi
  echo 'setup: installing libclang into .deps/python' >&2
  { [ -e "$root/.deps/python/bin/pip" ] || python3 -m venv "$root/.deps/python"; } >/dev/null 2>&1 &&
    "$root/.deps/python/bin/pip" install -q libclang >/dev/null 2>&1
fi
python3 "$here/whitelist.py" || true
