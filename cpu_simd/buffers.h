/* Zeroed float buffers on cache-line boundaries. */
#ifndef MLPCORE_BUFFERS_H
#define MLPCORE_BUFFERS_H

#include <stdlib.h>
#include <string.h>

/* n floats, or NULL; to be freed with free(). */
static inline float *mlp_floats(size_t n)
{
    size_t bytes = (n * sizeof(float) + 63) / 64 * 64;
    float *buffer = aligned_alloc(64, bytes ? bytes : 64);
    if (buffer) memset(buffer, 0, bytes);
    return buffer;
}

/* A layer's input from `values`: the bias input 1 follows, the padding stays zero. */
static inline void mlp_set_input(float *x, const float *values, int n)
{
    memcpy(x, values, sizeof(float) * (size_t)n);
    x[n] = 1.0f;
}

#endif
