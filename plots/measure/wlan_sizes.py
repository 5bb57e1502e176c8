#!/usr/bin/env python3
"""The chains of table 3 beside those that the generator wlan makes of the same name.

    python3 plots/measure/wlan_sizes.py build/cpu/spmv
"""
import json
import subprocess
import sys

from published import published


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print("chain       states: paper     ours   nonzeros: paper      ours   dispersion: paper    ours")
    for row in published("bylina_2011_table3"):
        command = [sys.argv[1], "info", "--json", row["matrix"]]
        info = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
        print(
            f"{row['matrix']:<10} {row['rows']:>14} {info['matrix']['rows']:>8} {row['nonzeros']:>17} "
            f"{info['matrix']['nnz']:>9} {float(row['dispersion']):>19.4f} {info['dispersion']:>7.4f}"
        )


if __name__ == "__main__":
    main()
