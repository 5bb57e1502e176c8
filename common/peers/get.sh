#!/usr/bin/env bash
# make mkl, make cusparse: a vendor's library to compare with, from PyPI into .deps/mkl or .deps/cusparse.
#   get.sh mkl       oneMKL's product of a CSR matrix, for the kernel mkl_csr. What mkl.cpp calls of its static
#                    libraries (250 MB) becomes one shared library (96 MB), the rest goes.
#   get.sh cusparse  the newest cuSPARSE for CUDA 13 in the place of the toolkit's (230 MB), for its kernels
#                    cusparse_spmvop_*, which the cuSPARSE of CUDA 13.0 lacks
#
# Neither is free software: the licence lies beside the library.
set -u
name=${1:-}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
place=$root/.deps/$name
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

quit() { echo "error: $*" >&2; exit 1; }

fetch() {  # WHAT WHEEL...: unpacked into $scratch
  python3 -m venv "$scratch/python" >"$scratch/log" 2>&1 ||
    quit "python3 -m venv failed: $(tail -n 1 "$scratch/log") (apt-get install python3-venv)"
  echo "setup: fetching $1" >&2
  "$scratch/python/bin/pip" download -q --no-deps --disable-pip-version-check -d "$scratch" "${@:2}" \
    >"$scratch/log" 2>&1 || quit "pip could not fetch $title: $(grep -m 1 -i error "$scratch/log")"
  local wheel
  for wheel in "$scratch"/*.whl; do
    "$scratch/python/bin/python" -m zipfile -e "$wheel" "$scratch" || quit "$(basename "$wheel") could not be unpacked"
  done
  mkdir -p "$scratch/found"/{lib,include}
}

get_mkl() {
  version=2026.2.0
  [ "$(uname -m)" = x86_64 ] || quit "oneMKL is for x86-64 processors, this one is $(uname -m)"
  fetch "oneMKL $version (250 MB; Intel Simplified Software License)" mkl-static==$version mkl-include==$version
  local calls libraries headers
  calls=(create_csr mv)
  calls=("${calls[@]/#/mkl_sparse_s_}" "${calls[@]/#/mkl_sparse_d_}" mkl_sparse_{set_mv_hint,optimize,destroy})
  printf '{ global: %s local: *; };\n' "$(printf '%s; ' "${calls[@]}")" >"$scratch/exported"
  libraries=$(echo "$scratch"/mkl_static-*.data/data/lib)
  headers=$(echo "$scratch"/mkl_include-*.data/data/include)
  read -ra cxx <<<"${CXX:-g++}"
  "${cxx[@]}" -shared -fopenmp -s -o "$scratch/found/lib/libmkl_mv.so" "${calls[@]/#/-Wl,-u,}" \
    -Wl,--version-script="$scratch/exported" -Wl,--gc-sections \
    -Wl,--start-group "$libraries"/libmkl_{intel_lp64,gnu_thread,core}.a -Wl,--end-group -lpthread -lm -ldl ||
    quit "$(basename "${cxx[0]}") could not link oneMKL's libraries"
  cp "$headers"/mkl_{spblas,types,version}.h "$scratch/found/include" &&
    cp "$scratch"/mkl_static-*.dist-info/LICENSE.txt \
      "$scratch"/mkl_static-*.data/data/share/doc/mkl/licensing/*.txt "$scratch/found"
}

get_cusparse() {
  fetch 'the newest cuSPARSE (230 MB; NVIDIA Software License Agreement)' nvidia-cusparse
  version=$(sed -n 's/^Version: //p' "$scratch"/nvidia_cusparse-*.dist-info/METADATA)
  local files=$scratch/nvidia/cu13
  [ -e "$files/lib/libcusparse.so.12" ] || quit "cuSPARSE $version is not for CUDA 13: it has no nvidia/cu13/lib/libcusparse.so.12"
  cp "$files"/include/cusparse*.h "$scratch/found/include" && cp "$files"/lib/* "$scratch/found/lib" &&
    ln -s libcusparse.so.12 "$scratch/found/lib/libcusparse.so" &&
    cp "$scratch"/nvidia_cusparse-*.dist-info/licenses/* "$scratch/found"
}

case $name in
  mkl) title=oneMKL kernels=mkl_csr source=mkl.cpp ;;
  cusparse) title=cuSPARSE kernels='cusparse_*, cusparse_spmvop_* among them' source=cusparse.cu ;;
  *) quit 'get.sh mkl, or get.sh cusparse' ;;
esac
if [ -d "$place/lib" ]; then
  echo "$title is in .deps/$name already (remove that directory to fetch it again)" >&2
  exit 0
fi
"get_$name" && mkdir -p "$root/.deps" && rm -rf "$place" && mv "$scratch/found" "$place" ||
  quit "$title could not be stored in .deps/$name"

# Programs built before are to be linked with it.
rm -f "$root"/build/setup-*.mk "$root"/build/*/common/peers/$source.o
echo "setup: $title $version is in .deps/$name; make builds the kernels $kernels with it" >&2
