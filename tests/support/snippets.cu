// Small kernels with which the tests look at the emulation. `out` and `in` have one element a
// thread.
#include "exchange.cuh"

// ---- barriers: with and without the synchronisation that they need -----------------------

// Each thread reads what another has written.
extern "C" __global__ void reverse_kernel(const float *in, float *out)
{
    __shared__ float values[256];
    values[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}

extern "C" __global__ void reverse_without_barrier_kernel(const float *in, float *out)
{
    __shared__ float values[256];
    values[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = values[blockDim.x - 1 - threadIdx.x];
}

// Half of the threads never come to the barrier.
extern "C" __global__ void divergent_barrier_kernel(float *out)
{
    if (threadIdx.x < blockDim.x / 2) return;
    __syncthreads();
    out[threadIdx.x] = 1.0f;
}

// Half of a warp never comes to the shuffle.
extern "C" __global__ void divergent_shuffle_kernel(float *out)
{
    if (threadIdx.x < 16) return;
    out[threadIdx.x] = __shfl_down_sync(0xffffffffu, 1.0f, 1);
}

extern "C" __global__ void uninitialised_kernel(float *out)
{
    __shared__ float values[64];
    out[threadIdx.x] = values[threadIdx.x];
}

// ---- blocks ------------------------------------------------------------------------------

// Numbers the threads of all blocks as they run; one thread of the host runs them all.
extern "C" __global__ void tickets_kernel(int *counter, int *tickets)
{
    tickets[blockIdx.x * blockDim.x + threadIdx.x] = (*counter)++;
}

extern "C" __global__ void wait_for_nobody_kernel(volatile int *flag)
{
    while (*flag != 1) __nanosleep(20);
}

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

// ---- words that blocks exchange ----------------------------------------------------------

extern "C" __global__ void store_kernel(const float *values, unsigned *words, int bit)
{
    store_word(words + threadIdx.x, values[threadIdx.x], bit);
}

// `words` then get the tickets' bits.
extern "C" __global__ void load_kernel(float *out, unsigned *words)
{
    const exchange_word word = load_word(words + threadIdx.x);
    out[threadIdx.x] = word_value(word);
    words[threadIdx.x] = word & 1;
}
