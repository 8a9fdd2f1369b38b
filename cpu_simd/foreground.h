/* The first layer's inputs without their background.
 *
 * More than two thirds of a digit's pixels have the background's value, c. Write a sample as
 * x = z + c 1, where 1 is one for each pixel and zero for the bias input. Few z are not zero. Then,
 * with no approximation,
 *
 *     products   W x            = W z + c (W 1)
 *     updates    sum_s d_s x_s^T = sum_s d_s z_s^T + (sum_s c_s d_s) 1^T
 *
 * and neither needs the zeros. A product skips a pixel that is background in all samples of its
 * registers. An update skips a sample that is background in all columns of its registers. What is
 * skipped would have added zero. So a sample's results have the same bits whatever the other
 * samples are, if weights and deltas are finite.
 */
#pragma once

#include "allocate.h"
#include "network.h"

/* Samples whose numbers lie side by side in matrices with samples as columns. */
#define MLP_PANEL MLP_ALIGN

/* Columns of a partial product, and samples of a partial update: few enough that what they use
 * again stays in the nearest cache. */
enum { MLP_CHUNK_COLUMNS = 128, MLP_CHUNK_SAMPLES = 64 };

/* The inputs of n samples in the layout of a product: samples are columns, in panels of MLP_PANEL.
 * Row k of a panel is at values + (panel * stride + k) * MLP_PANEL. */
typedef struct {
    float *values;
    /* Which column of W a row belongs to; NULL when row k is column k. Otherwise the rows from j on
     * hold only those of the columns j ... j + MLP_CHUNK_COLUMNS - 1 that have foreground. There
     * are counts[j / MLP_CHUNK_COLUMNS] of them, and row k is column columns[k]. Panels of
     * `together` samples share a list of columns and of counts; the next lists follow `stride`
     * and mlp_n_chunks(stride) later. */
    int *columns, *counts;
    int together;
    const float *background; /* c of each sample */
    const float *row_sums;   /* W 1 */
} mlp_panels;

/* The inputs of at most MLP_CHUNK_SAMPLES samples in the layout of an update: in groups of as many
 * columns as a vector has floats. Group g lists the counts[g] samples with foreground in it. Its
 * k-th sample is samples[g * room + k], whose z are at values + (g * room + k) * (floats of a
 * vector). */
typedef struct {
    float *values;
    int *samples, *counts;
    int room;
    const float *background; /* c of each sample */
} mlp_groups;

static inline int mlp_n_chunks(int stride)
{
    return (stride + MLP_CHUNK_COLUMNS - 1) / MLP_CHUNK_COLUMNS;
}

/* The background of a sample: the value of its first input, if a quarter of the inputs have it, and
 * at least two. Otherwise 0: subtracting a rare value would cost precision and gain nothing. */
float mlp_background(const float *x, int n_in);

/* Allocate room for n samples, with lists shared by `together` samples or groups of `columns`
 * columns. The caller sets the const pointers. */
void mlp_allocate_panels(mlp_memory *memory, mlp_panels *panels, const mlp_layer *layer, int n,
                         int together);
void mlp_allocate_groups(mlp_memory *memory, mlp_groups *groups, const mlp_layer *layer, int n,
                         int columns);

/* Packs one part of n samples, `row` floats apart, into panels: the MLP_CHUNK_COLUMNS columns from
 * part * MLP_CHUNK_COLUMNS on, part < mlp_n_chunks(stride). */
void mlp_pack_panels(const mlp_panels *panels, const mlp_layer *layer, const float *x,
                     ptrdiff_t row, int n, int part);

/* x[j] = 1 for the inputs that have a background: W x are the sums of W's rows. */
void mlp_set_ones(float *x, const mlp_layer *layer);
