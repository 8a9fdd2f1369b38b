/* The forward pass of many samples by their active inputs.
 *
 * A rectified state is zero for most neurons, and so is the foreground of most pixels
 * (foreground.h). Products with an exact zero are left out. The others are added in the order of
 * product_block (kernels.h), so a sample's outputs have the same bits either way. (A dense pass
 * would turn an infinite weight behind a zero into NaN; this one does not.)
 *
 * The weights are copied into tiles: n_in + 1 rows, that of the bias last, of the weights of one
 * input to MLP_ACTIVE_WIDTH neurons. The rows of a chunk of inputs fit into the nearest cache, and
 * all samples of a batch use them before the next chunk is read.
 */
#pragma once

#include "kernels.h"

/* The samples of a batch. */
enum { MLP_ACTIVE_SAMPLES = 128 };

/* A thread's own buffers. What belongs to a sample is `room` apart. */
typedef struct {
    ptrdiff_t room;
    float *states, *sums; /* of a layer's inputs and neurons */
    mlp_input *inputs;    /* the active ones; those of a chunk begin where its first would be */
    int *counts;          /* of them, for each chunk and each sample */
    int *list;            /* the active inputs of a chunk of a sample */
    float background[MLP_ACTIVE_SAMPLES];
} mlp_active;

static inline int mlp_n_active_tiles(const mlp_layer *layer)
{
    return (layer->n_out + MLP_ACTIVE_WIDTH - 1) / MLP_ACTIVE_WIDTH;
}

/* Whether this is quicker than the dense pass: rectifiers, enough samples for the copy of the
 * weights, and images of which most is background. */
int mlp_active_pays(const mlp_network *network, const float *images, int n);

/* Allocate the tiles of all layers, and a thread's buffers. Failures are left in `memory`. */
float **mlp_allocate_tiles(mlp_memory *memory, const mlp_network *network);
void mlp_allocate_active(mlp_memory *memory, mlp_active *active, const mlp_network *network);

/* Copies this thread's share of the tiles. */
void mlp_copy_active_tiles(const mlp_network *network, float **tiles, int thread, int n_threads);

/* The states of the last layer for n images, at most MLP_ACTIVE_SAMPLES. `row_sums` are those of
 * the first layer's weights, in whole tiles. */
void mlp_active_states(const mlp_kernels *kernels, const mlp_network *network, float *const *tiles,
                       const float *row_sums, const float *images, int n, float *outputs,
                       mlp_active *active);
