/* Closes an instruction set's file: its kernels as the table of kernels.h. */
#define TABLE_ENTRY(kernel) .kernel = KERNEL(kernel)

#define DEFINE_KERNEL_TABLE(table, text)                                                      \
    const mlp_kernels table = {.name = text,                                                  \
                               TABLE_ENTRY(forward),                                          \
                               TABLE_ENTRY(backward),                                         \
                               TABLE_ENTRY(update),                                           \
                               TABLE_ENTRY(backward_update),                                  \
                               TABLE_ENTRY(update_forward),                                   \
                               TABLE_ENTRY(delta_hidden),                                     \
                               TABLE_ENTRY(delta_output),                                     \
                               TABLE_ENTRY(noise),                                            \
                               TABLE_ENTRY(convolve_columns),                                 \
                               TABLE_ENTRY(convolve_row),                                     \
                               TABLE_ENTRY(lookup_row)}
