/* The immediate schedule: every weight is changed after every sample.
 *
 * On the way down each layer is read once, for its part of the deltas below and for its own
 * update together. The first layer has no deltas below; its update waits for the next
 * sample's forward pass, which then reads the weights it has just written.
 *
 * Each thread owns the same rows of a layer throughout. It needs others' results in two
 * places only, each behind one barrier: a layer's states, to go up; the tiles' partial sums,
 * to come down.
 */
#include "buffers.h"
#include "schedule.h"

/* The forward pass through layers 1 and up. A barrier makes the states below complete. */
static void go_up(const mlp_worker *self)
{
    mlp_schedule *schedule = self->schedule;
    const mlp_kernels *kernels = schedule->kernels;
    const mlp_network *network = schedule->training->network;
    for (int l = 1; l < network->n_layers; l++) {
        const mlp_layer_buffers *b = &schedule->buffers[l];
        int begin, end;
        mlp_worker_rows(self, l, &begin, &end);
        mlp_barrier(self->team, self->thread);
        kernels->product(&network->layers[l], b[-1].states, begin, end, b->sums);
        kernels->activate[network->layers[l].activation](b->sums, begin, end, b->states);
    }
}

/* The thread's tiles of layer l: their part of the deltas below, and their update. */
static void backward_update(const mlp_worker *self, int l)
{
    mlp_schedule *schedule = self->schedule;
    const mlp_layer *layer = &schedule->training->network->layers[l];
    const mlp_layer_buffers *b = &schedule->buffers[l];
    int first, last;
    mlp_own_tiles(layer, self->thread, self->n_threads, &first, &last);
    for (int tile = last - 1; tile >= first; tile--)
        schedule->kernels->backward_update(layer, b->deltas, schedule->training->learning_rates[l],
                                           b[-1].states, mlp_tile_begin(layer, tile),
                                           mlp_tile_begin(layer, tile + 1),
                                           b->partials + (long)tile * layer->stride);
}

/* Deltas of all layers, updates of all but the first. */
static void come_down(const mlp_worker *self, int image, int done)
{
    mlp_schedule *schedule = self->schedule;
    const mlp_kernels *kernels = schedule->kernels;
    const mlp_network *network = schedule->training->network;
    int top = network->n_layers - 1, begin, end;
    const mlp_layer_buffers *b = &schedule->buffers[top];
    const float *y = b->states;
    mlp_outcome outcome;
    mlp_judge_sample(self, y, image, b->deltas, &outcome);
    for (int l = top; l >= 1; l--) {
        const mlp_layer *layer = &network->layers[l];
        b = &schedule->buffers[l];
        backward_update(self, l);
        mlp_barrier(self->team, self->thread);
        if (l == top && self->thread == 0) mlp_observe(schedule, y, image, &outcome, done);
        mlp_worker_rows(self, l - 1, &begin, &end);
        kernels->sum_tiles(b->partials, mlp_n_tiles(layer), layer->stride, begin, end, b[-1].sums);
        kernels->delta_hidden[network->layers[l - 1].activation](b[-1].sums, b[-1].states, begin,
                                                                 end, b[-1].deltas);
    }
    if (self->thread == 0 && top == 0) mlp_observe(schedule, y, image, &outcome, done);
}

static const float *image(const mlp_training *training, int step)
{
    return training->images + (long)training->order[step] * training->network->layers[0].n_in;
}

void mlp_train_immediate(void *argument, mlp_team *team, int thread, int n_threads)
{
    mlp_schedule *schedule = argument;
    const mlp_kernels *kernels = schedule->kernels;
    const mlp_training *training = schedule->training;
    const mlp_layer *layer = &training->network->layers[0];
    const mlp_layer_buffers *b = &schedule->buffers[0];
    const mlp_worker self = {schedule, team, thread, n_threads, 0};
    float *x = schedule->inputs + 2 * (long)thread * layer->stride, *x_next = x + layer->stride;
    int begin, end;
    mlp_worker_rows(&self, 0, &begin, &end);

    mlp_set_input(x, image(training, 0), layer->n_in);
    kernels->product(layer, x, begin, end, b->sums);
    for (int step = 0;; step++) {
        kernels->activate[layer->activation](b->sums, begin, end, b->states);
        go_up(&self);
        /* `stop` was set in the step before. All threads have passed a barrier since, so all agree.
         */
        int last = step + 1 == training->n_samples || training->poll.stop;
        come_down(&self, training->order[step], step + 1);
        if (last) break;
        mlp_set_input(x_next, image(training, step + 1), layer->n_in);
        kernels->update_product(layer, b->deltas, training->learning_rates[0], x, x_next, begin,
                                end, b->sums);
        float *swap = x;
        x = x_next;
        x_next = swap;
    }
    kernels->update(layer, b->deltas, training->learning_rates[0], x, begin, end);
}
