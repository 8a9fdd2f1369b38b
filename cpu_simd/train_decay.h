/* Weight decay within the deferred schedule.
 *
 * Before each sample's update the weights, but not the biases b, shrink by r = exp(-eta decay). So
 * within a block, V being the weights at its start without the biases,
 *
 *     forward    r^t V x_t + b     - eta sum_{s<t} d_s (r^(t-1-s) (x_s . x_t) + 1)
 *     backward   r^t V^T d_t       - eta sum_{s<t} r^(t-1-s) x_s (d_s . d_t)
 *     block end  V <- r^n V        - eta sum_{s<n} r^(n-1-s) d_s x_s^T
 *                b <- b            - eta sum_{s<n} d_s
 *
 * Rows of weights have their bias as the last column, and the kernels treat it as a weight. Here it
 * is put right: `biases` are those at the block's start. */
#pragma once

#include "schedule.h"

/* Allocates what layer l needs, if weights decay. */
void mlp_allocate_decay(mlp_schedule *schedule, int l);

/* sums[i] of the thread's rows: from W x_t to the product with the weights that are left. */
void mlp_decay_sums(const mlp_worker *self, int l, int t, float *sums);

/* Prepares the thread's biases and deltas of a block of n samples for the block's update. */
void mlp_decay_deltas(const mlp_worker *self, int l, int n);

/* Shrinks a layer's weights at w by a block of n samples, before its update. */
static inline void mlp_shrink(const mlp_layer_buffers *b, int n, float *w, ptrdiff_t size)
{
    for (ptrdiff_t i = 0; b->kept && i < size; i++) w[i] -= b->lost[n] * w[i];
}

/* Puts the biases of the neurons begin <= i < end right after the update; that of the first is at
 * w, and `step` floats from the next. */
static inline void mlp_set_biases(const mlp_layer_buffers *b, float *w, ptrdiff_t step, int begin,
                                  int end)
{
    for (ptrdiff_t i = begin; b->kept && i < end; i++) w[(i - begin) * step] = b->biases[i];
}
