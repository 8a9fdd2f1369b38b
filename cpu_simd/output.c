/* The output layer: softmax and sigmoid, loss and deltas. In double precision, without the C
 * library's exp, whose last bit differs from machine to machine. */
#include "output.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* 2^k exp r with |r| <= log(2) / 2, and exp r by its Taylor series, whose relative error is below
 * 1e-15. */
double mlp_exponential(double z)
{
    if (z < -700.0) return 0.0;
    const double rounded = z * 1.4426950408889634 + 6755399441055744.0; /* 1.5 * 2^52 */
    const double k = rounded - 6755399441055744.0;
    const double r = z - k * 0.6931471805599453;
    static const double inverse_factorials[] = {1.0 / 6227020800.0,
                                                1.0 / 479001600.0,
                                                1.0 / 39916800.0,
                                                1.0 / 3628800.0,
                                                1.0 / 362880.0,
                                                1.0 / 40320.0,
                                                1.0 / 5040.0,
                                                1.0 / 720.0,
                                                1.0 / 120.0,
                                                1.0 / 24.0,
                                                1.0 / 6.0,
                                                1.0 / 2.0,
                                                1.0,
                                                1.0};
    double sum = 0.0;
    for (size_t i = 0; i < sizeof inverse_factorials / sizeof *inverse_factorials; i++)
        sum = sum * r + inverse_factorials[i];
    uint64_t bits;
    memcpy(&bits, &rounded, sizeof bits);
    const uint64_t power = (bits + 1023) << 52; /* the low bits of `rounded` are those of k */
    double scale;
    memcpy(&scale, &power, sizeof scale);
    return sum * scale;
}

/* log sum exp a, without overflow. */
static double log_total(const float *a, int n)
{
    double most = (double)a[0], total = 0.0;
    for (int i = 1; i < n; i++)
        if ((double)a[i] > most) most = (double)a[i];
    for (int i = 0; i < n; i++) total += mlp_exponential((double)a[i] - most);
    return most + log(total);
}

/* 1 / (1 + exp -a). */
static double sigmoid(double a)
{
    const double power = mlp_exponential(-fabs(a));
    return (a < 0.0 ? power : 1.0) / (1.0 + power);
}

/* The target of output i, which is no softmax. */
static float target_of(const mlp_wanted *wanted, int i)
{
    if (wanted->values) return wanted->values[i];
    return i == wanted->label ? wanted->target : -wanted->target;
}

/* The error y - t, or its derivative of Huber's loss if the layer is linear. NaN stays NaN. */
static double slope_of(const mlp_layer *layer, double error)
{
    if (layer->activation != MLP_LINEAR) return error;
    return error < -MLP_HUBER ? -MLP_HUBER : error > MLP_HUBER ? MLP_HUBER : error;
}

mlp_outcome mlp_judge(const mlp_layer *layer, const float *y, const mlp_wanted *wanted)
{
    double loss = 0.0;
    if (layer->activation == MLP_SOFTMAX) {
        const double total = log_total(y, layer->n_out);
        return (mlp_outcome){total - (double)y[wanted->label], total};
    }
    if (layer->activation == MLP_SIGMOID) {
        for (int i = 0; i < layer->n_out; i++) { /* log(1 + exp a) - t a */
            const double a = (double)y[i];
            loss += log1p(mlp_exponential(-fabs(a))) + fmax(a, 0.0) - (double)wanted->values[i] * a;
        }
        return (mlp_outcome){loss, 0.0};
    }
    for (int i = 0; i < layer->n_out; i++) {
        const double error = (double)y[i] - (double)target_of(wanted, i);
        const double slope = slope_of(layer, error);
        loss += slope * (error - 0.5 * slope);
    }
    return (mlp_outcome){loss, 0.0};
}

void mlp_output_deltas(const mlp_layer *layer, const float *y, const mlp_wanted *wanted,
                       float weight, const mlp_outcome *outcome, int begin, int end, float *delta)
{
    if (layer->activation == MLP_SOFTMAX)
        for (int i = begin; i < end; i++)
            delta[i] = (float)(mlp_exponential((double)y[i] - outcome->log_total) -
                               (double)(i == wanted->label));
    else if (layer->activation == MLP_SIGMOID)
        for (int i = begin; i < end; i++)
            delta[i] = (float)(sigmoid((double)y[i]) - (double)wanted->values[i]);
    else if (layer->activation == MLP_LINEAR)
        for (int i = begin; i < end; i++)
            delta[i] = (float)slope_of(layer, (double)y[i] - (double)wanted->values[i]);
    else
        for (int i = begin; i < end; i++) {
            const float slope = MLP_B / MLP_A * ((MLP_A - y[i]) * (MLP_A + y[i]));
            delta[i] = (y[i] - target_of(wanted, i)) * slope;
        }
    for (int i = begin; i < end; i++) delta[i] *= weight;
}

void mlp_finish_outputs(const mlp_layer *layer, float *outputs, int n)
{
    if (layer->activation == MLP_SIGMOID)
        for (ptrdiff_t i = 0; i < (ptrdiff_t)n * layer->n_out; i++)
            outputs[i] = (float)sigmoid((double)outputs[i]);
    if (layer->activation != MLP_SOFTMAX) return;
    for (ptrdiff_t s = 0; s < n; s++) {
        float *y = outputs + s * layer->n_out;
        const double total = log_total(y, layer->n_out);
        for (int i = 0; i < layer->n_out; i++) y[i] = (float)mlp_exponential((double)y[i] - total);
    }
}
