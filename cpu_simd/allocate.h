/* Memory on cache-line boundaries. Windows keeps it apart from that of malloc, so all that the C
 * core allocates is allocated and freed here. */
#ifndef MLPCORE_ALLOCATE_H
#define MLPCORE_ALLOCATE_H

#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <malloc.h>
#endif

enum { MLP_CACHE_LINE = 64 };

/* Uninitialised memory, or NULL. */
static inline void *mlp_allocate_aligned(size_t align, size_t bytes)
{
#ifdef _WIN32
    return _aligned_malloc(bytes, align);
#else
    return aligned_alloc(align, (bytes + align - 1) / align * align);
#endif
}

static inline void *mlp_allocate(size_t bytes)
{
    return mlp_allocate_aligned(MLP_CACHE_LINE, bytes ? bytes : 1);
}

/* n zeroed things, or NULL. */
static inline void *mlp_zeros(size_t n, size_t size)
{
#ifdef _WIN32
    void *memory = mlp_allocate(n * size);
    return memory ? memset(memory, 0, n * size) : NULL;
#else
    return calloc(n, size);
#endif
}

static inline void mlp_free(void *memory)
{
#ifdef _WIN32
    _aligned_free(memory);
#else
    free(memory);
#endif
}

#endif
