/* A network and, beside it, a linear softmax of the same inputs, which learn a stream together.
 *
 * Each learns by its own loss: the network by steps of back-propagation, the linear one by AdaGrad
 * (Duchi, Hazan and Singer, 2011), whose sums of squares are capped, so that its rate never
 * vanishes. The answer is the softmax of the sum of their logits, each times its share, which
 * follows the probabilities that they gave to the labels so far (the fixed share of Herbster and
 * Warmuth, 1998). The network answers with an average of its output layer's weights (Polyak and
 * Juditsky, 1992) over the last hundred samples or so. */
#ifndef MLPCORE_MIXTURE_H
#define MLPCORE_MIXTURE_H

#include "stepper.h"

/* Rows of `average` and `linear` are those of the layer's inputs, that of the bias last, and have
 * n_out floats. */
typedef struct {
    const mlp_network *network; /* whose output layer is a softmax, or linear */
    mlp_stepper *stepper;       /* its steps */
    float *average;             /* of the output layer's weights */
    float *linear;
    float *squares;  /* the sum of squared gradients of each weight in `linear` */
    double *share;   /* of the network; that of the linear softmax is the rest */
    double *steps;   /* learnt so far */
    double *error;   /* of linear outputs: the mean squared error of late */
    int32_t *active; /* buffers: n_in + 1 */
    float *values;   /* n_in */
    float *rates;    /* a layer each */
    float *sums;     /* 3 n_out */
} mlp_mixture;

/* Learns a sample, x with a 1 after its n_in inputs. Returns the network's loss times the weight;
 * if that is not finite, nothing is learnt. A rate of 0 is 0.1 min(1, sqrt(3 / (1 + |x|^2))). */
double mlp_mixture_step(const mlp_mixture *mixture, const float *x, const mlp_wanted *wanted,
                        double rate, float weight);

/* The outputs (n_out) for a sample, likewise. */
void mlp_mixture_outputs(const mlp_mixture *mixture, const float *x, float *outputs);

#endif
