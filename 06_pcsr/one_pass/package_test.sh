#!/usr/bin/env bash
# The one-pass product in projects outside of the repository: fetched, installed, as one header, and as a Python
# module. Compiles; runs nothing, since there may be no GPU.
#   package_test.sh [NVCC]
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
nvcc=${1:-nvcc}
command -v "$nvcc" >/dev/null || { echo 'skipped: packages of the one-pass product: no nvcc'; exit 0; }
source "$here/../../common/tests/checks.sh"

cp "$here/example/matrix.hpp" "$scratch"
sed 's,"../one_pass,"one_pass,' "$here/example/first_product.cu" >"$scratch/main.cu"
mkdir "$scratch/header"
holds 'one header is written' python3 "$here/amalgamate.py" "$scratch/header/one_pass.cuh"
holds 'with the licence' grep -q 'MIT License' "$scratch/header/one_pass.cuh"
holds 'and includes nothing of this repository' test "$(grep -c '^#include "' "$scratch/header/one_pass.cuh")" = 0
holds 'one header compiles' "$nvcc" -std=c++17 -O0 -Werror all-warnings -I"$scratch/header" "$scratch/main.cu" -o "$scratch/main"
holds 'a header that cannot be written' bash -c "! python3 '$here/amalgamate.py' '$scratch/none/one_pass.cuh' 2>'$scratch/error'"
holds 'is an error in one line' test "$(grep -c "^error: $scratch/none/one_pass.cuh: " "$scratch/error")$(wc -l <"$scratch/error")" = 11

holds 'the example beside cuSPARSE compiles' "$nvcc" -std=c++17 -O0 -Werror all-warnings \
  "$here/example/beside_cusparse.cu" -o "$scratch/beside" -lcusparse

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
  holds 'configured to be installed' cmake -S "$here" -B "$scratch/install"
  holds 'installed' cmake --install "$scratch/install" --prefix "$scratch/prefix"
  holds 'find_package' project found 'find_package(spmv_one_pass 1 REQUIRED)' -DCMAKE_PREFIX_PATH="$scratch/prefix"
else
  echo 'skipped: the CMake target of the one-pass product: no cmake'
fi

# What spmv_one_pass.py asks NVRTC for, compiled without a GPU, beside the one header.
if python3 -c 'import numpy, cuda.bindings.nvrtc as n; assert not n.nvrtcVersion()[0]' 2>/dev/null; then
  cp "$here/spmv_one_pass.py" "$scratch/header"
  holds 'the Python module compiles its kernels' env PYTHONPATH="$scratch/header" python3 -c '
from spmv_one_pass import kernel
for T in "float", "double":
    for name in ("describe_kernel<{}>", "plan_kernel<{}>", "choose_kernel", "spmv::prepare_one_pass_kernel<{}>",
                 "spmv::pcsr_one_pass_kernel<{}>", *(f"spmv::pcsr_rows_kernel<{1 << w}, {{}}>" for w in range(11)),
                 *(f"spmv::pcsr_several_kernel<{{}}, {v}>" for v in (2, 4, 8)),
                 *(f"spmv::pcsr_several_rows_kernel<{g}, {{}}, {v}>" for g, v in ((1, 2), (16, 4), (8, 8))),
                 "spmv::scale_transposed_kernel<{}>", "spmv::pcsr_transposed_kernel<{}>"):
        kernel("90", name.format(T), None)'
else
  echo 'skipped: the Python module of the one-pass product: no numpy, cuda-bindings or NVRTC'
fi

summary
