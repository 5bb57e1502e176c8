// Half precision on the CPU.
#pragma once

#include "simt/half.hpp"
