// Includers of the runtime API alone get simt, too, also where a CUDA Toolkit is among the
// compiler's own directories. The libraries that come with a toolkit look for this header to learn
// whether there is one, and would go on to include the rest of it; on the CPU backend there is
// none.
#pragma once

#include <cuda_runtime.h>

#undef _CCCL_HAS_CTK
#define _CCCL_HAS_CTK() 0
