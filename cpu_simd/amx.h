/* The forward pass of many samples on a CPU's matrix unit (Intel AMX). */
#ifndef MLPCORE_AMX_H
#define MLPCORE_AMX_H

#include "predict.h"

/* Whether this build has it. */
extern const int mlp_amx_compiled;

/* Whether this build, CPU and operating system have it, and let this process use it: dispatch.c. */
int mlp_has_amx(void);

/* Layers of fewer inputs would be less exact than in float32: see amx.c. */
enum { MLP_AMX_INPUTS = 256 };

/* Like mlp_predict; the activation by the kernels. Every layer has MLP_AMX_INPUTS inputs or more,
 * and mlp_has_amx() has said yes. */
int mlp_predict_amx(const mlp_kernels *kernels, mlp_prediction *task, int n_threads);

#endif
