/* The network as the C kernels see it.
 *
 * A layer's weights and biases share one matrix W of n_out rows:
 *
 *     row i:  w[i][0] ... w[i][n_in - 1]  b[i]  0 ... 0      (stride floats)
 *
 * The bias is the weight of an input that is always 1, as in the paper's listings, so
 * every kernel is a plain matrix operation on vectors x of `stride` floats laid out as
 * x[0] ... x[n_in - 1] 1 0 ... 0. Rows start on 64-byte boundaries and the padding stays
 * zero, because its inputs are zero; after updates by infinite deltas it is cleared.
 */
#pragma once

#include <stddef.h>

/* Floats in the widest vector register, and in a cache line: rows are padded to this. */
#define MLP_ALIGN 16

/* MLP_TANH is the paper's scaled tanh, y(a) = A tanh(B a) (LeCun et al. 1998). */
#define MLP_A 1.7159f
#define MLP_B 0.6666f

/* The error from which Huber's loss is linear, as in mlpcore/network/activation.py. */
#define MLP_HUBER 1.345

/* The activations of hidden neurons, in the order of mlpcore/network/activation.py: X(number,
 * name). A kernel activate_NAME computes y(a), and delta_NAME the deltas. */
#define MLP_ACTIVATIONS(X) X(MLP_TANH, tanh) X(MLP_RELU, relu)

/* y(a) of a layer's neurons. MLP_SOFTMAX and those after it are for the last layer alone. */
#define MLP_NUMBER(number, name) number,
typedef enum {
    MLP_ACTIVATIONS(MLP_NUMBER) MLP_SOFTMAX,
    MLP_LINEAR,
    MLP_SIGMOID,
    MLP_N_ACTIVATIONS
} mlp_activation;
#undef MLP_NUMBER

typedef struct {
    int n_in;       /* inputs, without the bias */
    int n_out;      /* neurons */
    int stride;     /* floats per row of W, a multiple of MLP_ALIGN, at least n_in + 1 */
    float *weights; /* W, n_out rows */
    mlp_activation activation;
} mlp_layer;

typedef struct {
    int n_layers;
    mlp_layer *layers;
} mlp_network;

static inline int mlp_padded(int n) { return (n + MLP_ALIGN - 1) / MLP_ALIGN * MLP_ALIGN; }
