/* The forward pass of many samples. */
#ifndef MLPCORE_PREDICT_H
#define MLPCORE_PREDICT_H

#include "kernels.h"
#include "poll.h"

typedef struct {
    const mlp_network *network;
    const float *images; /* n rows of layers[0].n_in floats */
    float *outputs;      /* n rows of as many as there are classes */
    int n;

    /* Told to stop, a prediction leaves some outputs as they were. */
    mlp_poll poll;

    atomic_int begun; /* batches; for mlp_next_batch alone */
} mlp_prediction;

/* By the kernels. With finite weights a sample's outputs depend neither on the others nor on the
 * number of threads. Returns 0, or -1 when memory ran out. */
int mlp_predict(const mlp_kernels *kernels, mlp_prediction *task, int n_threads);

/* For a thread that is free: begins a batch of `size` samples, fewer at the end, that nobody has
 * begun. Returns how many from `first` on; 0 when there are none, or it is time to stop. */
static inline int mlp_next_batch(mlp_prediction *task, int thread, int size, int *first)
{
    if (thread == 0) mlp_ask(&task->poll, 0);
    if (task->poll.stop) return 0;
    const long begin = (long)atomic_fetch_add(&task->begun, 1) * size;
    const long left = task->n - begin;
    *first = (int)begin;
    return (int)(left <= 0 ? 0 : left < size ? left : size);
}

#endif
