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
#include "output.h"
#include "schedule.h"
#include "train_decay.h"
#include "train_sparse.h"

/* ---- the first layer, whose inputs are known a block ahead ---- */

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
        schedule->kernels->pack_groups(layer,
                                       b->rows + (ptrdiff_t)i * MLP_CHUNK_SAMPLES * layer->stride,
                                       group_samples(b, i), first, last, &b->groups[i]);
}

/* The threads share the work. */
static void load_images(const mlp_worker *self, int begin, int n, mlp_block *b)
{
    const mlp_training *training = self->schedule->training;
    const mlp_layer *layer = &training->network->layers[0];
    for (int s = self->thread; s < n; s += self->n_threads) {
        const float *image = training->images + (ptrdiff_t)training->order[begin + s] * layer->n_in;
        float *x = b->rows + (ptrdiff_t)s * layer->stride; /* whose padding stays zero */
        memcpy(x, image, sizeof(float) * (size_t)layer->n_in);
        x[layer->n_in] = 1.0f;
        b->background[s] = mlp_background(image, layer->n_in);
    }
    if (self->thread == 0) {
        b->n = n;
        self->schedule->panels.background = b->background;
    }
}

/* input_dots[t][s] = -eta x_s . x_t, s < t; without the bias's 1, times what weights kept since. */
static void multiply_inputs(const mlp_worker *self, const mlp_block *b)
{
    const mlp_schedule *schedule = self->schedule;
    const int stride = schedule->training->network->layers[0].stride;
    const float *kept = schedule->buffers[0].kept;
    for (int t = self->thread; t < b->n; t += self->n_threads) {
        float *dots = schedule->input_dots + (ptrdiff_t)t * schedule->block;
        schedule->kernels->dots(b->rows, stride, t, b->rows + (ptrdiff_t)t * stride, 0, stride,
                                dots);
        for (int s = 0; kept && s < t; s++) dots[s] = kept[t - 1 - s] * (dots[s] - 1.0f) + 1.0f;
        for (int s = 0; s < t; s++) dots[s] *= -schedule->training->learning_rates[0];
    }
}

/* Loads the images of the steps begin ... begin + n - 1, and forms their dot products times eta. */
static void load_block(const mlp_worker *self, int begin, int n, mlp_block *b)
{
    load_images(self, begin, n, b);
    mlp_barrier(self->team, self->thread);
    multiply_inputs(self, b);
    if (self->schedule->buffers[0].tiles)
        mlp_list_block(self, b);
    else
        pack_block(self, b);
    mlp_barrier(self->team, self->thread);
}

static void update_dense(const mlp_worker *self, const mlp_block *block, int n_next)
{
    mlp_schedule *schedule = self->schedule;
    const mlp_kernels *kernels = schedule->kernels;
    const mlp_layer *layer = &schedule->training->network->layers[0];
    const mlp_layer_buffers *b = &schedule->buffers[0];
    ptrdiff_t panel = mlp_tile_rows(layer) * MLP_PANEL;
    float *products = schedule->product_panels +
                      (ptrdiff_t)self->thread * mlp_tile_rows(layer) * mlp_padded(schedule->block);
    int first, last;
    mlp_own_tiles(layer, self->thread, self->n_threads, &first, &last);
    for (int tile = first; tile < last; tile++) {
        int begin = mlp_tile_begin(layer, tile), end = mlp_tile_begin(layer, tile + 1);
        float *rows = layer->weights + (ptrdiff_t)begin * layer->stride;
        mlp_shrink(b, block->n, rows, (ptrdiff_t)(end - begin) * layer->stride);
        for (int i = 0; i * MLP_CHUNK_SAMPLES < block->n; i++)
            kernels->update_foreground(layer,
                                       b->deltas + (ptrdiff_t)i * MLP_CHUNK_SAMPLES * b->width,
                                       b->width, group_samples(block, i), &block->groups[i],
                                       schedule->training->learning_rates[0], begin, end);
        mlp_set_biases(b, rows + layer->n_in, layer->stride, begin, end);
        if (n_next) {
            kernels->product(layer, schedule->ones, begin, end, schedule->row_sums);
            kernels->product_block(layer, &schedule->panels, n_next, begin, end, products, panel);
            mlp_from_panels(products, panel, end - begin, n_next, schedule->products + begin,
                            b->width);
        }
    }
}

/* Updates the first layer by a block, and forms its products with the next block's n_next samples,
 * tile by tile. Either block may be empty. */
static void update_first(const mlp_worker *self, const mlp_block *block, const mlp_block *next,
                         int n_next)
{
    mlp_decay_deltas(self, 0, block->n);
    if (self->schedule->buffers[0].tiles)
        mlp_update_first_tiles(self, block, next, n_next);
    else
        update_dense(self, block, n_next);
}

/* ---- a sample ---- */

/* What the outputs for an image should be. */
static mlp_wanted wanted_of(const mlp_training *training, const mlp_layer *layer, int image)
{
    if (training->targets)
        return (mlp_wanted){.values = training->targets + (ptrdiff_t)image * layer->n_out};
    return (mlp_wanted){.label = training->labels[image], .target = training->target};
}

/* The deltas of the thread's output neurons, once its part of the outputs y of an image is there.
 *
 * Everything below is linear in these deltas, the corrections too. So a weight here is a factor of
 * the learning rate. */
static void judge(const mlp_worker *self, const float *y, int image, float *delta,
                  mlp_outcome *outcome)
{
    const mlp_training *training = self->schedule->training;
    const int top = training->network->n_layers - 1;
    const mlp_layer *layer = &training->network->layers[top];
    const mlp_wanted wanted = wanted_of(training, layer, image);
    const int softmax = layer->activation == MLP_SOFTMAX;
    int begin, end;
    mlp_worker_rows(self, top, &begin, &end);
    if (softmax && mlp_n_owners(layer) > 1) mlp_barrier(self->team, self->thread);
    if (softmax && (begin < end || self->thread == 0)) /* which observes */
        *outcome = mlp_judge(layer, y, &wanted);
    mlp_output_deltas(layer, y, &wanted, training->sample_weights[image], outcome, begin, end,
                      delta);
}

/* Counts a sample whose outputs are complete, and asks now and then whether to stop. For thread 0.
 */
static void observe(mlp_training *training, const float *y, int image, mlp_outcome *outcome,
                    int done)
{
    const mlp_layer *layer = &training->network->layers[training->network->n_layers - 1];
    const mlp_wanted wanted = wanted_of(training, layer, image);
    if (layer->activation != MLP_SOFTMAX) *outcome = mlp_judge(layer, y, &wanted);
    training->loss += (double)training->sample_weights[image] * outcome->loss;
    training->errors += mlp_misses(layer, y, &wanted);
    training->done = done;
    mlp_ask(&training->poll);
}

/* coefficients[s] = -eta_l (bias + sum over the tiles of dots[tile][s]), s < n; the sum of samples
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
    for (int s = 0; s < n; s++) c[s] *= -schedule->training->learning_rates[l];
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
    for (int i = begin; i < end; i++) b->sums[i] = b[1].partials[i];
    for (ptrdiff_t tile = 1; tile < n_tiles; tile++)
        for (int i = begin; i < end; i++) b->sums[i] += b[1].partials[tile * above->stride + i];
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
    judge(self, y, image, b->deltas + (ptrdiff_t)t * b->width, &outcome);
    for (int l = top; l >= 1; l--) {
        backward(self, l, t);
        mlp_barrier(self->team, self->thread);
        if (l == top && self->thread == 0) observe(schedule->training, y, image, &outcome, done);
        finish_backward(self, l - 1, t);
    }
    if (self->thread == 0 && top == 0) observe(schedule->training, y, image, &outcome, done);
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

    mlp_copy_tiles(&self, 0);
    update_upper(&self, 0, n);
    load_block(&self, begin, n, now);
    update_first(&self, next, now, n); /* `next` is still empty */
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
        if (n_next) load_block(&self, begin, n_next, next);
        if (training->sparse) mlp_barrier(team, thread);
        update_first(&self, now, next, n_next);
        mlp_block *swap = now;
        now = next;
        next = swap;
        n = n_next;
    }
    mlp_copy_tiles(&self, 1);
}
