// Small kernels with which the tests look at the emulation.
#include "exchange.cuh"

// ---- accesses out of bounds: `n` is the length of the array ------------------------------

// Like the paper's update kernel, which multiplies states[-1] by zero.
extern "C" __global__ void read_before_kernel(float *values, int n)
{
    const int i = (int)threadIdx.x - 1;
    if (i < n - 1) values[i + 1] = (i >= 0) * values[i];
}

extern "C" __global__ void shared_kernel(float *values, int n)
{
    __shared__ float shared[32];
    shared[threadIdx.x + 1] = 1.0f;
    __syncthreads();
    if ((int)threadIdx.x < n) values[threadIdx.x] = shared[threadIdx.x];
}

extern "C" __global__ void store_kernel(const float *values, unsigned *words)
{
    store_word(words + threadIdx.x, values[threadIdx.x], 0);
}
