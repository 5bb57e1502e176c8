// Threads per block, where a launch may choose: the kernel asks blockDim for it, and keeps nothing
// per block.
#pragma once

namespace spmv::device {

inline int given_block_threads = 0;  // by --block-threads; 0: it was not given

inline int block_threads(int usual) {
  return given_block_threads > 0 ? given_block_threads : usual;
}

}  // namespace spmv::device
