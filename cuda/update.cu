// The weight update of one sample in one layer, in the paper's one kernel.
#include "layout.cuh"

// W -= eta x delta^T.
//
//   inputs         (n_in)
//   deltas         (n_out)
//   weights        W, padded (n_in + 1, stride); the padding is not written
//   learning_rate  eta, in device memory, because a captured graph is used with several rates
//   grid           (ceil(n_out / 256), ceil((n_in + 1) / 16)), 62,501 for 1,000,000 inputs
//   block          256 threads, one neuron and up to 16 connections each
//   shared         the 16 inputs, read by the first 16 threads
//
// A thread reads all its weights before it writes the first, so that its loads are in flight
// together. The compiler could not do this, because it does not know that rows do not overlap.
extern "C" __global__ void __launch_bounds__(UPDATE_THREADS)
    update_kernel(const float *__restrict__ inputs, int n_in, const float *__restrict__ deltas,
                  int n_out, float *__restrict__ weights, int stride,
                  const float *__restrict__ learning_rate)
{
    __shared__ float x[UPDATE_ROWS];
    const int first = blockIdx.y * UPDATE_ROWS;
    const int neuron = blockIdx.x * UPDATE_THREADS + threadIdx.x;
    if (threadIdx.x < UPDATE_ROWS)
        x[threadIdx.x] = connection_input(inputs, n_in, first + threadIdx.x);
    __syncthreads();
    if (neuron >= n_out) return;

    const int rows = min(UPDATE_ROWS, n_in + 1 - first);
    const float step = *learning_rate * deltas[neuron];
    float *w = weights + (size_t)first * stride + neuron;
    float before[UPDATE_ROWS];
#pragma unroll
    for (int row = 0; row < UPDATE_ROWS; row++)
        before[row] = row < rows ? w[(size_t)row * stride] : 0.0f;
#pragma unroll
    for (int row = 0; row < UPDATE_ROWS; row++)
        if (row < rows) w[(size_t)row * stride] = fmaf(-step, x[row], before[row]);
}
