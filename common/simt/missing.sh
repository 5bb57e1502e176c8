#!/bin/sh
# Writes the headers of CUDA that simt does not have: each ends the compilation with a line that says
# so. Of libcu++, links cuda/std/ of an installed toolkit, which needs no GPU. missing.sh DIRECTORY
set -eu
rm -rf "$1.new" && mkdir -p "$1.new" && cd "$1.new"
say() {  # WHAT REMEDY HEADERS...
  what=$1 remedy=$2
  shift 2
  for header; do
    mkdir -p "$(dirname "$header")"
    echo "#include \"the CPU backend has no $what ($header): $remedy\"" > "$header"
  done
}
say CUB "write it with shuffles and shared memory, or use BACKEND=cuda" cub/cub.cuh \
  $(for part in warp/warp_reduce warp/warp_scan block/block_reduce block/block_scan block/block_load \
    block/block_store block/block_radix_sort device/device_reduce device/device_scan; do echo cub/$part.cuh; done)
say Thrust "in kernels there is none, and host code includes it in a file named thrust.cu" \
  $(for part in device_vector host_vector device_ptr reduce scan sort transform transform_reduce for_each fill \
    copy sequence functional inner_product execution_policy; do echo thrust/$part.h; done) \
  thrust/iterator/counting_iterator.h thrust/iterator/transform_iterator.h
say "half precision" "compute in float" cuda_fp16.h cuda_bf16.h cuda_fp8.h
say "memcpy_async" "copy with a loop" cooperative_groups/memcpy_async.h
say "tensor cores" "use BACKEND=cuda" mma.h
say "this part of libcu++" "of it there are cuda/atomic and cuda/std/" cuda/barrier cuda/pipeline cuda/semaphore \
  cuda/latch cuda/annotated_ptr cuda/functional cuda/ptx
say "random numbers" "make them on the host" curand_kernel.h curand.h
for cccl in "$(dirname "$(command -v nvcc || echo /)")/../include/cccl" /usr/local/cuda/include/cccl; do
  [ -d "$cccl/cuda/std" ] || continue
  ln -s "$cccl/cuda/std" cuda/std
  ln -s "$cccl/nv" nv
  for part in "$cccl"/cuda/__*; do ln -s "$part" cuda/; done
  break
done
[ -e cuda/std ] || say "cuda/std/" "that of an installed CUDA Toolkit would be used" \
  $(for part in array atomic cmath cstdint limits span tuple type_traits utility; do echo cuda/std/$part; done)
rm -rf "$1" && mv "$1.new" "$1"
