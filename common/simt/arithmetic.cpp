#include "simt/arithmetic.hpp"

#define SIMT_ROUNDED(T, name, parameters, result) \
  T name parameters noexcept {                    \
    return result;                                \
  }
SIMT_ALL_ROUNDED(SIMT_ROUNDED)
#undef SIMT_ROUNDED
