#!/usr/bin/env python3
"""Packs the module for pages: package.py DIRECTORY OUTPUT. DIRECTORY has spmv.js and spmv.wasm.

OUTPUT, live.js, is a script of its own that a page loads from beside it, also from file://. It defines SPMV_LIVE (see
controls.js) and tells the page. Prints the sizes.
"""

import base64
import gzip
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main():
    directory, output = Path(sys.argv[1]), Path(sys.argv[2])
    kernels = subprocess.run(
        ["node", "--no-experimental-fetch", HERE / "run.js", directory, "--list", "--json"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    wasm = (directory / "spmv.wasm").read_bytes()
    packed = gzip.compress(wasm, 9, mtime=0)
    script = (directory / "spmv.js").read_text(encoding="utf-8") + (HERE / "worker.js").read_text(
        encoding="utf-8"
    )
    content = {
        "script": script,
        "wasm": base64.b64encode(packed).decode(),
        "kernels": json.loads(kernels),
    }
    output.write_text(
        f'window.SPMV_LIVE = {json.dumps(content)};\ndispatchEvent(new Event("spmv-live"));\n',
        encoding="utf-8",
    )
    print(
        f"{output}: {output.stat().st_size / 1e6:.1f} MB; module {len(wasm) / 1e6:.1f} MB, compressed {len(packed) / 1e6:.1f} MB"
    )


if __name__ == "__main__":
    main()
