/* Elastic and affine deformation of whole training sets (paper, "Deforming images").
 *
 * The images of a training set form grids of 10 x 10 tiles, image i being tile i % 100 of
 * grid i / 100. A grid of (10 h) x (10 w) cells has one displacement field: uniform noise of
 * (10 h + 20) x (10 w + 20) cells, convolved with a 21 x 21 Gaussian and scaled by alpha,
 * once for x and once for y. The Gaussian is separable: columns first, then rows.
 */
#ifndef MLPCORE_DEFORMATION_H
#define MLPCORE_DEFORMATION_H

#include <stdint.h>

#include "kernels.h"

enum { MLP_GRID = 10, MLP_PER_GRID = MLP_GRID * MLP_GRID };

/* What a Philox counter is used for: its last word. */
enum { MLP_PURPOSE_NOISE_X = 1, MLP_PURPOSE_NOISE_Y = 2 };

typedef struct {
    int height, width;    /* of one image */
    float taps[MLP_TAPS]; /* the one-dimensional Gaussian */
    float alpha;          /* pixels */
    float background;     /* outside an image */
    uint32_t key[2];      /* the seed */
    uint32_t epoch;
} mlp_deformation;

/* An image with a border of background, one pixel above and left, two below and right, so
 * that a bilinear lookup needs no bounds: (height + 3) rows of this many floats. */
static inline int mlp_image_pitch(int width) { return width + 3; }

/* Noise for one field: rows x columns floats in [-1, 1], row-major; returns 0 or -1. */
int mlp_noise(const mlp_kernels *kernels, const uint32_t key[2], uint32_t epoch, uint32_t grid,
              uint32_t purpose, int rows, int columns, float *noise);

/* field (rows - 20, columns - 20) = alpha * (Gaussian * noise (rows, columns)). */
int mlp_displacement_field(const mlp_kernels *kernels, const float *noise, int rows, int columns,
                           const float taps[MLP_TAPS], float alpha, float *field);

/* out[i](p) = images[i](M_i (p - c) + c + displacement_i(p)), bilinear, `background` outside.
 * images and out: (n, h, w); affine: n matrices M = {xx, xy, yx, yy} from target to source;
 * displacement: (n, 2, h, w) pixels, x before y. */
int mlp_deform_by(const mlp_kernels *kernels, const float *images, int n, int height, int width,
                  const float *affine, const float *displacement, float background, float *out,
                  int n_threads);

/* Noise, field and lookup at once for the images first ... first + n - 1 of the set. */
int mlp_deform(const mlp_kernels *kernels, const mlp_deformation *deformation, const float *images,
               uint32_t first, int n, const float *affine, float *out, int n_threads);

#endif
