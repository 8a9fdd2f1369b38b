/* The end of a sample's way up. */
#include "schedule.h"

static const mlp_layer *output_layer(const mlp_schedule *schedule)
{
    const mlp_network *network = schedule->training->network;
    return &network->layers[network->n_layers - 1];
}

static float weight_of(const mlp_training *training, int image)
{
    return training->sample_weights ? training->sample_weights[image] : 1.0f;
}

void mlp_judge_sample(const mlp_worker *self, const float *y, int image, float *delta,
                      mlp_outcome *outcome)
{
    const mlp_schedule *schedule = self->schedule;
    const mlp_training *training = schedule->training;
    const mlp_layer *layer = output_layer(schedule);
    const int softmax = layer->activation == MLP_SOFTMAX;
    const int label = training->labels[image];
    int begin, end;
    mlp_worker_rows(self, training->network->n_layers - 1, &begin, &end);
    if (softmax && mlp_n_owners(layer) > 1) mlp_barrier(self->team, self->thread);
    if (softmax && (begin < end || self->thread == 0)) /* which observes */
        *outcome = mlp_judge(layer, y, label, training->target);
    mlp_output_deltas(schedule->kernels, layer, y, label, training->target,
                      weight_of(training, image), outcome, begin, end, delta);
}

void mlp_observe(mlp_schedule *schedule, const float *y, int image, mlp_outcome *outcome, int done)
{
    mlp_training *training = schedule->training;
    const mlp_layer *layer = output_layer(schedule);
    const int label = training->labels[image];
    if (layer->activation != MLP_SOFTMAX) *outcome = mlp_judge(layer, y, label, training->target);
    training->loss += (double)weight_of(training, image) * outcome->loss;
    training->errors += mlp_guess(y, layer->n_out) != label;
    training->done = done;
    mlp_ask(&training->poll);
}
