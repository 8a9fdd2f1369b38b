/* Training by one sample after the other, with weights and buffers that stay from call to call.
 *
 * All layers are stored by their inputs (sparse.h), and one thread does the work: a step of a small
 * network takes less time than it takes to wake another thread. Of an input that is zero, and of a
 * rectified neuron that is, a step neither reads nor writes the weights. */
#pragma once

#include <stdint.h>

#include "kernels.h"
#include "output.h"

typedef struct mlp_stepper mlp_stepper;

/* A stepper with a copy of the network's weights; NULL when memory ran out. The network must live
 * as long. */
mlp_stepper *mlp_new_stepper(const mlp_kernels *kernels, const mlp_network *network);
void mlp_free_stepper(mlp_stepper *stepper);

/* A sample: n_in values, or, if there are indices, n values of the inputs with these numbers, which
 * ascend; all others are 0. */
typedef struct {
    const float *values;
    const int32_t *indices;
    int n;
} mlp_sample;

/* Learns a sample. Returns its loss times its weight, and counts it among the errors if it was
 * misclassified. If the loss is not finite, nothing is learnt. There are for each layer a learning
 * rate and the share of its weights, but not biases, that is kept before the update (NULL: all). */
double mlp_step(mlp_stepper *stepper, const mlp_sample *sample, const mlp_wanted *wanted,
                const float *learning_rates, const double *kept, float weight, int *errors);

/* The outputs (n_out) for a sample. */
void mlp_step_outputs(mlp_stepper *stepper, const mlp_sample *sample, float *outputs);

/* The sums of the output layer for the last sample. */
const float *mlp_step_sums(const mlp_stepper *stepper);

/* The inputs that were not zero in the last sample, and the bias; `n` becomes how many. */
const int *mlp_step_inputs(const mlp_stepper *stepper, int *n);

const mlp_kernels *mlp_step_kernels(const mlp_stepper *stepper);

/* Computes the average's outputs for a sample, if there is one, and then moves its rows of weights
 * of the inputs that were active in the last sample of `stepper` towards those of this one: in each
 * of the first hundred steps that a row counts, and then by `share` of the way, which should be 0
 * in all but each sixteenth. The n_in + 1 counts of the first layer are apart from those of the
 * others. Weights must not have decayed. */
void mlp_average_steps(const mlp_stepper *stepper, mlp_stepper *average, const mlp_sample *sample,
                       float *counts, float *further, float share);

/* Copies the weights to a network of the same layers. */
void mlp_store_steps(const mlp_stepper *stepper, const mlp_network *network);

/* Copies the weights from the network again. */
void mlp_load_steps(mlp_stepper *stepper);
