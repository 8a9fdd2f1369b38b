/* The deferred schedule: on-line back-propagation, its updates applied a block at a time.
 *
 * Let W be a layer's weights at the start of a block, x_s its input (bias included) and d_s
 * its deltas at the block's sample s. On-line back-propagation has changed the weights to
 * W_t = W - eta sum_{s<t} d_s x_s^T when sample t comes, so, with no approximation,
 *
 *     forward    W_t x_t   = W x_t   - eta sum_{s<t} d_s (x_s . x_t)
 *     backward   W_t^T d_t = W^T d_t - eta sum_{s<t} x_s (d_s . d_t)
 *     block end  W        <- W       - eta sum_s d_s x_s^T
 *
 * Only rounding differs from changing W after every sample. The weights are read twice per
 * sample and written once per block, where a step by itself (stepper.h) writes them per sample.
 * The first layer's inputs are known beforehand and it passes no deltas down, so its W x_t
 * is a matrix product over the block, made while the rows that the previous block's update
 * has just changed are still in the cache.
 *
 * Threads: a thread owns the same rows of a layer throughout, and with them its neurons'
 * slice of the states and deltas of the block's samples. Dot products x_s . x_t are formed
 * tile by tile by the slice's owner and travel with the states, behind the same barrier;
 * d_s . d_t likewise with the partial sums. Everything is then added up tile by tile in the
 * same order by every thread that needs it.
 */
#include "buffers.h"
#include "first_layer.h"
#include "train_decay.h"
#include "train_sparse.h"

/* coefficients[s] = eta_l (bias + sum over the tiles of dots[tile][s]), s < n; the sum of samples
 * before the last times what weights kept since (train_decay.h). */
static const float *add_dots(const mlp_worker *self, int l, const float *dots, int n_tiles,
                             float bias, int n)
{
    const mlp_schedule *schedule = self->schedule;
    float *c = schedule->coefficients + (ptrdiff_t)self->thread * schedule->block;
    const float *kept = schedule->buffers[l].kept;
    for (int s = 0; s < n; s++) c[s] = kept ? 0.0f : bias;
    for (int tile = 0; tile < n_tiles; tile++)
        for (int s = 0; s < n; s++) c[s] += dots[(ptrdiff_t)tile * schedule->block + s];
    for (int s = 0; kept && s < n; s++) c[s] = bias + kept[n - 1 - s] * c[s];
    for (int s = 0; s < n; s++) c[s] *= schedule->training->learning_rates[l];
    return c;
}

/* dots[tile][s] = h_s . h_t, s < t, over the thread's tiles of layer l; h has rows of `width`. */
static void own_dots(const mlp_worker *self, int l, const float *h, int t, float *dots)
{
    const mlp_schedule *schedule = self->schedule;
    const mlp_layer *layer = &schedule->training->network->layers[l];
    ptrdiff_t width = schedule->buffers[l].width;
    int first, last;
    mlp_own_tiles(layer, self->thread, self->n_threads, &first, &last);
    for (int tile = first; tile < last; tile++)
        schedule->kernels->dots(h, width, t, h + t * width, mlp_tile_begin(layer, tile),
                                mlp_tile_begin(layer, tile + 1),
                                dots + (ptrdiff_t)tile * schedule->block);
}

/* States of layer l at sample t from the sums W x_t. The coefficients add what the block's earlier
 * samples have changed. */
static void finish_forward(const mlp_worker *self, int l, int t, float *sums,
                           const float *coefficients)
{
    const mlp_schedule *schedule = self->schedule;
    const mlp_layer_buffers *b = &schedule->buffers[l];
    float *states = b->states + (ptrdiff_t)t * b->width;
    int begin, end;
    mlp_worker_rows(self, l, &begin, &end);
    mlp_decay_sums(self, l, t, sums);
    schedule->kernels->correct(b->deltas, b->width, t, coefficients, begin, end, sums);
    schedule->kernels->activate[schedule->training->network->layers[l].activation](sums, begin, end,
                                                                                   states);
    if (l + 1 < schedule->training->network->n_layers)
        own_dots(self, l, b->states, t, b->state_dots);
}

/* The packed weights of layer l that this block's passes read; NULL when they read float32. */
static const mlp_packed *packed_layer(const mlp_worker *self, int l)
{
    const mlp_packed *packed = &self->schedule->buffers[l].packed;
    return self->reads_packed && packed->words ? packed : NULL;
}

/* a = W x, for the thread's own rows of layer l. */
static void product(const mlp_worker *self, int l, const float *x, int begin, int end, float *a)
{
    const mlp_schedule *schedule = self->schedule;
    const mlp_layer *layer = &schedule->training->network->layers[l];
    const mlp_packed *packed = packed_layer(self, l);
    if (schedule->buffers[l].tiles)
        mlp_product_tiles(self, l, x, a);
    else if (packed)
        schedule->kernels->product_packed(layer, packed, x, begin, end, a);
    else
        schedule->kernels->product(layer, x, begin, end, a);
}

static void go_up(const mlp_worker *self, int t)
{
    mlp_schedule *schedule = self->schedule;
    const mlp_network *network = schedule->training->network;
    float *sums = schedule->products + (ptrdiff_t)t * schedule->buffers[0].width;
    finish_forward(self, 0, t, sums, schedule->input_dots + (ptrdiff_t)t * schedule->block);
    for (int l = 1; l < network->n_layers; l++) {
        const mlp_layer_buffers *b = &schedule->buffers[l];
        int begin, end, n_tiles = mlp_n_tiles(&network->layers[l - 1]);
        mlp_worker_rows(self, l, &begin, &end);
        mlp_barrier(self->team, self->thread);
        product(self, l, b[-1].states + (ptrdiff_t)t * b[-1].width, begin, end, b->sums);
        finish_forward(self, l, t, b->sums, add_dots(self, l, b[-1].state_dots, n_tiles, 1.0f, t));
    }
}

/* The thread's tiles of layer l: their part of W^T d_t and of d_s . d_t. */
static void backward(const mlp_worker *self, int l, int t)
{
    mlp_schedule *schedule = self->schedule;
    const mlp_layer *layer = &schedule->training->network->layers[l];
    const mlp_layer_buffers *b = &schedule->buffers[l];
    const mlp_packed *packed = packed_layer(self, l);
    int first, last;
    mlp_own_tiles(layer, self->thread, self->n_threads, &first, &last);
    const float *delta = b->deltas + (ptrdiff_t)t * b->width;
    for (int tile = last - 1; tile >= first; tile--) {
        const int begin = mlp_tile_begin(layer, tile), end = mlp_tile_begin(layer, tile + 1);
        float *partial = b->partials + (ptrdiff_t)tile * layer->stride;
        if (b->tiles)
            mlp_dot_tile(self, l, tile, delta, partial);
        else if (packed)
            schedule->kernels->backward_packed(layer, packed, delta, begin, end, partial);
        else
            schedule->kernels->backward(layer, delta, begin, end, partial);
    }
    own_dots(self, l, b->deltas, t, b->delta_dots);
}

/* The deltas of the thread's neurons in layer l at sample t, from the layer above. */
static void finish_backward(const mlp_worker *self, int l, int t)
{
    mlp_schedule *schedule = self->schedule;
    const mlp_kernels *kernels = schedule->kernels;
    const mlp_layer *above = &schedule->training->network->layers[l + 1];
    const mlp_layer_buffers *b = &schedule->buffers[l];
    int begin, end, n_tiles = mlp_n_tiles(above);
    mlp_worker_rows(self, l, &begin, &end);
    kernels->sum_tiles(b[1].partials, n_tiles, above->stride, begin, end, b->sums);
    for (int i = begin; b[1].kept && i < end; i++) b->sums[i] *= b[1].kept[t];
    kernels->correct(b->states, b->width, t,
                     add_dots(self, l + 1, b[1].delta_dots, n_tiles, 0.0f, t), begin, end, b->sums);
    const mlp_layer *layer = &schedule->training->network->layers[l];
    float *deltas = b->deltas + (ptrdiff_t)t * b->width;
    kernels->delta_hidden[layer->activation](b->sums, b->states + (ptrdiff_t)t * b->width, begin,
                                             end, deltas);
    for (int i = layer->n_out; end == layer->n_out && i < mlp_padded(end); i++) deltas[i] = 0.0f;
    if (b[1].tiles) mlp_note_uses(self, l + 1, t);
}

static void come_down(const mlp_worker *self, int t, int image, int done)
{
    mlp_schedule *schedule = self->schedule;
    const int top = schedule->training->network->n_layers - 1;
    const mlp_layer_buffers *b = &schedule->buffers[top];
    const float *y = b->states + (ptrdiff_t)t * b->width;
    mlp_outcome outcome;
    mlp_judge_sample(self, y, image, b->deltas + (ptrdiff_t)t * b->width, &outcome);
    for (int l = top; l >= 1; l--) {
        backward(self, l, t);
        mlp_barrier(self->team, self->thread);
        if (l == top && self->thread == 0) mlp_observe(schedule, y, image, &outcome, done);
        finish_backward(self, l - 1, t);
    }
    if (self->thread == 0 && top == 0) mlp_observe(schedule, y, image, &outcome, done);
}

/* Updates rows of layer l by n samples, and packs them if the next block reads packed weights. */
static void update_and_pack(const mlp_worker *self, int l, int n, int pack, int begin, int end)
{
    mlp_schedule *schedule = self->schedule;
    const mlp_layer *layer = &schedule->training->network->layers[l];
    mlp_layer_buffers *b = &schedule->buffers[l];
    float *rows = layer->weights + (ptrdiff_t)begin * layer->stride;
    mlp_shrink(b, n, rows, (ptrdiff_t)(end - begin) * layer->stride);
    schedule->kernels->update_block(layer, b->deltas, b->width, b[-1].states, n,
                                    schedule->training->learning_rates[l], begin, end);
    mlp_set_biases(b, rows + layer->n_in, layer->stride, begin, end);
    if (pack && b->packed.words) schedule->kernels->pack_weights(layer, begin, end, &b->packed);
}

/* Updates the layers above the first by a block of n samples, none before the first block. The next
 * block has n_next samples. */
static void update_upper(const mlp_worker *self, int n, int n_next)
{
    mlp_schedule *schedule = self->schedule;
    const int pack = mlp_packing_pays(n_next, schedule->block);
    for (int l = 1; l < schedule->training->network->n_layers; l++) {
        int begin, end;
        mlp_worker_rows(self, l, &begin, &end);
        mlp_decay_deltas(self, l, n);
        if (schedule->buffers[l].tiles) mlp_update_tiles(self, l, n);
        for (int i = begin; !schedule->buffers[l].tiles && i < end; i += MLP_PACKED_ROWS)
            update_and_pack(self, l, n, pack, i,
                            end - i < MLP_PACKED_ROWS ? end : i + MLP_PACKED_ROWS);
    }
}

void mlp_train_deferred(void *argument, mlp_team *team, int thread, int n_threads)
{
    mlp_schedule *schedule = argument;
    const mlp_training *training = schedule->training;
    mlp_worker self = {schedule, team, thread, n_threads, 0};
    const int total = training->n_samples, block = schedule->block;
    mlp_block *now = &schedule->blocks[0], *next = &schedule->blocks[1];
    int begin = training->done;
    int n = total - begin < block ? total - begin : block;
    mlp_watch watch = mlp_start_watch();

    mlp_read_tiles(&self);
    update_upper(&self, 0, n);
    mlp_load_block(&self, begin, n, now);
    mlp_update_first(&self, next, now, n); /* `next` is still empty */
    while (n) {
        self.reads_packed = mlp_packing_pays(n, block);
        for (int t = 0; t < n; t++) {
            go_up(&self, t);
            come_down(&self, t, training->order[begin + t], begin + t + 1);
        }
        begin += n;
        const int rest = total - begin;
        int n_next = rest < block ? rest : block;
        if (training->sparse) mlp_barrier(team, thread); /* all uses are noted */
        update_upper(&self, n, n_next);
        if (n_threads > 1 && mlp_lost_core(&watch)) schedule->crowded = 1;
        if (thread == 0) schedule->timed_out = mlp_seconds() >= schedule->until;
        mlp_barrier(team, thread); /* all are done with the block's states, and all see a stop */
        if (training->poll.stop || schedule->crowded || schedule->timed_out) n_next = 0;
        if (training->sparse) mlp_finish_uses(&self, now);
        if (n_next) mlp_load_block(&self, begin, n_next, next);
        if (training->sparse) mlp_barrier(team, thread);
        mlp_update_first(&self, now, next, n_next);
        mlp_block *swap = now;
        now = next;
        next = swap;
        n = n_next;
    }
    mlp_write_tiles(&self);
}
