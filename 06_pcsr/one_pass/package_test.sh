#!/usr/bin/env bash
# The one-pass product in projects outside of the repository: fetched, installed, as one header, and as a Python
# module. Compiles; runs nothing, since there may be no GPU.
#   package_test.sh [NVCC]
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
nvcc=${1:-nvcc}
command -v "$nvcc" >/dev/null || { echo 'skipped: packages of the one-pass product: no nvcc'; exit 0; }
source "$here/../../common/tests/checks.sh"

cp "$here/example/matrix.hpp" "$scratch"
# A program's own names, and a header of its own that is called vectors.cuh, do not meet those of the library.
{
  echo 'namespace spmv { struct Tile {}; struct Pack {}; template <typename T> T sum_of_warp(T value); struct RowsStatistics {}; }'
  sed 's,"../spmv/one_pass.cuh",<spmv/one_pass.cuh>,' "$here/example/first_product.cu"
  echo 'static_assert(SPMV_ONE_PASS_VERSION >= 20000 && sizeof(spmv::Tile) < sizeof(spmv::one_pass_2::OnePassPlan<double>));'
} >"$scratch/main.cu"
mkdir -p "$scratch/header/spmv" "$scratch/own"
echo '#error "the library took a header of the program"' >"$scratch/own/vectors.cuh"
holds 'one header is written' python3 "$here/amalgamate.py" "$scratch/header/spmv/one_pass.cuh"
holds 'with the licence' grep -q 'MIT License' "$scratch/header/spmv/one_pass.cuh"
holds 'and includes nothing of this repository' test "$(grep -c '^#include "' "$scratch/header/spmv/one_pass.cuh")" = 0
holds 'one header compiles' "$nvcc" -std=c++17 -O0 -Werror all-warnings -I"$scratch/header" "$scratch/main.cu" -o "$scratch/main"
holds 'a header that cannot be written' bash -c "! python3 '$here/amalgamate.py' '$scratch/none/one_pass.cuh' 2>'$scratch/error'"
holds 'is an error in one line' test "$(grep -c "^error: $scratch/none/one_pass.cuh: " "$scratch/error")$(wc -l <"$scratch/error")" = 11

# What does not compile, and what the compilers say of it.
cat >"$scratch/refused.cu" <<'END'
#include <spmv/one_pass.cuh>
int main() {
  spmv::OnePassPlan<double> plan;
  plan.create({});
  spmv::OnePassPlan<int> of_integers;
  spmv::OnePassPlan<float, double> of_wide_values;
}
END
cuda=$(dirname "$(dirname "$(readlink -f "$(command -v "$nvcc")")")")
holds 'wrong uses are refused' bash -c '! "${@:2}" >"$1" 2>&1' _ "$scratch/error" \
  "$nvcc" -std=c++17 -O0 -Werror all-warnings -I"$here" -c "$scratch/refused.cu" -o /dev/null
holds 'a source that is not CUDA, too' bash -c '! "${@:2}" 2>>"$1"' _ "$scratch/error" \
  "${CXX:-g++}" -std=c++17 -fsyntax-only -x c++ -I"$cuda/include" -I"$here" "$scratch/refused.cu"
for said in nodiscard 'sums and vectors are float or double' 'values are of type T, or float' 'name it .cu'; do
  holds "the compiler says: $said" grep -q "$said" "$scratch/error"
done
version=$(sed -n 's/^#define SPMV_ONE_PASS_VERSION //p' "$here/spmv/one_pass.cuh")
holds 'one version' grep -q "VERSION $((version / 10000)).$((version / 100 % 100)).$((version % 100)) " "$here/CMakeLists.txt"
# Code for 7.5 has no wait, so it must not be launched to overlap (test.cu); code for 9.0 has it.
if command -v cuobjdump >/dev/null; then
  for arch in 75 90; do
    "$nvcc" -std=c++17 -O1 -arch=sm_$arch -I"$scratch/own" -I"$here" -cubin "$scratch/main.cu" -o "$scratch/main$arch.cubin"
    cuobjdump -sass "$scratch/main$arch.cubin" | grep -c ACQBULK >"$scratch/waits$arch"
  done
  holds 'code for 7.5 does not wait, code for 9.0 does' test "$(cat "$scratch/waits75")" = 0 -a "$(cat "$scratch/waits90")" -gt 0
fi
holds 'the library with a C interface compiles' "$nvcc" -std=c++17 -O0 -Werror all-warnings -shared -Xcompiler -fPIC \
  "$here/c_interface.cu" -o "$scratch/libspmv_one_pass.so"
holds 'its header is C' "${CC:-gcc}" -std=c99 -Wall -Werror -fsyntax-only -x c - <<<'#include "'"$here"'/c_interface.h"'

if command -v cmake >/dev/null; then
  # project NAME HOW-IT-IS-FOUND CMAKE-OPTION...: configures and builds with the target.
  project() {
    mkdir -p "$scratch/$1"
    cat >"$scratch/$1/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.24)
project(outside LANGUAGES CXX CUDA)
$2
add_executable(main ../main.cu)
target_link_libraries(main PRIVATE spmv::one_pass)
END
    cmake -S "$scratch/$1" -B "$scratch/$1/build" -DCMAKE_CUDA_COMPILER="$(command -v "$nvcc")" \
      -DCMAKE_CUDA_ARCHITECTURES=75 -DCMAKE_CUDA_FLAGS=-O0 "${@:3}" && cmake --build "$scratch/$1/build"
  }
  holds 'FetchContent' project fetched "include(FetchContent)
FetchContent_Declare(spmv SOURCE_DIR $(cd "$here/../.." && pwd) SOURCE_SUBDIR 06_pcsr/one_pass)
FetchContent_MakeAvailable(spmv)"
  cmake --install "$scratch/fetched/build" --prefix "$scratch/of-the-user" >/dev/null 2>&1
  holds 'which installs nothing into the prefix of the program' test ! -e "$scratch/of-the-user/include"
  holds 'configured to be installed' cmake -S "$here" -B "$scratch/install"
  holds 'installed' cmake --install "$scratch/install" --prefix "$scratch/prefix"
  holds 'find_package' project found 'find_package(spmv_one_pass 2 REQUIRED)' -DCMAKE_PREFIX_PATH="$scratch/prefix"
else
  echo 'skipped: the CMake target of the one-pass product: no cmake'
fi

# The Python module with the library compiled above, without a GPU and without CuPy: what it refuses before it asks CUDA, and
# CUDA's error.
holds 'the Python module' env SPMV_ONE_PASS_LIBRARY="$scratch/libspmv_one_pass.so" PYTHONPATH="$here" PYTHONDONTWRITEBYTECODE=1 python3 - <<'END'
import spmv_one_pass


class Array:
    def __init__(self, typestr, shape, strides=None):
        self.shape = shape
        self.__cuda_array_interface__ = {"typestr": typestr, "shape": shape, "data": (256, False), "strides": strides, "version": 3}


def refusal(*arguments, **options):
    try:
        spmv_one_pass.OnePass(*arguments, **options)
    except (ValueError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"


offsets, columns, values = Array("<i4", (3,)), Array("<i4", (4,)), Array("<f8", (4,))
for said, matrix, shape, vectors in [
    ("ValueError: values is of type <i8", (offsets, columns, Array("<i8", (4,))), (2, 2), 1),
    ("ValueError: column indices is of type <i8", (offsets, Array("<i8", (4,)), values), (2, 2), 1),
    ("ValueError: row offsets has the shape (3,): expected 4", (offsets, columns, values), (3, 2), 1),
    ("ValueError: values is not contiguous", (offsets, columns, Array("<f8", (4,), (16,))), (2, 2), 1),
    ("ValueError: values is not on a GPU", (offsets, columns, [1, 2]), (2, 2), 1),
    ("ValueError: 3 vectors", (offsets, columns, values), (2, 2), 3),
    ("ValueError: a shape goes with", (offsets, columns, values), None, 1),
    ("RuntimeError: CUDA: ", (offsets, columns, values), (2, 2), 1),
]:
    if said.startswith("Runtime") and spmv_one_pass.library().spmv_version() != 20000:
        raise SystemExit("another version")
    got = refusal(matrix, shape=shape, most_vectors=vectors)
    if not (got or "").startswith(said):
        raise SystemExit(f"expected {said}: {got}")
END

summary
