/* The output layer: softmax, loss and deltas. */
#ifndef MLPCORE_OUTPUT_H
#define MLPCORE_OUTPUT_H

#include "kernels.h"

/* What the outputs of a sample should be. */
typedef struct {
    int label;
    float target;      /* of other outputs than softmax: t of the class; -t is that of the others */
    const float *soft; /* the wanted probability of each class, or NULL: 1 of the label */
} mlp_wanted;

/* How a sample ended. */
typedef struct {
    double loss;      /* 1/2 |y - t|^2, or -log of the class's probability: see mlp_judge */
    double log_total; /* of softmax outputs: log sum exp a */
} mlp_outcome;

/* The outcome of a sample whose outputs are at `y`. Those of a softmax layer are the sums a.
 *
 * With soft targets q the loss is -sum_i q_i log p_i of softmax outputs p; their dE/da is p - q,
 * because the q_i sum to 1. Of other outputs, t_i is target (2 q_i - 1). */
mlp_outcome mlp_judge(const mlp_layer *layer, const float *y, const mlp_wanted *wanted);

/* dE/da of the neurons begin <= i < end, times the sample's weight. */
void mlp_output_deltas(const mlp_kernels *kernels, const mlp_layer *layer, const float *y,
                       const mlp_wanted *wanted, float weight, const mlp_outcome *outcome,
                       int begin, int end, float *delta);

/* Replaces the sums of n samples, if the layer is a softmax layer, by exp a / sum exp a. */
void mlp_finish_outputs(const mlp_layer *layer, float *outputs, int n);

#endif
