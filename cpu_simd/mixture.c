#include "mixture.h"

#include <math.h>

#include "sparse.h"

/* AdaGrad's rate, what keeps it finite at first, and the cap: it falls to 0.01 at the least. */
static const float LINEAR_RATE = 0.1f, FIRST_SQUARE = 0.1f, MOST_SQUARES = 100.0f;

/* The shares move in each of the first steps, and then in each fourth, because that asks the
 * average for its outputs. */
static const double FIRST_STEPS = 200.0, SHARING_INTERVAL = 4.0;

/* Of the shares, so much is distributed anew in each step. A probability counts as this at least.
 */
static const double REDISTRIBUTED = 0.005, LEAST_PROBABILITY = 1e-4;

/* The greatest eta w (1 + |x|^2) of a weight w above 1. It changes the answer to a sample x by so
 * much that the error grows: 2 / (p (1 - p)) is 8 for a softmax of two classes of probability p =
 * 1/2, and networks with hidden layers were found to fail between a half and twice of 4. */
static const double LONGEST_STEP = 4.0;

static const mlp_layer *top_of(const mlp_mixture *m)
{
    return &m->network->layers[m->network->n_layers - 1];
}

/* Lists the inputs that are not zero, and the bias after the sample's own. */
static mlp_sample list_inputs(const mlp_mixture *m, const float *x, double *square)
{
    const int n_in = m->network->layers[0].n_in;
    int n = 0;
    *square = 0.0;
    for (int j = 0; j < n_in; j++) {
        if (x[j] == 0.0f) continue;
        m->active[n] = j;
        m->values[n++] = x[j];
        *square += (double)x[j] * (double)x[j];
    }
    m->active[n] = n_in;
    return (mlp_sample){m->values, m->active, n};
}

/* Learns the row of an input x. `restrict` lets the compiler use vectors. */
static void learn_row(int n_out, float x, const float *restrict deltas, float *restrict row,
                      float *restrict squares)
{
    for (int c = 0; c < n_out; c++) {
        const float gradient = x * deltas[c], sum = squares[c] + gradient * gradient;
        const float capped = sum < MOST_SQUARES ? sum : MOST_SQUARES;
        squares[c] = capped;
        row[c] -= LINEAR_RATE * gradient / sqrtf(capped + FIRST_SQUARE);
    }
}

static void learn_linear(const mlp_mixture *m, const float *x, int n, const float *deltas)
{
    const int n_out = top_of(m)->n_out;
    for (int k = 0; k <= n; k++) {
        const ptrdiff_t j = m->active[k];
        learn_row(n_out, x[j], deltas, m->linear + j * n_out, m->squares + j * n_out);
    }
}

static double probability(const mlp_mixture *m, double loss)
{
    if (top_of(m)->activation == MLP_LINEAR) loss /= *m->error + 1e-30; /* by Huber's density */
    const double p = mlp_exponential(-loss);
    return p > LEAST_PROBABILITY ? p : LEAST_PROBABILITY;
}

/* The sums that answer, from those of a network and of the linear model. */
static void mix(const mlp_mixture *m, double share, const float *own, const float *linear,
                float *sums)
{
    for (int c = 0; c < top_of(m)->n_out; c++)
        sums[c] = (float)(share * (double)own[c] + (1.0 - share) * (double)linear[c]);
}

/* Moves the shares by the probabilities that the three give to a sample, before the average moves.
 */
static void share_anew(const mlp_mixture *m, const mlp_sample *sample, const mlp_wanted *wanted,
                       const float *linear, float *mixed)
{
    const mlp_layer *top = top_of(m);
    mlp_step_outputs(m->average, sample, mixed);
    const float *sums[] = {mlp_step_sums(m->stepper), mlp_step_sums(m->average), linear};
    double total = 0.0;
    if (top->activation == MLP_LINEAR) {
        int own;
        const double share = mlp_mixture_share(m->shares, &own);
        mix(m, share, sums[!own], linear, mixed);
        const double error = 2.0 * mlp_judge(top, mixed, wanted).loss;
        *m->error += fmax(0.01, 1.0 / *m->steps) * (error - *m->error);
    }
    for (int e = 0; e < 3; e++) {
        m->shares[e] *= probability(m, mlp_judge(top, sums[e], wanted).loss);
        total += m->shares[e];
    }
    for (int e = 0; e < 3; e++)
        m->shares[e] = (1.0 - REDISTRIBUTED) * m->shares[e] / total + REDISTRIBUTED / 3.0;
}

double mlp_mixture_step(const mlp_mixture *m, const float *x, const mlp_wanted *wanted, double rate,
                        float weight)
{
    const mlp_layer *top = top_of(m);
    double square;
    const mlp_sample sample = list_inputs(m, x, &square);
    if (rate == 0.0) rate = 0.1 * fmin(1.0, sqrt(3.0 / (1.0 + square)));
    for (int i = 0; i < m->network->n_layers; i++) m->rates[i] = (float)rate;
    weight = (float)fmin(weight, fmax(1.0, LONGEST_STEP / (rate * (1.0 + square))));
    int errors = 0;
    const double loss = mlp_step(m->stepper, &sample, wanted, m->rates, NULL, weight, &errors);
    if (!isfinite(loss)) return loss;

    float *linear = m->sums, *deltas = linear + top->n_out;
    mlp_product(m->linear, top->n_out, m->active, sample.n + 1, x, linear);
    *m->steps += 1.0;
    if (*m->steps <= FIRST_STEPS || fmod(*m->steps, SHARING_INTERVAL) == 0.0)
        share_anew(m, &sample, wanted, linear, deltas + top->n_out);
    const mlp_outcome outcome = mlp_judge(top, linear, wanted);
    mlp_output_deltas(NULL, top, linear, wanted, weight, &outcome, 0, top->n_out, deltas);
    learn_linear(m, x, sample.n, deltas);
    mlp_average_steps(m->stepper, m->average, m->counts, m->further, fmod(*m->steps, 16.0) == 0.0);
    return loss;
}

void mlp_mixture_outputs(const mlp_mixture *m, const float *x, float *outputs)
{
    const mlp_layer *top = top_of(m);
    int own;
    double square;
    const double share = mlp_mixture_share(m->shares, &own);
    mlp_stepper *answers = own ? m->stepper : m->average;
    const mlp_sample sample = list_inputs(m, x, &square);
    mlp_step_outputs(answers, &sample, outputs);
    mlp_product(m->linear, top->n_out, m->active, sample.n + 1, x, m->sums);
    mix(m, share, mlp_step_sums(answers), m->sums, outputs);
    mlp_finish_outputs(top, outputs, 1);
}
