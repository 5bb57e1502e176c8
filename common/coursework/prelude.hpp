// What stands before a student's kernels when they are judged: all that a step includes from here,
// so that nothing in their files (a macro, say) can change what it means. Compiled once.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cfloat>
#include <climits>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "device/buffer.hpp"
#include "device/coo.hpp"
#include "device/csr.hpp"
#include "device/launch.hpp"
#include "device/scale.cuh"
#include "device/texture.hpp"
#include "harness/kernel.hpp"
#include "sparse/convert.hpp"
#include "sparse/matrix.hpp"

// Functions that a kernel calls become part of it, as with nvcc: a call may hide an access of an
// object that is passed by value, and counts apart from the line that makes it.
#undef __global__
#define __global__ __attribute__((flatten))

// Nothing that a file says to the compiler alone (flags.py leaves its #pragma out, too) silences
// it.
#define _Pragma(text)
