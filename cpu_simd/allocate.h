/* Memory on cache-line boundaries. Windows keeps it apart from that of malloc, so all that the C
 * core allocates is allocated and freed here. */
#pragma once

#include <stddef.h>

enum { MLP_CACHE_LINE = 64 };

/* Uninitialised memory, or NULL. */
void *mlp_allocate_aligned(size_t align, size_t bytes);
void *mlp_allocate(size_t bytes);

/* n zeroed things, and zeros to the end of the cache line; or NULL. */
void *mlp_zeros(size_t n, size_t size);

void mlp_free(void *memory);

/* The blocks of a job, which are freed together; zero at first. */
typedef struct {
    struct mlp_kept *last;
    int failed; /* whether memory ran out */
} mlp_memory;

/* Takes over a new block, and returns it. If it is NULL, memory has run out. */
void *mlp_keep(mlp_memory *memory, void *block);
void mlp_free_kept(mlp_memory *memory);

/* For tests: from now on calls are counted, allocations and starts of threads, and number n fails.
 * 0: nothing is counted, and none fails. Of the count before, `left` becomes how many calls were
 * left until one failed (0 or less: one has), and `held` how many blocks were not freed. */
void mlp_fail_call(long n, long *left, long *held);

/* Counts such a call, and returns whether it is the one that fails. */
int mlp_call_fails(void);
