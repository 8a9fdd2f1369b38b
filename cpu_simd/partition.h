/* How a layer's rows are cut into tiles and dealt to threads.
 *
 * Sums over rows are formed tile by tile and then over the tiles in order. Tiles depend on
 * the layer alone, so the bits of a result do not depend on the number of threads.
 */
#pragma once

#include "network.h"
#include "threads.h"

/* Enough for sixteen threads. Few enough that adding up the tiles' sums costs little beside reading
 * the rows. */
enum { MLP_MAX_TILES = 16 };

/* A layer of so few weights is a single thread's: it is done before two meet at a barrier. */
enum { MLP_SERIAL_WEIGHTS = 16384 };

/* Rows of a tile of other than tanh layers are a multiple of this: see sparse.h. */
enum { MLP_SPARSE_ROWS = 128 };

static inline int mlp_tile_rows(const mlp_layer *layer)
{
    const int rows = mlp_padded((layer->n_out + MLP_MAX_TILES - 1) / MLP_MAX_TILES);
    if (layer->activation == MLP_TANH) return rows;
    return (rows + MLP_SPARSE_ROWS - 1) / MLP_SPARSE_ROWS * MLP_SPARSE_ROWS;
}

static inline int mlp_n_tiles(const mlp_layer *layer)
{
    int rows = mlp_tile_rows(layer);
    return (layer->n_out + rows - 1) / rows;
}

/* The most threads that can own a part of a layer. */
static inline int mlp_n_owners(const mlp_layer *layer)
{
    return (ptrdiff_t)layer->n_out * layer->stride <= MLP_SERIAL_WEIGHTS ? 1 : mlp_n_tiles(layer);
}

/* The tiles [*begin, *end) of a layer that a thread owns. */
static inline void mlp_own_tiles(const mlp_layer *layer, int thread, int n_threads, int *begin,
                                 int *end)
{
    int n_tiles = mlp_n_tiles(layer);
    if (mlp_n_owners(layer) == 1) {
        *begin = 0;
        *end = thread == 0 ? n_tiles : 0;
    } else {
        mlp_share(n_tiles, thread, n_threads, begin, end);
    }
}

static inline int mlp_tile_begin(const mlp_layer *layer, int tile)
{
    int row = tile * mlp_tile_rows(layer);
    return row < layer->n_out ? row : layer->n_out;
}
