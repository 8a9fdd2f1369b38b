#include "allocate.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <malloc.h>
#endif

static atomic_long calls_left, blocks;

void mlp_fail_call(long n) { calls_left = n; }

int mlp_call_fails(void) { return calls_left > 0 && atomic_fetch_sub(&calls_left, 1) == 1; }

long mlp_calls_left(void) { return calls_left; }

long mlp_blocks(void) { return blocks; }

static void *counted(void *memory)
{
    if (memory) atomic_fetch_add(&blocks, 1);
    return memory;
}

void *mlp_allocate_aligned(size_t align, size_t bytes)
{
    if (mlp_call_fails()) return NULL;
#ifdef _WIN32
    return counted(_aligned_malloc(bytes, align));
#else
    return counted(aligned_alloc(align, (bytes + align - 1) / align * align));
#endif
}

void *mlp_allocate(size_t bytes) { return mlp_allocate_aligned(MLP_CACHE_LINE, bytes ? bytes : 1); }

void *mlp_zeros(size_t n, size_t size)
{
#ifdef _WIN32
    void *memory = mlp_allocate(n * size);
    return memory ? memset(memory, 0, n * size) : NULL;
#else
    return mlp_call_fails() ? NULL : counted(calloc(n, size));
#endif
}

void mlp_free(void *memory)
{
    if (memory) atomic_fetch_sub(&blocks, 1);
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
