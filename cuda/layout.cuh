// How a network lies in device memory, and the shapes of thread blocks.
//
// A layer of n_in inputs and n_out neurons has one matrix, as in the paper's listings:
//
//     W[connection][neuron]    connection 0 is the bias, connection c > 0 is input c - 1
//
// with a row of `stride` floats per connection. Rows (n_in + 1) and columns (n_out) are both
// padded with zeros to multiples of PITCH. Vectors (inputs, states, deltas) are not padded and
// have no bias element; `connection_input` supplies it.
//
// Offsets into a matrix are size_t, because a device holds more than 2^31 floats (8 GB).
// mlpcore/backends/cuda/sources.py reads these numbers, and the parameters and bounds of kernels.
#pragma once

constexpr int PITCH = 32;             // floats that rows and columns are padded to
constexpr int FORWARD_THREADS = 256;  // neurons of a block of forward_partial_kernel
constexpr int FORWARD_ROWS = 32;      // connections of a block of forward_partial_kernel
constexpr int SUM_THREADS = 32;       // threads (one warp) of the kernels that complete sums
constexpr int SUM_ROWS = 32;          // partial sums that these load at a time
constexpr int TILE = 32;              // side of a patch of backward_partial_kernel
constexpr int UPDATE_THREADS = 256;   // neurons of a block of update_kernel
constexpr int UPDATE_ROWS = 16;       // connections of a block of update_kernel
constexpr int ELEMENT_THREADS = 256;  // threads of a block that have one element each
constexpr int PRODUCT_TILE = 64;      // side of a block's outputs in predict_layer_kernel
constexpr int PRODUCT_DEPTH = 16;     // connections that it takes at a time
constexpr int PRODUCT_SIDE = 16;      // side of its block of threads

// What a connection carries: 1 on the bias, zero beyond the last.
__device__ inline float connection_input(const float *inputs, int n_in, int connection)
{
    if (connection == 0) return 1.0f;
    return connection <= n_in ? inputs[connection - 1] : 0.0f;
}

// The sum of a column of n partial sums, ascending. The kernels that call this have few threads and
// wait for memory, so 32 loads are sent out together before the first value is added.
__device__ inline float column_sum(const float *__restrict__ partials, int n, int stride)
{
    float sum = 0.0f;
    for (int first = 0; first < n; first += SUM_ROWS) {
        float row[SUM_ROWS];
#pragma unroll
        for (int k = 0; k < SUM_ROWS; k++)
            row[k] = first + k < n ? partials[(size_t)(first + k) * stride] : 0.0f;
#pragma unroll
        for (int k = 0; k < SUM_ROWS; k++) sum += row[k];
    }
    return sum;
}
