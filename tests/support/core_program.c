/* Trains a network by the C core alone: core_program INPUT OUTPUT KERNELS THREADS PACKED_FROM
 *
 * INPUT, in the machine's order of bytes: int32 n, n + 1 layer sizes, the number of samples;
 * float32 the weights of each layer, the biases of each layer, a learning rate of each layer, the
 * target, the images; a byte of each label. OUTPUT: the weights and biases after a step for each
 * sample. The status is 3 if the kernels do not run here. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "allocate.h"
#include "train.h"

static void check(int holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "core_program: %s\n", what);
    exit(1);
}

static void *read_things(FILE *file, size_t n, size_t size)
{
    void *things = mlp_zeros(n, size);
    check(things && fread(things, size, n, file) == n, "cannot read the input");
    return things;
}

enum { READ, WRITE };

/* Weights first, then biases. */
static void transfer(const mlp_network *network, FILE *file, int direction)
{
    for (int biases = 0; biases < 2; biases++)
        for (int l = 0; l < network->n_layers; l++) {
            const mlp_layer *layer = &network->layers[l];
            const size_t n = biases ? 1 : (size_t)layer->n_in;
            for (int i = 0; i < layer->n_out; i++) {
                float *row = layer->weights + (size_t)i * (size_t)layer->stride;
                float *from = biases ? row + layer->n_in : row;
                check((direction == READ ? fread(from, sizeof *from, n, file)
                                         : fwrite(from, sizeof *from, n, file)) == n,
                      "cannot read or write weights");
            }
        }
}

static mlp_network new_network(int n_layers, const int32_t *sizes)
{
    mlp_network network = {n_layers, mlp_zeros((size_t)n_layers, sizeof *network.layers)};
    check(network.layers != NULL, "out of memory");
    for (int l = 0; l < n_layers; l++) {
        mlp_layer *layer = &network.layers[l];
        layer->n_in = sizes[l];
        layer->n_out = sizes[l + 1];
        layer->stride = mlp_padded(layer->n_in + 1);
        layer->activation = MLP_TANH;
        const size_t bytes = (size_t)layer->n_out * (size_t)layer->stride * sizeof(float);
        layer->weights = mlp_allocate(bytes);
        check(layer->weights != NULL, "out of memory");
        memset(layer->weights, 0, bytes);
    }
    return network;
}

int main(int argc, char **argv)
{
    check(argc == 6, "expected INPUT OUTPUT KERNELS THREADS PACKED_FROM");
    const char *reason;
    const mlp_kernels *kernels = mlp_find_kernels(argv[3], &reason);
    if (!kernels) {
        fprintf(stderr, "core_program: %s: %s\n", argv[3], reason);
        return 3;
    }
    FILE *file = fopen(argv[1], "rb");
    check(file != NULL, "cannot open the input");
    const int32_t n_layers = *(int32_t *)read_things(file, 1, sizeof(int32_t));
    const int32_t *sizes = read_things(file, (size_t)n_layers + 1, sizeof *sizes);
    const int32_t n = *(int32_t *)read_things(file, 1, sizeof(int32_t));
    mlp_network network = new_network(n_layers, sizes);
    transfer(&network, file, READ);

    int32_t *order = mlp_zeros((size_t)n, sizeof *order);
    check(order != NULL, "out of memory");
    for (int32_t i = 0; i < n; i++) order[i] = i;
    mlp_team_size team_size = {0};
    mlp_training training = {
        .network = &network,
        .order = order,
        .n_samples = n,
        .block = 32,
        .packed_from = kernels->pack_weights ? atoi(argv[5]) : -1,
        .team_size = &team_size,
    };
    training.learning_rates = read_things(file, (size_t)n_layers, sizeof(float));
    training.target = *(float *)read_things(file, 1, sizeof(float));
    training.images = read_things(file, (size_t)n * (size_t)sizes[0], sizeof(float));
    training.labels = read_things(file, (size_t)n, 1);
    fclose(file);
    mlp_start_poll(&training.poll, NULL, NULL);
    check(mlp_train(kernels, &training, atoi(argv[4])) == 0, "out of memory");

    file = fopen(argv[2], "wb");
    check(file != NULL, "cannot open the output");
    transfer(&network, file, WRITE);
    check(fclose(file) == 0, "cannot write the output");
    return 0;
}
