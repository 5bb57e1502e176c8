// CUDA's cooperative groups on the CPU.
#pragma once

#include "simt/grid_group.hpp"
#include "simt/groups.hpp"
