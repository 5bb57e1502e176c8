// Catch2, whichever major version the machine has.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;  // global in version 2
#else
#include <catch2/catch.hpp>
#endif
