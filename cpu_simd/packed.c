#include "packed.h"

#include "buffers.h"
#include "partition.h"

int mlp_is_packed(const mlp_network *network, int l, long from)
{
    long weights = 0;
    for (int i = 1; i < network->n_layers; i++)
        weights += (long)network->layers[i].n_out * network->layers[i].stride;
    return l > 0 && mlp_n_owners(&network->layers[l]) > 1 && from >= 0 && weights >= from;
}

int mlp_allocate_packed(mlp_packed *packed, const mlp_layer *layer, int lanes)
{
    packed->stride = mlp_packed_stride(layer->stride, lanes);
    packed->words = mlp_room((size_t)layer->n_out * (size_t)packed->stride);
    packed->scales = mlp_floats((size_t)layer->n_out);
    return packed->words && packed->scales ? 0 : -1;
}

void mlp_free_packed(mlp_packed *packed)
{
    free(packed->words);
    free(packed->scales);
}

int mlp_packed_passes(const mlp_kernels *kernels, const mlp_layer *layer, const float *inputs,
                      const float *deltas, int n, float *sums, float *sums_below)
{
    const long n_in = layer->n_in, n_out = layer->n_out;
    mlp_packed packed;
    float *x = mlp_floats((size_t)layer->stride), *below = mlp_floats((size_t)layer->stride);
    float *a = mlp_floats((size_t)mlp_padded(layer->n_out));
    const int ok = !mlp_allocate_packed(&packed, layer, kernels->group_columns) && x && below && a;
    if (ok) kernels->pack(layer, 0, layer->n_out, &packed);
    for (long s = 0; ok && s < n; s++) {
        mlp_set_input(x, inputs + s * n_in, layer->n_in);
        kernels->product_packed(layer, &packed, x, 0, layer->n_out, a);
        memcpy(sums + s * n_out, a, sizeof(float) * (size_t)n_out);
        kernels->backward_packed(layer, &packed, deltas + s * n_out, 0, layer->n_out, below);
        memcpy(sums_below + s * (n_in + 1), below, sizeof(float) * (size_t)(n_in + 1));
    }
    mlp_free_packed(&packed);
    free(x);
    free(below);
    free(a);
    return ok ? 0 : -1;
}
