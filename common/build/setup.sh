#!/usr/bin/env bash
# setup.sh BACKEND OUTPUT.mk: finds the libraries a build needs, installs the missing ones, and
# writes where they are. make calls it when OUTPUT.mk is missing or older than this script.
#
# A library is there when $CXX compiles and links a line that uses it, so one installed by hand
# counts (CPATH and LIBRARY_PATH lead to it). A missing one is installed as a package by root, and by
# `make setup` where sudo asks for no password; else the package is unpacked into .deps/. A .deps/
# that is already there comes first and needs no network.
#
#   SPMV_DEPS=system  install packages by sudo: make setup
#   SPMV_DEPS=local   fill .deps/ whatever the system has, to carry it to a machine with no network
#   SPMV_DEPS=none    install nothing, say what is missing
#   SPMV_LIBRARIES="fmt zlib"   look for these alone, of those below
set -u
backend=$1 output=$2 mode=${SPMV_DEPS:-}
read -ra cxx <<<"${CXX:-g++}"
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
deps=$root/.deps
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT

say() { echo "setup: $*" >&2; }

# --- What is needed -------------------------------------------------------------------------------

names=()
declare -A package probe link purpose
need() {
  [[ " ${SPMV_LIBRARIES:-$1} " = *" $1 "* ]] || return 0
  names+=("$1"); package[$1]=$2 probe[$1]=$3 link[$1]=$4 purpose[$1]=$5
}

# A header-only library takes long to compile; that its header is found is enough.
header() { printf '#if !__has_include(<%s>)\n#error\n#endif' "$1"; }

if [ "$backend" = cpu ] || [ "$mode" = local ]; then
  need Boost.Context libboost-context-dev '#include <boost/context/detail/fcontext.hpp>
    auto context = boost::context::detail::make_fcontext(nullptr, 0, nullptr);' -lboost_context \
    'the CPU backend switches between CUDA threads with it'
fi
if [ "$backend" = cpu ] || [ "$mode" = local ]; then  # nvcc brings its own
  need Thrust libthrust-dev '#include <cuda_runtime.h>
    #include <thrust/device_vector.h>
    #include <thrust/reduce.h>' \
    "-DTHRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP -I$root/common -I$root/common/simt/include" \
    'without one that compiles here step 05 has no segscan_thrust; the rest works'
fi
need zlib zlib1g-dev '#include <zlib.h>
  auto zlib = zlibVersion();' -lz '.mtx.gz files are read with it'
need CLI11 libcli11-dev "$(header CLI/CLI.hpp)" '' 'it reads the command line'
need nlohmann-json nlohmann-json3-dev "$(header nlohmann/json.hpp)" '' 'it writes the records of a run'
need fmt libfmt-dev "$(header fmt/format.h)" '' 'everything is printed with it'
need Catch2 catch2 "$(header catch2/catch.hpp)" '' 'the tests are written with it'
need Eigen libeigen3-dev "$(header Eigen/Sparse)" '' 'without it there is no CPU library to compare with; the rest works'

if [ "$mode" != local ]; then  # it is no library alone: mpirun comes with it
  need MPI 'libopenmpi-dev openmpi-bin' '#define OMPI_SKIP_MPICXX
    #include <mpi.h>
    int mpi = MPI_Init(nullptr, nullptr);' -lmpi 'without it step 10 has no mpirun; the rest works'
fi

# Where a library may be beside the compiler's own places; which Catch2 it is: version 3 has to be
# linked, version 2 is a header, of which most may be there compiled (as C++17 or later); and whether
# there is an fmt to link, which saves a quarter of the time that everything takes to compile (.deps/
# has its headers alone).
look_around() {
  includes=() libraries=()
  local path
  for path in "$deps"/usr/include{/eigen3,,/*-linux-gnu*} /usr{/local,}/include/eigen3; do
    [ -d "$path" ] && includes+=(-isystem "$path")
  done
  for path in /usr/lib/*-linux-gnu*/openmpi/include; do
    [ -d "$path" ] && includes+=(-isystem "$path")
  done
  for path in "$deps"/usr/lib{,/*-linux-gnu*}; do
    [ -d "$path" ] && libraries+=("-L$path")
  done
  if compiles '#include <catch2/catch_version.hpp>' -fsyntax-only; then
    probe[Catch2]='#include <catch2/catch_version.hpp>
      auto& catch2 = Catch::libraryVersion();' link[Catch2]=-lCatch2
  elif compiles '#include <string>
    namespace Catch { template <typename T, typename> struct StringMaker { static std::string convert(T); }; }
    auto text = Catch::StringMaker<std::string_view, void>::convert("");' \
    "${libraries[@]}" -lCatch2WithMain -o "$scratch/probe"; then
    link[Catch2]=-lCatch2WithMain
  fi
  fmt=(-DFMT_HEADER_ONLY) link[fmt]=
  if compiles '#include <fmt/format.h>
    int main() { return fmt::format("{}", 1.5).empty(); }' "${libraries[@]}" -lfmt -o "$scratch/probe"; then
    fmt=() link[fmt]=-lfmt
  fi
  # A Thrust in .deps/ is among the includes by now.
  thrust=()
  if [ -n "${probe[Thrust]:-}" ] && [ ! -d "$deps/usr/include/thrust" ] && path=$(toolkit_thrust); then
    thrust=(-isystem "$path")
  fi
}

# The directory with the Thrust of a CUDA Toolkit, which is newer than a package's: if there is one,
# and $CXX compiles it.
toolkit_thrust() {
  local nvcc path
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  for path in "${nvcc%/bin/nvcc}"/include{/cccl,}; do
    if [ -d "$path/thrust" ] && [ "$path" != /usr/include ] &&
      compiles "${probe[Thrust]}" ${link[Thrust]} -isystem "$path" -fsyntax-only; then
      echo "$path"
      return
    fi
  done
  return 1
}

compiles() {  # SOURCE FLAG...
  "${cxx[@]}" -std=c++20 -x c++ "${includes[@]}" - "${@:2}" <<<"$1" 2>/dev/null
}

present() {  # NAME...
  local source='' flags=() name
  for name; do
    [[ $name = Thrust && ${thrust[*]} ]] && continue  # toolkit_thrust has compiled it
    source+=${probe[$name]}$'\n'
    flags+=(${link[$name]})
  done
  compiles "$source int main() {}" "${thrust[@]}" "${libraries[@]}" "${flags[@]}" -o "$scratch/probe"
}

look_for_missing() {
  missing=()
  present "${names[@]}" && return
  local name
  for name in "${names[@]}"; do
    present "$name" || missing+=("$name")
  done
}

# --- Getting it -----------------------------------------------------------------------------------

# Runs one of apt's programs quietly; why it failed is the first line of $scratch/errors.
apt() {  # PROGRAM ARGUMENT...
  "${as_root[@]}" env LC_ALL=C DEBIAN_FRONTEND=noninteractive "$1" -q -o DPkg::Lock::Timeout=120 \
    -o Acquire::Retries=1 -o Acquire::http::Timeout=20 -o APT::Update::Error-Mode=any "${apt_options[@]}" "${@:2}" \
    </dev/null 2>"$scratch/errors"
}

# Those of the packages that are to be had: a release may lack one, which must not cost the others.
offered() {  # PACKAGE...
  apt apt-cache policy "$@" | awk '/^[^ ]/ { name = $1; sub(":$", "", name) } /^  Candidate: [^(]/ { print name }'
}

install_packages() {  # PACKAGE...
  say "installing $* with apt-get"
  apt apt-get install -y --no-install-recommends "$@" >/dev/null ||
    { apt apt-get update && apt apt-get install -y --no-install-recommends $(offered "$@"); } >/dev/null
}

# apt's lists of packages may be missing or old, and only root can renew them: then with lists of our
# own. The libraries are static ones, so that nothing has to be found again when a program starts.
unpack_packages() {  # PACKAGE...
  say "unpacking $* into .deps/$(! sudo -n true 2>/dev/null || echo '; make setup installs them for the whole system')"
  download "$@" || {
    mkdir -p "$scratch"/apt/{lists,archives}/partial
    apt_options+=(-o Dir::State::Lists="$scratch/apt/lists" -o Dir::Cache="$scratch/apt"
      -o APT::Sandbox::User="$(id -un)")
    apt apt-get update >/dev/null && download $(offered "$@")
  } || return
  local file members
  for file in "$scratch"/*.deb; do
    members=(.)
    case $file in
      */libboost[0-9]*)  # of 130 MB of headers, those that Boost.Context includes
        members=(./usr/include/boost/{config.hpp,config,context,cstdint.hpp,detail}) ;;
    esac
    dpkg-deb --fsys-tarfile "$file" |
      tar -x -C "$scratch" --exclude='*.so' --exclude=./usr/share "${members[@]}" || return
  done
  mkdir -p "$deps" && cp -a "$scratch"/usr "$deps"
}

download() {  # PACKAGE...: and those that hold the files of a package that only stands for them
  local behind
  behind=$(apt apt-cache depends --recurse --important "$@") || return
  behind=$(grep -xE 'libboost(-context)?[0-9.]+-dev|libcatch2-dev|libcub-dev|libcu\+\+-dev' <<<"$behind")
  (cd "$scratch" && apt apt-get download "$@" $behind >/dev/null)
}

get() {  # NAME...
  local packages=() name
  for name; do packages+=(${package[$name]}); done
  as_root=() apt_options=()
  if ! command -v apt-get >/dev/null; then
    say "this system has no apt-get: install the libraries below in its own way"
    return
  fi
  if [ "$mode" = local ]; then
    unpack_packages "${packages[@]}"
  elif [ "$(id -u)" = 0 ]; then
    install_packages "${packages[@]}"
  elif [ "$mode" = system ] && sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
    install_packages "${packages[@]}"
  else
    [ "${packages[*]}" = "${package[MPI]:-}" ] || unpack_packages ${packages[*]/#*openmpi*/}
  fi || say "that failed: $(grep -m 1 '^[EW]:' "$scratch/errors")"
}

# --- Do it ----------------------------------------------------------------------------------------

look_around
if ! compiles $'#if __cplusplus < 202002L\n#error\n#endif' -fsyntax-only; then
  say "${cxx[*]} is missing or does not compile C++20: g++ 11 or clang++ 14 is needed (apt-get install g++)"
  exit 1
fi
if [ "$mode" = local ] && [ ! -d "$deps/usr" ]; then
  get "${names[@]}"
  look_around
fi
look_for_missing
if [ ${#missing[@]} -gt 0 ] && [ "$mode" != none ]; then
  get "${missing[@]}"
  look_around
  look_for_missing
fi

required='' packages=()
for name in "${missing[@]}"; do
  say "$name is missing: ${purpose[$name]}"
  packages+=(${package[$name]})
  [[ $name =~ ^(Eigen|Thrust|MPI)$ ]] || required=yes
done
found() { [[ " ${names[*]} " = *" $1 "* && " ${missing[*]} " != *" $1 "* ]]; }
eigen=$(found Eigen && echo -DHAVE_EIGEN)
have_thrust=$([ "$backend" = cuda ] || found Thrust && echo yes)
have_mpi=$(found MPI && echo yes)
[ ${#missing[@]} = 0 ] || say "to have it: apt-get install ${packages[*]}"
[ -z "$required" ] || exit 1
command -v mpirun >/dev/null || have_mpi=
[ "$mode" != local ] || have_mpi=

# NCCL comes with no package of every system, and is not installed here.
nccl=()
if [ "$backend" = cuda ]; then
  cuda=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  cuda=${cuda%/bin/nvcc}
  if compiles '#include <nccl.h>
    int main() { ncclUniqueId id; return ncclGetUniqueId(&id); }' -isystem "$cuda/include" \
    "${libraries[@]}" -L"$cuda/lib64" -lnccl -lcudart -o "$scratch/probe"; then
    nccl=(-lnccl)
    eigen+=' -DHAVE_NCCL'
  else
    say 'NCCL is missing: without it the ranks of step 10 (make mpi) have no --exchange nccl; the rest works (libnccl-dev)'
  fi
fi

# SpMVOp came with cuSPARSE 12.8.1, after CUDA 13.0.
if [ "$backend" = cuda ] && [ ! -d "$deps/cusparse" ] && ! compiles '#include <cusparse.h>
    #if CUSPARSE_VERSION < 12801
    #error
    #endif' -isystem "$cuda/include" -fsyntax-only; then
  say 'cusparseSpMVOp is missing: without it there are no kernels cusparse_spmvop_*; the rest works (make cusparse)'
fi

# Nor is oneMKL: `make mkl` fetches it for those who want its kernel; a system's own counts, too.
mkl=()
for library in mkl_mv mkl_rt; do
  mkl=("-l$library")
  [ $library = mkl_rt ] || mkl=("-L$deps/mkl/lib" "-Wl,-rpath,$deps/mkl/lib" "${mkl[@]}")
  if compiles '#include <mkl_spblas.h>
    int main() { return mkl_sparse_destroy(nullptr); }' -isystem "$deps/mkl/include" "${mkl[@]}" -o "$scratch/probe"; then
    break
  fi
  mkl=()
done

# Paths in the checkout are written with $(ROOT), so that it can be moved.
mkdir -p "$(dirname "$output")"
cat >"$output.$$" <<END && mv "$output.$$" "$output"
EXTRA_INCLUDES := ${includes[*]//$deps/\$(ROOT)/.deps}
EXTRA_LIBRARIES := ${libraries[*]//$deps/\$(ROOT)/.deps} ${link[fmt]}
MKL_LIBRARIES := ${mkl[*]//$deps/\$(ROOT)/.deps}
NCCL_LIBRARIES := ${nccl[*]}
MPI_LIBRARIES := ${link[MPI]:-}
HAVE_MPI := $have_mpi
EXTRA_DEFINES := $eigen ${fmt[*]}
TEST_LIBRARIES := ${link[Catch2]:-}
THRUST_INCLUDES := ${thrust[*]}
HAVE_THRUST := $have_thrust
END
