// Forward propagation of one sample through one layer, in the paper's two kernels.
#include "activation.cuh"
#include "layout.cuh"

// Kernel 1 multiplies strips of 32 connections with their inputs.
//
//   inputs    (n_in)
//   weights   W, padded (32 n_strips, stride)
//   partials  (n_strips, stride): partials[strip][neuron]
//   grid      (ceil(n_out / 256), n_strips = ceil((n_in + 1) / 32))
//   block     256 threads, one neuron each
//   shared    the strip's 32 inputs, read once by the first warp
//   order     a strip's connections ascending
//
// Neighbouring threads read neighbouring weights. Rows are padded with zeros, so every strip is
// whole. The loop is unrolled, so that many of a thread's 32 loads are in flight together.
extern "C" __global__ void __launch_bounds__(FORWARD_THREADS)
    forward_partial_kernel(const float *__restrict__ inputs, int n_in,
                           const float *__restrict__ weights, int n_out, int stride,
                           float *__restrict__ partials)
{
    __shared__ float x[FORWARD_ROWS];
    const int first = blockIdx.y * FORWARD_ROWS;
    const int neuron = blockIdx.x * FORWARD_THREADS + threadIdx.x;
    if (threadIdx.x < FORWARD_ROWS)
        x[threadIdx.x] = connection_input(inputs, n_in, first + threadIdx.x);
    __syncthreads();
    if (neuron >= n_out) return;

    const float *w = weights + (size_t)first * stride + neuron;
    float sum = 0.0f;
#pragma unroll
    for (int row = 0; row < FORWARD_ROWS; row++) sum = fmaf(x[row], w[(size_t)row * stride], sum);
    partials[(size_t)blockIdx.y * stride + neuron] = sum;
}

// Kernel 2 sums over the strips and applies the activation. The sums of a softmax stay sums.
//
//   partials  (n_strips, stride)
//   outputs   (n_out)
//   grid      ceil(n_out / 32)
//   block     32 threads, one neuron each; small blocks, as in the paper, occupy more processors
//   order     strips ascending
extern "C" __global__ void __launch_bounds__(SUM_THREADS)
    forward_sum_kernel(const float *__restrict__ partials, int n_strips, int n_out, int stride,
                       int activation, float *__restrict__ outputs)
{
    const int neuron = blockIdx.x * SUM_THREADS + threadIdx.x;
    if (neuron >= n_out) return;
    outputs[neuron] = activate(activation, column_sum(partials + neuron, n_strips, stride));
}
