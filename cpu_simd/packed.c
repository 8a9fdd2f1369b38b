/* Which layers are packed, and memory for the copies. */
#include "packed.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "partition.h"

/* Linux grants huge pages on request; fewer look-ups in the page table then. */
enum { HUGE_PAGE = 1 << 21 };

/* Uninitialised memory, or NULL. */
static void *room_for(size_t bytes)
{
    const size_t align = bytes < HUGE_PAGE ? MLP_CACHE_LINE : HUGE_PAGE;
    bytes = (bytes + align - 1) / align * align;
    void *room = mlp_allocate_aligned(align, bytes);
#ifdef MADV_HUGEPAGE
    if (room && align == HUGE_PAGE) madvise(room, bytes, MADV_HUGEPAGE); /* may be refused */
#endif
    return room;
}

int mlp_is_packed(const mlp_network *network, int l, ptrdiff_t from)
{
    ptrdiff_t weights = 0;
    for (int i = 1; i < network->n_layers; i++)
        weights += (ptrdiff_t)network->layers[i].n_out * network->layers[i].stride;
    return l > 0 && mlp_n_owners(&network->layers[l]) > 1 && from >= 0 && weights >= from;
}

void mlp_allocate_packed(mlp_memory *memory, mlp_packed *packed, const mlp_layer *layer, int lanes)
{
    packed->stride = mlp_packed_stride(layer->stride, lanes);
    const size_t rows = (size_t)layer->n_out;
    packed->words =
        mlp_keep(memory, room_for(rows * (size_t)packed->stride * sizeof *packed->words));
    packed->scales = mlp_keep(memory, room_for(rows * sizeof *packed->scales));
}
