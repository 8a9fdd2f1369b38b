/* What the files of the deferred schedule share. */
#pragma once

#include <stdatomic.h>

#include "partition.h"
#include "train.h"

/* The inputs that are active at a sample. */
typedef struct {
    int n;
    int *inputs;
} mlp_list;

/* A layer's buffers. Rows of `states` are inputs of the layer above, bias included. */
typedef struct {
    float *sums;       /* a = W x, then W^T delta of the layer above */
    float *states;     /* outputs of each sample of a block, `width` floats a row */
    float *deltas;     /* dE/da of each sample of a block, likewise */
    float *partials;   /* W^T delta, a row of `stride` floats per tile */
    float *state_dots; /* y_s . y_t over each tile's neurons, a row of `block` floats per tile */
    float *delta_dots; /* delta_s . delta_t, likewise */
    mlp_packed packed; /* the packed weights, if the layer is packed */
    float *tiles;      /* the weights by inputs (sparse.h); NULL if the layer is dense */
    mlp_uses uses;     /* sparse: of its inputs in the block */
    mlp_list *active;  /* sparse: its active inputs at the current sample; a list per thread */
    float *kept;       /* train_decay.h: the share of the weights left after t samples of a block,
                        * t <= `block`; NULL if weights do not decay */
    float *lost;       /* 1 - kept[t] */
    float *biases;     /* at the block's start */
    int width;         /* n_out and the bias, padded */
} mlp_layer_buffers;

/* The inputs of a block's samples. */
typedef struct {
    int n;              /* samples */
    float *rows;        /* padded images */
    float *background;  /* of each sample */
    mlp_groups *groups; /* the images for the update, MLP_CHUNK_SAMPLES each */
    mlp_list *active;   /* sparse: the active inputs of each sample */
    int *ends;          /* sparse: of each sample and chunk of inputs, where it ends in the list */
} mlp_block;

typedef struct {
    const mlp_kernels *kernels;
    mlp_training *training;
    mlp_memory memory;          /* of all that follows */
    int block;                  /* samples whose states are kept */
    mlp_layer_buffers *buffers; /* per layer */
    mlp_block blocks[2];        /* the current and the next */
    mlp_panels panels;          /* the next block's images for the product */
    float *ones, *row_sums;     /* sums of the first layer's rows are W ones */
    float *input_dots;          /* -eta x_s . x_t, a row of `block` floats per t */
    float *products;            /* W x_t of the first layer, a row per t */
    float *product_panels;      /* a tile of them per thread, t as columns */
    float *coefficients;        /* `block` floats per thread */
    atomic_int crowded;         /* a thread lost its core; all leave at the block's end */
    double until;               /* the same once this time has come, on the clock */
    int timed_out;              /* it has; thread 0 writes it before a barrier */
} mlp_schedule;

/* One thread of the team. */
typedef struct {
    mlp_schedule *schedule;
    mlp_team *team;
    int thread, n_threads;
    int reads_packed; /* whether the block's passes read packed weights */
} mlp_worker;

/* The rows of layer l that a thread owns. */
static inline void mlp_worker_rows(const mlp_worker *worker, int l, int *begin, int *end)
{
    const mlp_layer *layer = &worker->schedule->training->network->layers[l];
    int first, last;
    mlp_own_tiles(layer, worker->thread, worker->n_threads, &first, &last);
    *begin = mlp_tile_begin(layer, first);
    *end = mlp_tile_begin(layer, last);
}

void mlp_train_deferred(void *schedule, mlp_team *team, int thread, int n_threads);
