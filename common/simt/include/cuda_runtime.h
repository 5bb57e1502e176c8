// CUDA C++ on the CPU. On the CPU backend this file stands where the toolkit's cuda_runtime.h
// stands under nvcc, so that a kernel's source is the same for both.
#pragma once

#include "simt/runtime.hpp"
