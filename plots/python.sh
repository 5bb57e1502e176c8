#!/usr/bin/env bash
# Prints the Python that has Matplotlib. Where there is none it is installed: as root from Debian's
# packages, else into .deps/python from requirements.txt. What cannot be had is said in one line.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

find_one() {
  local python
  for python in "${PYTHON:-python3}" python3 /usr/bin/python3 "$root/.deps/python/bin/python3"; do
    if "$python" -c 'import matplotlib, numpy' 2>/dev/null; then
      echo "$python"
      exit 0
    fi
  done
}

find_one
if [ "${SPMV_DEPS:-}" != none ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "setup: installing python3-matplotlib with apt-get" >&2
    { apt-get install -qq -y --no-install-recommends python3-matplotlib ||
      { apt-get update -qq && apt-get install -qq -y --no-install-recommends python3-matplotlib; }
    } </dev/null >/dev/null 2>&1
    find_one
  fi
  echo "setup: installing plots/requirements.txt into .deps/python" >&2
  python3 -m venv "$root/.deps/python" >/dev/null 2>&1 &&
    "$root/.deps/python/bin/pip" install -q -r "$root/plots/requirements.txt" >/dev/null 2>&1
  find_one
fi
echo "setup: Matplotlib is missing, so there are no figures; to have it: apt-get install python3-matplotlib, or pip install -r plots/requirements.txt" >&2
exit 1
