/* The output layer: softmax and sigmoid, loss and deltas. */
#pragma once

#include "kernels.h"

/* exp z for z <= 0, or NaN, with the same bits on all machines. */
double mlp_exponential(double z);

/* What the outputs for a sample should be. */
typedef struct {
    int label;           /* the class, of softmax and scaled tanh outputs */
    float target;        /* scaled tanh: t of the class; -t is that of the others */
    const float *values; /* n_out numbers, of linear outputs and sigmoids */
} mlp_wanted;

/* Whether another class is the first with the greatest output. Numbers are no classes. */
static inline int mlp_misses(const mlp_layer *layer, const float *y, const mlp_wanted *wanted)
{
    int guess = 0;
    for (int i = 1; !wanted->values && i < layer->n_out; i++)
        if (y[i] > y[guess]) guess = i;
    return !wanted->values && guess != wanted->label;
}

/* How a sample ended. */
typedef struct {
    double loss;      /* 1/2 |y - t|^2, Huber's, or minus the log of the probability */
    double log_total; /* of softmax outputs: log sum exp a */
} mlp_outcome;

/* The outcome of a sample whose outputs are at `y`. Those of softmax and sigmoids are the sums a.
 */
mlp_outcome mlp_judge(const mlp_layer *layer, const float *y, const mlp_wanted *wanted);

/* dE/da of the neurons begin <= i < end, times the sample's weight. */
void mlp_output_deltas(const mlp_layer *layer, const float *y, const mlp_wanted *wanted,
                       float weight, const mlp_outcome *outcome, int begin, int end, float *delta);

/* Replaces the sums a of n samples by exp a / sum exp a or, of sigmoids, by 1 / (1 + exp -a). */
void mlp_finish_outputs(const mlp_layer *layer, float *outputs, int n);
