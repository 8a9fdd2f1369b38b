#include "mixture.h"

#include <math.h>

/* The rates of the linear model fall to this at the least. */
static const float LEAST_RATE = 0.005f;

/* A probability counts by this power, and as this at least. Of the shares, so much is distributed
 * anew in each step. */
static const double MIXING_RATE = 0.5, LEAST_PROBABILITY = 1e-4, REDISTRIBUTED = 0.005;

/* From these ages on, in steps, the network lowers its rate, its average moves by less than 1 -
 * 0.99^16 in each sixteenth step, and it ages no more. It becomes younger if its late mean loss
 * exceeds the one before by so many standard errors, or its share so many times its average's. */
static const double YOUTH = 250.0, MATURE = 1000.0, OLDEST = 4000.0, SUDDEN = 2.3, TOO_SLOW = 2.0;

/* The greatest eta w (1 + |x|^2) of a weight w above 1. It changes the answer to a sample x by so
 * much that the error grows: 2 / (p (1 - p)) is 8 for a softmax of two classes of probability p =
 * 1/2, and networks with hidden layers were found to fail between a half and twice of 4. */
static const double LONGEST_STEP = 4.0;

static const mlp_layer *top_of(const mlp_mixture *m)
{
    return &m->network->layers[m->network->n_layers - 1];
}

/* The sums of the linear model for the last sample of a stepper. */
static void linear_sums(const mlp_mixture *m, const mlp_stepper *stepper, const float *x,
                        float *sums)
{
    int n;
    const int *active = mlp_step_inputs(stepper, &n);
    mlp_step_kernels(stepper)->linear_rows(m->linear, top_of(m)->n_out, active, n, x, sums);
}

/* The step of the linear model, whose sums for the sample are `sums`; the others are buffers. */
static void learn_linear(const mlp_mixture *m, const float *x, const mlp_wanted *wanted,
                         float weight, const float *sums, float *deltas, float *steps)
{
    const mlp_layer *top = top_of(m);
    const mlp_kernels *kernels = mlp_step_kernels(m->stepper);
    const mlp_outcome outcome = mlp_judge(top, sums, wanted);
    mlp_output_deltas(top, sums, wanted, 1.0f, &outcome, 0, top->n_out, deltas);
    int n;
    const int *active = mlp_step_inputs(m->stepper, &n);
    for (int k = 0; k < n; k++) m->squared[active[k]] = x[active[k]] * x[active[k]];
    kernels->linear_rows(m->linear_rates, top->n_out, active, n, m->squared, steps);
    for (int c = 0; c < top->n_out; c++) {
        const float size = fabsf(deltas[c]);
        const float curvature = /* of the loss */
            top->activation == MLP_SOFTMAX ? size * (1.0f - size) : size < (float)MLP_HUBER;
        deltas[c] *= weight;
        steps[c] = deltas[c] / (1.0f + weight * curvature * steps[c]);
    }
    kernels->fisher_rows(m->linear, m->linear_rates, top->n_out, active, n, x, deltas, steps,
                         LEAST_RATE);
}

static double probability(const mlp_mixture *m, double loss)
{
    if (top_of(m)->activation == MLP_LINEAR)
        loss /= 2.0 * m->progress->loss + 1e-30; /* by Huber's density */
    return fmax(mlp_exponential(-MIXING_RATE * loss), LEAST_PROBABILITY);
}

/* Moves the shares by the losses that the three had with the last sample: of the network `loss`. */
static void share_anew(const mlp_mixture *m, const mlp_wanted *wanted, double loss,
                       const float *linear)
{
    const mlp_layer *top = top_of(m);
    const double losses[] = {loss, mlp_judge(top, mlp_step_sums(m->average), wanted).loss,
                             mlp_judge(top, linear, wanted).loss};
    double *shares = m->progress->shares, total = 0.0;
    for (int e = 0; e < 3; e++) total += shares[e] *= probability(m, losses[e]);
    for (int e = 0; e < 3; e++)
        shares[e] = (1.0 - REDISTRIBUTED) * shares[e] / total + REDISTRIBUTED / 3.0;
    if (shares[0] > TOO_SLOW * shares[1]) m->progress->age *= 0.5;
}

/* Moves the moments of the network's losses, of which `loss` is the last, and its age. */
static void grow_older(mlp_progress *p, double loss)
{
    const double news = loss - p->former;
    p->loss += fmax(0.01, 1.0 / p->steps) * (loss - p->loss);
    p->former += fmax(0.001, 1.0 / p->steps) * news;
    p->variance += fmax(0.001, 1.0 / p->steps) * (news * news - p->variance);
    const double rise = p->loss - p->former; /* `loss` varies as a mean of 200 losses does */
    if (rise < 0.0) return;
    p->age = fmin(p->age + 1.0, OLDEST);
    if (200.0 * rise * rise > SUDDEN * SUDDEN * p->variance) p->age *= 0.9;
}

double mlp_mixture_step(const mlp_mixture *m, const float *x, const mlp_wanted *wanted, double rate,
                        float weight)
{
    const mlp_layer *top = top_of(m);
    const double age = 1.0 + m->progress->age;
    float square;
    mlp_step_kernels(m->stepper)->dots(x, 0, 1, x, 0, m->network->layers[0].n_in, &square);
    const mlp_sample sample = {.values = x};
    if (rate == 0.0)
        rate = 0.1 * sqrt(fmin(1.0, 3.0 / (1.0 + (double)square)) * fmin(1.0, YOUTH / age));
    for (int i = 0; i < m->network->n_layers; i++) m->rates[i] = (float)rate;
    weight = (float)fmin(weight, fmax(1.0, LONGEST_STEP / (rate * (1.0 + (double)square))));
    int errors = 0;
    const double loss = mlp_step(m->stepper, &sample, wanted, m->rates, NULL, weight, &errors);
    if (!isfinite(loss)) return loss;

    float *linear = m->sums, *deltas = linear + top->n_out;
    linear_sums(m, m->stepper, x, linear);
    const double steps = m->progress->steps += 1.0;
    /* Of the average's outputs, which take time, the first and then each eighth. */
    const int sharing = steps <= 500.0 || fmod(steps, 8.0) == 0.0;
    const double share = fmod(steps, 16.0) == 0.0 ? 0.14854222 * fmin(1.0, MATURE / age) : 0.0;
    mlp_average_steps(m->stepper, m->average, sharing ? &sample : NULL, m->counts, m->further,
                      (float)share);
    const double own = loss / weight;
    grow_older(m->progress, own);
    if (sharing) share_anew(m, wanted, own, linear);
    learn_linear(m, x, wanted, weight, linear, deltas, deltas + top->n_out);
    return loss;
}

void mlp_mixture_outputs(const mlp_mixture *m, const float *x, float *outputs)
{
    int own;
    const double share = mlp_mixture_share(m->progress->shares, &own);
    mlp_stepper *answers = own ? m->stepper : m->average;
    const mlp_sample sample = {.values = x};
    mlp_step_outputs(answers, &sample, outputs);
    linear_sums(m, answers, x, m->sums);
    const float *sums = mlp_step_sums(answers);
    for (int c = 0; c < top_of(m)->n_out; c++)
        outputs[c] = (float)(share * (double)sums[c] + (1.0 - share) * (double)m->sums[c]);
    mlp_finish_outputs(top_of(m), outputs, 1);
}
