// Elastic displacement fields: noise, and its convolution with a truncated Gaussian.
//
// A field serves a grid of 10 x 10 images; it has as many cells as the grid has pixels, and its
// noise 20 more each way. Fields lie one after another, x before y of each grid, and blockIdx.z
// is the field. All are rows x columns, row-major, without padding.
#include "philox.cuh"

// TAPS weights of the one-dimensional Gaussian; the two-dimensional is their outer product.
constexpr int TAPS = 21;
constexpr int NOISE_THREADS = 256;
constexpr int LISTING_ROWS = 10;              // of displacement_field_kernel
constexpr int COLUMNS_X = 32, COLUMNS_Y = 8;  // block of convolve_columns_kernel
constexpr int COLUMNS_ROWS = 32;              // rows of its outputs
constexpr int ROWS_X = 64, ROWS_Y = 4;        // block of convolve_rows_kernel

// Uniform noise in [-1, 1]: the same numbers as mlpcore.philox.noise.
//
//   noise  (fields, rows, columns)
//   grid   (ceil(columns / 256), ceil(rows / 4), fields)
//   block  256 threads, each one counter: four cells below each other
//
// Field f belongs to grid first_grid + f / 2 and is x (purpose 1) or y (purpose 2) by f % 2.
extern "C" __global__ void __launch_bounds__(NOISE_THREADS)
    noise_kernel(unsigned key0, unsigned key1, unsigned epoch, unsigned first_grid, int rows,
                 int columns, float *__restrict__ noise)
{
    const int x = blockIdx.x * NOISE_THREADS + threadIdx.x;
    const int y = blockIdx.y * 4;
    if (x >= columns) return;
    const philox_words drawn = philox4x32(
        {{blockIdx.y << 16 | (unsigned)x, first_grid + blockIdx.z / 2, epoch, 1 + blockIdx.z % 2}},
        key0, key1);
    float *out = noise + (size_t)blockIdx.z * rows * columns + (size_t)y * columns + x;
#pragma unroll
    for (int k = 0; k < 4; k++)
        if (y + k < rows) out[(size_t)k * columns] = (float)(int)drawn.word[k] * 0x1p-31f;
}

// The paper's kernel: field = alpha * (G * noise) with all 21 x 21 weights.
//
//   noise   (fields, rows, columns)
//   taps    (21)
//   field   (fields, rows - 20, columns - 20)
//   grid    (columns - 20, ceil((rows - 20) / 10), fields)
//   block   21 x 10 threads for ten outputs below each other: thread (x, y) sums column x of
//           the window of output y, thread (0, y) the columns' sums
//   shared  the weights (21 x 21), the block's noise (30 x 21), the columns' sums (10 x 21)
//   order   down a column, then across the columns
//
// Kept as published, for comparison; convolve_columns_kernel and convolve_rows_kernel do the
// same with 42 products an output instead of 441, and are what training uses.
extern "C" __global__ void __launch_bounds__(TAPS *LISTING_ROWS)
    displacement_field_kernel(const float *__restrict__ noise, int rows, int columns,
                              const float *__restrict__ taps, float alpha,
                              float *__restrict__ field)
{
    __shared__ float weights[TAPS][TAPS];
    __shared__ float window[LISTING_ROWS + TAPS - 1][TAPS];
    __shared__ float sums[LISTING_ROWS][TAPS];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int column = blockIdx.x, row0 = blockIdx.y * LISTING_ROWS;
    const float *in = noise + (size_t)blockIdx.z * rows * columns + column + tx;
    for (int i = ty; i < TAPS; i += LISTING_ROWS) weights[i][tx] = taps[i] * taps[tx];
    for (int i = ty; i < LISTING_ROWS + TAPS - 1; i += LISTING_ROWS)
        window[i][tx] = row0 + i < rows ? in[(size_t)(row0 + i) * columns] : 0.0f;
    __syncthreads();

    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < TAPS; i++) sum = fmaf(window[ty + i][tx], weights[i][tx], sum);
    sums[ty][tx] = sum;
    __syncthreads();

    const int out_rows = rows - TAPS + 1, out_columns = columns - TAPS + 1;
    if (tx == 0 && row0 + ty < out_rows) {
        for (int i = 1; i < TAPS; i++) sum += sums[ty][i];
        float *out = field + (size_t)blockIdx.z * out_rows * out_columns;
        out[(size_t)(row0 + ty) * out_columns + column] = alpha * sum;
    }
}

// First of the separable pair: down the columns.
//
//   noise   (fields, rows, columns)
//   middle  (fields, rows - 20, columns)
//   grid    (ceil(columns / 32), ceil((rows - 20) / 32), fields)
//   block   32 x 8 threads for 32 x 32 outputs, four a thread, 8 rows apart
//   shared  the weights, and 52 x 32 cells of noise
//   order   taps ascending, as in the C kernels
extern "C" __global__ void __launch_bounds__(COLUMNS_X *COLUMNS_Y)
    convolve_columns_kernel(const float *__restrict__ noise, int rows, int columns,
                            const float *__restrict__ taps, float *__restrict__ middle)
{
    __shared__ float weights[TAPS];
    __shared__ float cells[COLUMNS_ROWS + TAPS - 1][COLUMNS_X];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int x = blockIdx.x * COLUMNS_X + tx, row0 = blockIdx.y * COLUMNS_ROWS;
    const float *in = noise + (size_t)blockIdx.z * rows * columns;
    if (ty == 0 && tx < TAPS) weights[tx] = taps[tx];
    for (int i = ty; i < COLUMNS_ROWS + TAPS - 1; i += COLUMNS_Y)
        cells[i][tx] = x < columns && row0 + i < rows ? in[(size_t)(row0 + i) * columns + x] : 0.0f;
    __syncthreads();
    if (x >= columns) return;

    const int out_rows = rows - TAPS + 1;
    float *out = middle + (size_t)blockIdx.z * out_rows * columns;
    for (int y = ty; y < COLUMNS_ROWS && row0 + y < out_rows; y += COLUMNS_Y) {
        float sum = weights[0] * cells[y][tx];
#pragma unroll
        for (int i = 1; i < TAPS; i++) sum = fmaf(weights[i], cells[y + i][tx], sum);
        out[(size_t)(row0 + y) * columns + x] = sum;
    }
}

// Second of the separable pair: along the rows, and times alpha.
//
//   middle  (fields, rows, columns)
//   field   (fields, rows, columns - 20)
//   grid    (ceil((columns - 20) / 64), ceil(rows / 4), fields)
//   block   64 x 4 threads, one output each
//   shared  the weights times alpha, and 4 x 84 cells
//   order   taps ascending, as in the C kernels
extern "C" __global__ void __launch_bounds__(ROWS_X *ROWS_Y)
    convolve_rows_kernel(const float *__restrict__ middle, int rows, int columns,
                         const float *__restrict__ taps, float alpha, float *__restrict__ field)
{
    __shared__ float weights[TAPS];
    __shared__ float cells[ROWS_Y][ROWS_X + TAPS - 1];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int x0 = blockIdx.x * ROWS_X, y = blockIdx.y * ROWS_Y + ty;
    const float *in = middle + ((size_t)blockIdx.z * rows + y) * columns;
    if (ty == 0 && tx < TAPS) weights[tx] = alpha * taps[tx];
    for (int i = tx; i < ROWS_X + TAPS - 1; i += ROWS_X)
        cells[ty][i] = y < rows && x0 + i < columns ? in[x0 + i] : 0.0f;
    __syncthreads();

    const int out_columns = columns - TAPS + 1;
    if (y >= rows || x0 + tx >= out_columns) return;
    float sum = weights[0] * cells[ty][tx];
#pragma unroll
    for (int i = 1; i < TAPS; i++) sum = fmaf(weights[i], cells[ty][tx + i], sum);
    field[((size_t)blockIdx.z * rows + y) * out_columns + x0 + tx] = sum;
}
