/* Batches of samples as columns: a layer's products are then, without being moved, the inputs of
 * the next. */
#include "predict.h"

#include <stdatomic.h>

#include "buffers.h"
#include "threads.h"

/* That a thread takes through all layers at a time: enough that the weights, which come from
 * afar, are used often, few enough that the inputs of a layer fit into the second-level cache. */
enum { SAMPLES = 64 };

typedef struct {
    const mlp_kernels *kernels;
    const mlp_network *network;
    const float *images;
    float *outputs;
    int n;
    size_t room;      /* floats for the inputs of any layer */
    float *inputs;    /* two such per thread */
    atomic_int begun; /* batches: who is free takes the next */
} prediction;

/* Below a layer's inputs, a row each, the rows that its bias and its padding are for. */
static void set_bias(float *x, const mlp_layer *layer, int n_panels)
{
    const size_t padding = (size_t)(layer->stride - layer->n_in - 1) * MLP_PANEL;
    for (int i = 0; i < n_panels; i++, x += (long)layer->stride * MLP_PANEL) {
        float *bias = x + (long)layer->n_in * MLP_PANEL;
        for (int s = 0; s < MLP_PANEL; s++) bias[s] = 1.0f;
        memset(bias + MLP_PANEL, 0, sizeof(float) * padding);
    }
}

static void predict_batch(const prediction *p, int begin, int n, float *x, float *y)
{
    const mlp_network *network = p->network;
    const mlp_layer *layer = network->layers;
    const int n_in = layer->n_in, n_panels = (n + MLP_PANEL - 1) / MLP_PANEL;
    long panel = (long)layer->stride * MLP_PANEL;
    mlp_to_panels(p->images + (long)begin * n_in, n_in, n, 0, n_in, x, panel);
    for (int l = 0; l < network->n_layers; l++) {
        layer = &network->layers[l];
        const int last = l + 1 == network->n_layers;
        panel = (long)(last ? layer->n_out : layer[1].stride) * MLP_PANEL;
        set_bias(x, layer, n_panels);
        p->kernels->product_block(layer, x, n, 0, layer->n_out, y, panel);
        for (int i = 0; i < n_panels; i++)
            p->kernels->activate(y + i * panel, 0, layer->n_out * MLP_PANEL, y + i * panel);
        float *swap = x;
        x = y;
        y = swap;
    }
    const int n_out = layer->n_out;
    mlp_from_panels(x, panel, n_out, n, p->outputs + (long)begin * n_out, n_out);
}

static void predict(void *argument, mlp_team *team, int thread, int n_threads)
{
    (void)team, (void)n_threads;
    prediction *p = argument;
    float *x = p->inputs + 2 * (size_t)thread * p->room;
    const int n_batches = (p->n + SAMPLES - 1) / SAMPLES;
    for (int batch; (batch = atomic_fetch_add(&p->begun, 1)) < n_batches;) {
        const int begin = batch * SAMPLES, left = p->n - begin;
        predict_batch(p, begin, left < SAMPLES ? left : SAMPLES, x, x + p->room);
    }
}

int mlp_predict(const mlp_kernels *kernels, const mlp_network *network, const float *images, int n,
                float *outputs, int n_threads)
{
    if (n == 0) return 0;
    prediction p = {
        .kernels = kernels, .network = network, .images = images, .outputs = outputs, .n = n};
    for (int l = 0; l < network->n_layers; l++) {
        const mlp_layer *layer = &network->layers[l];
        size_t longest = (size_t)(layer->stride > layer->n_out ? layer->stride : layer->n_out);
        if (longest * SAMPLES > p.room) p.room = longest * SAMPLES;
    }
    p.inputs = mlp_floats(2 * (size_t)n_threads * p.room);
    int status = p.inputs && mlp_run_team(n_threads, predict, &p) ? 0 : -1;
    free(p.inputs);
    return status;
}
