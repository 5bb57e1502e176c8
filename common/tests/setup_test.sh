#!/usr/bin/env bash
# What setup.sh finds, and what make builds when something is missing. Installs nothing.
#   setup_test.sh
source "$(dirname "${BASH_SOURCE[0]}")/checks.sh"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
unset MAKEFLAGS MAKELEVEL MFLAGS
compiler=${CXX:-g++}

# set_up STATUS VARIABLE=VALUE...: setup.sh ends with STATUS. What it says is in $scratch/err,
# what it found in $scratch/found.mk.
set_up() {
  rm -f "$scratch/found.mk"
  env SPMV_DEPS=none "${@:2}" "$root/common/build/setup.sh" cpu "$scratch/found.mk" 2>"$scratch/err"
  [ $? = "$1" ]
}

# A compiler for which every source that mentions $1 is wrong, as if that were not installed.
compiler_without() {
  cat >"$scratch/without" <<END
#!/usr/bin/env bash
source=\$(cat)
[[ \$source != *$1* ]] && exec $compiler "\$@" <<<"\$source"
END
  chmod +x "$scratch/without"
}

# sources VARIABLE=VALUE...: those of step 05.
sources() {
  make -s -C "$root/05_segmented_scan" --eval='show: ; @echo $(notdir $(call stage_sources,05_segmented_scan))' \
    show "$@" 2>/dev/null
}

holds 'what is here suffices' set_up 0 "CXX=$compiler"

compiler_without thrust/
holds 'Thrust is not required' set_up 0 'SPMV_LIBRARIES=Thrust zlib' "CXX=$scratch/without"
holds 'one line tells what is lost' test "$(grep -c 'Thrust is missing: .*segscan_thrust' "$scratch/err")" = 1
holds 'and one how to have it' grep -q 'apt-get install libthrust-dev' "$scratch/err"
holds 'make learns of it' grep -qx 'HAVE_THRUST := ' "$scratch/found.mk"
holds 'the rest is built without it' test "$(sources BACKEND=cpu HAVE_THRUST=)" = stage.cu
holds 'and else with it, CUB being for GPUs' test "$(sources BACKEND=cpu HAVE_THRUST=yes)" = 'stage.cu thrust.cu'

compiler_without zlib.h
holds 'what is required is' set_up 1 'SPMV_LIBRARIES=CLI11 zlib' "CXX=$scratch/without"
holds 'and named' grep -q 'zlib is missing' "$scratch/err"
holds 'nothing is written then' test ! -e "$scratch/found.mk"

# A user who may sudo without a password: packages are installed by `make setup` alone.
mkdir "$scratch/user"
printf '#!/bin/sh\ncase $1 in -u) echo 1000 ;; *) echo somebody ;; esac\n' >"$scratch/user/id"
printf '#!/bin/sh\necho "sudo $*" >>"%s/calls"\n' "$scratch" >"$scratch/user/sudo"
printf '#!/bin/sh\necho "${0##*/} $*" >>"%s/calls"\nexit 1\n' "$scratch" | tee "$scratch/user/apt-get" "$scratch/user/apt-cache" >/dev/null
chmod +x "$scratch"/user/*
compiler_without thrust/
mkdir -p "$scratch/tree/common/build"
cp "$root/common/build/setup.sh" "$scratch/tree/common/build"
as_user() {  # MODE: what is called, and what is said in $scratch/err
  rm -f "$scratch/calls"
  env "SPMV_DEPS=$1" SPMV_LIBRARIES=Thrust "PATH=$scratch/user:$PATH" "CXX=$scratch/without" "CPATH=$root/common:$root/common/simt/include" \
    bash "$scratch/tree/common/build/setup.sh" cpu "$scratch/found.mk" 2>"$scratch/err" || true
}
as_user ''
holds 'nothing is installed unasked' bash -c "! grep -E 'sudo.*install|^apt-get.* install' '$scratch/calls'"
holds 'but unpacked, and said how to install it' grep -q 'into .deps/; make setup installs' "$scratch/err"
as_user system
holds 'make setup installs' grep -Eq '^sudo -n .*apt-get .*install' "$scratch/calls"

# A toolkit whose Thrust is not for this compiler.
mkdir -p "$scratch"/toolkit/{bin,include/cccl/thrust}
printf '#!/bin/sh\n' >"$scratch/toolkit/bin/nvcc"
printf '#error\n' | tee "$scratch"/toolkit/include/cccl/thrust/{version.h,reduce.h,device_vector.h} >/dev/null
chmod +x "$scratch/toolkit/bin/nvcc"
holds 'a Thrust that does not compile is left alone' \
  set_up 0 SPMV_LIBRARIES=Thrust "CXX=$compiler" "PATH=$scratch/toolkit/bin:$PATH"
holds 'and not on the path of includes' test "$(grep -c toolkit "$scratch/found.mk")" = 0

# An oneMKL of the system's (unless `make mkl` has fetched one, which comes first).
mkdir -p "$scratch/mkl"
echo 'extern "C" int mkl_sparse_destroy(void*);' >"$scratch/mkl/mkl_spblas.h"
echo 'extern "C" int mkl_sparse_destroy(void*) { return 0; }' |
  "$compiler" -x c++ -shared -fPIC - -o "$scratch/mkl/libmkl_rt.so"
holds 'an oneMKL that is installed' set_up 0 SPMV_LIBRARIES=zlib "CXX=$compiler" "CPATH=$scratch/mkl" "LIBRARY_PATH=$scratch/mkl"
holds 'is linked' grep -Eq '^MKL_LIBRARIES.* -lmkl_(rt|mv)$' "$scratch/found.mk"
compiler_without mkl_spblas.h
holds 'it is not required' set_up 0 SPMV_LIBRARIES=zlib "CXX=$scratch/without"
holds 'nor linked then' grep -qx 'MKL_LIBRARIES := ' "$scratch/found.mk"

# make cusparse, from a wheel made here in a tree made here.
wheel() {
  mkdir -p "$scratch"/wheel/{nvidia/cu13/{lib,include},nvidia_cusparse-99.1.dist-info/licenses} "$scratch/wheels" \
    "$scratch/tree/common/peers"
  touch "$scratch"/wheel/nvidia/cu13/{lib/libcusparse.so.12,include/cusparse.h} \
    "$scratch/wheel/nvidia_cusparse-99.1.dist-info/licenses/License.txt"
  printf 'Metadata-Version: 2.1\nName: nvidia-cusparse\nVersion: 99.1\n' >"$scratch/wheel/nvidia_cusparse-99.1.dist-info/METADATA"
  printf 'Wheel-Version: 1.0\nTag: py3-none-any\n' >"$scratch/wheel/nvidia_cusparse-99.1.dist-info/WHEEL"
  (cd "$scratch/wheel" && python3 -m zipfile -c ../wheels/nvidia_cusparse-99.1-py3-none-any.whl ./*)
  cp "$root/common/peers/get.sh" "$scratch/tree/common/peers"
}
get() {  # STATUS: get.sh cusparse ends with it
  env PIP_NO_INDEX=1 "PIP_FIND_LINKS=$scratch/wheels" bash "$scratch/tree/common/peers/get.sh" cusparse 2>"$scratch/err"
  [ $? = "$1" ]
}
if python3 -c 'import ensurepip, venv' 2>/dev/null; then
  wheel
  holds 'make cusparse unpacks a wheel' get 0
  holds 'with what -lcusparse finds, the header and the licence' \
    ls -L "$scratch"/tree/.deps/cusparse/{lib/libcusparse.so,include/cusparse.h,License.txt}
  holds 'and names its version' grep -q 'cuSPARSE 99.1 is in .deps/cusparse' "$scratch/err"
  holds 'once' get 0
  holds 'which it says' grep -q 'already' "$scratch/err"
  rm -r "$scratch"/wheels/* "$scratch/tree/.deps"
  holds 'without a network it ends' get 1
  holds 'and says why' grep -q '^error: pip could not fetch cuSPARSE: ' "$scratch/err"
else
  echo 'skipped: make cusparse from a wheel made here: python3 has no venv'
fi

summary
