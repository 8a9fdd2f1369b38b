// What follows from the order of an epoch: which inputs are neighbours.
#include "layout.cuh"

// products[i] = x . x' of the inputs of step i and of the next step.
//
//   images    (n, n_in)
//   order     (steps) the image of each step
//   products  (steps); the last one is left as it is
//   grid      steps - 1
//   block     one warp
//   order     a thread's products ascending, then one half of the warp is added to the other, again
//             and again
extern "C" __global__ void __launch_bounds__(SUM_THREADS)
    input_products_kernel(const float *__restrict__ images, const int *__restrict__ order, int n_in,
                          float *__restrict__ products)
{
    const int i = blockIdx.x;
    const float *x = images + (size_t)order[i] * n_in;
    const float *next = images + (size_t)order[i + 1] * n_in;
    float sum = 0.0f;
    for (int j = threadIdx.x; j < n_in; j += SUM_THREADS) sum = fmaf(x[j], next[j], sum);
#pragma unroll
    for (int half = SUM_THREADS / 2; half > 0; half /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, half);
    if (threadIdx.x == 0) products[i] = sum;
}
