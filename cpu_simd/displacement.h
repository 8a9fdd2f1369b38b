/* Displacement fields: noise, smoothed by a Gaussian. See deformation.h. */
#ifndef MLPCORE_DISPLACEMENT_H
#define MLPCORE_DISPLACEMENT_H

#include <string.h>

#include "deformation.h"

/* The Gaussian, and its weights times alpha. */
typedef struct {
    const float *taps;
    float *scaled;
    int cell, n_taps;
} mlp_gaussian;

/* The most cells that n pixels touch. */
static inline int mlp_cells_of(int n, int cell) { return (n + cell - 2) / cell + 1; }

static inline void mlp_copy_row(const float *in, ptrdiff_t in_step, float *out, ptrdiff_t out_step,
                                int n)
{
    if (in_step == 1 && out_step == 1)
        memcpy(out, in, sizeof(float) * (size_t)n);
    else
        for (int i = 0; i < n; i++) out[i * out_step] = in[i * in_step];
}

/* Sets the weights times alpha. */
void mlp_scale_taps(mlp_gaussian *g, float alpha);

/* Floats between the two convolutions of height x width pixels. */
size_t mlp_middle_size(const mlp_gaussian *g, int height, int width);

/* The displacements of height x width pixels, the first of them `top` and `left` after a cell
 * begins, from the noise of that cell and on. `row` is room for a row of them. Noise, `middle` and
 * rows of the field are read or written to the end of a vector. */
void mlp_smooth(const mlp_kernels *kernels, const mlp_gaussian *g, const float *noise, int stride,
                int top, int left, int height, int width, float *middle, float *row, float *field,
                int field_stride);

#endif
