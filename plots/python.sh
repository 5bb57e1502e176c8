#!/usr/bin/env bash
# Runs a script with the Python that has pandas and Matplotlib: plots/python.sh plots/compare.py ARGUMENTS.
# Without arguments it prints that Python. Where there is none, the packages are installed: as root from
# Debian's, else into .deps/python from requirements.txt. What cannot be had is said in one line.
set -u
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

find_one() {  # ARGUMENTS...
  local python
  for python in "${PYTHON:-python3}" python3 /usr/bin/python3 "$root/.deps/python/bin/python3"; do
    if "$python" -c 'import sys, matplotlib, numpy, pandas, tqdm; sys.version_info >= (3, 11) or __import__("tomli")' 2>/dev/null; then
      if [ $# -gt 0 ]; then exec "$python" "$@"; fi
      echo "$python"
      exit 0
    fi
  done
}

packages=(python3-matplotlib python3-pandas python3-tqdm)
find_one "$@"
if [ "${SPMV_DEPS:-}" != none ]; then
  if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "setup: installing ${packages[*]} with apt-get" >&2
    { apt-get install -qq -y --no-install-recommends "${packages[@]}" ||
      { apt-get update -qq && apt-get install -qq -y --no-install-recommends "${packages[@]}"; }
    } </dev/null >/dev/null 2>&1
    find_one "$@"
  fi
  echo "setup: installing plots/requirements.txt into .deps/python" >&2
  python3 -m venv "$root/.deps/python" >/dev/null 2>&1 &&
    "$root/.deps/python/bin/pip" install -q -r "$root/plots/requirements.txt" >/dev/null 2>&1
  find_one "$@"
fi
echo "setup: pandas or Matplotlib is missing, so there are no tables and figures; to have them: apt-get install ${packages[*]}, or pip install -r plots/requirements.txt" >&2
exit 1
