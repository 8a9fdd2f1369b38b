/* Training layers that are stored by their inputs (sparse.h), within the deferred schedule. */
#pragma once

#include "schedule.h"

/* Allocates what layer l needs, if it is sparse. */
void mlp_allocate_sparse(mlp_schedule *schedule, int l, int n_threads);

/* Copies the thread's tiles from the network's weights, or back. */
void mlp_copy_tiles(const mlp_worker *self, int back);

/* ---- a sample; layer l is above the first ---- */

/* a = W x for the thread's neurons of layer l. */
void mlp_product_tiles(const mlp_worker *self, int l, const float *x, float *a);

/* A tile's part of W^T delta, for the inputs that are active. */
void mlp_dot_tile(const mlp_worker *self, int l, int tile, const float *delta, float *partial);

/* Notes where the thread's neurons below layer l are active at sample t. */
void mlp_note_uses(const mlp_worker *self, int l, int t);

/* ---- a block ---- */

/* Updates the thread's tiles of layer l by a block of n samples. */
void mlp_update_tiles(const mlp_worker *self, int l, int n);

/* Lists the active inputs of each image. */
void mlp_list_block(const mlp_worker *self, mlp_block *b);

/* For the end of a block: forgets the uses above the first layer, and notes those of the
 * block's images. */
void mlp_finish_uses(const mlp_worker *self, const mlp_block *b);

/* update_first of train_deferred.c for a sparse layer. */
void mlp_update_first_tiles(const mlp_worker *self, const mlp_block *block, const mlp_block *next,
                            int n_next);
