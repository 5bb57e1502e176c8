// CUDA's cooperative groups on the CPU.
#pragma once

#include "simt/groups.hpp"
