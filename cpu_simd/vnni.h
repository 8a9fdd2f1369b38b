/* The products of int8.c on CPUs that multiply and add 64 of its integers at once (AVX-512 VNNI).
 */
#ifndef MLPCORE_VNNI_H
#define MLPCORE_VNNI_H

#include <stdint.h>

/* Whether this build has it. */
extern const int mlp_vnni_compiled;

/* Whether this build, CPU and operating system have it: dispatch.c. */
int mlp_has_vnni(void);

/* Sums of a block of 4 neurons and a group of 16 samples: adds those of n quads, all or those that
 * are listed, in the shapes of int8.c; `apart` is the distance of two neurons' sums. */
void mlp_multiply_vnni(const uint32_t *w, const int *listed, const uint32_t *x, int n,
                       int32_t *sums, long apart);

#endif
