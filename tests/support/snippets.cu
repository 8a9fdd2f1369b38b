// Small kernels with which the tests look at the emulation.
#include "exchange.cuh"

// It writes behind the end of its shared memory.
extern "C" __global__ void shared_kernel(float *values)
{
    __shared__ float shared[32];
    shared[threadIdx.x + 1] = 1.0f;
    __syncthreads();
    values[threadIdx.x] = shared[threadIdx.x];
}

extern "C" __global__ void store_kernel(const float *values, unsigned *words)
{
    store_word(words + threadIdx.x, values[threadIdx.x], 0);
}
