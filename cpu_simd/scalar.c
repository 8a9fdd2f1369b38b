/* One number at a time: the paper's "standard processor". setup.py turns automatic
 * vectorisation off for this file, so it stays that. */
#include <stdint.h>

#define KERNEL(name) name##_scalar
#define VW 1

typedef float vf;
typedef uint32_t vi;

/* As SSE's minps and maxps: the second operand when either is NaN. */
static inline vf vf_min(vf a, vf b) { return a < b ? a : b; }
static inline vf vf_max(vf a, vf b) { return a > b ? a : b; }
static inline vf vf_fma(vf a, vf b, vf c) { return a * b + c; }
static inline float vf_sum(vf a) { return a; }
static inline vf vf_where_positive(vf y, vf a) { return y > 0.0f ? a : 0.0f; }
static inline unsigned vf_active(vf a) { return a != 0.0f; }

static inline vi vi_mulhilo(vi a, uint32_t m, vi *high)
{
    uint64_t product = (uint64_t)a * m;
    *high = (uint32_t)(product >> 32);
    return (uint32_t)product;
}
static inline vf vf_from_vi(vi a) { return (float)(int32_t)a; }
static inline vi vi_from_vf(vf a) { return (uint32_t)(int32_t)a; }
static inline void vf_gather_pairs(const float *p, vi index, vf *first, vf *second)
{
    *first = p[index];
    *second = p[index + 1];
}

enum { SUM_ROWS = 4, SUM_VECTORS = 2 };

#include "kernel_table.h"

DEFINE_KERNEL_TABLE(mlp_scalar, "scalar");
