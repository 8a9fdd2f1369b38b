#include "mixture.h"

#include <math.h>

#include "sparse.h"

/* AdaGrad's rate, what keeps it finite at first, and the cap: it falls to 0.01 at the least. */
static const float LINEAR_RATE = 0.1f, FIRST_SQUARE = 0.1f, MOST_SQUARES = 100.0f;

/* Of the shares, so much is distributed anew in each step. A probability counts as this at least.
 */
static const double REDISTRIBUTED = 0.005, LEAST_PROBABILITY = 1e-4;

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

/* The logits of both for the sample that the stepper has seen last. */
static void find_logits(const mlp_mixture *m, const float *x, int n, float *own, float *linear)
{
    mlp_step_product(m->stepper, m->average, own);
    mlp_product(m->linear, top_of(m)->n_out, m->active, n + 1, x, linear);
}

static void learn_linear(const mlp_mixture *m, const float *x, int n, const float *deltas)
{
    const int n_out = top_of(m)->n_out;
    for (int k = 0; k <= n; k++) {
        const int j = m->active[k];
        float *row = m->linear + (ptrdiff_t)j * n_out, *squares = m->squares + (ptrdiff_t)j * n_out;
        for (int c = 0; c < n_out; c++) {
            const float gradient = x[j] * deltas[c], sum = squares[c] + gradient * gradient;
            squares[c] = sum < MOST_SQUARES ? sum : MOST_SQUARES;
            row[c] -= LINEAR_RATE * gradient / sqrtf(squares[c] + FIRST_SQUARE);
        }
    }
}

static double probability(const mlp_mixture *m, double loss)
{
    if (top_of(m)->activation == MLP_LINEAR) loss /= *m->error + 1e-30; /* of a normal error */
    const double p = mlp_exponential(-loss);
    return p > LEAST_PROBABILITY ? p : LEAST_PROBABILITY;
}

/* Mixes the outputs into the network's own. */
static void mix(const mlp_mixture *m, float *own, const float *linear)
{
    for (int c = 0; c < top_of(m)->n_out; c++)
        own[c] = (float)(*m->share * (double)own[c] + (1.0 - *m->share) * (double)linear[c]);
}

double mlp_mixture_step(const mlp_mixture *m, const float *x, const mlp_wanted *wanted, double rate,
                        float weight)
{
    const mlp_layer *top = top_of(m);
    double square;
    const mlp_sample sample = list_inputs(m, x, &square);
    if (rate == 0.0) rate = 0.1 * fmin(1.0, sqrt(3.0 / (1.0 + square)));
    for (int i = 0; i < m->network->n_layers; i++) m->rates[i] = (float)rate;
    int errors = 0;
    const double loss = mlp_step(m->stepper, &sample, wanted, m->rates, NULL, weight, &errors);
    if (!isfinite(loss)) return loss;

    float *own = m->sums, *linear = own + top->n_out, *deltas = linear + top->n_out;
    find_logits(m, x, sample.n, own, linear);
    const mlp_outcome outcome = mlp_judge(top, linear, wanted);
    const double p = *m->share * probability(m, mlp_judge(top, own, wanted).loss);
    const double q = (1.0 - *m->share) * probability(m, outcome.loss);
    if (top->activation == MLP_LINEAR) {
        mix(m, own, linear);
        const double error = 2.0 * mlp_judge(top, own, wanted).loss;
        *m->error += fmax(0.01, 1.0 / (*m->steps + 1.0)) * (error - *m->error);
    }
    *m->share = (1.0 - REDISTRIBUTED) * p / (p + q) + REDISTRIBUTED / 2.0;
    mlp_output_deltas(NULL, top, linear, wanted, weight, &outcome, 0, top->n_out, deltas);
    learn_linear(m, x, sample.n, deltas);
    *m->steps += 1.0;
    mlp_average_steps(m->stepper, m->average, (float)fmax(0.01, 9.0 / (*m->steps + 10.0)));
    return loss;
}

void mlp_mixture_outputs(const mlp_mixture *m, const float *x, float *outputs)
{
    const mlp_layer *top = top_of(m);
    double square;
    const mlp_sample sample = list_inputs(m, x, &square);
    mlp_step_outputs(m->stepper, &sample, m->sums);
    find_logits(m, x, sample.n, outputs, m->sums);
    mix(m, outputs, m->sums);
    mlp_finish_outputs(top, outputs, 1);
}
