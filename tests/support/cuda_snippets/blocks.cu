// Threads and blocks that work together: warps, orders of execution, and blocks that wait for
// each other.

extern "C" __global__ void warp_sum_kernel(const float *in, float *out)
{
    float sum = in[threadIdx.x];
    for (int half = 16; half > 0; half /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, half);
    const float first = __shfl_sync(0xffffffffu, in[threadIdx.x], 0);
    const float above = __shfl_up_sync(0xffffffffu, in[threadIdx.x], 1);
    out[3 * threadIdx.x] = sum;
    out[3 * threadIdx.x + 1] = first;
    out[3 * threadIdx.x + 2] = above;
}

// When each thread of each block has run.
extern "C" __global__ void tickets_kernel(int *counter, int *tickets)
{
    tickets[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(counter, 1);
}

// Block b waits for its turn, `rounds` times over; each block keeps a sum in shared memory.
extern "C" __global__ void take_turns_kernel(volatile int *turn, int rounds, int *sums)
{
    __shared__ int sum;
    if (threadIdx.x == 0) sum = 0;
    for (int round = 0; round < rounds; round++) {
        const int mine = round * gridDim.x + blockIdx.x;
        while (*turn != mine) __nanosleep(20);
        __syncthreads();
        if (threadIdx.x == 0) {
            sum += blockIdx.x + 1;
            __threadfence();
            *turn = mine + 1;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

extern "C" __global__ void wait_for_nobody_kernel(volatile int *flag)
{
    while (*flag != 1) __nanosleep(20);
}
