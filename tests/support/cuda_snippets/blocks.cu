// Threads and blocks that work together: warps, the order of execution, and blocks that wait for
// each other.

// The sum of a warp in its first lane, and the value of the lane above.
extern "C" __global__ void warp_sum_kernel(const float *in, float *out)
{
    float sum = in[threadIdx.x];
    const float above = __shfl_down_sync(0xffffffffu, sum, 1);
    for (int half = 16; half > 0; half /= 2) sum += __shfl_down_sync(0xffffffffu, sum, half);
    out[2 * threadIdx.x] = sum;
    out[2 * threadIdx.x + 1] = above;
}

// Numbers the threads of all blocks as they run.
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
