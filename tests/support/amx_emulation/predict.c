/* mlp_predict_amx for Python's ctypes. */
#include <string.h>

#include "amx.h"

/* sizes are those of n_layers + 1; weights[l] has n_out rows, padded, with the bias as the last. */
int predict(int n_layers, const int *sizes, float *const *weights, const float *images, int n,
            float *outputs, int n_threads, int (*ask)(void *argument, int done))
{
    mlp_layer layers[16];
    if (n_layers > 16) return -2;
    for (int l = 0; l < n_layers; l++)
        layers[l] = (mlp_layer){.n_in = sizes[l],
                                .n_out = sizes[l + 1],
                                .stride = mlp_padded(sizes[l] + 1),
                                .weights = weights[l]};
    const mlp_network network = {n_layers, layers};
    mlp_prediction task = {.network = &network, .images = images, .outputs = outputs, .n = n};
    mlp_start_poll(&task.poll, ask, NULL);
    return mlp_predict_amx(&mlp_scalar, &task, n_threads);
}
