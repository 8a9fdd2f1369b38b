/* Zeroed float buffers on cache-line boundaries, and how they are filled. */
#pragma once

#include <string.h>

#include "allocate.h"
#include "kernels.h"

static inline float *mlp_keep_floats(mlp_memory *memory, size_t n)
{
    return mlp_keep(memory, mlp_zeros(n, sizeof(float)));
}

/* Copies n samples from panels (foreground.h), `panel` floats apart, to rows, `stride` floats
 * apart: the first `rows` numbers of each sample. */
static inline void mlp_from_panels(const float *panels, ptrdiff_t panel, int rows, int n,
                                   float *samples, ptrdiff_t stride)
{
    for (int s = 0; s < n; s++) {
        const float *column = panels + s / MLP_PANEL * panel + s % MLP_PANEL;
        for (int j = 0; j < rows; j++) samples[s * stride + j] = column[j * MLP_PANEL];
    }
}

/* Makes the padding of a layer's rows zero again. Infinite deltas have made it NaN. */
static inline void mlp_clear_padding(const mlp_layer *layer)
{
    const int used = layer->n_in + 1;
    for (ptrdiff_t i = 0; i < layer->n_out; i++)
        memset(layer->weights + i * layer->stride + used, 0,
               sizeof(float) * (size_t)(layer->stride - used));
}
