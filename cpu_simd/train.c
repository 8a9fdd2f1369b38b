/* Training: buffers and teams of threads. */
#include "train.h"

#include "buffers.h"
#include "schedule.h"
#include "train_decay.h"
#include "train_sparse.h"

static int allocate_layer(mlp_layer_buffers *b, const mlp_layer *layer, int block)
{
    b->width = mlp_padded(layer->n_out + 1);
    size_t history = (size_t)block * (size_t)b->width, tiles = (size_t)mlp_n_tiles(layer);
    b->sums = mlp_floats((size_t)b->width);
    b->states = mlp_floats(history);
    b->deltas = mlp_floats(history);
    b->partials = mlp_floats(tiles * (size_t)layer->stride);
    b->state_dots = mlp_floats(tiles * (size_t)block);
    b->delta_dots = mlp_floats(tiles * (size_t)block);
    if (!b->sums || !b->states || !b->deltas || !b->partials || !b->state_dots || !b->delta_dots)
        return -1;
    for (int s = 0; s < block; s++) b->states[(ptrdiff_t)s * b->width + layer->n_out] = 1.0f;
    return 0;
}

static int allocate_packed(mlp_schedule *schedule)
{
    const mlp_network *network = schedule->training->network;
    if (!mlp_packing_pays(schedule->training->n_samples, schedule->block)) return 0;
    for (int l = 1; schedule->kernels->pack_weights && l < network->n_layers; l++)
        if (!schedule->buffers[l].tiles &&
            mlp_is_packed(network, l, schedule->training->packed_from) &&
            mlp_allocate_packed(&schedule->buffers[l].packed, &network->layers[l],
                                schedule->kernels->group_columns))
            return -1;
    return 0;
}

static int allocate_block(mlp_block *b, const mlp_layer *layer, int block, int columns)
{
    const int n_groups = (block + MLP_CHUNK_SAMPLES - 1) / MLP_CHUNK_SAMPLES;
    b->rows = mlp_floats((size_t)block * (size_t)layer->stride);
    b->background = mlp_floats((size_t)mlp_padded(block));
    b->groups = mlp_zeros((size_t)n_groups, sizeof *b->groups);
    if (!b->rows || !b->background || !b->groups) return -1;
    for (int i = 0; i < n_groups; i++) {
        const int first = i * MLP_CHUNK_SAMPLES, rest = block - first;
        if (mlp_allocate_groups(&b->groups[i], layer,
                                rest < MLP_CHUNK_SAMPLES ? rest : MLP_CHUNK_SAMPLES, columns))
            return -1;
        b->groups[i].background = b->background + first;
    }
    return 0;
}

static void release_block(mlp_block *b, int block)
{
    for (int i = 0; b->groups && i * MLP_CHUNK_SAMPLES < block; i++) mlp_free_groups(&b->groups[i]);
    mlp_free(b->groups);
    mlp_free(b->background);
    mlp_free(b->rows);
}

/* Buffers of the deferred schedule. */
static int allocate_deferred(mlp_schedule *schedule, int n_threads)
{
    const mlp_layer *first = &schedule->training->network->layers[0];
    const size_t block = (size_t)schedule->block, width = (size_t)mlp_padded(schedule->block);
    schedule->input_dots = mlp_floats(block * block);
    schedule->products = mlp_floats(block * (size_t)mlp_padded(first->n_out + 1));
    schedule->product_panels = mlp_floats((size_t)n_threads * (size_t)mlp_tile_rows(first) * width);
    schedule->coefficients = mlp_floats(block * (size_t)n_threads);
    schedule->ones = mlp_floats((size_t)first->stride);
    schedule->row_sums = mlp_floats((size_t)mlp_padded(first->n_out));
    if (!schedule->input_dots || !schedule->products || !schedule->product_panels ||
        !schedule->coefficients || !schedule->ones || !schedule->row_sums)
        return -1;
    mlp_set_ones(schedule->ones, first);
    schedule->panels.row_sums = schedule->row_sums;
    for (int i = 0; i < 2; i++)
        if (allocate_block(&schedule->blocks[i], first, schedule->block,
                           schedule->kernels->group_columns))
            return -1;
    return mlp_allocate_panels(&schedule->panels, first, schedule->block,
                               schedule->kernels->together);
}

static int allocate(mlp_schedule *schedule, int n_threads)
{
    const mlp_network *network = schedule->training->network;
    schedule->buffers = mlp_zeros((size_t)network->n_layers, sizeof *schedule->buffers);
    if (!schedule->buffers) return -1;
    if (allocate_deferred(schedule, n_threads)) return -1;
    for (int l = 0; l < network->n_layers; l++)
        if (allocate_layer(&schedule->buffers[l], &network->layers[l], schedule->block) ||
            mlp_allocate_decay(schedule, l) || mlp_allocate_sparse(schedule, l, n_threads))
            return -1;
    return allocate_packed(schedule);
}

static void release(mlp_schedule *schedule)
{
    for (int l = 0; schedule->buffers && l < schedule->training->network->n_layers; l++) {
        mlp_layer_buffers *b = &schedule->buffers[l];
        float *all[] = {b->sums, b->states, b->deltas, b->partials, b->state_dots, b->delta_dots};
        for (size_t i = 0; i < sizeof all / sizeof *all; i++) mlp_free(all[i]);
        mlp_free_packed(&b->packed);
        mlp_free_decay(schedule, l);
        mlp_free_sparse(schedule, l);
    }
    mlp_free(schedule->buffers);
    for (int i = 0; i < 2; i++) release_block(&schedule->blocks[i], schedule->block);
    mlp_free_panels(&schedule->panels);
    mlp_free(schedule->ones);
    mlp_free(schedule->row_sums);
    mlp_free(schedule->product_panels);
    mlp_free(schedule->input_dots);
    mlp_free(schedule->products);
    mlp_free(schedule->coefficients);
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

/* Trains the samples from training->done on, until the end, a stop, a time on the clock, or until
 * n_threads are too many. Returns whether samples are left. */
static int train_rest(mlp_schedule *schedule, int n_threads, double until)
{
    const mlp_training *training = schedule->training;
    schedule->crowded = schedule->timed_out = 0;
    schedule->until = until;
    for (int i = 0; i < 2; i++) schedule->blocks[i].n = 0; /* no block waits for its update */
    if (schedule->buffers[0].tiles)
        mlp_clear_uses(&schedule->buffers[0].uses, 0, training->network->layers[0].n_in + 1);
    mlp_run_team(n_threads, mlp_train_deferred, schedule);
    return !training->poll.stop && training->done < training->n_samples;
}

static ptrdiff_t number_of_weights(const mlp_network *network)
{
    ptrdiff_t n = 0;
    for (int l = 0; l < network->n_layers; l++)
        n += (ptrdiff_t)network->layers[l].n_out * network->layers[l].n_in;
    return n;
}

static void train_in_teams(mlp_schedule *schedule, int n_threads)
{
    mlp_training *training = schedule->training;
    const ptrdiff_t n_weights = number_of_weights(training->network);
    for (int more = 1; more;) {
        double until;
        const double started = mlp_seconds();
        const int before = training->done;
        const int team = mlp_choose_team(training->team_size, n_weights, n_threads, &until);
        more = train_rest(schedule, team, until);
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
    release(&schedule);
    return status;
}
