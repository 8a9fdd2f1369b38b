// Kernels with and without the synchronisation that they need. The emulation must tell them apart.
// All run as one block; `out` and `in` have one element per thread.

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

// The buffer is used again: a second barrier must keep fast threads from overwriting it.
extern "C" __global__ void sum_of_rounds_kernel(const float *in, float *out, int rounds)
{
    __shared__ float values[256];
    float sum = 0.0f;
    for (int round = 0; round < rounds; round++) {
        values[threadIdx.x] = in[threadIdx.x] * (float)(round + 1);
        __syncthreads();
        sum += values[(threadIdx.x + 1) % blockDim.x];
        __syncthreads();
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void sum_of_rounds_without_second_barrier_kernel(const float *in, float *out,
                                                                       int rounds)
{
    __shared__ float values[256];
    float sum = 0.0f;
    for (int round = 0; round < rounds; round++) {
        values[threadIdx.x] = in[threadIdx.x] * (float)(round + 1);
        __syncthreads();
        sum += values[(threadIdx.x + 1) % blockDim.x];
    }
    out[threadIdx.x] = sum;
}

// The paper's delta kernel relied on the threads of a warp running in step.
extern "C" __global__ void reverse_warp_kernel(const float *in, float *out)
{
    __shared__ float values[32];
    values[threadIdx.x] = in[threadIdx.x];
    __syncwarp();
    out[threadIdx.x] = values[31 - threadIdx.x];
}

extern "C" __global__ void reverse_warp_in_step_kernel(const float *in, float *out)
{
    __shared__ float values[32];
    values[threadIdx.x] = in[threadIdx.x];
    out[threadIdx.x] = values[31 - threadIdx.x];
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
