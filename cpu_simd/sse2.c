/* Four floats at a time, without fused multiply-add: every x86-64 CPU since 2003. */
#include <stdint.h>

#ifdef __SSE2__
#include <emmintrin.h>

#define KERNEL(name) name##_sse2
#define VW 4

typedef __m128 vf;
typedef uint32_t vi __attribute__((vector_size(16)));

static inline vf vf_min(vf a, vf b) { return _mm_min_ps(a, b); }
static inline vf vf_max(vf a, vf b) { return _mm_max_ps(a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return a * b + c; }
static inline float vf_sum(vf a)
{
    a = _mm_add_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_add_ss(a, _mm_shuffle_ps(a, a, 1)));
}
static inline unsigned vf_active(vf a)
{
    return (unsigned)_mm_movemask_ps(_mm_cmpneq_ps(a, _mm_setzero_ps()));
}

static inline vi vi_mulhilo(vi a, uint32_t m, vi *high)
{
    __m128i b = (__m128i)a, factor = _mm_set1_epi32((int)m);
    __m128i even = _mm_mul_epu32(b, factor), odd = _mm_mul_epu32(_mm_srli_epi64(b, 32), factor);
    enum { hi = _MM_SHUFFLE(3, 1, 3, 1), lo = _MM_SHUFFLE(2, 0, 2, 0) };
    __m128i high_even = _mm_shuffle_epi32(even, hi), high_odd = _mm_shuffle_epi32(odd, hi);
    *high = (vi)_mm_unpacklo_epi32(high_even, high_odd);
    return (vi)_mm_unpacklo_epi32(_mm_shuffle_epi32(even, lo), _mm_shuffle_epi32(odd, lo));
}
static inline vf two_pairs(const float *p, uint32_t i, uint32_t k)
{
    return _mm_loadh_pi(_mm_loadl_pi(_mm_setzero_ps(), (const __m64 *)(p + i)),
                        (const __m64 *)(p + k));
}
static inline void vf_gather_pairs(const float *p, vi index, vf *first, vf *second)
{
    vf a = two_pairs(p, index[0], index[1]), b = two_pairs(p, index[2], index[3]);
    *first = _mm_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0));
    *second = _mm_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1));
}

enum { SUM_ROWS = 4, SUM_VECTORS = 2 };

#include "kernel_table.h"

DEFINE_KERNEL_TABLE(mlp_sse2, "sse2");

#else
#include "kernels.h"
const mlp_kernels mlp_sse2 = {0}; /* not built for this machine */
#endif
