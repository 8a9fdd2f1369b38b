#include "train_decay.h"

#include <math.h>

#include "buffers.h"

void mlp_allocate_decay(mlp_schedule *schedule, int l)
{
    const mlp_training *training = schedule->training;
    const mlp_layer *layer = &training->network->layers[l];
    mlp_layer_buffers *b = &schedule->buffers[l];
    if (training->weight_decay == 0.0) return;
    b->kept = mlp_keep_floats(&schedule->memory, (size_t)schedule->block + 1);
    b->lost = mlp_keep_floats(&schedule->memory, (size_t)schedule->block + 1);
    b->biases = mlp_keep_floats(&schedule->memory, (size_t)b->width);
    if (schedule->memory.failed) return;
    const double decay = (double)training->learning_rates[l] * training->weight_decay;
    for (int t = 0; t <= schedule->block; t++) {
        b->kept[t] = (float)exp(-decay * t);
        b->lost[t] = (float)-expm1(-decay * t); /* exact for a decay that float32 rounds to none */
    }
    for (ptrdiff_t i = 0; i < layer->n_out; i++)
        b->biases[i] = layer->weights[i * layer->stride + layer->n_in];
}

void mlp_decay_sums(const mlp_worker *self, int l, int t, float *sums)
{
    const mlp_layer_buffers *b = &self->schedule->buffers[l];
    int begin, end;
    if (!b->kept) return;
    mlp_worker_rows(self, l, &begin, &end);
    for (int i = begin; i < end; i++) sums[i] = b->kept[t] * sums[i] + b->lost[t] * b->biases[i];
}

void mlp_decay_deltas(const mlp_worker *self, int l, int n)
{
    const mlp_schedule *schedule = self->schedule;
    const mlp_layer_buffers *b = &schedule->buffers[l];
    const float rate = schedule->training->learning_rates[l];
    int begin, end;
    if (!b->kept) return;
    mlp_worker_rows(self, l, &begin, &end);
    for (int s = 0; s < n; s++) {
        float *delta = b->deltas + (ptrdiff_t)s * b->width;
        for (int i = begin; i < end; i++) {
            b->biases[i] -= rate * delta[i];
            delta[i] *= b->kept[n - 1 - s];
        }
    }
}
