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
#ifndef MLPCORE_DEFORMATION_H
#define MLPCORE_DEFORMATION_H

#include <stdint.h>

#include "kernels.h"

enum { MLP_GRID = 10, MLP_PER_GRID = MLP_GRID * MLP_GRID };

/* What a Philox counter is used for: its last word. */
enum { MLP_PURPOSE_NOISE_X = 1, MLP_PURPOSE_NOISE_Y = 2 };

typedef struct {
    int height, width; /* of one image */
    const float *taps; /* the one-dimensional Gaussian: cell phases of n_taps weights */
    int cell, n_taps;
    float alpha;              /* pixels */
    const float *backgrounds; /* outside an image, of each channel */
    uint32_t key[2];          /* the seed */
    uint32_t epoch;
} mlp_deformation;

/* Images of a set. Image i of the selection has the number indices[i] in the set, and the place
 * places[i] among the arrays. The numbers ascend, and may repeat. The arrays are images (n,
 * channels, h, w), as is the result, with these steps in floats along each axis; the channels of an
 * image share its map, of the n matrices M = {xx, xy, yx, yy} from target to source. */
typedef struct {
    int n;
    const uint32_t *indices; /* NULL: first, first + 1, ... */
    const int32_t *places;   /* NULL: 0, 1, ... */
    uint32_t first;
    int channels;
    const float *images, *affine;
    float *out;
    ptrdiff_t in_step[4], out_step[4];
} mlp_selection;

/* An image with a border of background, one pixel above and left, two below and right, so
 * that a bilinear lookup needs no bounds: (height + 3) rows of this many floats. */
static inline int mlp_image_pitch(int width) { return width + 3; }

/* out[i](p) = images[i](M_i (p - c) + c + displacement_i(p)), bilinear, `background` outside.
 * images and out: (n, h, w); affine: n matrices M = {xx, xy, yx, yy} from target to source;
 * displacement: (n, 2, h, w) pixels, x before y. */
int mlp_deform_by(const mlp_kernels *kernels, const float *images, int n, int height, int width,
                  const float *affine, const float *displacement, float background, float *out,
                  int n_threads);

/* Deforms the selected images of a set: noise, field and lookup at once. An image's bits are the
 * same in any selection. Returns 0 or -1. */
int mlp_deform(const mlp_kernels *kernels, const mlp_deformation *deformation,
               const mlp_selection *selection, int n_threads);

/* Their displacements (n, 2, h, w) in pixels, x before y, by place; without the affine part. */
int mlp_fields(const mlp_kernels *kernels, const mlp_deformation *deformation,
               const mlp_selection *selection, float *fields, int n_threads);

#endif
