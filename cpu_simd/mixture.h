/* A network and, beside it, a linear model of the same inputs, which learn a stream together.
 *
 * Each learns by its own loss: the network by steps of back-propagation, the linear one by the
 * natural gradient (Amari, 1998), whose Fisher matrix is diagonal: the rate of a weight is 1 / (1 +
 * the sum of its squared gradients), but never vanishes. Its steps are implicit (Toulis and
 * Airoldi, 2017), to first order: long samples do not overshoot. An average of the network's
 * weights (Polyak and Juditsky, 1992) answers in its place, unless the network has four times the
 * average's share, as after a drift. The answer is the softmax of the logits of network and linear
 * model, times their shares, or their sum if outputs are linear. Shares follow the probabilities
 * that the three gave to the samples so far (the fixed share of Herbster and Warmuth, 1998); of
 * linear outputs, by Huber's density (1964) of the error, which is normal up to MLP_HUBER and falls
 * exponentially beyond.
 *
 * The network's rate falls with its age (Darken and Moody, 1992), as 1 / sqrt(age), and its average
 * then extends over more steps, up to four hundred: otherwise wrong labels move both as much as at
 * first. It ages while its loss does not fall; its age shrinks after a drift, when its loss rises
 * by more than chance explains or its share exceeds twice that of its average, which lags.
 */
#pragma once

#include "stepper.h"

typedef struct {
    double shares[3]; /* of the network, its average and the linear model */
    double steps;     /* learnt so far */
    double loss;      /* of the network, without the weights of samples: the mean of the last 100 */
    double former;    /* and of the last 1,000 */
    double variance;  /* of single losses from the latter */
    double age;       /* the steps in which `loss` was not below `former`; fewer after a drift */
} mlp_progress;

typedef struct {
    const mlp_network *network; /* whose output layer is a softmax, or linear */
    mlp_stepper *stepper;       /* its steps */
    mlp_stepper *average;       /* of its weights */
    float *counts, *further;    /* as in mlp_average_steps */
    float *linear;              /* a row of n_out weights for each input, that of the bias last */
    float *linear_rates;        /* the learning rate of each, 1 at first */
    mlp_progress *progress;
    float *rates;   /* buffers: a layer each */
    float *squared; /* an input each, and the bias */
    float *sums;    /* 3 n_out */
} mlp_mixture;

/* The share of the network, or of its average, in the answer; `own` becomes whether it is that of
 * the network itself. */
static inline double mlp_mixture_share(const double *shares, int *own)
{
    *own = shares[0] > 4.0 * shares[1];
    return shares[0] + shares[1];
}

/* Learns a sample, x with a 1 after its n_in inputs and MLP_ALIGN - 1 floats more. Returns the
 * network's loss times the weight; if that is not finite, nothing is learnt. A rate of 0 is 0.1
 * min(1, sqrt(3 / (1 + |x|^2))), less with age. */
double mlp_mixture_step(const mlp_mixture *mixture, const float *x, const mlp_wanted *wanted,
                        double rate, float weight);

/* The outputs (n_out) for a sample, likewise. */
void mlp_mixture_outputs(const mlp_mixture *mixture, const float *x, float *outputs);
