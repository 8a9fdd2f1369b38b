/* Training layers that are stored by their inputs, within the deferred schedule.
 *
 * Threads own tiles, and so columns of the inputs' rows. Every thread lists the active inputs of a
 * layer for itself, which is faster than waiting for another's list. */
#include "train_sparse.h"

#include "buffers.h"
#include "train_decay.h"

/* Inputs whose rows are updated and then multiplied with the next block while they are in the
 * nearest cache. */
enum { CHUNK = 48 };

static int n_chunks(const mlp_layer *layer) { return (layer->n_in + CHUNK) / CHUNK; }

/* The end of a chunk of inputs, the bias included. */
static int chunk_end(const mlp_layer *layer, int chunk)
{
    const int end = (chunk + 1) * CHUNK, all = layer->n_in + 1;
    return end < all ? end : all;
}

/* Whether layer l is worth it: its inputs are rectified states, or images that are mostly zero, and
 * it is large enough for more than one thread. */
static int is_sparse(const mlp_training *training, int l)
{
    const mlp_layer *layers = training->network->layers;
    if (mlp_n_owners(&layers[l]) == 1) return 0;
    if (l == 0) return training->sparse_images && layers[0].activation == MLP_RELU;
    return training->sparse && layers[l - 1].activation == MLP_RELU;
}

/* Lists with room for the inputs and the bias. */
static mlp_list *allocate_lists(mlp_memory *memory, const mlp_layer *layer, int n)
{
    const size_t room = (size_t)(layer->stride + MLP_ALIGN);
    mlp_list *lists = mlp_keep(memory, mlp_zeros((size_t)n, sizeof *lists));
    int *inputs = mlp_keep(memory, mlp_allocate((size_t)n * room * sizeof *inputs));
    for (int i = 0; !memory->failed && i < n; i++) lists[i].inputs = inputs + (size_t)i * room;
    return lists;
}

void mlp_allocate_sparse(mlp_schedule *schedule, int l, int n_threads)
{
    const mlp_layer *layer = &schedule->training->network->layers[l];
    mlp_layer_buffers *b = &schedule->buffers[l];
    mlp_memory *memory = &schedule->memory;
    if (!is_sparse(schedule->training, l)) return;
    b->tiles = mlp_keep_floats(memory, (size_t)mlp_tiles_size(layer));
    const size_t inputs = (size_t)layer->n_in + 1, uses = inputs * (size_t)schedule->block;
    b->uses.room = schedule->block;
    b->uses.counts = mlp_keep(memory, mlp_zeros(inputs, sizeof *b->uses.counts));
    b->uses.uses = mlp_keep(memory, mlp_allocate(uses * sizeof *b->uses.uses));
    if (l > 0) b->active = allocate_lists(memory, layer, n_threads);
    for (int i = 0; l == 0 && i < 2; i++) {
        const size_t chunks = (size_t)schedule->block * (size_t)n_chunks(layer);
        schedule->blocks[i].ends = mlp_keep(memory, mlp_zeros(chunks, sizeof(int)));
        schedule->blocks[i].active = allocate_lists(memory, layer, schedule->block);
    }
}

void mlp_copy_tiles(const mlp_worker *self, int back)
{
    const mlp_schedule *schedule = self->schedule;
    const mlp_network *network = schedule->training->network;
    for (int l = 0; l < network->n_layers; l++) {
        int first, last;
        mlp_own_tiles(&network->layers[l], self->thread, self->n_threads, &first, &last);
        for (int tile = first; schedule->buffers[l].tiles && tile < last; tile++)
            mlp_copy_tile(&network->layers[l], tile, schedule->buffers[l].tiles, back);
    }
}

void mlp_product_tiles(const mlp_worker *self, int l, const float *x, float *a)
{
    const mlp_schedule *schedule = self->schedule;
    const mlp_layer *layer = &schedule->training->network->layers[l];
    const mlp_layer_buffers *b = &schedule->buffers[l];
    mlp_list *active = &b->active[self->thread];
    int first, last;
    active->n = schedule->kernels->list_active(x, 0, layer->n_in + 1, active->inputs);
    mlp_own_tiles(layer, self->thread, self->n_threads, &first, &last);
    for (int tile = first; tile < last; tile++)
        schedule->kernels->product_rows(b->tiles + mlp_tile_offset(layer, tile),
                                        mlp_tile_width(layer, tile), active->inputs, active->n, x,
                                        1, a + mlp_tile_begin(layer, tile));
}

void mlp_dot_tile(const mlp_worker *self, int l, int tile, const float *delta, float *partial)
{
    const mlp_schedule *schedule = self->schedule;
    const mlp_layer *layer = &schedule->training->network->layers[l];
    const mlp_layer_buffers *b = &schedule->buffers[l];
    const mlp_list *active = &b->active[self->thread];
    schedule->kernels->dot_rows(b->tiles + mlp_tile_offset(layer, tile),
                                mlp_tile_width(layer, tile), active->inputs, active->n,
                                delta + mlp_tile_begin(layer, tile), partial);
}

/* The place in an ascending list of the first input from `begin` on. */
static int find(const mlp_list *list, int begin)
{
    int low = 0, high = list->n;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (list->inputs[middle] < begin)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Forgets the uses of the inputs begin <= j < end. */
static void clear_uses(mlp_uses *uses, int begin, int end)
{
    for (int j = begin; j < end; j++) uses->counts[j] = 0;
}

/* Notes that the listed inputs begin <= j < end are active at sample s. */
static void note(mlp_uses *uses, const mlp_list *list, int begin, int end, const float *x, int s)
{
    for (int k = find(list, begin); k < list->n && list->inputs[k] < end; k++) {
        const int j = list->inputs[k];
        uses->uses[(ptrdiff_t)j * uses->room + uses->counts[j]++] = (mlp_use){s, x[j]};
    }
}

/* The inputs of layer l, its bias included, that a thread notes: the neurons that it owns. */
static void own_inputs(const mlp_worker *self, int l, int *begin, int *end)
{
    mlp_worker_rows(self, l - 1, begin, end);
    *end += *begin < *end && *end == self->schedule->training->network->layers[l].n_in;
}

void mlp_note_uses(const mlp_worker *self, int l, int t)
{
    mlp_layer_buffers *b = &self->schedule->buffers[l];
    int begin, end;
    own_inputs(self, l, &begin, &end);
    note(&b->uses, &b->active[self->thread], begin, end, b[-1].states + (ptrdiff_t)t * b[-1].width,
         t);
}

/* Updates the rows of a tile of layer l by the uses of a block of n samples. */
static void update_tile(const mlp_schedule *schedule, int l, int n, int tile, int begin, int end)
{
    const mlp_layer *layer = &schedule->training->network->layers[l];
    const mlp_layer_buffers *b = &schedule->buffers[l];
    const int first = mlp_tile_begin(layer, tile), width = mlp_tile_width(layer, tile);
    float *rows = b->tiles + mlp_tile_offset(layer, tile);
    mlp_shrink(b, n, rows + (ptrdiff_t)begin * width, (ptrdiff_t)(end - begin) * width);
    schedule->kernels->update_rows(rows, width, &b->uses, begin, end, b->deltas + first, b->width,
                                   schedule->training->learning_rates[l]);
    if (end > layer->n_in)
        mlp_set_biases(b, rows + (ptrdiff_t)layer->n_in * width, 1, first,
                       mlp_tile_begin(layer, tile + 1));
}

void mlp_update_tiles(const mlp_worker *self, int l, int n)
{
    const mlp_layer *layer = &self->schedule->training->network->layers[l];
    int first, last;
    mlp_own_tiles(layer, self->thread, self->n_threads, &first, &last);
    for (int tile = first; tile < last; tile++)
        update_tile(self->schedule, l, n, tile, 0, layer->n_in + 1);
}

void mlp_list_block(const mlp_worker *self, mlp_block *b)
{
    const mlp_schedule *schedule = self->schedule;
    const mlp_layer *layer = &schedule->training->network->layers[0];
    const int chunks = n_chunks(layer);
    for (int s = self->thread; s < b->n; s += self->n_threads) {
        const float *x = b->rows + (ptrdiff_t)s * layer->stride;
        mlp_list *active = &b->active[s];
        int n = 0;
        for (int c = 0; c < chunks; c++) {
            n += schedule->kernels->list_active(x, c * CHUNK, chunk_end(layer, c),
                                                active->inputs + n);
            b->ends[s * chunks + c] = n;
        }
        active->n = n;
    }
}

void mlp_finish_uses(const mlp_worker *self, const mlp_block *b)
{
    const mlp_schedule *schedule = self->schedule;
    const mlp_network *network = schedule->training->network;
    const mlp_layer *layer = &network->layers[0];
    int begin, end;
    for (int l = 1; l < network->n_layers; l++) {
        own_inputs(self, l, &begin, &end);
        if (schedule->buffers[l].tiles) clear_uses(&schedule->buffers[l].uses, begin, end);
    }
    if (!schedule->buffers[0].tiles) return;
    mlp_uses *uses = &schedule->buffers[0].uses;
    mlp_share(layer->n_in + 1, self->thread, self->n_threads, &begin, &end);
    clear_uses(uses, begin, end);
    for (int s = 0; s < b->n; s++)
        note(uses, &b->active[s], begin, end, b->rows + (ptrdiff_t)s * layer->stride, s);
}

/* Adds a chunk's part to the products of a tile with the next block's images. */
static void multiply_chunk(const mlp_schedule *schedule, const mlp_block *next, int n_next,
                           int tile, int chunk)
{
    const mlp_layer *layer = &schedule->training->network->layers[0];
    const mlp_layer_buffers *b = &schedule->buffers[0];
    const int chunks = n_chunks(layer);
    for (int s = 0; s < n_next; s++) {
        const int *ends = next->ends + s * chunks, start = chunk ? ends[chunk - 1] : 0;
        schedule->kernels->product_rows(
            b->tiles + mlp_tile_offset(layer, tile), mlp_tile_width(layer, tile),
            next->active[s].inputs + start, ends[chunk] - start,
            next->rows + (ptrdiff_t)s * layer->stride, chunk == 0,
            schedule->products + (ptrdiff_t)s * b->width + mlp_tile_begin(layer, tile));
    }
}

void mlp_update_first_tiles(const mlp_worker *self, const mlp_block *block, const mlp_block *next,
                            int n_next)
{
    const mlp_schedule *schedule = self->schedule;
    const mlp_layer *layer = &schedule->training->network->layers[0];
    int first, last;
    mlp_own_tiles(layer, self->thread, self->n_threads, &first, &last);
    for (int tile = first; tile < last; tile++)
        for (int chunk = 0; chunk < n_chunks(layer); chunk++) {
            update_tile(schedule, 0, block->n, tile, chunk * CHUNK, chunk_end(layer, chunk));
            multiply_chunk(schedule, next, n_next, tile, chunk);
        }
}
