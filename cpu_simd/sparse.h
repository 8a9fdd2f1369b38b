/* Layers stored by their inputs, for steps that read and write the rows of active inputs only.
 *
 * A rectified state is zero for most neurons, and a pixel without ink is zero if inputs are in
 * [0, 1]. Let row j of a layer's matrix hold the weights of input j to all neurons. Then the
 * forward pass W x, the sums W^T d wanted below, and the update - eta d x^T need the rows of inputs
 * x_j != 0 only. What is skipped is a product with an exact zero, so nothing is approximated. (A
 * dense pass would turn an infinite weight behind such a zero into NaN; this one does not.)
 *
 * The neurons are cut into the tiles of partition.h. A tile is a matrix of its own: n_in + 1 rows,
 * that of the bias last, of as many floats as the tile has neurons, padded. So a thread reads long
 * rows of memory that no other thread touches.
 */
#pragma once

#include "partition.h"

/* A sample of a block in which an input is active. */
typedef struct {
    int sample;
    float value;
} mlp_use;

/* Where each input of a layer, and its bias, is active in a block. Input j has counts[j] uses, at
 * uses + j * room. */
typedef struct {
    int *counts;
    mlp_use *uses;
    int room;
} mlp_uses;

/* The floats of a row of a tile. */
static inline int mlp_tile_width(const mlp_layer *layer, int tile)
{
    return mlp_padded(mlp_tile_begin(layer, tile + 1) - mlp_tile_begin(layer, tile));
}

/* Where a tile starts in a layer's tiles. */
static inline ptrdiff_t mlp_tile_offset(const mlp_layer *layer, int tile)
{
    return (ptrdiff_t)mlp_tile_begin(layer, tile) * (layer->n_in + 1);
}

/* The floats of all tiles of a layer. */
ptrdiff_t mlp_tiles_size(const mlp_layer *layer);

/* Copies the weights of the neurons begin <= i < end into n_in + 1 rows of `width` floats, that of
 * the bias last, or back. */
void mlp_copy_by_inputs(const mlp_layer *layer, int begin, int end, ptrdiff_t width, float *copies,
                        int back);

/* Copies a tile from the layer's weights, or back. */
static inline void mlp_copy_tile(const mlp_layer *layer, int tile, float *tiles, int back)
{
    mlp_copy_by_inputs(layer, mlp_tile_begin(layer, tile), mlp_tile_begin(layer, tile + 1),
                       mlp_tile_width(layer, tile), tiles + mlp_tile_offset(layer, tile), back);
}
