#include "stepper.h"

#include <math.h>

#include "buffers.h"
#include "sparse.h"

/* When weights decay, those of a layer are `tiles` times one scale, so that a step need not touch
 * the rows of inputs that are zero. The tiles take over a scale that becomes smaller than this. */
#define LEAST_SCALE 0x1p-40

/* A layer's weights and its vectors at the current sample. */
typedef struct {
    const mlp_layer *layer;
    float *tiles; /* the weights by inputs, but for the scale; biases have none */
    double scale;
    float *inputs; /* x, with the bias's 1 / scale and the padding */
    int *active;   /* the inputs that a step reads: those that are not zero, or all */
    int n_active;  /* how many */
    float *sums;   /* W x */
    float *deltas; /* dE/da; zero in the padding, as the weights there are */
    float *dots;   /* W^T delta, of the active inputs */
} step_layer;

struct mlp_stepper {
    const mlp_kernels *kernels;
    mlp_memory memory;
    int n_layers;
    step_layer *layers;
    float *outputs; /* of the last layer; sums if it is a softmax layer */
};

static void allocate_layer(mlp_memory *memory, step_layer *l, const mlp_layer *layer)
{
    const size_t inputs = (size_t)layer->stride, outputs = (size_t)mlp_padded(layer->n_out);
    l->layer = layer;
    l->scale = 1.0;
    l->tiles = mlp_keep_floats(memory, (size_t)mlp_tiles_size(layer));
    l->inputs = mlp_keep_floats(memory, inputs);
    l->active = mlp_keep(memory, mlp_allocate((inputs + MLP_ALIGN) * sizeof *l->active));
    l->sums = mlp_keep_floats(memory, outputs);
    l->deltas = mlp_keep_floats(memory, outputs);
    l->dots = mlp_keep_floats(memory, inputs);
    l->n_active = layer->n_in + 1;
    for (int j = 0; l->active && j < l->n_active; j++) l->active[j] = j;
}

mlp_stepper *mlp_new_stepper(const mlp_kernels *kernels, const mlp_network *network)
{
    mlp_stepper *stepper = mlp_zeros(1, sizeof *stepper);
    if (!stepper) return NULL;
    stepper->kernels = kernels;
    stepper->n_layers = network->n_layers;
    mlp_memory *memory = &stepper->memory;
    stepper->layers =
        mlp_keep(memory, mlp_zeros((size_t)network->n_layers, sizeof *stepper->layers));
    const mlp_layer *top = &network->layers[network->n_layers - 1];
    stepper->outputs = mlp_keep_floats(memory, (size_t)mlp_padded(top->n_out));
    for (int l = 0; stepper->layers && l < network->n_layers; l++)
        allocate_layer(memory, &stepper->layers[l], &network->layers[l]);
    if (!memory->failed) {
        mlp_load_steps(stepper);
        return stepper;
    }
    mlp_free_stepper(stepper);
    return NULL;
}

void mlp_free_stepper(mlp_stepper *stepper)
{
    if (!stepper) return;
    mlp_free_kept(&stepper->memory);
    mlp_free(stepper);
}

/* Lists the inputs that are not zero. */
static void list_active(const mlp_stepper *stepper, step_layer *l)
{
    l->n_active = stepper->kernels->list_active(l->inputs, 0, l->layer->n_in + 1, l->active);
}

/* Inputs that are not listed may keep values of an earlier sample: nothing reads them. */
static void set_sample(const mlp_stepper *stepper, const mlp_sample *sample)
{
    step_layer *l = &stepper->layers[0];
    if (!sample->indices) {
        memcpy(l->inputs, sample->values, sizeof(float) * (size_t)l->layer->n_in);
        list_active(stepper, l);
        return;
    }
    for (int k = 0; k < sample->n; k++) {
        l->active[k] = sample->indices[k];
        l->inputs[sample->indices[k]] = sample->values[k];
    }
    l->active[sample->n] = l->layer->n_in;
    l->n_active = sample->n + 1;
}

static void multiply(float *values, ptrdiff_t n, double factor)
{
    for (ptrdiff_t i = 0; i < n; i++) values[i] *= (float)factor;
}

/* Neurons of tanh learn at a state of 0, too, so all inputs of the layer above are active. */
static void list_inputs(const mlp_stepper *stepper, const mlp_sample *sample, int i)
{
    step_layer *l = &stepper->layers[i];
    if (i == 0)
        set_sample(stepper, sample);
    else if (l[-1].layer->activation == MLP_RELU)
        list_active(stepper, l);
}

static void sum_tile(const mlp_stepper *stepper, const step_layer *l, int tile)
{
    stepper->kernels->product_rows(l->tiles + mlp_tile_offset(l->layer, tile),
                                   mlp_tile_width(l->layer, tile), l->active, l->n_active,
                                   l->inputs, 1, l->sums + mlp_tile_begin(l->layer, tile));
}

static void activate(const mlp_stepper *stepper, int i)
{
    const step_layer *l = &stepper->layers[i];
    const mlp_layer *layer = l->layer;
    float *states = i + 1 == stepper->n_layers ? stepper->outputs : l[1].inputs;
    if (l->scale != 1.0) multiply(l->sums, layer->n_out, l->scale);
    stepper->kernels->activate[layer->activation](l->sums, 0, layer->n_out, states);
}

static void forward(const mlp_stepper *stepper, const mlp_sample *sample)
{
    for (int i = 0; i < stepper->n_layers; i++) {
        const step_layer *l = &stepper->layers[i];
        list_inputs(stepper, sample, i);
        for (int tile = 0; tile < mlp_n_tiles(l->layer); tile++) sum_tile(stepper, l, tile);
        activate(stepper, i);
    }
}

/* Updates layer i, and computes the deltas of the layer below from its weights as they were. */
static void backward(const mlp_stepper *stepper, int i, float learning_rate, double kept)
{
    const mlp_kernels *kernels = stepper->kernels;
    step_layer *l = &stepper->layers[i];
    const mlp_layer *layer = l->layer;
    const double before = l->scale;
    l->scale *= kept > LEAST_SCALE ? kept : LEAST_SCALE; /* so little is nothing in float32 */
    if (l->scale != 1.0) {
        l->inputs[layer->n_in] = (float)l->scale;
        learning_rate = (float)((double)learning_rate / l->scale);
    }
    for (int k = layer->n_out; k < mlp_padded(layer->n_out); k++) l->deltas[k] = 0.0f;
    for (int tile = 0; tile < mlp_n_tiles(layer); tile++)
        kernels->step_rows(l->tiles + mlp_tile_offset(layer, tile), mlp_tile_width(layer, tile),
                           l->active, l->n_active, l->inputs,
                           l->deltas + mlp_tile_begin(layer, tile), learning_rate, tile == 0,
                           i == 0 ? NULL : l->dots);
    if (before != 1.0) multiply(l->dots, layer->n_in, before);
    if (l->scale < LEAST_SCALE) {
        for (int tile = 0; tile < mlp_n_tiles(layer); tile++)
            multiply(l->tiles + mlp_tile_offset(layer, tile),
                     (ptrdiff_t)mlp_tile_width(layer, tile) * layer->n_in, l->scale);
        l->scale = 1.0;
    }
    l->inputs[layer->n_in] = (float)(1.0 / l->scale);
    if (i > 0)
        kernels->delta_hidden[l[-1].layer->activation](l->dots, l->inputs, 0, layer->n_in,
                                                       l[-1].deltas);
}

double mlp_step(mlp_stepper *stepper, const mlp_sample *sample, const mlp_wanted *wanted,
                const float *learning_rates, const double *kept, float weight, int *errors)
{
    const step_layer *top = &stepper->layers[stepper->n_layers - 1];
    const float *y = stepper->outputs;
    forward(stepper, sample);
    *errors += mlp_misses(top->layer, y, wanted);
    const mlp_outcome outcome = mlp_judge(top->layer, y, wanted);
    if (!isfinite(outcome.loss)) return outcome.loss;
    mlp_output_deltas(top->layer, y, wanted, weight, &outcome, 0, top->layer->n_out, top->deltas);
    for (int i = stepper->n_layers - 1; i >= 0; i--)
        backward(stepper, i, learning_rates[i], kept ? kept[i] : 1.0);
    return (double)weight * outcome.loss;
}

void mlp_step_outputs(mlp_stepper *stepper, const mlp_sample *sample, float *outputs)
{
    const mlp_layer *top = stepper->layers[stepper->n_layers - 1].layer;
    forward(stepper, sample);
    memcpy(outputs, stepper->outputs, sizeof(float) * (size_t)top->n_out);
    mlp_finish_outputs(top, outputs, 1);
}

const float *mlp_step_sums(const mlp_stepper *stepper) { return stepper->outputs; }

const int *mlp_step_inputs(const mlp_stepper *stepper, int *n)
{
    *n = stepper->layers[0].n_active;
    return stepper->layers[0].active;
}

const mlp_kernels *mlp_step_kernels(const mlp_stepper *stepper) { return stepper->kernels; }

void mlp_average_steps(const mlp_stepper *stepper, mlp_stepper *average, const mlp_sample *sample,
                       float *counts, float *further, float share)
{
    for (int i = 0; i < stepper->n_layers; i++) {
        const step_layer *l = &stepper->layers[i], *a = &average->layers[i];
        const mlp_layer *layer = l->layer;
        float *shares = a->dots; /* which no step of the average needs */
        int moved = 0;
        if (sample) list_inputs(average, sample, i);
        for (int k = 0; k < l->n_active; k++) {
            float *count = &counts[l->active[k]];
            shares[k] = 0.0f;
            if (*count >= 100.0f && share == 0.0f) continue;
            shares[k] = fmaxf(share, 9.0f / (*count + 10.0f));
            *count += 1.0f;
            moved = 1;
        }
        for (int tile = 0; (sample || moved) && tile < mlp_n_tiles(layer); tile++) {
            const ptrdiff_t begin = mlp_tile_offset(layer, tile);
            if (sample) sum_tile(average, a, tile); /* which the cache keeps for the move */
            if (moved)
                stepper->kernels->move_rows(a->tiles + begin, l->tiles + begin,
                                            mlp_tile_width(layer, tile), l->active, l->n_active,
                                            shares);
        }
        if (sample) activate(average, i);
        if (i > 0) further += layer->n_in + 1;
        counts = further;
    }
}

void mlp_store_steps(const mlp_stepper *stepper, const mlp_network *network)
{
    for (int i = 0; i < stepper->n_layers; i++) {
        const step_layer *l = &stepper->layers[i];
        const mlp_layer *layer = &network->layers[i];
        for (int tile = 0; tile < mlp_n_tiles(layer); tile++)
            mlp_copy_tile(layer, tile, l->tiles, 1);
        for (ptrdiff_t k = 0; l->scale != 1.0 && k < layer->n_out; k++)
            multiply(layer->weights + k * layer->stride, layer->n_in, l->scale);
    }
}

void mlp_load_steps(mlp_stepper *stepper)
{
    for (int i = 0; i < stepper->n_layers; i++) {
        step_layer *l = &stepper->layers[i];
        for (int tile = 0; tile < mlp_n_tiles(l->layer); tile++)
            mlp_copy_tile(l->layer, tile, l->tiles, 0);
        l->scale = 1.0;
        l->inputs[l->layer->n_in] = 1.0f;
    }
}
