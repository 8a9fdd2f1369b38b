/* The table of kernels that every instruction set fills in.
 *
 * Vectors x, and the rows of X, are padded as network.h describes, those of X a layer's stride
 * apart. Ranges of rows are half-open and start at a multiple of MLP_ALIGN; vectors over a
 * layer's neurons have room for n_out rounded up to MLP_ALIGN, and the kernels may write
 * anything between n_out and there unless stated otherwise. A result never depends on how
 * rows are cut into ranges.
 */
#pragma once

#include <stdint.h>

#include "foreground.h"
#include "network.h"
#include "packed.h"
#include "sparse.h"

/* Neurons of a tile of weights that are stored by their inputs (predict.c). */
enum { MLP_ACTIVE_WIDTH = 64 };

/* Floats of a row that fisher_rows takes, at most. */
enum { MLP_LINEAR_WIDTH = 1024 };

/* An active input of a sample: where its weights are in the rows of a chunk, and its value. */
typedef struct {
    int row;
    float value;
} mlp_input;

/* The products of n samples with a chunk of inputs of a tile. What belongs to a sample is `room`
 * apart. */
typedef struct {
    const float *weights;    /* of the chunk: rows of MLP_ACTIVE_WIDTH floats */
    const mlp_input *inputs; /* counts[s] of sample s */
    const int *counts;
    int n;
    int first;               /* whether the sums begin here, with the background's share */
    const float *row_sums;   /* of the tile's neurons; NULL: there is no background */
    const float *background; /* of each sample */
    ptrdiff_t room;
    float *sums;
} mlp_products;

typedef struct {
    const char *name;

    /* ---- one sample ---- */

    /* a[i] = (W x)[i] for the rows begin <= i < end. */
    void (*product)(const mlp_layer *layer, const float *x, int begin, int end, float *a);

    /* y[i] = y(a[i]), by mlp_activation; nothing beyond y[end - 1] is written. The outputs of
     * MLP_SOFTMAX and MLP_SIGMOID stay the sums a: see output.h. */
    void (*activate[MLP_N_ACTIVATIONS])(const float *a, int begin, int end, float *y);

    /* partial[j] = sum over the rows of W[i][j] delta[i], j < stride. */
    void (*backward)(const mlp_layer *layer, const float *delta, int begin, int end,
                     float *partial);

    /* delta[i] = sum[i] y'(a[i]), the derivative from the state y[i], by mlp_activation. A
     * rectifier's is exactly zero where y[i] = 0, whatever the sum. */
    void (*delta_hidden[MLP_N_ACTIVATIONS])(const float *sum, const float *y, int begin, int end,
                                            float *delta);

    /* ---- a block of n samples; the rows of h, D, X and A are samples ---- */

    /* dots[s] = sum over i of h[s * stride + i] v[i], s < n. */
    void (*dots)(const float *h, ptrdiff_t stride, int n, const float *v, int begin, int end,
                 float *dots);

    /* v[i] += sum over s < n of coefficients[s] h[s * stride + i]. */
    void (*correct)(const float *h, ptrdiff_t stride, int n, const float *coefficients, int begin,
                    int end, float *v);

    /* W[i] -= eta sum over s < n of D[s][i] X[s]. */
    void (*update_block)(const mlp_layer *layer, const float *d, ptrdiff_t d_stride, const float *x,
                         int n, float eta, int begin, int end);

    /* update_block for the first layer, whose n inputs are packed in `x`. */
    void (*update_foreground)(const mlp_layer *layer, const float *d, ptrdiff_t d_stride, int n,
                              const mlp_groups *x, float eta, int begin, int end);

    /* Packs the groups first <= g < last of n samples X. */
    void (*pack_groups)(const mlp_layer *layer, const float *x, int n, int first, int last,
                        mlp_groups *groups);

    /* A[i - begin][s] = W[i] X[s], s < n. In X and A samples are columns, in panels: A[i][s] is
     * a[s / MLP_PANEL * a_panel + i * MLP_PANEL + s % MLP_PANEL]. */
    void (*product_block)(const mlp_layer *layer, const mlp_panels *x, int n, int begin, int end,
                          float *a, ptrdiff_t a_panel);

    /* ---- rows of active inputs (sparse.h); w is a tile with `width` floats a row ---- */

    /* Lists, in ascending order, the inputs begin <= j < end with x[j] != 0; returns how many. The
     * list has room for MLP_ALIGN numbers more. */
    int (*list_active)(const float *x, int begin, int end, int *list);

    /* a[c] = sum over k < n of x[list[k]] w[list[k]][c], c < width; added to a[c] unless it is the
     * first part of the sum. */
    void (*product_rows)(const float *w, int width, const int *list, int n, const float *x,
                         int first, float *a);

    /* Adds the products to the sums of the tile's first `width` neurons, a multiple of MLP_ALIGN.
     */
    void (*product_active)(const mlp_products *products, int width);

    /* sums[list[k]] = sum over c of w[list[k]][c] delta[c], k < n. */
    void (*dot_rows)(const float *w, int width, const int *list, int n, const float *delta,
                     float *sums);

    /* dot_rows, the sums added unless it is the first part, and then w[list[k]] -= eta x[list[k]]
     * delta. Without `sums` the update alone. */
    void (*step_rows)(float *w, int width, const int *list, int n, const float *x,
                      const float *delta, float eta, int first, float *sums);

    /* to[list[k]] += shares[k] (from[list[k]] - to[list[k]]), k < n, where shares[k] is not 0. */
    void (*move_rows)(float *to, const float *from, int width, const int *list, int n,
                      const float *shares);

    /* w[j] -= eta sum over the samples s in which input j is active of x_s[j] delta_s, begin <= j
     * < end. Row s of the deltas is at d + s * d_stride. */
    void (*update_rows)(float *w, int width, const mlp_uses *uses, int begin, int end,
                        const float *d, ptrdiff_t d_stride, float eta);

    /* ---- rows of any width, which are not padded ---- */

    /* sums[c] = sum over k < n of x[list[k]] w[list[k]][c], c < width. */
    void (*linear_rows)(const float *w, int width, const int *list, int n, const float *x,
                        float *sums);

    /* Adds (x[list[k]] delta)^2 to 1 / rates[list[k]], which stay above `least`; and then
     * w[list[k]] -= rates[list[k]] x[list[k]] step, k < n. There are at most MLP_LINEAR_WIDTH
     * floats in a row. */
    void (*fisher_rows)(float *w, float *rates, int width, const int *list, int n, const float *x,
                        const float *delta, const float *step, float least);

    /* ---- packed weights (packed.h); NULL where an instruction set does without ---- */

    /* Packs the rows begin <= i < end. */
    void (*pack_weights)(const mlp_layer *layer, int begin, int end, mlp_packed *packed);

    /* product and backward, with packed weights. */
    void (*product_packed)(const mlp_layer *layer, const mlp_packed *packed, const float *x,
                           int begin, int end, float *a);
    void (*backward_packed)(const mlp_layer *layer, const mlp_packed *packed, const float *delta,
                            int begin, int end, float *partial);

    int together;      /* samples in a product's registers, in whole panels */
    int group_columns; /* columns of a group: the floats of a vector */

    /* ---- deformation ---- */

    /* Four rows of uniform noise in [-1, 1] from column counter[0] on: rows[k * stride + x] is word
     * k of the Philox counter (row_group << 16 | counter[0] + x, counter[1..3]); n is rounded up
     * to the vector. */
    void (*noise)(const uint32_t key[2], const uint32_t counter[4], uint32_t row_group, int n,
                  float *rows, int stride);

    /* out[x] = sum over i < n_taps of taps[i] in[i * step + x], x < n rounded up to MLP_ALIGN. */
    void (*convolve)(const float *in, ptrdiff_t step, const float *taps, int n_taps, int n,
                     float *out);

    /* One row of the backward lookup; see deformation.h for `padded`. */
    void (*lookup_row)(const float *padded, int in_height, int in_width, int height, int width,
                       const float affine[4], const float *dx, const float *dy, int y, float *out);
} mlp_kernels;

extern const mlp_kernels mlp_scalar, mlp_sse2, mlp_neon, mlp_avx2, mlp_avx512;

/* The table for `name`, or NULL; *reason then says why in a few words. */
const mlp_kernels *mlp_find_kernels(const char *name, const char **reason);
