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
 * 0: nothing is counted, and none fails. */
void mlp_fail_call(long n);

/* Counts such a call, and returns whether it is the one that fails. */
int mlp_call_fails(void);

/* How many calls are left until one fails; 0 or less: one has failed. */
long mlp_calls_left(void);

/* How many of the blocks allocated since counting began are not freed. */
long mlp_blocks(void);
