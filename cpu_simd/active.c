/* Lists of active inputs, and the products with them. */
#include "active.h"

#include "buffers.h"
#include "threads.h"

/* Fewer samples do not pay for the copy of the weights. */
enum { LEAST_SAMPLES = 1024 };

/* The greatest share of active inputs with which this is the quicker way. */
static const double MOST_ACTIVE = 0.6;

int mlp_active_pays(const mlp_network *network, const float *images, int n)
{
    const int n_in = network->layers[0].n_in;
    if (n < LEAST_SAMPLES) return 0;
    for (int l = 0; l + 1 < network->n_layers; l++)
        if (network->layers[l].activation != MLP_RELU) return 0;
    ptrdiff_t active = 0;
    for (int s = 0; s < MLP_ACTIVE_SAMPLES; s++, images += n_in) {
        const float background = mlp_background(images, n_in);
        for (int j = 0; j < n_in; j++) active += images[j] != background;
    }
    return (double)active < MOST_ACTIVE * MLP_ACTIVE_SAMPLES * n_in;
}

static ptrdiff_t tile_size(const mlp_layer *layer)
{
    return ((ptrdiff_t)layer->n_in + 1) * MLP_ACTIVE_WIDTH;
}

float **mlp_allocate_tiles(mlp_memory *memory, const mlp_network *network)
{
    float **tiles = mlp_keep(memory, mlp_zeros((size_t)network->n_layers, sizeof *tiles));
    for (int l = 0; l < network->n_layers && tiles; l++) {
        const mlp_layer *layer = &network->layers[l];
        tiles[l] = mlp_keep_floats(memory, (size_t)(mlp_n_active_tiles(layer) * tile_size(layer)));
    }
    return tiles;
}

void mlp_allocate_active(mlp_memory *memory, mlp_active *active, const mlp_network *network)
{
    int longest = 0;
    for (int l = 0; l < network->n_layers; l++) {
        const mlp_layer *layer = &network->layers[l];
        const int widest = mlp_n_active_tiles(layer) * MLP_ACTIVE_WIDTH;
        if (layer->stride > longest) longest = layer->stride;
        if (widest > longest) longest = widest;
    }
    const size_t n = MLP_ACTIVE_SAMPLES, room = (size_t)longest * n;
    const size_t counts = (size_t)mlp_n_chunks(longest) * n;
    active->room = longest;
    active->states = mlp_keep_floats(memory, room);
    active->sums = mlp_keep_floats(memory, room);
    active->inputs = mlp_keep(memory, mlp_zeros(room, sizeof *active->inputs));
    active->counts = mlp_keep(memory, mlp_zeros(counts, sizeof *active->counts));
    active->list = mlp_keep(memory, mlp_zeros(MLP_CHUNK_COLUMNS + MLP_ALIGN, sizeof *active->list));
}

void mlp_copy_active_tiles(const mlp_network *network, float **tiles, int thread, int n_threads)
{
    for (int l = 0; l < network->n_layers; l++) {
        const mlp_layer *layer = &network->layers[l];
        int begin, end;
        mlp_share(mlp_n_active_tiles(layer), thread, n_threads, &begin, &end);
        for (int tile = begin; tile < end; tile++) {
            const int first = tile * MLP_ACTIVE_WIDTH, last = first + MLP_ACTIVE_WIDTH;
            mlp_copy_by_inputs(layer, first, last < layer->n_out ? last : layer->n_out,
                               MLP_ACTIVE_WIDTH, tiles[l] + tile * tile_size(layer), 0);
        }
    }
}

/* Lists the active inputs of a sample, chunk by chunk, and the bias as the last. */
static void list_inputs(const mlp_kernels *kernels, const mlp_layer *layer, int s,
                        mlp_active *active)
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
        active->counts[chunk * MLP_ACTIVE_SAMPLES + s] = n;
    }
}

/* The layer's states, from the lists of its inputs, into the rows of `sums`. */
static void layer_states(const mlp_kernels *kernels, const mlp_layer *layer, const float *tiles,
                         const float *row_sums, int n, mlp_active *active)
{
    for (int tile = 0; tile < mlp_n_active_tiles(layer); tile++) {
        const int first = tile * MLP_ACTIVE_WIDTH, rest = mlp_padded(layer->n_out - first);
        const int width = rest < MLP_ACTIVE_WIDTH ? rest : MLP_ACTIVE_WIDTH;
        float *sums = active->sums + first;
        for (int begin = 0, chunk = 0; begin <= layer->n_in; begin += MLP_CHUNK_COLUMNS, chunk++) {
            const mlp_products products = {
                .weights = tiles + tile * tile_size(layer) + (ptrdiff_t)begin * MLP_ACTIVE_WIDTH,
                .inputs = active->inputs + begin,
                .counts = active->counts + chunk * MLP_ACTIVE_SAMPLES,
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

void mlp_active_states(const mlp_kernels *kernels, const mlp_network *network, float *const *tiles,
                       const float *row_sums, const float *images, int n, float *outputs,
                       mlp_active *active)
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
