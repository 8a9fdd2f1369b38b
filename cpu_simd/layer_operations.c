/* The passes through a single layer. They exist to be compared with the oracle and to be timed. */
#include "buffers.h"
#include "output.h"
#include "partition.h"
#include "train.h"

typedef struct {
    const mlp_kernels *kernels;
    const mlp_layer *layer;
    mlp_activation below; /* of the states */
    const float *inputs, *deltas, *states;
    int n;
    float *result;
    float *scratch;  /* 2 * width floats per thread */
    float *partials; /* a row per tile */
    ptrdiff_t width; /* the longer side of the layer, padded */
} operation;

static int run(operation *op, mlp_task task, int n_threads)
{
    const mlp_layer *layer = op->layer;
    const int neurons = mlp_padded(layer->n_out + 1);
    n_threads = mlp_at_most(n_threads, mlp_n_owners(layer));
    op->width = layer->stride > neurons ? layer->stride : neurons;
    op->scratch = mlp_floats(2 * (size_t)n_threads * (size_t)op->width);
    op->partials = mlp_floats((size_t)mlp_n_tiles(layer) * (size_t)layer->stride);
    const int status = op->scratch && op->partials ? 0 : -1;
    if (status == 0) mlp_run_team(n_threads, task, op);
    mlp_free(op->scratch);
    mlp_free(op->partials);
    return status;
}

static void forward_task(void *argument, mlp_team *team, int thread, int n_threads)
{
    (void)team;
    const operation *op = argument;
    const mlp_layer *layer = op->layer;
    float *x = op->scratch + 2 * thread * op->width, *a = x + op->width;
    int begin, end;
    mlp_own_rows(layer, thread, n_threads, &begin, &end);
    for (ptrdiff_t s = 0; s < op->n; s++) {
        mlp_set_input(x, op->inputs + s * layer->n_in, layer->n_in);
        op->kernels->product(layer, x, begin, end, a);
        op->kernels->activate[layer->activation](a, begin, end, op->result + s * layer->n_out);
    }
}

int mlp_forward(const mlp_kernels *kernels, const mlp_layer *layer, const float *inputs, int n,
                float *outputs, int n_threads)
{
    operation op = {
        .kernels = kernels, .layer = layer, .inputs = inputs, .n = n, .result = outputs};
    const int status = run(&op, forward_task, n_threads);
    if (status == 0) mlp_finish_outputs(layer, outputs, n);
    return status;
}

static void backward_task(void *argument, mlp_team *team, int thread, int n_threads)
{
    const operation *op = argument;
    const mlp_layer *layer = op->layer;
    float *states = op->scratch + 2 * thread * op->width, *below = states + op->width;
    int first, last, begin, end;
    mlp_own_tiles(layer, thread, n_threads, &first, &last);
    mlp_share(layer->stride / MLP_ALIGN, thread, n_threads, &begin, &end);
    begin *= MLP_ALIGN;
    end = end * MLP_ALIGN < layer->n_in ? end * MLP_ALIGN : layer->n_in;
    for (ptrdiff_t s = 0; s < op->n; s++) {
        for (int tile = first; tile < last; tile++)
            op->kernels->backward(layer, op->deltas + s * layer->n_out, mlp_tile_begin(layer, tile),
                                  mlp_tile_begin(layer, tile + 1),
                                  op->partials + (ptrdiff_t)tile * layer->stride);
        mlp_barrier(team, thread);
        if (begin < end) {
            mlp_set_input(states, op->states + s * layer->n_in, layer->n_in);
            op->kernels->sum_tiles(op->partials, mlp_n_tiles(layer), layer->stride, begin, end,
                                   below);
            op->kernels->delta_hidden[op->below](below, states, begin, end, below);
            memcpy(op->result + s * layer->n_in + begin, below + begin,
                   sizeof(float) * (size_t)(end - begin));
        }
        mlp_barrier(team, thread);
    }
}

int mlp_backward(const mlp_kernels *kernels, const mlp_layer *layer, mlp_activation below,
                 const float *deltas, const float *states, int n, float *deltas_below,
                 int n_threads)
{
    operation op = {.kernels = kernels,
                    .layer = layer,
                    .below = below,
                    .deltas = deltas,
                    .states = states,
                    .n = n,
                    .result = deltas_below};
    return run(&op, backward_task, n_threads);
}
