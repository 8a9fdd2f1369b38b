/* Four floats at a time with fused multiply-add: every 64-bit ARM CPU. */
#include <stdint.h>

#if defined(__aarch64__) && defined(__ARM_NEON)
#include <arm_neon.h>

#define KERNEL(name) name##_neon
#define VW 4

typedef float32x4_t vf;
typedef uint32x4_t vi;

/* As SSE's minps and maxps: the second operand when either is NaN. */
static inline vf vf_min(vf a, vf b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
static inline vf vf_max(vf a, vf b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return vfmaq_f32(c, a, b); }
static inline float vf_sum(vf a) { return vaddvq_f32(a); }
static inline unsigned vf_active(vf a)
{
    static const uint32_t bits[4] = {1, 2, 4, 8};
    return vaddvq_u32(vbicq_u32(vld1q_u32(bits), vceqzq_f32(a)));
}

static inline vi vi_mulhilo(vi a, uint32_t m, vi *high)
{
    vi first = vreinterpretq_u32_u64(vmull_n_u32(vget_low_u32(a), m));
    vi last = vreinterpretq_u32_u64(vmull_n_u32(vget_high_u32(a), m));
    *high = vuzp2q_u32(first, last);
    return vuzp1q_u32(first, last);
}
static inline vf two_pairs(const float *p, uint32_t i, uint32_t k)
{
    return vcombine_f32(vld1_f32(p + i), vld1_f32(p + k));
}
static inline void vf_gather_pairs(const float *p, vi index, vf *first, vf *second)
{
    uint32_t i[4];
    vst1q_u32(i, index);
    vf a = two_pairs(p, i[0], i[1]), b = two_pairs(p, i[2], i[3]);
    *first = vuzp1q_f32(a, b);
    *second = vuzp2q_f32(a, b);
}

enum { SUM_ROWS = 5, SUM_VECTORS = 4 };

#include "kernel_table.h"

DEFINE_KERNEL_TABLE(mlp_neon, "neon");

#else
#include "kernels.h"
const mlp_kernels mlp_neon = {0}; /* not built for this machine */
#endif
