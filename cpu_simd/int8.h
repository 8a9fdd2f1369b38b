/* The forward pass of many samples in 8-bit integers, nearly as in float32: by AVX2, and beside the
 * kernels of AVX-512 by VNNI where the CPU has it (vnni.h). */
#ifndef MLPCORE_INT8_H
#define MLPCORE_INT8_H

#include "predict.h"

/* Whether this build has it; it runs where mlp_avx2 does. */
extern const int mlp_int8_compiled;

/* Inputs of a layer with which it pays, and with which no sum overflows. */
enum { MLP_INT8_LEAST_INPUTS = 256, MLP_INT8_MOST_INPUTS = 1 << 17 };

/* Like mlp_predict; the last layer and the activation by the kernels. NaN where an image, or
 * weights that it depends on, are not finite. The network has two layers or more, and all but the
 * last a number of inputs within these bounds. */
int mlp_predict_int8(const mlp_kernels *kernels, mlp_prediction *task, int n_threads);

#endif
