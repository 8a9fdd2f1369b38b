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
#include "train.h"

#include <time.h>

#include "buffers.h"
#include "partition.h"

typedef struct {
    float *states;   /* outputs, then the bias input of the layer above */
    float *deltas;   /* dE/da */
    float *partials; /* a row of W^T delta per tile */
} layer_buffers;

typedef struct {
    const mlp_kernels *kernels;
    mlp_training *training;
    layer_buffers *buffers; /* per layer */
    float *inputs;          /* two padded images per thread */
    double next_poll;       /* in seconds on the clock */
    int stop;               /* written by thread 0, read by all behind a barrier */
} train_context;

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void free_buffers(train_context *context)
{
    for (int l = 0; context->buffers && l < context->training->network->n_layers; l++) {
        free(context->buffers[l].states);
        free(context->buffers[l].deltas);
        free(context->buffers[l].partials);
    }
    free(context->buffers);
    free(context->inputs);
}

static int allocate_buffers(train_context *context, int n_threads)
{
    const mlp_network *network = context->training->network;
    context->buffers = calloc((size_t)network->n_layers, sizeof *context->buffers);
    context->inputs = mlp_floats(2 * (size_t)n_threads * (size_t)network->layers[0].stride);
    if (!context->buffers || !context->inputs) return -1;
    for (int l = 0; l < network->n_layers; l++) {
        const mlp_layer *layer = &network->layers[l];
        layer_buffers *b = &context->buffers[l];
        size_t n = (size_t)mlp_padded(layer->n_out + 1);
        b->states = mlp_floats(n);
        b->deltas = mlp_floats(n);
        b->partials = mlp_floats((size_t)mlp_n_tiles(layer) * (size_t)layer->stride);
        if (!b->states || !b->deltas || !b->partials) return -1;
        b->states[layer->n_out] = 1.0f;
    }
    return 0;
}

/* Counts the sample that has just gone forward, and asks now and then whether to stop. */
static void observe(train_context *context, int label, int done)
{
    mlp_training *training = context->training;
    int last = training->network->n_layers - 1, n = training->network->layers[last].n_out;
    const float *y = context->buffers[last].states;
    int guess = 0;
    double loss = 0.0;
    for (int i = 0; i < n; i++) {
        double error = (double)y[i] - (i == label ? 1.0 : -1.0);
        loss += error * error;
        if (y[i] > y[guess]) guess = i;
    }
    training->loss += 0.5 * loss;
    training->errors += guess != label;
    training->done = done;
    if (training->poll && seconds() >= context->next_poll) {
        context->stop = training->poll(training->poll_argument, done);
        context->next_poll = seconds() + 0.05;
    }
}

typedef struct {
    train_context *context;
    mlp_team *team;
    int thread, n_threads;
} worker;

static void own_rows(const worker *self, int l, int *begin, int *end)
{
    const mlp_layer *layer = &self->context->training->network->layers[l];
    mlp_own_tiles(layer, self->thread, self->n_threads, begin, end);
    *begin = mlp_tile_begin(layer, *begin);
    *end = mlp_tile_begin(layer, *end);
}

/* Layers 1 and up; the states of layer 0 are on their way. */
static void go_up(const worker *self)
{
    train_context *context = self->context;
    const mlp_network *network = context->training->network;
    for (int l = 1; l < network->n_layers; l++) {
        int begin, end;
        own_rows(self, l, &begin, &end);
        mlp_barrier(self->team);
        context->kernels->forward(&network->layers[l], context->buffers[l - 1].states, begin, end,
                                  context->buffers[l].states);
    }
}

/* The own part of layer l: its tiles' contribution to the deltas below, and its update. */
static void backward_update(const worker *self, int l)
{
    train_context *context = self->context;
    const mlp_layer *layer = &context->training->network->layers[l];
    const layer_buffers *buffers = &context->buffers[l];
    int first, last;
    mlp_own_tiles(layer, self->thread, self->n_threads, &first, &last);
    for (int tile = first; tile < last; tile++)
        context->kernels->backward_update(
            layer, buffers->deltas, context->training->learning_rate,
            context->buffers[l - 1].states, mlp_tile_begin(layer, tile),
            mlp_tile_begin(layer, tile + 1), buffers->partials + (long)tile * layer->stride);
}

/* Deltas of all layers, updates of all but the first. */
static void come_down(const worker *self, int label, int done)
{
    train_context *context = self->context;
    const mlp_network *network = context->training->network;
    int top = network->n_layers - 1, begin, end;
    own_rows(self, top, &begin, &end);
    context->kernels->delta_output(context->buffers[top].states, label, begin, end,
                                   context->buffers[top].deltas);
    for (int l = top; l >= 1; l--) {
        const mlp_layer *layer = &network->layers[l];
        backward_update(self, l);
        mlp_barrier(self->team);
        if (l == top && self->thread == 0) observe(context, label, done);
        own_rows(self, l - 1, &begin, &end);
        context->kernels->delta_hidden(context->buffers[l].partials, mlp_n_tiles(layer),
                                       layer->stride, context->buffers[l - 1].states, begin, end,
                                       context->buffers[l - 1].deltas);
    }
    if (top == 0) observe(context, label, done); /* alone: see mlp_train */
}

static void train_task(void *argument, mlp_team *team, int thread, int n_threads)
{
    train_context *context = argument;
    const mlp_training *training = context->training;
    const mlp_layer *layer = &training->network->layers[0];
    const worker self = {context, team, thread, n_threads};
    float *x = context->inputs + 2 * (long)thread * layer->stride, *x_next = x + layer->stride;
    const layer_buffers *buffers = &context->buffers[0];
    int begin, end;
    own_rows(&self, 0, &begin, &end);

    mlp_set_input(x, training->images + (long)training->order[0] * layer->n_in, layer->n_in);
    context->kernels->forward(layer, x, begin, end, buffers->states);
    for (int step = 0;; step++) {
        go_up(&self);
        /* Set in the step before, behind a barrier that all have passed since. */
        int last = step + 1 == training->n_samples || context->stop;
        come_down(&self, training->labels[training->order[step]], step + 1);
        if (last) break;
        mlp_set_input(x_next, training->images + (long)training->order[step + 1] * layer->n_in,
                      layer->n_in);
        context->kernels->update_forward(layer, buffers->deltas, training->learning_rate, x,
                                         x_next, begin, end, buffers->states);
        float *swap = x;
        x = x_next;
        x_next = swap;
    }
    context->kernels->update(layer, buffers->deltas, training->learning_rate, x, begin, end);
}

int mlp_train(const mlp_kernels *kernels, mlp_training *training, int n_threads)
{
    training->done = training->errors = 0;
    training->loss = 0.0;
    if (training->n_samples == 0) return 0;
    if (training->network->n_layers == 1) n_threads = 1; /* no barrier would part the samples */
    train_context context = {.kernels = kernels, .training = training, .next_poll = 0.0};
    int status = allocate_buffers(&context, n_threads);
    if (status == 0 && mlp_run_team(n_threads, train_task, &context) == 0) status = -1;
    free_buffers(&context);
    return status;
}
