/* Closes an instruction set's file: all kernels over its vector operations, and their table. */
#include "layer_kernels.h"

#ifdef PACKED_WEIGHTS
#include "packed_kernels.h"
#else
#define PACKED_ENTRIES .pack_weights = NULL
#endif

#include "block_kernels.h"
#include "deformation_kernels.h"
#include "sparse_kernels.h"

#define ENTRY(kernel) .kernel = KERNEL(kernel)
#define ACTIVATE_ENTRY(number, name) [number] = KERNEL(activate_##name),
#define DELTA_ENTRY(number, name) [number] = KERNEL(delta_##name),

#define DEFINE_KERNEL_TABLE(table, text)                                                       \
    const mlp_kernels table = {                                                                \
        .name = text,                                                                          \
        ENTRY(product),                                                                        \
        .activate = {MLP_ACTIVATIONS(ACTIVATE_ENTRY)[MLP_SOFTMAX] = KERNEL(activate_identity), \
                     [MLP_LINEAR] = KERNEL(activate_identity),                                 \
                     [MLP_SIGMOID] = KERNEL(activate_identity)},                               \
        ENTRY(backward),                                                                       \
        .delta_hidden = {MLP_ACTIVATIONS(DELTA_ENTRY)},                                        \
        ENTRY(dots),                                                                           \
        ENTRY(correct),                                                                        \
        ENTRY(update_block),                                                                   \
        ENTRY(update_foreground),                                                              \
        ENTRY(pack_groups),                                                                    \
        ENTRY(product_block),                                                                  \
        ENTRY(list_active),                                                                    \
        ENTRY(product_rows),                                                                   \
        ENTRY(product_active),                                                                 \
        ENTRY(dot_rows),                                                                       \
        ENTRY(step_rows),                                                                      \
        ENTRY(move_rows),                                                                      \
        ENTRY(update_rows),                                                                    \
        ENTRY(linear_rows),                                                                    \
        ENTRY(fisher_rows),                                                                    \
        PACKED_ENTRIES,                                                                        \
        .together = TOGETHER,                                                                  \
        .group_columns = VW,                                                                   \
        ENTRY(noise),                                                                          \
        ENTRY(convolve),                                                                       \
        ENTRY(lookup_row),                                                                     \
    }
