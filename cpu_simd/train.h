/* True on-line back-propagation over many samples in one call, by the deferred schedule. */
#pragma once

#include <stdint.h>

#include "kernels.h"
#include "poll.h"
#include "team_size.h"

typedef struct {
    const mlp_network *network;  /* its weights are changed */
    const float *images;         /* n_images rows of layers[0].n_in floats */
    const uint8_t *labels;       /* a class per image; NULL of linear outputs */
    const float *targets;        /* of these, n_out numbers per image */
    const int32_t *order;        /* the image of each step */
    const float *sample_weights; /* of each image */
    int n_samples;               /* steps */
    const float *learning_rates; /* of each layer */
    float target;                /* t of the class; -t is that of the others */
    double weight_decay;         /* weights, but not biases, shrink by exp(-eta weight_decay) in
                                  * each step, before its update */
    int block;                   /* samples between two updates, 1 or more */
    ptrdiff_t packed_from;       /* weights above the first layer from which on packed ones are
                                  * read; negative: never */
    int sparse;                  /* whether layers with rectified inputs are stored
                                  * by their inputs (sparse.h) */
    int sparse_images;           /* the first layer likewise: most pixels are 0 */

    mlp_team_size *team_size; /* how many threads were best before */

    /* Told to stop, training ends after the current block of samples. */
    mlp_poll poll;

    /* Results so far, measured on each sample before its update. Current whenever `poll` asks. */
    int done;    /* samples trained */
    int errors;  /* of these, misclassified */
    double loss; /* sum over the samples, times their weights */
} mlp_training;

/* Returns 0, or -1 when memory ran out (nothing is changed then). */
int mlp_train(const mlp_kernels *kernels, mlp_training *training, int n_threads);
