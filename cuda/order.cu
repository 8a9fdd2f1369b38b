// The order in which an epoch presents its images: their numbers, sorted by random keys.
#include "layout.cuh"
#include "philox.cuh"

constexpr int RANK_THREADS = 256;  // keys of a block of rank_kernel, and of its tiles

// Sort keys of 64 random bits, as of mlpcore.philox.permutation.
//
//   keys   (n)
//   grid   ceil(n / 256)
//   block  256 threads, one key each
extern "C" __global__ void __launch_bounds__(COPY_THREADS)
    order_keys_kernel(unsigned key0, unsigned key1, unsigned epoch, int n,
                      unsigned long long *__restrict__ keys)
{
    const int i = blockIdx.x * COPY_THREADS + threadIdx.x;
    if (i >= n) return;
    const philox_words drawn = philox4x32({{(unsigned)i, 0, epoch, 5}}, key0, key1);
    keys[i] = (unsigned long long)drawn.word[0] << 32 | drawn.word[1];
}

// order[rank of key i] = i, where the rank is the number of keys that come before: a stable sort.
//
//   keys, order  (n)
//   grid         ceil(n / 256)
//   block        256 threads, one key each
//   shared       256 keys, with which all of the block are compared
//
// All pairs: n^2 comparisons are a millisecond for MNIST on a current device, in one launch that
// needs no memory of its own; far less than the n steps that they put into order.
extern "C" __global__ void __launch_bounds__(RANK_THREADS)
    rank_kernel(const unsigned long long *__restrict__ keys, int n, int *__restrict__ order)
{
    __shared__ unsigned long long tile[RANK_THREADS];
    const int i = blockIdx.x * RANK_THREADS + threadIdx.x;
    const unsigned long long key = i < n ? keys[i] : 0;
    int rank = 0;
    for (int first = 0; first < n; first += RANK_THREADS) {
        const int j = first + threadIdx.x, in_tile = min(n - first, RANK_THREADS);
        if (j < n) tile[threadIdx.x] = keys[j];
        __syncthreads();
        for (int k = 0; k < in_tile; k++)
            rank += tile[k] < key || (tile[k] == key && first + k < i);
        __syncthreads();
    }
    if (i < n) order[rank] = i;
}

// Adds to *outside how many of n numbers are no image's.
//
//   order  (n)
//   grid   ceil(n / 256)
//   block  256 threads, one number each
extern "C" __global__ void __launch_bounds__(COPY_THREADS)
    check_order_kernel(const int *__restrict__ order, int n, int n_images, int *outside)
{
    const int i = blockIdx.x * COPY_THREADS + threadIdx.x;
    if (i < n && (order[i] < 0 || order[i] >= n_images)) atomicAdd(outside, 1);
}
