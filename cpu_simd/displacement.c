/* The two convolutions of noise; their arithmetic is in deformation_kernels.h. */
#include "displacement.h"

#include "buffers.h"

void mlp_scale_taps(mlp_gaussian *g, float alpha)
{
    for (int i = 0; i < g->cell * g->n_taps; i++) g->scaled[i] = alpha * g->taps[i];
}

/* Floats of a row between the two convolutions, and of all of them. Convolutions read and write
 * whole vectors, beyond the end of a row. */
static int middle_stride(const mlp_gaussian *g, int width)
{
    const int columns = g->cell == 1 ? width + g->n_taps - 1 : width;
    return mlp_padded(columns) + 2 * MLP_ALIGN;
}

size_t mlp_middle_size(const mlp_gaussian *g, int height, int width)
{
    const int rows = g->cell == 1 ? 1 : mlp_cells_of(height, g->cell) + g->n_taps - 1;
    return (size_t)rows * (size_t)middle_stride(g, width);
}

/* One row of noise along the row, for n pixels, the first of them `skip` after a cell begins. */
static void smooth_row(const mlp_kernels *kernels, const mlp_gaussian *g, const float *noise,
                       int skip, int n, float *row, float *out)
{
    for (int x = 0; x < n && x < g->cell; x++) {
        const int first = (x + skip) / g->cell, phase = (x + skip) % g->cell;
        const int count = (n - x + g->cell - 1) / g->cell;
        kernels->convolve(noise + first, 1, g->taps + (ptrdiff_t)phase * g->n_taps, g->n_taps,
                          count, row);
        mlp_copy_row(row, 1, out + x, g->cell, count);
    }
}

void mlp_smooth(const mlp_kernels *kernels, const mlp_gaussian *g, const float *noise, int stride,
                int top, int left, int height, int width, float *middle, float *row, float *field,
                int field_stride)
{
    const int cell = g->cell, n_taps = g->n_taps, between = middle_stride(g, width);
    const int rows = (top + height - 1) / cell + n_taps;
    for (int y = 0; cell > 1 && y < rows; y++)
        smooth_row(kernels, g, noise + (ptrdiff_t)y * stride, left, width, row,
                   middle + (ptrdiff_t)y * between);
    for (int y = 0; y < height; y++) {
        float *out = field + (ptrdiff_t)y * field_stride;
        if (cell > 1) {
            const int first = (top + y) / cell, phase = (top + y) % cell;
            kernels->convolve(middle + (ptrdiff_t)first * between, between,
                              g->scaled + (ptrdiff_t)phase * n_taps, n_taps, width, out);
        } else {
            kernels->convolve(noise + (ptrdiff_t)y * stride, stride, g->taps, n_taps,
                              width + n_taps - 1, middle);
            kernels->convolve(middle, 1, g->scaled, n_taps, width, out);
        }
    }
}
