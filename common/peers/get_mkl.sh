#!/usr/bin/env bash
# make mkl: oneMKL's sparse matrix-vector product, for the kernel mkl_csr, into .deps/mkl. Its static libraries come
# from PyPI (250 MB); what mkl.cpp calls of them becomes one shared library (96 MB), the rest goes.
#
# oneMKL is no free software: its licence, the Intel Simplified Software License, lies beside the library.
set -u
version=2026.2.0
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
place=$root/.deps/mkl
read -ra cxx <<<"${CXX:-g++}"
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

quit() { echo "error: $*" >&2; exit 1; }

[ "$(uname -m)" = x86_64 ] || quit "oneMKL is for x86-64 processors, this one is $(uname -m)"
if [ -f "$place/lib/libmkl_mv.so" ]; then
  echo "oneMKL is in .deps/mkl already (remove that directory to fetch it again)" >&2
  exit 0
fi
python3 -m venv "$scratch/python" >"$scratch/log" 2>&1 ||
  quit "python3 -m venv failed: $(tail -n 1 "$scratch/log") (apt-get install python3-venv)"
echo "setup: fetching oneMKL $version (250 MB; Intel Simplified Software License)" >&2
"$scratch/python/bin/pip" download -q --no-deps --disable-pip-version-check -d "$scratch" \
  mkl-static==$version mkl-include==$version >"$scratch/log" 2>&1 ||
  quit "pip could not fetch oneMKL: $(grep -m 1 -i error "$scratch/log")"
for wheel in "$scratch"/*.whl; do
  "$scratch/python/bin/python" -m zipfile -e "$wheel" "$scratch" || quit "$(basename "$wheel") could not be unpacked"
done

calls=(create_csr mv)
calls=("${calls[@]/#/mkl_sparse_s_}" "${calls[@]/#/mkl_sparse_d_}" mkl_sparse_{set_mv_hint,optimize,destroy})
printf '{ global: %s local: *; };\n' "$(printf '%s; ' "${calls[@]}")" >"$scratch/exported"
libraries=$(echo "$scratch"/mkl_static-*.data/data/lib)
headers=$(echo "$scratch"/mkl_include-*.data/data/include)
mkdir -p "$scratch/mkl"/{lib,include} &&
  "${cxx[@]}" -shared -fopenmp -s -o "$scratch/mkl/lib/libmkl_mv.so" "${calls[@]/#/-Wl,-u,}" \
    -Wl,--version-script="$scratch/exported" -Wl,--gc-sections \
    -Wl,--start-group "$libraries"/libmkl_{intel_lp64,gnu_thread,core}.a -Wl,--end-group -lpthread -lm -ldl ||
  quit "$(basename "${cxx[0]}") could not link oneMKL's libraries"
cp "$headers"/mkl_{spblas,types,version}.h "$scratch/mkl/include" &&
  cp "$scratch"/mkl_static-*.dist-info/LICENSE.txt "$scratch"/mkl_static-*.data/data/share/doc/mkl/licensing/*.txt \
    "$scratch/mkl" && mkdir -p "$root/.deps" && rm -rf "$place" && mv "$scratch/mkl" "$place" ||
  quit "oneMKL could not be stored in .deps/mkl"

# Programs built before are to be linked with it.
rm -f "$root"/build/setup-*.mk "$root"/build/*/common/peers/mkl.cpp.o
echo "setup: oneMKL $version is in .deps/mkl; make builds the kernel mkl_csr" >&2
