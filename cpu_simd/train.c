/* Training: buffers and teams of threads. */
#include "train.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

#include "buffers.h"
#include "schedule.h"
#include "train_decay.h"
#include "train_sparse.h"

static void allocate_layer(mlp_memory *memory, mlp_layer_buffers *b, const mlp_layer *layer,
                           int block)
{
    b->width = mlp_padded(layer->n_out + 1);
    size_t history = (size_t)block * (size_t)b->width, tiles = (size_t)mlp_n_tiles(layer);
    b->sums = mlp_keep_floats(memory, (size_t)b->width);
    b->states = mlp_keep_floats(memory, history);
    b->deltas = mlp_keep_floats(memory, history);
    b->partials = mlp_keep_floats(memory, tiles * (size_t)layer->stride);
    b->state_dots = mlp_keep_floats(memory, tiles * (size_t)block);
    b->delta_dots = mlp_keep_floats(memory, tiles * (size_t)block);
    for (int s = 0; b->states && s < block; s++)
        b->states[(ptrdiff_t)s * b->width + layer->n_out] = 1.0f;
}

/* Linux grants huge pages on request; fewer look-ups in the page table then. */
enum { HUGE_PAGE = 1 << 21 };

/* Uninitialised memory, or NULL. */
static void *room_for(size_t bytes)
{
    const size_t align = bytes < HUGE_PAGE ? MLP_CACHE_LINE : HUGE_PAGE;
    bytes = (bytes + align - 1) / align * align;
    void *room = mlp_allocate_aligned(align, bytes);
#ifdef MADV_HUGEPAGE
    if (room && align == HUGE_PAGE) madvise(room, bytes, MADV_HUGEPAGE); /* may be refused */
#endif
    return room;
}

/* The weights of the layers from number l on, with their padding. */
static ptrdiff_t weights_from(const mlp_network *network, int l)
{
    ptrdiff_t n = 0;
    for (; l < network->n_layers; l++)
        n += (ptrdiff_t)network->layers[l].n_out * network->layers[l].stride;
    return n;
}

/* Allocates the packed copies of layers: of none that a single thread owns. The layers above the
 * first must have `packed_from` weights or more; a negative one packs nothing. */
static void allocate_packed(mlp_schedule *schedule)
{
    const mlp_training *training = schedule->training;
    const mlp_kernels *kernels = schedule->kernels;
    const ptrdiff_t from = training->packed_from;
    if (!kernels->pack_weights || !mlp_packing_pays(training->n_samples, schedule->block)) return;
    if (from < 0 || weights_from(training->network, 1) < from) return;
    for (int l = 1; l < training->network->n_layers; l++) {
        const mlp_layer *layer = &training->network->layers[l];
        if (schedule->buffers[l].tiles || mlp_n_owners(layer) == 1) continue;
        mlp_packed *packed = &schedule->buffers[l].packed;
        const size_t rows = (size_t)layer->n_out;
        const int lanes = kernels->group_columns, columns = MLP_PACKED_VECTORS * lanes;
        packed->stride =
            (ptrdiff_t)((layer->stride + columns - 1) / columns) * MLP_PACKED_WORDS * lanes;
        packed->words = mlp_keep(&schedule->memory,
                                 room_for(rows * (size_t)packed->stride * sizeof *packed->words));
        packed->scales = mlp_keep(&schedule->memory, room_for(rows * sizeof *packed->scales));
    }
}

static void allocate_block(mlp_memory *memory, mlp_block *b, const mlp_layer *layer, int block,
                           int columns)
{
    const int n_groups = (block + MLP_CHUNK_SAMPLES - 1) / MLP_CHUNK_SAMPLES;
    b->rows = mlp_keep_floats(memory, (size_t)block * (size_t)layer->stride);
    b->background = mlp_keep_floats(memory, (size_t)mlp_padded(block));
    b->groups = mlp_keep(memory, mlp_zeros((size_t)n_groups, sizeof *b->groups));
    for (int i = 0; !memory->failed && i < n_groups; i++) {
        const int first = i * MLP_CHUNK_SAMPLES, rest = block - first;
        mlp_allocate_groups(memory, &b->groups[i], layer,
                            rest < MLP_CHUNK_SAMPLES ? rest : MLP_CHUNK_SAMPLES, columns);
        b->groups[i].background = b->background + first;
    }
}

/* Buffers of the deferred schedule. */
static void allocate_deferred(mlp_schedule *schedule, int n_threads)
{
    const mlp_layer *first = &schedule->training->network->layers[0];
    const size_t block = (size_t)schedule->block, width = (size_t)mlp_padded(schedule->block);
    mlp_memory *memory = &schedule->memory;
    schedule->input_dots = mlp_keep_floats(memory, block * block);
    schedule->products = mlp_keep_floats(memory, block * (size_t)mlp_padded(first->n_out + 1));
    schedule->product_panels =
        mlp_keep_floats(memory, (size_t)n_threads * (size_t)mlp_tile_rows(first) * width);
    schedule->coefficients = mlp_keep_floats(memory, block * (size_t)n_threads);
    schedule->ones = mlp_keep_floats(memory, (size_t)first->stride);
    schedule->row_sums = mlp_keep_floats(memory, (size_t)mlp_padded(first->n_out));
    if (schedule->ones) mlp_set_ones(schedule->ones, first);
    schedule->panels.row_sums = schedule->row_sums;
    for (int i = 0; i < 2; i++)
        allocate_block(memory, &schedule->blocks[i], first, schedule->block,
                       schedule->kernels->group_columns);
    mlp_allocate_panels(memory, &schedule->panels, first, schedule->block,
                        schedule->kernels->together);
}

/* Returns -1 when memory ran out. */
static int allocate(mlp_schedule *schedule, int n_threads)
{
    const mlp_network *network = schedule->training->network;
    const size_t n_layers = (size_t)network->n_layers;
    schedule->buffers = mlp_keep(&schedule->memory, mlp_zeros(n_layers, sizeof *schedule->buffers));
    if (!schedule->buffers) return -1;
    allocate_deferred(schedule, n_threads);
    for (int l = 0; l < network->n_layers; l++) {
        allocate_layer(&schedule->memory, &schedule->buffers[l], &network->layers[l],
                       schedule->block);
        mlp_allocate_decay(schedule, l);
        mlp_allocate_sparse(schedule, l, n_threads);
    }
    allocate_packed(schedule);
    return schedule->memory.failed ? -1 : 0;
}

/* How many of n_threads have work between two barriers. */
static int busy_threads(const mlp_network *network, int n_threads)
{
    int most = 1;
    if (network->n_layers == 1) return 1; /* there is no barrier between samples */
    for (int l = 0; l < network->n_layers; l++) {
        const int owners = mlp_n_owners(&network->layers[l]);
        if (owners > most) most = owners;
    }
    return mlp_at_most(n_threads, most);
}

/* Trains the samples by one team after another: a team ends at the end of the samples, at a stop,
 * at a time on the clock, or when its threads are too many. */
static void train_in_teams(mlp_schedule *schedule, int n_threads)
{
    mlp_training *training = schedule->training;
    const mlp_layer_buffers *first = &schedule->buffers[0];
    const ptrdiff_t n_weights = weights_from(training->network, 0);
    while (!training->poll.stop && training->done < training->n_samples) {
        const double started = mlp_seconds();
        const int before = training->done;
        const int team =
            mlp_choose_team(training->team_size, n_weights, n_threads, &schedule->until);
        schedule->crowded = schedule->timed_out = 0;
        for (int i = 0; i < 2; i++) schedule->blocks[i].n = 0; /* no block waits for its update */
        for (int j = 0; first->tiles && j <= training->network->layers[0].n_in; j++)
            first->uses.counts[j] = 0;
        mlp_run_team(team, mlp_train_deferred, schedule);
        mlp_note_team(training->team_size, team, training->done - before, mlp_seconds() - started,
                      schedule->crowded);
    }
}

int mlp_train(const mlp_kernels *kernels, mlp_training *training, int n_threads)
{
    mlp_schedule schedule = {.kernels = kernels, .training = training, .block = training->block};
    training->done = training->errors = 0;
    training->loss = 0.0;
    if (training->n_samples == 0) return 0;
    n_threads = busy_threads(training->network, n_threads);
    const int status = allocate(&schedule, n_threads);
    if (status == 0) train_in_teams(&schedule, n_threads);
    for (int l = 0; l < training->network->n_layers; l++)
        mlp_clear_padding(&training->network->layers[l]);
    mlp_free_kept(&schedule.memory);
    return status;
}
