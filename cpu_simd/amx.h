/* The forward pass of many samples on a CPU's matrix unit (Intel AMX). */
#ifndef MLPCORE_AMX_H
#define MLPCORE_AMX_H

#include "kernels.h"
#include "poll.h"

/* Whether this build has it. */
extern const int mlp_amx_compiled;

/* Whether this build, CPU and operating system have it, and let this process use it: dispatch.c. */
int mlp_has_amx(void);

/* Layers of fewer inputs would be less exact than in float32: see amx.c. */
enum { MLP_AMX_INPUTS = 256 };

/* Outputs (n, n_classes) of the network for images (n, n_in), by the kernels' `activate`.
 * Every layer has MLP_AMX_INPUTS inputs or more, and mlp_has_amx() has said yes. Told to stop,
 * it leaves some as they were. Returns -1 when memory ran out. */
int mlp_predict_amx(const mlp_kernels *kernels, const mlp_network *network, const float *images,
                    int n, float *outputs, int n_threads, mlp_poll *poll);

#endif
