// Validation: many samples at once, while the weights do not change.
#include "activation.cuh"
#include "layout.cuh"
#include "softmax.cuh"

// outputs = y(inputs W) as a tiled matrix product. The sums of a softmax stay sums.
//
//   inputs   (n, n_in)
//   weights  W, padded (n_in + 1, stride)
//   outputs  (n, n_out)
//   grid     (ceil(n_out / 64), ceil(n / 64))
//   block    16 x 16 threads with 4 x 4 outputs each, 16 apart in both directions: the threads of
//            a warp then read neighbouring banks and write neighbouring outputs
//   shared   16 connections of the block's 64 samples (transposed) and of its 64 neurons
//   order    the bias, then the inputs ascending
extern "C" __global__ void __launch_bounds__(PRODUCT_SIDE *PRODUCT_SIDE)
    predict_layer_kernel(const float *__restrict__ inputs, int n, int n_in,
                         const float *__restrict__ weights, int n_out, int stride, int activation,
                         float *__restrict__ outputs)
{
    constexpr int EACH = PRODUCT_TILE / PRODUCT_SIDE, THREADS = PRODUCT_SIDE * PRODUCT_SIDE;
    __shared__ float xs[PRODUCT_DEPTH][PRODUCT_TILE + 1];
    __shared__ float ws[PRODUCT_DEPTH][PRODUCT_TILE];
    const int tx = threadIdx.x, ty = threadIdx.y, thread = ty * PRODUCT_SIDE + tx;
    const int neuron0 = blockIdx.x * PRODUCT_TILE, sample0 = blockIdx.y * PRODUCT_TILE;

    float sum[EACH][EACH];
    for (int j = 0; j < EACH; j++) {
        const int neuron = neuron0 + tx + j * PRODUCT_SIDE;
        const float bias = neuron < n_out ? weights[neuron] : 0.0f;
        for (int i = 0; i < EACH; i++) sum[i][j] = bias;
    }
    for (int first = 0; first < n_in; first += PRODUCT_DEPTH) {
        for (int e = thread; e < PRODUCT_DEPTH * PRODUCT_TILE; e += THREADS) {
            const int k = e % PRODUCT_DEPTH, sample = e / PRODUCT_DEPTH;
            const bool there = sample0 + sample < n && first + k < n_in;
            xs[k][sample] = there ? inputs[(size_t)(sample0 + sample) * n_in + first + k] : 0.0f;
        }
        for (int e = thread; e < PRODUCT_DEPTH * PRODUCT_TILE; e += THREADS) {
            const int k = e / PRODUCT_TILE, neuron = e % PRODUCT_TILE;
            const bool there = neuron0 + neuron < n_out && first + k < n_in;
            ws[k][neuron] =
                there ? weights[(size_t)(first + k + 1) * stride + neuron0 + neuron] : 0.0f;
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < PRODUCT_DEPTH; k++) {
            float x[EACH], w[EACH];
            for (int i = 0; i < EACH; i++) x[i] = xs[k][ty + i * PRODUCT_SIDE];
            for (int j = 0; j < EACH; j++) w[j] = ws[k][tx + j * PRODUCT_SIDE];
            for (int i = 0; i < EACH; i++)
                for (int j = 0; j < EACH; j++) sum[i][j] = fmaf(x[i], w[j], sum[i][j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < EACH; i++) {
        const int sample = sample0 + ty + i * PRODUCT_SIDE;
        for (int j = 0; j < EACH; j++) {
            const int neuron = neuron0 + tx + j * PRODUCT_SIDE;
            if (sample < n && neuron < n_out)
                outputs[(size_t)sample * n_out + neuron] = activate(activation, sum[i][j]);
        }
    }
}

// Turns the sums of n samples into probabilities, in place.
//
//   outputs  (n, n_out)
//   grid     n
//   block    one warp
extern "C" __global__ void __launch_bounds__(SUM_THREADS) softmax_kernel(int n_out, float *outputs)
{
    float *y = outputs + (size_t)blockIdx.x * n_out;
    const float scale = reciprocal((float)exponentiate(y, n_out, y).sum);
    for (int i = threadIdx.x; i < n_out; i += SUM_THREADS) y[i] *= scale;
}
