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
 * sample and written once per block, where the immediate schedule writes them per sample.
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
#include "schedule.h"

/* coefficients[s] = eta_l (bias + sum over the tiles of dots[tile][s]), s < n. */
static const float *add_dots(const mlp_worker *self, int l, const float *dots, int n_tiles,
                             float bias, int n)
{
    const mlp_schedule *schedule = self->schedule;
    float *c = schedule->coefficients + (long)self->thread * schedule->block;
    for (int s = 0; s < n; s++) c[s] = bias;
    for (int tile = 0; tile < n_tiles; tile++)
        for (int s = 0; s < n; s++) c[s] += dots[(long)tile * schedule->block + s];
    for (int s = 0; s < n; s++) c[s] *= schedule->training->learning_rates[l];
    return c;
}

/* dots[tile][s] = h_s . h_t, s < t, over the thread's tiles of layer l; h has rows of `width`. */
static void own_dots(const mlp_worker *self, int l, const float *h, int t, float *dots)
{
    const mlp_schedule *schedule = self->schedule;
    const mlp_layer *layer = &schedule->training->network->layers[l];
    long width = schedule->buffers[l].width;
    int first, last;
    mlp_own_tiles(layer, self->thread, self->n_threads, &first, &last);
    for (int tile = first; tile < last; tile++)
        schedule->kernels->dots(h, width, t, h + t * width, mlp_tile_begin(layer, tile),
                                mlp_tile_begin(layer, tile + 1),
                                dots + (long)tile * schedule->block);
}

/* States of layer l at sample t from the sums W x_t. The coefficients add what the block's earlier
 * samples have changed. */
static void finish_forward(const mlp_worker *self, int l, int t, float *sums,
                           const float *coefficients)
{
    const mlp_schedule *schedule = self->schedule;
    const mlp_layer_buffers *b = &schedule->buffers[l];
    float *states = b->states + (long)t * b->width;
    int begin, end;
    mlp_worker_rows(self, l, &begin, &end);
    schedule->kernels->correct(b->deltas, b->width, t, coefficients, begin, end, sums);
    schedule->kernels->activate(sums, begin, end, states);
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
    if (packed)
        schedule->kernels->product_packed(layer, packed, x, begin, end, a);
    else
        schedule->kernels->product(layer, x, begin, end, a);
}

static void go_up(const mlp_worker *self, int t)
{
    mlp_schedule *schedule = self->schedule;
    const mlp_network *network = schedule->training->network;
    float *sums = schedule->products + (long)t * schedule->buffers[0].width;
    finish_forward(self, 0, t, sums, schedule->input_dots + (long)t * schedule->block);
    for (int l = 1; l < network->n_layers; l++) {
        const mlp_layer_buffers *b = &schedule->buffers[l];
        int begin, end, n_tiles = mlp_n_tiles(&network->layers[l - 1]);
        mlp_worker_rows(self, l, &begin, &end);
        mlp_barrier(self->team, self->thread);
        product(self, l, b[-1].states + (long)t * b[-1].width, begin, end, b->sums);
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
    const float *delta = b->deltas + (long)t * b->width;
    for (int tile = last - 1; tile >= first; tile--) {
        const int begin = mlp_tile_begin(layer, tile), end = mlp_tile_begin(layer, tile + 1);
        float *partial = b->partials + (long)tile * layer->stride;
        if (packed)
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
    kernels->correct(b->states, b->width, t,
                     add_dots(self, l + 1, b[1].delta_dots, n_tiles, 0.0f, t), begin, end, b->sums);
    kernels->delta_hidden(b->sums, b->states + (long)t * b->width, begin, end,
                          b->deltas + (long)t * b->width);
}

static void come_down(const mlp_worker *self, int t, int label, int done)
{
    mlp_schedule *schedule = self->schedule;
    int top = schedule->training->network->n_layers - 1, begin, end;
    const mlp_layer_buffers *b = &schedule->buffers[top];
    const float *y = b->states + (long)t * b->width;
    mlp_worker_rows(self, top, &begin, &end);
    schedule->kernels->delta_output(y, label, schedule->training->target, begin, end,
                                    b->deltas + (long)t * b->width);
    for (int l = top; l >= 1; l--) {
        backward(self, l, t);
        mlp_barrier(self->team, self->thread);
        if (l == top && self->thread == 0) mlp_observe(schedule, y, label, done);
        finish_backward(self, l - 1, t);
    }
    if (top == 0) mlp_observe(schedule, y, label, done); /* alone: see mlp_train */
}

/* How many samples groups[i] of a block holds. */
static int group_samples(const mlp_block *b, int i)
{
    const int rest = b->n - i * MLP_CHUNK_SAMPLES;
    return rest < MLP_CHUNK_SAMPLES ? rest : MLP_CHUNK_SAMPLES;
}

/* Packs the block's images for the product and for the update. */
static void pack_block(const mlp_worker *self, mlp_block *b)
{
    mlp_schedule *schedule = self->schedule;
    const mlp_layer *layer = &schedule->training->network->layers[0];
    for (int part = self->thread; part < mlp_n_chunks(layer->stride); part += self->n_threads)
        mlp_pack_panels(&schedule->panels, layer, b->rows, layer->stride, b->n, part);
    int first, last;
    mlp_share(layer->stride / schedule->kernels->group_columns, self->thread, self->n_threads,
              &first, &last);
    for (int i = 0; i * MLP_CHUNK_SAMPLES < b->n; i++)
        schedule->kernels->pack_groups(layer, b->rows + (long)i * MLP_CHUNK_SAMPLES * layer->stride,
                                       group_samples(b, i), first, last, &b->groups[i]);
}

/* Loads the images of the steps begin ... begin + n - 1 and forms their dot products times eta. The
 * threads share the work. */
static void load_block(const mlp_worker *self, int begin, int n, mlp_block *b)
{
    mlp_schedule *schedule = self->schedule;
    const mlp_training *training = schedule->training;
    const mlp_layer *layer = &training->network->layers[0];
    const long stride = layer->stride;
    for (int s = self->thread; s < n; s += self->n_threads) {
        const float *image = training->images + (long)training->order[begin + s] * layer->n_in;
        mlp_set_input(b->rows + s * stride, image, layer->n_in);
        b->background[s] = mlp_background(image, layer->n_in);
    }
    if (self->thread == 0) {
        b->n = n;
        schedule->panels.background = b->background;
    }
    mlp_barrier(self->team, self->thread);
    for (int t = self->thread; t < n; t += self->n_threads) {
        float *dots = schedule->input_dots + (long)t * schedule->block;
        schedule->kernels->dots(b->rows, stride, t, b->rows + t * stride, 0, layer->stride, dots);
        for (int s = 0; s < t; s++) dots[s] *= training->learning_rates[0];
    }
    pack_block(self, b);
    mlp_barrier(self->team, self->thread);
}

/* Updates rows of layer l by n samples, and packs them if the next block reads packed weights. */
static void update_and_pack(const mlp_worker *self, int l, int n, int pack, int begin, int end)
{
    mlp_schedule *schedule = self->schedule;
    const mlp_layer *layer = &schedule->training->network->layers[l];
    mlp_layer_buffers *b = &schedule->buffers[l];
    schedule->kernels->update_block(layer, b->deltas, b->width, b[-1].states, n,
                                    schedule->training->learning_rates[l], begin, end);
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
        for (int i = begin; i < end; i += MLP_PACKED_ROWS)
            update_and_pack(self, l, n, pack, i,
                            end - i < MLP_PACKED_ROWS ? end : i + MLP_PACKED_ROWS);
    }
}

/* Updates the first layer by a block, and forms its products with the next block's n_next samples,
 * tile by tile. Either block may be empty. load_block has loaded the next one. */
static void update_first(const mlp_worker *self, const mlp_block *block, int n_next)
{
    mlp_schedule *schedule = self->schedule;
    const mlp_kernels *kernels = schedule->kernels;
    const mlp_layer *layer = &schedule->training->network->layers[0];
    const mlp_layer_buffers *b = &schedule->buffers[0];
    long panel = mlp_tile_rows(layer) * MLP_PANEL;
    float *products = schedule->product_panels +
                      (long)self->thread * mlp_tile_rows(layer) * mlp_padded(schedule->block);
    int first, last;
    mlp_own_tiles(layer, self->thread, self->n_threads, &first, &last);
    for (int tile = first; tile < last; tile++) {
        int begin = mlp_tile_begin(layer, tile), end = mlp_tile_begin(layer, tile + 1);
        for (int i = 0; i * MLP_CHUNK_SAMPLES < block->n; i++)
            kernels->update_foreground(layer, b->deltas + (long)i * MLP_CHUNK_SAMPLES * b->width,
                                       b->width, group_samples(block, i), &block->groups[i],
                                       schedule->training->learning_rates[0], begin, end);
        if (n_next) {
            kernels->product(layer, schedule->ones, begin, end, schedule->row_sums);
            kernels->product_block(layer, &schedule->panels, n_next, begin, end, products, panel);
            mlp_from_panels(products, panel, end - begin, n_next, schedule->products + begin,
                            b->width);
        }
    }
}

void mlp_train_deferred(void *argument, mlp_team *team, int thread, int n_threads)
{
    mlp_schedule *schedule = argument;
    const mlp_training *training = schedule->training;
    mlp_worker self = {schedule, team, thread, n_threads, 0};
    const int total = training->n_samples, block = schedule->block;
    mlp_block *now = &schedule->blocks[0], *next = &schedule->blocks[1];
    int n = total < block ? total : block;

    update_upper(&self, 0, n);
    load_block(&self, 0, n, now);
    update_first(&self, next, n); /* `next` is still empty */
    for (int begin = 0; n;) {
        self.reads_packed = mlp_packing_pays(n, block);
        for (int t = 0; t < n; t++) {
            go_up(&self, t);
            come_down(&self, t, training->labels[training->order[begin + t]], begin + t + 1);
        }
        begin += n;
        const int rest = total - begin;
        int n_next = rest < block ? rest : block;
        update_upper(&self, n, n_next);
        mlp_barrier(team, thread); /* all are done with the block's states, and all see a stop */
        if (training->poll.stop) n_next = 0;
        if (n_next) load_block(&self, begin, n_next, next);
        update_first(&self, now, n_next);
        mlp_block *swap = now;
        now = next;
        next = swap;
        n = n_next;
    }
}
