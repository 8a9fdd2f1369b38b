/* The forward pass of batches. Samples are columns, so that a layer's products are the inputs of
 * the next where they stand. */
#include "predict.h"

#include <stdatomic.h>

#include "active.h"
#include "buffers.h"
#include "output.h"
#include "threads.h"

/* A batch: enough samples that a weight is used often once it is loaded, and few enough that the
 * inputs of a layer fit into the second-level cache. */
enum { SAMPLES = 64 };

typedef struct {
    const mlp_kernels *kernels;
    mlp_prediction *task;
    float *row_sums;  /* of the first layer's weights, in whole tiles of active.h */
    float **tiles;    /* of each layer, for the pass by active inputs; NULL: dense */
    size_t room;      /* floats for the inputs of any layer */
    atomic_int begun; /* batches */
    atomic_int failed;
} prediction;

/* A thread's own buffers. */
typedef struct {
    mlp_memory memory;
    mlp_panels images;
    float background[SAMPLES];
    float *inputs, *sums; /* of a layer above the first */
    mlp_active active;
} workspace;

/* Appends the bias input's row of ones and the padding's rows of zeros to a layer's inputs. */
static void set_bias(float *x, const mlp_layer *layer, int n_panels)
{
    const size_t padding = (size_t)(layer->stride - layer->n_in - 1) * MLP_PANEL;
    for (int i = 0; i < n_panels; i++, x += (ptrdiff_t)layer->stride * MLP_PANEL) {
        float *bias = x + (ptrdiff_t)layer->n_in * MLP_PANEL;
        for (int s = 0; s < MLP_PANEL; s++) bias[s] = 1.0f;
        memset(bias + MLP_PANEL, 0, sizeof(float) * padding);
    }
}

static void pack_images(const mlp_layer *layer, const float *images, int n, workspace *work)
{
    for (int s = 0; s < n; s++)
        work->background[s] = mlp_background(images + (ptrdiff_t)s * layer->n_in, layer->n_in);
    for (int part = 0; part < mlp_n_chunks(layer->stride); part++)
        mlp_pack_panels(&work->images, layer, images, layer->n_in, n, part);
}

/* The states of the last layer for a batch of images. */
static void batch_states(const prediction *p, const float *images, int n, float *outputs,
                         workspace *work)
{
    const mlp_network *network = p->task->network;
    const int n_panels = (n + MLP_PANEL - 1) / MLP_PANEL;
    const mlp_layer *layer = network->layers;
    mlp_panels inputs = work->images;
    ptrdiff_t panel = 0;
    pack_images(layer, images, n, work);
    for (int l = 0; l < network->n_layers; l++) {
        layer = &network->layers[l];
        panel =
            (ptrdiff_t)(l + 1 == network->n_layers ? layer->n_out : layer[1].stride) * MLP_PANEL;
        if (l > 0) {
            set_bias(work->inputs, layer, n_panels);
            inputs = (mlp_panels){.values = work->inputs};
        }
        p->kernels->product_block(layer, &inputs, n, 0, layer->n_out, work->sums, panel);
        for (int i = 0; i < n_panels; i++)
            p->kernels->activate[layer->activation](
                work->sums + i * panel, 0, layer->n_out * MLP_PANEL, work->sums + i * panel);
        float *swap = work->inputs;
        work->inputs = work->sums;
        work->sums = swap;
    }
    mlp_from_panels(work->inputs, panel, layer->n_out, n, outputs, layer->n_out);
}

/* Returns whether memory ran out. */
static int allocate(workspace *work, const prediction *p)
{
    if (p->tiles) {
        mlp_allocate_active(&work->memory, &work->active, p->task->network);
        return work->memory.failed;
    }
    work->inputs = mlp_keep_floats(&work->memory, p->room);
    work->sums = mlp_keep_floats(&work->memory, p->room);
    work->images.background = work->background;
    work->images.row_sums = p->row_sums;
    mlp_allocate_panels(&work->memory, &work->images, p->task->network->layers, SAMPLES,
                        p->kernels->together);
    return work->memory.failed;
}

/* For a thread that is free: takes a batch that nobody has begun. Returns its number of samples,
 * from `first` on; 0 when none are left, or it is time to stop. */
static int next_batch(prediction *p, int thread, int *first)
{
    if (thread == 0) mlp_ask(&p->task->poll);
    if (p->task->poll.stop) return 0;
    const int samples = p->tiles ? MLP_ACTIVE_SAMPLES : SAMPLES;
    const ptrdiff_t begin = (ptrdiff_t)atomic_fetch_add(&p->begun, 1) * samples;
    const ptrdiff_t left = p->task->n - begin;
    *first = (int)begin;
    return (int)(left <= 0 ? 0 : left < samples ? left : samples);
}

static void predict(void *argument, mlp_team *team, int thread, int n_threads)
{
    prediction *p = argument;
    const mlp_network *network = p->task->network;
    const int n_in = network->layers[0].n_in, n_out = network->layers[network->n_layers - 1].n_out;
    workspace work = {.memory = {NULL, 0}};
    if (allocate(&work, p)) p->failed = 1;
    if (p->tiles) {
        mlp_copy_active_tiles(network, p->tiles, thread, n_threads);
        mlp_barrier(team, thread);
    }
    for (int begin, n; !p->failed && (n = next_batch(p, thread, &begin));) {
        const float *images = p->task->images + (ptrdiff_t)begin * n_in;
        float *outputs = p->task->outputs + (ptrdiff_t)begin * n_out;
        if (p->tiles)
            mlp_active_states(p->kernels, network, p->tiles, p->row_sums, images, n, outputs,
                              &work.active);
        else
            batch_states(p, images, n, outputs, &work);
        mlp_finish_outputs(&network->layers[network->n_layers - 1], outputs, n);
    }
    mlp_free_kept(&work.memory);
}

/* Whether the background of all samples is 0. Of more than a batch that is not asked. */
static int black(const mlp_prediction *task)
{
    const int n_in = task->network->layers[0].n_in;
    if (task->n > SAMPLES) return 0;
    for (ptrdiff_t s = 0; s < task->n; s++)
        if (mlp_background(task->images + s * n_in, n_in) != 0.0f) return 0;
    return 1;
}

/* Sums the first layer's rows, for the background, if any has one; returns -1 when memory ran
 * out. */
static int sum_rows(prediction *p)
{
    const mlp_layer *layer = p->task->network->layers;
    float *ones = mlp_zeros((size_t)layer->stride, sizeof(float));
    p->row_sums = mlp_zeros((size_t)mlp_n_active_tiles(layer) * MLP_ACTIVE_WIDTH, sizeof(float));
    if (ones && p->row_sums && !black(p->task)) {
        mlp_set_ones(ones, layer);
        p->kernels->product(layer, ones, 0, layer->n_out, p->row_sums);
    }
    mlp_free(ones);
    return ones && p->row_sums ? 0 : -1;
}

int mlp_predict(const mlp_kernels *kernels, mlp_prediction *task, int n_threads)
{
    if (task->n == 0) return 0;
    const mlp_network *network = task->network;
    prediction p = {.kernels = kernels, .task = task};
    for (int l = 0; l < network->n_layers; l++) {
        const mlp_layer *layer = &network->layers[l];
        size_t longest = (size_t)(layer->stride > layer->n_out ? layer->stride : layer->n_out);
        if (longest * SAMPLES > p.room) p.room = longest * SAMPLES;
    }
    mlp_memory memory = {NULL, 0};
    if (mlp_active_pays(network, task->images, task->n))
        p.tiles = mlp_allocate_tiles(&memory, network);
    p.failed = sum_rows(&p) != 0 || memory.failed;
    n_threads = mlp_at_most(n_threads, (task->n - 1) / SAMPLES + 1);
    if (!p.failed) mlp_run_team(n_threads, predict, &p);
    mlp_free(p.row_sums);
    mlp_free_kept(&memory);
    return p.failed ? -1 : 0;
}
