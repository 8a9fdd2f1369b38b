// The order of execution, and blocks that wait for each other.

// Numbers the threads of all blocks as they run.
extern "C" __global__ void tickets_kernel(int *counter, int *tickets)
{
    tickets[blockIdx.x * blockDim.x + threadIdx.x] = atomicAdd(counter, 1);
}

extern "C" __global__ void wait_for_nobody_kernel(volatile int *flag)
{
    while (*flag != 1) __nanosleep(20);
}
