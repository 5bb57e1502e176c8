#!/usr/bin/env bash
# Runs a script with the Python that has pandas and Matplotlib: plots/python.sh plots/compare.py ARGUMENTS.
# Without arguments it prints that Python. How they are found or installed: common/python.sh.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec "$here/../common/python.sh" "$here/requirements.txt" "$@"
