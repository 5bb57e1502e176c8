// Compiled by nvcc alone, for machine_code_test.cpp; machine_code.o.gz is what came out:
//
//   nvcc -std=c++20 --no-compress -gencode arch=compute_90,code=sm_90 -gencode
//   arch=compute_80,code=sm_80 \
//     -c machine_code.cu -o all.o && objcopy --only-section=.nv_fatbin all.o machine_code.o && gzip
//     -9n machine_code.o
namespace {
__global__ void hidden_kernel(int* a) {
  a[threadIdx.x] = 7;
}
}  // namespace

template <typename T>
__global__ void scale_kernel(T* y, T factor) {
  y[threadIdx.x] *= factor;
}

void launch(int* a, float* x, double* y) {
  hidden_kernel<<<1, 32>>>(a);
  scale_kernel<<<1, 32>>>(x, 2.0f);
  scale_kernel<<<1, 32>>>(y, 2.0);
}
