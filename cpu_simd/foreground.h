/* The first layer's inputs without their background.
 *
 * More than two thirds of a digit's pixels have one value, the background's. Let it be c in a
 * sample x, which is then z + c 1 with few z other than zero (1 is for the pixels, not for the bias
 * input). With no approximation
 *
 *     products   W x            = W z + c (W 1)
 *     updates    sum_s d_s x_s^T = sum_s d_s z_s^T + (sum_s c_s d_s) 1^T
 *
 * and neither needs the zeros. They are left out where all that is worked on together has them: a
 * pixel that is background in all samples of a product's registers, a sample that is background
 * in all columns of an update's. What is left out would have added zero, so a sample's results
 * have the same bits in any company, as long as weights and deltas are finite.
 */
#ifndef MLPCORE_FOREGROUND_H
#define MLPCORE_FOREGROUND_H

#include "network.h"

/* Samples whose numbers lie side by side in matrices with samples as columns. */
#define MLP_PANEL MLP_ALIGN

/* Columns of a partial product, samples of a partial update: what is used again meanwhile stays in
 * the nearest cache. */
enum { MLP_CHUNK_COLUMNS = 128, MLP_CHUNK_SAMPLES = 64 };

/* The inputs of n samples as a product wants them: as columns, in panels of MLP_PANEL. Row k of a
 * panel is at values + (panel * stride + k) * MLP_PANEL. */
typedef struct {
    float *values;
    /* NULL when row k is column k of W. Otherwise the columns j ... j + MLP_CHUNK_COLUMNS - 1 that
     * have foreground are the rows from j on: counts[j / MLP_CHUNK_COLUMNS] of them, row k being
     * column columns[k]. Panels of `together` samples share these lists; the next ones' are
     * `stride`, or mlp_n_chunks(stride), further. */
    int *columns, *counts;
    int together;
    const float *background; /* c of each sample */
    const float *row_sums;   /* W 1 */
} mlp_panels;

/* The inputs of n samples as an update wants them, n at most MLP_CHUNK_SAMPLES: in groups of
 * columns, as many as a vector has floats. The k-th sample with foreground in group g, k <
 * counts[g], is samples[g * room + k]; values + (g * room + k) * (floats of a vector) are its z. */
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

/* The background of a sample: its first input, when a quarter of its inputs or more have that
 * value, and more than one, else 0. To take off a rare value would cost precision for nothing. */
float mlp_background(const float *x, int n_in);

/* Room for n samples, lists shared by `together`, groups of `columns`; -1 when there is none. The
 * const pointers are set and freed by the caller. */
int mlp_allocate_panels(mlp_panels *panels, const mlp_layer *layer, int n, int together);
int mlp_allocate_groups(mlp_groups *groups, const mlp_layer *layer, int n, int columns);
void mlp_free_panels(mlp_panels *panels);
void mlp_free_groups(mlp_groups *groups);

/* Packs n samples, `row` floats apart, into panels: of these part * MLP_CHUNK_COLUMNS and the
 * columns after it, part < mlp_n_chunks(stride). */
void mlp_pack_panels(const mlp_panels *panels, const mlp_layer *layer, const float *x, long row,
                     int n, int part);

/* x[j] = 1 for the inputs that have a background: W x are the sums of W's rows. */
void mlp_set_ones(float *x, const mlp_layer *layer);

#endif
