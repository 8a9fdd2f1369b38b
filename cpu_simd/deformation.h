/* Elastic and affine deformation of whole training sets (paper, "Deforming images").
 *
 * The images of a training set form grids of 10 x 10 tiles, image i being tile i % 100 of
 * grid i / 100. A grid of (10 h) x (10 w) cells has one displacement field: uniform noise, which
 * spans n_taps - 1 cells more each way, convolved with a Gaussian and scaled by alpha, once for x
 * and once for y. The Gaussian is separable: columns first, then rows.
 *
 * A wide Gaussian needs fewer numbers: one for each cell of `cell` x `cell` pixels. Pixel cell * r
 * + p has the weights of phase p, from the noise of cell r and on, and then rows come first,
 * because there are fewer of them before the columns.
 */
#pragma once

#include <stdint.h>

#include "kernels.h"

typedef struct {
    int height, width;       /* of one deformed image */
    int in_height, in_width; /* of one image, whose corners are those of the deformed one */

    /* The fields of an epoch. */
    const float *taps; /* the one-dimensional Gaussian: cell phases of n_taps weights */
    int cell, n_taps;
    float alpha;     /* pixels */
    uint32_t key[2]; /* the seed */
    uint32_t epoch;

    /* Images of the set. Image i of n has the number indices[i], and the place places[i] in the
     * arrays. The numbers ascend, and may repeat. */
    int n;
    const uint32_t *indices;
    const int32_t *places;

    /* (n, channels, h, w), with these steps in numbers along each axis. The channels of an image
     * share its map, and each has what is outside an image. */
    int channels;
    const void *images;
    const float *values; /* (256) what bytes stand for; NULL: the images are floats */
    float *out;
    ptrdiff_t in_step[4], out_step[4];
    const float *affine; /* n matrices M = {xx, xy, yx, yy} from target to source */
    const float *backgrounds;

    /* (n, 2, h, w) in pixels, x before y: displacements to use instead of an epoch's; where to
     * write those of an epoch instead of deforming; else NULL. */
    const float *given;
    float *fields;
} mlp_deformation;

/* An image with a border of background, one pixel above and left, two below and right, so
 * that a bilinear lookup needs no bounds: (height + 3) rows of this many floats. */
static inline int mlp_image_pitch(int width) { return width + 3; }

/* Pixels of an image for one of a deformed image, along a side. */
static inline float mlp_ratio(int in, int out)
{
    return in == out ? 1.0f : (float)(in - 1) / (float)(out - 1);
}

/* out[i](p) = images[i](M_i (p - c) + c + displacement_i(p)), bilinear, background outside, in
 * pixels of deformed images. An image's bits are the same among any others. Returns 0, or -1 when
 * memory ran out. */
int mlp_deform(const mlp_kernels *kernels, const mlp_deformation *deformation, int n_threads);
