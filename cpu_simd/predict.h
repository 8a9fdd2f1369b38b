/* The forward pass of many samples. */
#ifndef MLPCORE_PREDICT_H
#define MLPCORE_PREDICT_H

#include "kernels.h"
#include "poll.h"

/* Outputs (n, n_classes) of the network for images (n, n_in). With finite weights a sample's
 * outputs depend neither on the others nor on the number of threads. Told to stop, it leaves some
 * as they were. Returns -1 when memory ran out. */
int mlp_predict(const mlp_kernels *kernels, const mlp_network *network, const float *images, int n,
                float *outputs, int n_threads, mlp_poll *poll);

#endif
