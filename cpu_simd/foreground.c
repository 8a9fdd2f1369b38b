/* Finding the foreground, and packing it for products. */
#include "foreground.h"

#include <math.h>

#include "buffers.h"

float mlp_background(const float *x, int n_in)
{
    int count = 0;
    for (int j = 0; j < n_in; j++) count += x[j] == x[0];
    return isfinite(x[0]) && count > 1 && 4 * (ptrdiff_t)count >= n_in ? x[0] : 0.0f;
}

void mlp_allocate_panels(mlp_memory *memory, mlp_panels *panels, const mlp_layer *layer, int n,
                         int together)
{
    const size_t stride = (size_t)layer->stride;
    const size_t lists = (size_t)(n + together - 1) / (size_t)together;
    panels->together = together;
    panels->values = mlp_keep_floats(memory, stride * (size_t)mlp_padded(n));
    panels->columns = mlp_keep(memory, mlp_zeros(lists * stride, sizeof *panels->columns));
    panels->counts = mlp_keep(
        memory, mlp_zeros(lists * (size_t)mlp_n_chunks(layer->stride), sizeof *panels->counts));
}

void mlp_allocate_groups(mlp_memory *memory, mlp_groups *groups, const mlp_layer *layer, int n,
                         int columns)
{
    const size_t room = (size_t)n, n_groups = (size_t)(layer->stride / columns);
    groups->room = n;
    groups->values = mlp_keep_floats(memory, (size_t)layer->stride * room);
    groups->samples = mlp_keep(memory, mlp_zeros(n_groups * room, sizeof *groups->samples));
    groups->counts = mlp_keep(memory, mlp_zeros(n_groups, sizeof *groups->counts));
}

/* Lists the columns begin <= j < end that have foreground in any of n samples; returns how many. */
static int list_columns(const float *x, ptrdiff_t row, int n, const float *background, int begin,
                        int end, int *columns)
{
    int foreground[MLP_CHUNK_COLUMNS] = {0};
    for (int s = 0; s < n; s++)
        for (int j = begin; j < end; j++) foreground[j - begin] |= x[s * row + j] != background[s];
    int k = 0;
    for (int j = begin; j < end; j++) {
        columns[k] = j;
        k += foreground[j - begin];
    }
    return k;
}

void mlp_pack_panels(const mlp_panels *panels, const mlp_layer *layer, const float *x,
                     ptrdiff_t row, int n, int part)
{
    const int begin = part * MLP_CHUNK_COLUMNS, bias = layer->n_in;
    const int end = begin + MLP_CHUNK_COLUMNS < bias ? begin + MLP_CHUNK_COLUMNS : bias;
    const int with_bias = begin <= bias && bias < begin + MLP_CHUNK_COLUMNS;
    for (int first = 0, list = 0; first < n; first += panels->together, list++) {
        const int rest = n - first, here = rest < panels->together ? rest : panels->together;
        const float *xs = x + first * row, *background = panels->background + first;
        int *columns = panels->columns + (ptrdiff_t)list * layer->stride + begin;
        const int count = list_columns(xs, row, here, background, begin, end, columns);
        for (int s = 0; s < here; s++) {
            float *z = panels->values +
                       ((ptrdiff_t)((first + s) / MLP_PANEL) * layer->stride + begin) * MLP_PANEL +
                       s % MLP_PANEL;
            for (int k = 0; k < count; k++)
                z[k * MLP_PANEL] = xs[s * row + columns[k]] - background[s];
            if (with_bias) z[count * MLP_PANEL] = 1.0f;
        }
        if (with_bias) columns[count] = bias;
        panels->counts[list * mlp_n_chunks(layer->stride) + part] = count + with_bias;
    }
}

void mlp_set_ones(float *x, const mlp_layer *layer)
{
    for (int j = 0; j < layer->stride; j++) x[j] = j < layer->n_in ? 1.0f : 0.0f;
}
