// Step 05 (a): one thread per nonzero, sums of rows by a segmented scan in shared memory.
//
// The lanes of steps 02 and 03 wait for the longest row. Here threads own nonzeros, whatever their
// rows: each brings a product, and the block adds up neighbours of equal row in log2(longest row)
// rounds. No row may be in two blocks, so the chunks of nonzeros that the blocks own are moved to
// where rows begin. (Emmanuel and Vorobyev, section 4.2; the scan is Hillis and Steele's.)
//
//   thread   owns every kBlockThreads-th nonzero of its chunk, writes y for a row that ends there
//   block    owns a chunk of whole rows, about kChunk nonzeros: goes through it kBlockThreads at a
//            time, and carries what a row that goes on has so far into the next iteration
//
// The paper leaves open what happens to a row that is longer than a block. Here its block takes as
// many iterations as it needs, and the blocks whose chunks lie within the row have nothing to do.
#pragma once

#include <cuda_runtime.h>

#include "device/scale.cuh"

namespace spmv {

inline constexpr int kBlockThreads = 256;
inline constexpr int kChunk = 1024;

// chunk_begins[c], for c up to and including `chunks`: chunk c would begin at nonzero kChunk * c;
// it begins where the row of the nonzero before that one ends. One thread per chunk.
static __global__ void move_chunks_kernel(int nnz, int chunks, const int* row_indices,
                                          int* chunk_begins) {
  const int chunk = blockIdx.x * blockDim.x + threadIdx.x;
  if (chunk > chunks) return;
  int begin = chunk < chunks ? chunk * kChunk : nnz;
  if (begin > 0) {
    const int row = row_indices[begin - 1];
    for (int end = nnz; begin < end;) {
      const int middle = begin + (end - begin) / 2;
      if (row_indices[middle] == row) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
  }
  chunk_begins[chunk] = begin;
}

// Positions are unsigned: with 2^31 - 1 nonzeros the last iteration looks beyond what an int can
// hold.
template <typename T>
__global__ void segscan_block_kernel(const int* chunk_begins, const int* row_indices,
                                     const int* column_indices, const T* values, T alpha,
                                     const T* x, T beta, T* y) {
  __shared__ int rows[kBlockThreads];
  __shared__ T sums[kBlockThreads];
  __shared__ T carry;  // of the row that goes on from the iteration before; 0 if none does
  const unsigned thread = threadIdx.x;
  const unsigned chunk_end = chunk_begins[blockIdx.x + 1];
  if (thread == 0) carry = 0;
  __syncthreads();  // the compiler may let every thread read it, and only then choose

  // exercise: begin
  for (unsigned iteration_begin = chunk_begins[blockIdx.x]; iteration_begin < chunk_end;
       iteration_begin += kBlockThreads) {
    const unsigned k = iteration_begin + thread;
    const int row = k < chunk_end ? row_indices[k] : -1;
    T sum = k < chunk_end ? values[k] * x[column_indices[k]] : T{0};
    if (thread == 0) sum += carry;
    rows[thread] = row;
    sums[thread] = sum;
    __syncthreads();

    // After each round `sum` covers twice as many nonzeros, back to where the row begins. Rows
    // ascend: if the row is the same `distance` back, it is the same in between.
    for (unsigned distance = 1;; distance *= 2) {
      const bool goes_back = row >= 0 && thread >= distance && rows[thread - distance] == row;
      const T before = goes_back ? sums[thread - distance] : T{0};
      if (!__syncthreads_or(goes_back)) break;
      sum += before;
      sums[thread] = sum;
      __syncthreads();
    }

    int next_row = -1;
    if (thread + 1 < kBlockThreads) {
      next_row = rows[thread + 1];
    } else if (k + 1 < chunk_end) {
      next_row = row_indices[k + 1];
    }
    const bool row_ends = row >= 0 && next_row != row;
    if (row_ends) y[row] = scale(alpha, sum, beta, &y[row]);
    if (thread == kBlockThreads - 1) carry = row_ends ? T{0} : sum;
    __syncthreads();
  }
  // exercise: end
}

}  // namespace spmv
