/* Float buffers on cache-line boundaries, and how they are filled. */
#ifndef MLPCORE_BUFFERS_H
#define MLPCORE_BUFFERS_H

#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#endif

#include "kernels.h"

/* Linux gives such pages when asked: one look at the page table for 2 MB instead of 4 KB. */
enum { MLP_HUGE_PAGE = 1 << 21 };

/* Room for n floats, or NULL; to be freed with free(). */
static inline void *mlp_room(size_t n)
{
    size_t align = n * sizeof(float) < MLP_HUGE_PAGE ? 64 : MLP_HUGE_PAGE;
    size_t bytes = (n * sizeof(float) + align - 1) / align * align;
    void *room = aligned_alloc(align, bytes ? bytes : align);
#ifdef MADV_HUGEPAGE
    if (room && align == MLP_HUGE_PAGE) madvise(room, bytes, MADV_HUGEPAGE); /* or it stays as is */
#endif
    return room;
}

/* The same, n zeros. */
static inline float *mlp_floats(size_t n)
{
    float *buffer = mlp_room(n);
    if (buffer) memset(buffer, 0, n * sizeof(float));
    return buffer;
}

/* The samples of `panels` (foreground.h), `panel` floats apart, as n rows, `stride` floats apart:
 * of each its first `rows` numbers. */
static inline void mlp_from_panels(const float *panels, long panel, int rows, int n, float *samples,
                                   long stride)
{
    for (int s = 0; s < n; s++) {
        const float *column = panels + s / MLP_PANEL * panel + s % MLP_PANEL;
        for (int j = 0; j < rows; j++) samples[s * stride + j] = column[j * MLP_PANEL];
    }
}

/* A layer's input from `values`: the bias input 1 follows, the padding stays zero. */
static inline void mlp_set_input(float *x, const float *values, int n)
{
    memcpy(x, values, sizeof(float) * (size_t)n);
    x[n] = 1.0f;
}

/* Makes the padding of a layer's rows zero again: deltas that are not finite, times 0, are NaN. */
static inline void mlp_clear_padding(const mlp_layer *layer)
{
    const int used = layer->n_in + 1;
    for (long i = 0; i < layer->n_out; i++)
        memset(layer->weights + i * layer->stride + used, 0,
               sizeof(float) * (size_t)(layer->stride - used));
}

#endif
