// The softmax of one sample's sums a, by one warp: p_i = exp(a_i - max a) / sum_j exp(a_j - max a).
#pragma once

#include "layout.cuh"

struct softmax_scale {
    float greatest;  // of the sums
    double sum;      // of the powers, 1 or more
};

// powers[i] = exp(sums[i] - max sums), and their sum in every thread. A NaN makes that sum a NaN.
//
//   sums, powers  (n); they may be the same
//   block         one warp; thread i takes elements i, i + 32, ...
//   order         each thread's terms ascending, then pairs of threads, half a warp apart at first
__device__ inline softmax_scale exponentiate(const float *sums, int n, float *powers)
{
    float greatest = -INFINITY;
    for (int i = threadIdx.x; i < n; i += SUM_THREADS) greatest = fmaxf(greatest, sums[i]);
#pragma unroll
    for (int half = SUM_THREADS / 2; half > 0; half /= 2)
        greatest = fmaxf(greatest, __shfl_xor_sync(0xffffffffu, greatest, half));
    double sum = 0.0;
    for (int i = threadIdx.x; i < n; i += SUM_THREADS) {
        const float power = expf(sums[i] - greatest);
        powers[i] = power;
        sum += power;
    }
#pragma unroll
    for (int half = SUM_THREADS / 2; half > 0; half /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, half);
    return {greatest, sum};
}
