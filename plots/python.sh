#!/usr/bin/env bash
# Runs a script with the Python that has SciPy and Matplotlib, and lets it import the modules of every folder here:
# plots/python.sh plots/measure/compare.py ARGUMENTS. Without arguments it prints that Python. How it is found or
# installed: common/build/python.sh.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PYTHONPATH=$here/measure:$here/papers:$here/page${PYTHONPATH:+:$PYTHONPATH}
exec "$here/../common/build/python.sh" "$here/requirements.txt" "$@"
