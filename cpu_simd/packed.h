/* Weights of 21 bits, for the deferred schedule's passes up and down.
 *
 * Between two updates of a block weights do not change, and each is read twice a sample. Where they
 * do not fit into the caches next to the cores, a step takes as long as that reading. So of large
 * networks the passes read copies of two thirds the size. The weights themselves stay float32, are
 * updated as such, and are packed anew after each block's update.
 *
 * A row's weights are whole numbers times one scale, which takes its greatest to the end of the
 * range: none is off by more than 2^-21 of that, half of its last bit, and some roundings to
 * float32. Three numbers a, b, c share two words:
 *
 *     first word     21 bits of a, the first 11 bits of c
 *     second word    21 bits of b, the other 11 bits of c
 *
 * The words are a and b as they are, and what is behind their 21 bits is not masked away: packing
 * knows it, and chooses the 21 bits so that all 32 together come closest. Only c, of 22 bits, has
 * to be put together. In a row, columns come in groups of three vectors, and a group is two vectors
 * of words.
 */
#ifndef MLPCORE_PACKED_H
#define MLPCORE_PACKED_H

#include <stdint.h>

#include "network.h"

/* Vectors of a group, and vectors of words that hold them; bits of a word that are the third's. */
enum { MLP_PACKED_VECTORS = 3, MLP_PACKED_WORDS = 2, MLP_PACKED_REST = 11 };

/* Rows that are packed while their update's results are in the cache: those that it takes together
 * (CHUNK_ROWS of block_kernels.h). */
enum { MLP_PACKED_ROWS = 64 };

typedef struct {
    uint32_t *words; /* n_out rows; NULL: not packed */
    float *scales;   /* W[i][j] = scales[i] times its whole number */
    long stride;     /* words per row */
} mlp_packed;

/* Words of a row of `stride` weights, vectors being of `lanes` floats. */
static inline long mlp_packed_stride(int stride, int lanes)
{
    const int columns = MLP_PACKED_VECTORS * lanes;
    return (long)((stride + columns - 1) / columns) * MLP_PACKED_WORDS * lanes;
}

/* Whether layer l is packed: it is not the first, its rows may be shared by threads, and the layers
 * above the first have `from` weights or more; never if `from` is negative. */
int mlp_is_packed(const mlp_network *network, int l, long from);

/* Whether to pack for a block of n samples: packing takes the time that the passes of a few samples
 * save by it, and the room for the copies, once a call, that of a dozen. The rule looks at the
 * block alone: a call that goes on where another was stopped has the same blocks, and so the same
 * bits. */
static inline int mlp_packing_pays(int n, int block) { return 2 * n >= block; }

/* Room for a layer; -1 when there is none. */
int mlp_allocate_packed(mlp_packed *packed, const mlp_layer *layer, int lanes);
void mlp_free_packed(mlp_packed *packed);

#endif
