// Step 06, kernel 2 of PCSR: the sums of the rows, through shared memory.
//
// Kernel 1 (pcsr_products.cuh) stored one product per nonzero in `middle`, where the rows of a
// block lie one after the other. The block's threads load them together, coalesced, a piece at a
// time, into shared memory; there each thread adds up its own row, and strided reads cost bank
// conflicts at most, not sectors. (He and Gao 2016, Algorithm 3. NOTES.md says which
// of its lines is which here, and what is wrong in the print.)
//
//   thread   owns one row: adds up its products, writes y[row]
//   warp     nothing of its own
//   block    owns `threads` neighbouring rows, and `piece_size` products of them at a time
//
// What to look at: row_offsets and middle are read fully coalesced. But in a block with one long
// row all threads wait for the one that adds it up.
#pragma once

#include <cuda_runtime.h>

#include "device/scale.cuh"

namespace spmv {

// Launched with blocks of `threads` threads and with piece_size elements of T of dynamic shared
// memory, the paper's sizeSharedMemory: any number from 1 on.
template <int threads, typename T>
__global__ void pcsr_sums_kernel(int rows, const int* row_offsets, const T* middle, int piece_size,
                                 T alpha, T beta, T* y) {
  extern __shared__ __align__(16) unsigned char pcsr_piece[];
  T* const v_s = reinterpret_cast<T*>(pcsr_piece);
  __shared__ int ptr_s[threads + 1];
  const int tid = threadIdx.x;
  const int first_row = blockIdx.x * threads;
  const int rows_here = min(threads, rows - first_row);

  // exercise: begin
  // First stage: the block's row offsets. Threads past the last row get an empty one.
  ptr_s[tid] = row_offsets[first_row + min(tid, rows_here)];
  if (tid == 0) ptr_s[threads] = row_offsets[first_row + rows_here];
  __syncthreads();

  // The block's products, piece by piece: nlen of them from i on. Positions are
  // compared as distances, since i + piece_size may be more than an int holds.
  T sum = 0;
  const int end = ptr_s[threads];
  int nlen = 0;
  for (int i = ptr_s[0]; i < end; i += nlen) {
    nlen = min(end - i, piece_size);

    // Second stage: the piece into shared memory, once no thread reads the previous one.
    __syncthreads();
    for (int j = tid; j < nlen; j += threads) v_s[j] = middle[i + j];
    __syncthreads();

    // Third stage: the part of the thread's row that lies in the piece. If there is none, row_e <=
    // row_s and the loop is empty.
    const int row_s = max(ptr_s[tid] - i, 0);
    const int row_e = min(ptr_s[tid + 1] - i, nlen);
    for (int j = row_s; j < row_e; ++j) sum += v_s[j];
  }
  if (tid < rows_here) y[first_row + tid] = scale(alpha, sum, beta, &y[first_row + tid]);
  // exercise: end
}

}  // namespace spmv
