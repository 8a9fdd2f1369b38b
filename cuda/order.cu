// The order in which an epoch presents its images: their numbers, sorted by random keys. And what
// follows from an order alone: which inputs are neighbours.
#include "layout.cuh"
#include "philox.cuh"

// Sort keys of 64 random bits, the same as in mlpcore.philox.permutation.
//
//   keys   (n)
//   grid   ceil(n / 256)
//   block  256 threads, one key each
extern "C" __global__ void __launch_bounds__(ELEMENT_THREADS)
    order_keys_kernel(unsigned key0, unsigned key1, unsigned epoch, int n,
                      unsigned long long *__restrict__ keys)
{
    const int i = blockIdx.x * ELEMENT_THREADS + threadIdx.x;
    if (i >= n) return;
    const philox_words drawn = philox4x32({{(unsigned)i, 0, epoch, 5}}, key0, key1);
    keys[i] = (unsigned long long)drawn.word[0] << 32 | drawn.word[1];
}

// order[rank of key i] = i. The rank is the number of keys that come before: a stable sort.
//
//   keys, order  (n)
//   grid         ceil(n / 256)
//   block        256 threads, one key each
//   shared       256 keys; the block compares all its keys with them
//
// All n^2 pairs are compared. For MNIST this takes a millisecond on a current device, far less than
// the n steps that are put into order. It is one launch and needs no memory of its own.
extern "C" __global__ void __launch_bounds__(ELEMENT_THREADS)
    rank_kernel(const unsigned long long *__restrict__ keys, int n, int *__restrict__ order)
{
    __shared__ unsigned long long tile[ELEMENT_THREADS];
    const int i = blockIdx.x * ELEMENT_THREADS + threadIdx.x;
    const unsigned long long key = i < n ? keys[i] : 0;
    int rank = 0;
    for (int first = 0; first < n; first += ELEMENT_THREADS) {
        const int j = first + threadIdx.x, in_tile = min(n - first, ELEMENT_THREADS);
        if (j < n) tile[threadIdx.x] = keys[j];
        __syncthreads();
        for (int k = 0; k < in_tile; k++)
            rank += tile[k] < key || (tile[k] == key && first + k < i);
        __syncthreads();
    }
    if (i < n) order[rank] = i;
}

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
