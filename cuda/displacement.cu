// Elastic displacement fields: noise, and its convolution with a truncated Gaussian.
//
// A field serves a grid of 10 x 10 images. Its noise has a number for each pixel of the grid, or
// for each cell of `cell` x `cell` pixels, and n_taps - 1 more each way. Fields lie one after
// another, x before y for each grid, and blockIdx.z is the field. All are rows x columns,
// row-major, without padding.
//
// The paper's kernel multiplies by all 21 x 21 weights of the Gaussian. Two convolutions, down the
// columns and along the rows, give the same with 42 products an output instead of 441.
#include "philox.cuh"

constexpr int NOISE_THREADS = 256, NOISE_ROWS = 4;  // columns and rows of a block
constexpr int CONVOLVE_X = 64, CONVOLVE_Y = 4;      // block of convolve_kernel

// Uniform noise in [-1, 1], the same numbers as mlpcore.philox.noise.
//
//   noise  (fields, rows, columns)
//   grid   (ceil(columns / 256), ceil(rows / 4), fields)
//   block  256 threads, one counter each: four cells below each other
//
// Field f belongs to grid first_grid + f / 2. It is x (purpose 1) if f is even, else y (purpose 2).
extern "C" __global__ void __launch_bounds__(NOISE_THREADS)
    noise_kernel(unsigned key0, unsigned key1, unsigned epoch, unsigned first_grid, int rows,
                 int columns, float *__restrict__ noise)
{
    const int x = blockIdx.x * NOISE_THREADS + threadIdx.x;
    const int y = blockIdx.y * NOISE_ROWS;
    if (x >= columns) return;
    const philox_words drawn = philox4x32(
        {{blockIdx.y << 16 | (unsigned)x, first_grid + blockIdx.z / 2, epoch, 1 + blockIdx.z % 2}},
        key0, key1);
    float *out = noise + (size_t)blockIdx.z * rows * columns + (size_t)y * columns + x;
#pragma unroll
    for (int k = 0; k < NOISE_ROWS; k++)
        if (y + k < rows) out[(size_t)k * columns] = (float)(int)drawn.word[k] * 0x1p-31f;
}

// A convolution along one axis, of cells that may stand for several pixels. Output cell * r + p
// along the axis has the weights of phase p, from the input r and on.
//
//   source (fields, in_rows, in_columns)
//   taps   (cell, n_taps) of a one-dimensional Gaussian; the two-dimensional one is its outer
//          product
//   alpha  a factor of the weights
//   down   whether the convolution is down the columns: then out_columns is in_columns, and
//          otherwise out_rows is in_rows
//   out    (fields, out_rows, out_columns)
//   grid   (ceil(out_columns / 64), ceil(out_rows / 4), fields)
//   block  64 x 4 threads, one output each
//   order  taps ascending, as in the C kernels
extern "C" __global__ void __launch_bounds__(CONVOLVE_X *CONVOLVE_Y)
    convolve_kernel(const float *__restrict__ source, int in_rows, int in_columns,
                    const float *__restrict__ taps, int cell, int n_taps, float alpha, int down,
                    int out_rows, int out_columns, float *__restrict__ out)
{
    const int x = blockIdx.x * CONVOLVE_X + threadIdx.x, y = blockIdx.y * CONVOLVE_Y + threadIdx.y;
    if (x >= out_columns || y >= out_rows) return;
    const int along = down ? y : x, step = down ? in_columns : 1;
    const int row = down ? y / cell : y, column = down ? x : x / cell;
    const float *weights = taps + (size_t)(along % cell) * n_taps;
    const float *cells = source + ((size_t)blockIdx.z * in_rows + row) * in_columns + column;
    float sum = 0.0f;
    for (int i = 0; i < n_taps; i++) sum = fmaf(alpha * weights[i], cells[(size_t)i * step], sum);
    out[((size_t)blockIdx.z * out_rows + y) * out_columns + x] = sum;
}
