#!/usr/bin/env bash
# common/build/python.sh REQUIREMENTS [SCRIPT ARGUMENT...]: runs a script with a Python that has the packages of
# a requirements file; without a script it prints that Python. Missing packages are installed: as root from
# Debian's where the file names some, else into .deps/python, in the versions of the .lock beside the file, by hash. What
# cannot be had is said in one line.
# SPMV_DEPS=none installs nothing.
#
# The requirements file says in comments what it needs:
#
#   # check: EXPRESSION   Python code that fails without the packages
#   # debian: PACKAGE...  Debian packages that hold them, or that pip needs
#   # without: TEXT       what is lost without them
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
requirements=$1
shift
said() { sed -n "s/^# $1: //p" "$requirements"; }
check=$(said check)
read -ra packages <<<"$(said debian)"

find_one() {  # SCRIPT ARGUMENT...
  local python
  for python in "${PYTHON:-python3}" python3 /usr/bin/python3 "$root/.deps/python/bin/python3"; do
    if "$python" -c "$check" 2>/dev/null; then
      if [ $# -gt 0 ]; then exec "$python" "$@"; fi
      echo "$python"
      exit 0
    fi
  done
}

find_one "$@"
if [ "${SPMV_DEPS:-}" != none ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "setup: installing ${packages[*]} with apt-get" >&2
    { apt-get install -qq -y --no-install-recommends "${packages[@]}" ||
      { apt-get update -qq && apt-get install -qq -y --no-install-recommends "${packages[@]}"; }
    } </dev/null >/dev/null 2>&1
    find_one "$@"
  fi
  echo "setup: installing ${requirements#"$root"/} into .deps/python" >&2
  python3 -m venv "$root/.deps/python" >/dev/null 2>&1 &&
    "$root/.deps/python/bin/pip" install -q --require-hashes -r "${requirements%.txt}.lock" >/dev/null 2>&1
  find_one "$@"
fi
echo "setup: $(said without); to have it: apt-get install ${packages[*]}, or pip install -r ${requirements#"$root"/}" >&2
exit 1
