/* Pixels, as bytes, as the inputs of a network. */
#pragma once

#include <stdint.h>

typedef struct {
    int n, in_height, in_width, height, width; /* all sides are 2 or more */
    const uint8_t *pixels;                     /* (n, in_height, in_width) */
    const float *values;                       /* (256) in [-1, 1]: what bytes stand for */
    int unit;                                  /* inputs are in [0, 1] */
    float *out;                                /* (n, height, width) */
} mlp_pixels;

/* Does what `PixelSpec` of mlpcore/data/pixels.py does, with the same operations in the same order,
 * and so the same bits. Returns 0, or -1 when memory ran out. */
int mlp_to_inputs(const mlp_pixels *pixels, int n_threads);
