#include "allocate.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <malloc.h>
#endif

/* Tests alone count, because atomic numbers cost a single prediction some per cent. */
static int counting;
static atomic_long calls_left, blocks;

void mlp_fail_call(long n, long *left, long *held)
{
    *left = calls_left;
    *held = blocks;
    counting = n > 0;
    calls_left = n;
    blocks = 0;
}

int mlp_call_fails(void) { return counting && atomic_fetch_sub(&calls_left, 1) == 1; }

void *mlp_allocate_aligned(size_t align, size_t bytes)
{
    if (mlp_call_fails()) return NULL;
#ifdef _WIN32
    void *memory = _aligned_malloc(bytes, align);
#else
    void *memory = aligned_alloc(align, (bytes + align - 1) / align * align);
#endif
    if (counting && memory) blocks++;
    return memory;
}

void *mlp_allocate(size_t bytes) { return mlp_allocate_aligned(MLP_CACHE_LINE, bytes ? bytes : 1); }

void *mlp_zeros(size_t n, size_t size)
{
    const size_t bytes = (n * size + MLP_CACHE_LINE - 1) / MLP_CACHE_LINE * MLP_CACHE_LINE;
    void *memory = mlp_allocate(bytes);
    return memory ? memset(memory, 0, bytes) : NULL;
}

void mlp_free(void *memory)
{
    if (counting && memory) blocks--;
#ifdef _WIN32
    _aligned_free(memory);
#else
    free(memory);
#endif
}

struct mlp_kept {
    struct mlp_kept *before;
    void *block;
};

void *mlp_keep(mlp_memory *memory, void *block)
{
    struct mlp_kept *kept = block ? mlp_allocate(sizeof *kept) : NULL;
    if (!kept) {
        memory->failed = 1;
        mlp_free(block);
        return NULL;
    }
    *kept = (struct mlp_kept){memory->last, block};
    memory->last = kept;
    return block;
}

void mlp_free_kept(mlp_memory *memory)
{
    while (memory->last) {
        struct mlp_kept *kept = memory->last;
        memory->last = kept->before;
        mlp_free(kept->block);
        mlp_free(kept);
    }
}
