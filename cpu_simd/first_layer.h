/* The deferred schedule's first layer, whose inputs are known a block ahead. */
#ifndef MLPCORE_FIRST_LAYER_H
#define MLPCORE_FIRST_LAYER_H

#include "schedule.h"

/* Loads the images of the steps begin ... begin + n - 1, and forms their dot products times eta. */
void mlp_load_block(const mlp_worker *self, int begin, int n, mlp_block *b);

/* Updates the first layer by a block, and forms its products with the next block's n_next samples,
 * tile by tile. Either block may be empty. mlp_load_block has loaded the next one. */
void mlp_update_first(const mlp_worker *self, const mlp_block *block, const mlp_block *next,
                      int n_next);

#endif
