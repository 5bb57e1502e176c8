// What most tests include, parsed once for all of them (build.mk).
#include "build/precompiled.hpp"
#include "tests/catch.hpp"
