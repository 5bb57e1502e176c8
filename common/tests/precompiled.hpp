// What most tests include, parsed once for all of them (build.mk).
#pragma once

#include "precompiled.hpp"
#include "tests/catch.hpp"
