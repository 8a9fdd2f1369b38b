// Backward propagation of one sample's deltas through one layer, in the paper's two kernels.
#include "activation.cuh"
#include "layout.cuh"

// Kernel 1 computes W^T delta over patches of 32 neurons, without a transposed copy of W.
//
//   deltas    (n_out) of this layer
//   weights   W, padded (padded n_in + 1, stride): whole patches can be read
//   partials  (stride / 32, partial_stride): partials[patch][connection]
//   grid      (stride / 32, ceil((n_in + 1) / 32))
//   block     32 threads
//   shared    the patch of 32 x 32 weights in rows of 33 floats: both writing and reading then
//             touch 32 different banks; and the 32 deltas, zero where there is no neuron
//   order     a patch's neurons ascending
//
// A thread loads one column of the patch and sums one row of it. A barrier stands between, because
// the threads of a warp need not run in step.
extern "C" __global__ void __launch_bounds__(TILE)
    backward_partial_kernel(const float *__restrict__ deltas, int n_out,
                            const float *__restrict__ weights, int stride, int partial_stride,
                            float *__restrict__ partials)
{
    __shared__ float patch[TILE][TILE + 1];
    __shared__ float delta[TILE];
    const int lane = threadIdx.x;
    const int neuron = blockIdx.x * TILE + lane;
    const int first = blockIdx.y * TILE;
    const float *w = weights + (size_t)first * stride + neuron;
#pragma unroll
    for (int row = 0; row < TILE; row++) patch[row][lane] = w[(size_t)row * stride];
    delta[lane] = neuron < n_out ? deltas[neuron] : 0.0f;
    __syncthreads();

    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < TILE; i++) sum = fmaf(patch[lane][i], delta[i], sum);
    partials[(size_t)blockIdx.x * partial_stride + first + lane] = sum;
}

// Kernel 2 sums over the patches and multiplies by the slope of the activation at the state.
//
//   partials      (n_patches, partial_stride); connection 0, the bias, has no delta
//   states        (n_in) outputs of the layer below, which has this activation
//   deltas_below  (n_in)
//   grid          ceil(n_in / 32)
//   block         32 threads, one input each
//   order         patches ascending
extern "C" __global__ void __launch_bounds__(SUM_THREADS)
    backward_sum_kernel(const float *__restrict__ partials, int n_patches, int partial_stride,
                        const float *__restrict__ states, int n_in, int activation,
                        float *__restrict__ deltas_below)
{
    const int input = blockIdx.x * SUM_THREADS + threadIdx.x;
    if (input >= n_in) return;
    const float sum = column_sum(partials + input + 1, n_patches, partial_stride);
    deltas_below[input] = hidden_delta(activation, sum, states[input]);
}
