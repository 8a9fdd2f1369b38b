/* The deferred schedule's first layer, whose inputs are known a block ahead. */
#include "first_layer.h"

#include "buffers.h"
#include "train_decay.h"
#include "train_sparse.h"

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

/* Loads the images of the steps begin ... begin + n - 1. The threads share the work. */
static void load_images(const mlp_worker *self, int begin, int n, mlp_block *b)
{
    const mlp_training *training = self->schedule->training;
    const mlp_layer *layer = &training->network->layers[0];
    for (int s = self->thread; s < n; s += self->n_threads) {
        const float *image = training->images + (ptrdiff_t)training->order[begin + s] * layer->n_in;
        mlp_set_input(b->rows + (ptrdiff_t)s * layer->stride, image, layer->n_in);
        b->background[s] = mlp_background(image, layer->n_in);
    }
    if (self->thread == 0) {
        b->n = n;
        self->schedule->panels.background = b->background;
    }
}

/* input_dots[t][s] = eta x_s . x_t, s < t; without the bias's 1, times what weights kept since. */
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
        for (int s = 0; s < t; s++) dots[s] *= schedule->training->learning_rates[0];
    }
}

void mlp_load_block(const mlp_worker *self, int begin, int n, mlp_block *b)
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

void mlp_update_first(const mlp_worker *self, const mlp_block *block, const mlp_block *next,
                      int n_next)
{
    mlp_decay_deltas(self, 0, block->n);
    if (self->schedule->buffers[0].tiles)
        mlp_update_first_tiles(self, block, next, n_next);
    else
        update_dense(self, block, n_next);
}
