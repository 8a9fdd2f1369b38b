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

// The most weights of the one-dimensional Gaussian in shared memory; the two-dimensional one is
// their outer product.
constexpr int TAPS = 21;
constexpr int NOISE_THREADS = 256, NOISE_ROWS = 4;  // columns and rows of a block
constexpr int COLUMNS_X = 32, COLUMNS_Y = 8;        // block of convolve_columns_kernel
constexpr int COLUMNS_ROWS = 32;                    // rows of its outputs
constexpr int COLUMNS_EACH = COLUMNS_ROWS / COLUMNS_Y;
constexpr int ROWS_X = 64, ROWS_Y = 4;  // block of convolve_rows_kernel

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

// First convolution: down the columns.
//
//   noise   (fields, rows, columns)
//   taps    (n_taps), at most 21
//   middle  (fields, rows - n_taps + 1, columns)
//   grid    (ceil(columns / 32), ceil((rows - n_taps + 1) / 32), fields)
//   block   32 x 8 threads for 32 x 32 outputs; each thread has four, 8 rows apart
//   shared  the weights, and 52 x 32 cells of noise
//   order   taps ascending, as in the C kernels
extern "C" __global__ void __launch_bounds__(COLUMNS_X *COLUMNS_Y)
    convolve_columns_kernel(const float *__restrict__ noise, int rows, int columns,
                            const float *__restrict__ taps, int n_taps, float *__restrict__ middle)
{
    __shared__ float weights[TAPS];
    __shared__ float cells[COLUMNS_ROWS + TAPS - 1][COLUMNS_X];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int x = blockIdx.x * COLUMNS_X + tx, row0 = blockIdx.y * COLUMNS_ROWS;
    const float *in = noise + (size_t)blockIdx.z * rows * columns;
    float sums[COLUMNS_EACH] = {};
    if (ty == 0 && tx < TAPS) weights[tx] = tx < n_taps ? taps[tx] : 0.0f;
    for (int i = ty; i < COLUMNS_ROWS + TAPS - 1; i += COLUMNS_Y) {
        const int row = row0 + i;
        cells[i][tx] = x < columns && row < rows ? in[(size_t)row * columns + x] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int k = 0; k < COLUMNS_EACH; k++) {
#pragma unroll
        for (int i = 0; i < TAPS; i++)
            sums[k] = fmaf(weights[i], cells[ty + k * COLUMNS_Y + i][tx], sums[k]);
    }
    const int out_rows = rows - n_taps + 1;
    float *out = middle + (size_t)blockIdx.z * out_rows * columns;
#pragma unroll
    for (int k = 0; k < COLUMNS_EACH; k++) {
        const int y = row0 + ty + k * COLUMNS_Y;
        if (x < columns && y < out_rows) out[(size_t)y * columns + x] = sums[k];
    }
}

// Second convolution: along the rows, times alpha.
//
//   middle  (fields, rows, columns)
//   field   (fields, rows, columns - n_taps + 1)
//   grid    (ceil((columns - n_taps + 1) / 64), ceil(rows / 4), fields)
//   block   64 x 4 threads, one output each
//   shared  the weights times alpha, and 4 x 84 cells
//   order   taps ascending, as in the C kernels
extern "C" __global__ void __launch_bounds__(ROWS_X *ROWS_Y)
    convolve_rows_kernel(const float *__restrict__ middle, int rows, int columns,
                         const float *__restrict__ taps, int n_taps, float alpha,
                         float *__restrict__ field)
{
    __shared__ float weights[TAPS];
    __shared__ float cells[ROWS_Y][ROWS_X + TAPS - 1];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int x0 = blockIdx.x * ROWS_X, y = blockIdx.y * ROWS_Y + ty;
    const float *in = middle + ((size_t)blockIdx.z * rows + y) * columns;
    float sum = 0.0f;
    if (ty == 0 && tx < TAPS) weights[tx] = tx < n_taps ? alpha * taps[tx] : 0.0f;
    for (int i = tx; i < ROWS_X + TAPS - 1; i += ROWS_X) {
        const int column = x0 + i;
        cells[ty][i] = y < rows && column < columns ? in[column] : 0.0f;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < TAPS; i++) sum = fmaf(weights[i], cells[ty][tx + i], sum);
    const int out_columns = columns - n_taps + 1;
    if (y < rows && x0 + tx < out_columns)
        field[((size_t)blockIdx.z * rows + y) * out_columns + x0 + tx] = sum;
}

// A convolution with any Gaussian: of cells, or with more weights than shared memory holds. Output
// cell * r + p along the axis has the weights of phase p, from the input r and on. Along the rows
// comes first, and then down the columns.
//
//   source (fields, in_rows, in_columns)
//   taps   (cell, n_taps)
//   alpha  a factor of the weights
//   down   whether the convolution is down the columns: then out_columns is in_columns, and
//          otherwise out_rows is in_rows
//   out    (fields, out_rows, out_columns)
//   grid   (ceil(out_columns / 64), ceil(out_rows / 4), fields)
//   block  64 x 4 threads, one output each
//   order  taps ascending, as in the C kernels
extern "C" __global__ void __launch_bounds__(ROWS_X *ROWS_Y)
    convolve_cells_kernel(const float *__restrict__ source, int in_rows, int in_columns,
                          const float *__restrict__ taps, int cell, int n_taps, float alpha,
                          int down, int out_rows, int out_columns, float *__restrict__ out)
{
    const int x = blockIdx.x * ROWS_X + threadIdx.x, y = blockIdx.y * ROWS_Y + threadIdx.y;
    if (x >= out_columns || y >= out_rows) return;
    const int along = down ? y : x, step = down ? in_columns : 1;
    const int row = down ? y / cell : y, column = down ? x : x / cell;
    const float *weights = taps + (size_t)(along % cell) * n_taps;
    const float *cells = source + ((size_t)blockIdx.z * in_rows + row) * in_columns + column;
    float sum = 0.0f;
    for (int i = 0; i < n_taps; i++) sum = fmaf(alpha * weights[i], cells[(size_t)i * step], sum);
    out[((size_t)blockIdx.z * out_rows + y) * out_columns + x] = sum;
}
