/* Tiles of layers stored by their inputs. */
#include "sparse.h"

ptrdiff_t mlp_tiles_size(const mlp_layer *layer)
{
    const int last = mlp_n_tiles(layer) - 1;
    return mlp_tile_offset(layer, last) +
           (ptrdiff_t)mlp_tile_width(layer, last) * (layer->n_in + 1);
}

/* Rows and columns that are transposed together, so that both sides stay in the nearest cache. */
enum { PATCH = 32 };

void mlp_copy_by_inputs(const mlp_layer *layer, int begin, int end, ptrdiff_t width, float *copies,
                        int back)
{
    const ptrdiff_t rows = layer->n_in + 1, stride = layer->stride;
    for (ptrdiff_t j0 = 0; j0 < rows; j0 += PATCH)
        for (ptrdiff_t i0 = begin; i0 < end; i0 += PATCH)
            for (ptrdiff_t j = j0; j < rows && j < j0 + PATCH; j++) {
                const ptrdiff_t last = i0 + PATCH < end ? i0 + PATCH : end;
                float *weights = layer->weights + j, *row = copies + j * width - begin;
                for (ptrdiff_t i = i0; !back && i < last; i++) row[i] = weights[i * stride];
                for (ptrdiff_t i = i0; back && i < last; i++) weights[i * stride] = row[i];
            }
}
