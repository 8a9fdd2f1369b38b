/* Noise, and its two convolutions; their arithmetic is in deformation_kernels.h. */
#include "displacement.h"

#include "buffers.h"

int mlp_noise(const mlp_kernels *kernels, const uint32_t key[2], uint32_t epoch, uint32_t grid,
              uint32_t purpose, int rows, int columns, float *noise)
{
    const uint32_t counter[4] = {0, grid, epoch, purpose};
    int stride = mlp_padded(columns);
    float *group = mlp_floats(4 * (size_t)stride);
    if (!group) return -1;
    for (int y = 0; y < rows; y++) {
        if (y % 4 == 0) kernels->noise(key, counter, (uint32_t)y / 4, columns, group, stride);
        memcpy(noise + (ptrdiff_t)y * columns, group + (y % 4) * stride,
               sizeof(float) * (size_t)columns);
    }
    mlp_free(group);
    return 0;
}

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

int mlp_displacement_field(const mlp_kernels *kernels, const float *noise, int rows, int columns,
                           const float *taps, int cell, int n_taps, float alpha, float *field)
{
    const int height = cell * (rows - n_taps + 1), width = cell * (columns - n_taps + 1);
    const int stride = mlp_padded(columns), smoothed = mlp_padded(width);
    mlp_gaussian g = {taps, mlp_floats((size_t)cell * (size_t)n_taps), cell, n_taps};
    float *copy = mlp_floats((size_t)rows * (size_t)stride + 2 * MLP_ALIGN);
    float *middle = mlp_floats(mlp_middle_size(&g, height, width));
    float *row = mlp_floats((size_t)smoothed);
    float *result = mlp_floats((size_t)height * (size_t)smoothed);
    const int status = g.scaled && copy && middle && row && result ? 0 : -1;
    if (status == 0) {
        mlp_scale_taps(&g, alpha);
        for (ptrdiff_t y = 0; y < rows; y++)
            memcpy(copy + y * stride, noise + y * columns, sizeof(float) * (size_t)columns);
        mlp_smooth(kernels, &g, copy, stride, 0, 0, height, width, middle, row, result, smoothed);
        for (ptrdiff_t y = 0; y < height; y++)
            memcpy(field + y * width, result + y * smoothed, sizeof(float) * (size_t)width);
    }
    mlp_free(g.scaled);
    mlp_free(copy);
    mlp_free(middle);
    mlp_free(row);
    mlp_free(result);
    return status;
}
