/* The forward pass of batches. Samples are columns, so that a layer's products are the inputs of
 * the next where they stand. */
#include "predict.h"

#include <stdatomic.h>

#include "buffers.h"
#include "output.h"
#include "threads.h"

/* A batch: enough samples that a weight is used often once it is loaded, and few enough that the
 * inputs of a layer fit into the second-level cache. */
enum { SAMPLES = 64 };

/* ---- the pass by active inputs ----
 *
 * A rectified state is zero for most neurons, and so is the foreground of most pixels
 * (foreground.h). Products with an exact zero are left out. The others are added in the order of
 * product_block (kernels.h), so a sample's outputs have the same bits either way. (A dense pass
 * would turn an infinite weight behind a zero into NaN; this one does not.)
 *
 * The weights are copied into tiles: n_in + 1 rows, that of the bias last, of the weights of one
 * input to MLP_ACTIVE_WIDTH neurons. The rows of a chunk of inputs fit into the nearest cache, and
 * all samples of a batch use them before the next chunk is read. */

/* The samples of a batch. */
enum { ACTIVE_SAMPLES = 128 };

/* A thread's own buffers. What belongs to a sample is `room` apart. */
typedef struct {
    ptrdiff_t room;
    float *states, *sums; /* of a layer's inputs and neurons */
    mlp_input *inputs;    /* the active ones; those of a chunk begin where its first would be */
    int *counts;          /* of them, for each chunk and each sample */
    int *list;            /* the active inputs of a chunk of a sample */
    float background[ACTIVE_SAMPLES];
} active_buffers;

static int n_tiles(const mlp_layer *layer)
{
    return (layer->n_out + MLP_ACTIVE_WIDTH - 1) / MLP_ACTIVE_WIDTH;
}

/* Fewer samples do not pay for the copy of the weights. */
enum { LEAST_SAMPLES = 1024 };

/* The greatest share of active inputs with which this is the quicker way. */
static const double MOST_ACTIVE = 0.6;

/* Whether this is quicker than the dense pass: rectifiers, enough samples for the copy of the
 * weights, and images of which most is background. */
static int active_pays(const mlp_network *network, const float *images, int n)
{
    const int n_in = network->layers[0].n_in;
    if (n < LEAST_SAMPLES) return 0;
    for (int l = 0; l + 1 < network->n_layers; l++)
        if (network->layers[l].activation != MLP_RELU) return 0;
    ptrdiff_t active = 0;
    for (int s = 0; s < ACTIVE_SAMPLES; s++, images += n_in) {
        const float background = mlp_background(images, n_in);
        for (int j = 0; j < n_in; j++) active += images[j] != background;
    }
    return (double)active < MOST_ACTIVE * ACTIVE_SAMPLES * n_in;
}

static ptrdiff_t tile_size(const mlp_layer *layer)
{
    return ((ptrdiff_t)layer->n_in + 1) * MLP_ACTIVE_WIDTH;
}

/* Allocate the tiles of all layers, and a thread's buffers. Failures are left in `memory`. */
static float **allocate_tiles(mlp_memory *memory, const mlp_network *network)
{
    float **tiles = mlp_keep(memory, mlp_zeros((size_t)network->n_layers, sizeof *tiles));
    for (int l = 0; l < network->n_layers && tiles; l++) {
        const mlp_layer *layer = &network->layers[l];
        tiles[l] = mlp_keep_floats(memory, (size_t)(n_tiles(layer) * tile_size(layer)));
    }
    return tiles;
}

static void allocate_active(mlp_memory *memory, active_buffers *active, const mlp_network *network)
{
    int longest = 0;
    for (int l = 0; l < network->n_layers; l++) {
        const mlp_layer *layer = &network->layers[l];
        const int widest = n_tiles(layer) * MLP_ACTIVE_WIDTH;
        if (layer->stride > longest) longest = layer->stride;
        if (widest > longest) longest = widest;
    }
    const size_t n = ACTIVE_SAMPLES, room = (size_t)longest * n;
    const size_t counts = (size_t)mlp_n_chunks(longest) * n;
    active->room = longest;
    active->states = mlp_keep_floats(memory, room);
    active->sums = mlp_keep_floats(memory, room);
    active->inputs = mlp_keep(memory, mlp_zeros(room, sizeof *active->inputs));
    active->counts = mlp_keep(memory, mlp_zeros(counts, sizeof *active->counts));
    active->list = mlp_keep(memory, mlp_zeros(MLP_CHUNK_COLUMNS + MLP_ALIGN, sizeof *active->list));
}

/* Copies this thread's share of the tiles. */
static void copy_tiles(const mlp_network *network, float **tiles, int thread, int n_threads)
{
    for (int l = 0; l < network->n_layers; l++) {
        const mlp_layer *layer = &network->layers[l];
        int begin, end;
        mlp_share(n_tiles(layer), thread, n_threads, &begin, &end);
        for (int tile = begin; tile < end; tile++) {
            const int first = tile * MLP_ACTIVE_WIDTH, last = first + MLP_ACTIVE_WIDTH;
            mlp_copy_by_inputs(layer, first, last < layer->n_out ? last : layer->n_out,
                               MLP_ACTIVE_WIDTH, tiles[l] + tile * tile_size(layer), 0);
        }
    }
}

/* Lists the active inputs of a sample, chunk by chunk, and the bias as the last. */
static void list_inputs(const mlp_kernels *kernels, const mlp_layer *layer, int s,
                        active_buffers *active)
{
    const float *x = active->states + s * active->room;
    for (int begin = 0, chunk = 0; begin <= layer->n_in; begin += MLP_CHUNK_COLUMNS, chunk++) {
        const int whole = begin + MLP_CHUNK_COLUMNS,
                  end = whole < layer->n_in ? whole : layer->n_in;
        mlp_input *inputs = active->inputs + s * active->room + begin;
        int n = kernels->list_active(x, begin, end, active->list);
        for (int k = 0; k < n; k++)
            inputs[k] =
                (mlp_input){(active->list[k] - begin) * MLP_ACTIVE_WIDTH, x[active->list[k]]};
        if (layer->n_in < whole)
            inputs[n++] = (mlp_input){(layer->n_in - begin) * MLP_ACTIVE_WIDTH, 1.0f};
        active->counts[chunk * ACTIVE_SAMPLES + s] = n;
    }
}

/* The layer's states, from the lists of its inputs, into the rows of `sums`. */
static void layer_states(const mlp_kernels *kernels, const mlp_layer *layer, const float *tiles,
                         const float *row_sums, int n, active_buffers *active)
{
    for (int tile = 0; tile < n_tiles(layer); tile++) {
        const int first = tile * MLP_ACTIVE_WIDTH, rest = mlp_padded(layer->n_out - first);
        const int width = rest < MLP_ACTIVE_WIDTH ? rest : MLP_ACTIVE_WIDTH;
        float *sums = active->sums + first;
        for (int begin = 0, chunk = 0; begin <= layer->n_in; begin += MLP_CHUNK_COLUMNS, chunk++) {
            const mlp_products products = {
                .weights = tiles + tile * tile_size(layer) + (ptrdiff_t)begin * MLP_ACTIVE_WIDTH,
                .inputs = active->inputs + begin,
                .counts = active->counts + chunk * ACTIVE_SAMPLES,
                .n = n,
                .first = begin == 0,
                .row_sums = row_sums ? row_sums + first : NULL,
                .background = active->background,
                .room = active->room,
                .sums = sums,
            };
            kernels->product_active(&products, width);
        }
        for (int s = 0; s < n; s++)
            kernels->activate[layer->activation](sums + s * active->room, 0, width,
                                                 sums + s * active->room);
    }
}

/* The states of the last layer for n images, at most ACTIVE_SAMPLES. `row_sums` are those of the
 * first layer's weights, in whole tiles. */
static void active_states(const mlp_kernels *kernels, const mlp_network *network,
                          float *const *tiles, const float *row_sums, const float *images, int n,
                          float *outputs, active_buffers *active)
{
    const mlp_layer *layer = network->layers;
    for (int s = 0; s < n; s++) {
        const float *image = images + (ptrdiff_t)s * layer->n_in;
        float *foreground = active->states + s * active->room;
        active->background[s] = mlp_background(image, layer->n_in);
        for (int j = 0; j < layer->n_in; j++) foreground[j] = image[j] - active->background[s];
    }
    for (int l = 0; l < network->n_layers; l++) {
        layer = &network->layers[l];
        for (int s = 0; s < n; s++) list_inputs(kernels, layer, s, active);
        layer_states(kernels, layer, tiles[l], l ? NULL : row_sums, n, active);
        float *swap = active->states;
        active->states = active->sums;
        active->sums = swap;
    }
    for (int s = 0; s < n; s++)
        memcpy(outputs + (ptrdiff_t)s * layer->n_out, active->states + s * active->room,
               sizeof(float) * (size_t)layer->n_out);
}

/* ---- both passes ---- */

typedef struct {
    const mlp_kernels *kernels;
    mlp_prediction *task;
    float *row_sums;  /* of the first layer's weights, in whole tiles */
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
    active_buffers active;
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

/* The states of the last layer for a batch of images. */
static void batch_states(const prediction *p, const float *images, int n, float *outputs,
                         workspace *work)
{
    const mlp_network *network = p->task->network;
    const int n_panels = (n + MLP_PANEL - 1) / MLP_PANEL;
    const mlp_layer *layer = network->layers;
    mlp_panels inputs = work->images;
    ptrdiff_t panel = 0;
    for (int s = 0; s < n; s++)
        work->background[s] = mlp_background(images + (ptrdiff_t)s * layer->n_in, layer->n_in);
    for (int part = 0; part < mlp_n_chunks(layer->stride); part++)
        mlp_pack_panels(&work->images, layer, images, layer->n_in, n, part);
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
        allocate_active(&work->memory, &work->active, p->task->network);
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
    const int samples = p->tiles ? ACTIVE_SAMPLES : SAMPLES;
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
        copy_tiles(network, p->tiles, thread, n_threads);
        mlp_barrier(team, thread);
    }
    for (int begin, n; !p->failed && (n = next_batch(p, thread, &begin));) {
        const float *images = p->task->images + (ptrdiff_t)begin * n_in;
        float *outputs = p->task->outputs + (ptrdiff_t)begin * n_out;
        if (p->tiles)
            active_states(p->kernels, network, p->tiles, p->row_sums, images, n, outputs,
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

/* Sums the first layer's rows, for the background, if any has one. */
static void sum_rows(prediction *p, mlp_memory *memory)
{
    const mlp_layer *layer = p->task->network->layers;
    float *ones = mlp_keep_floats(memory, (size_t)layer->stride);
    p->row_sums = mlp_keep_floats(memory, (size_t)n_tiles(layer) * MLP_ACTIVE_WIDTH);
    if (memory->failed || black(p->task)) return;
    mlp_set_ones(ones, layer);
    p->kernels->product(layer, ones, 0, layer->n_out, p->row_sums);
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
    if (active_pays(network, task->images, task->n)) p.tiles = allocate_tiles(&memory, network);
    sum_rows(&p, &memory);
    p.failed = memory.failed;
    n_threads = mlp_at_most(n_threads, (task->n - 1) / SAMPLES + 1);
    if (!p.failed) mlp_run_team(n_threads, predict, &p);
    mlp_free_kept(&memory);
    return p.failed ? -1 : 0;
}
