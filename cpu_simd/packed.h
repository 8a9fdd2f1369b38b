/* Copies of the weights in 21 bits, for the deferred schedule's forward and backward passes.
 *
 * Weights do not change within a block of samples, and every sample reads them twice. When they do
 * not fit into the caches next to the cores, a step takes as long as this reading. Large networks
 * therefore read copies of two thirds the size. The weights themselves stay float32. Each block's
 * update changes them and packs them anew.
 *
 * A row's weights are integers times one scale, and the scale takes the greatest weight to the end
 * of the range. The error of a weight is at most 2^-21 of the greatest, plus a few roundings to
 * float32. Three integers a, b, c share two words:
 *
 *     first word     21 bits of a, the first 11 bits of c
 *     second word    21 bits of b, the other 11 bits of c
 *
 * Unpacking takes the words as a and b without masking the bits of c. Packing knows these bits and
 * chooses the other 21 so that the whole word comes closest. Only c, of 22 bits, has to be put
 * together. A group is three vectors of columns in two vectors of words.
 */
#pragma once

#include <stdint.h>

#include "allocate.h"
#include "network.h"

/* Vectors in a group, vectors of words that hold them, and bits of c in a word. */
enum { MLP_PACKED_VECTORS = 3, MLP_PACKED_WORDS = 2, MLP_PACKED_REST = 11 };

/* Rows to pack while their update is still in the cache: CHUNK_ROWS of block_kernels.h. */
enum { MLP_PACKED_ROWS = 64 };

typedef struct {
    uint32_t *words;  /* n_out rows; NULL: not packed */
    float *scales;    /* W[i][j] = scales[i] times its whole number */
    ptrdiff_t stride; /* words per row */
} mlp_packed;

/* Whether to pack for a block of n samples. Packing costs what the passes of a few samples save,
 * and allocating the copies, once a call, what a dozen save. The rule looks at the block alone:
 * training that was stopped and resumed has the same blocks, and so the same bits. */
static inline int mlp_packing_pays(int n, int block) { return 2 * n >= block; }
