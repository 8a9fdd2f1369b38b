/* The forward pass of many samples. */
#pragma once

#include "kernels.h"
#include "poll.h"

typedef struct {
    const mlp_network *network;
    const float *images; /* n rows of layers[0].n_in floats */
    float *outputs;      /* n rows of as many as there are classes */
    int n;

    /* Told to stop, a prediction leaves some outputs as they were. */
    mlp_poll poll;
} mlp_prediction;

/* With finite weights a sample's outputs depend neither on the others nor on the
 * number of threads. Returns 0, or -1 when memory ran out. */
int mlp_predict(const mlp_kernels *kernels, mlp_prediction *task, int n_threads);
