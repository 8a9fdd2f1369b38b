/* Four floats at a time, without fused multiply-add: every x86-64 CPU since 2003. */
#include <stdint.h>

#ifdef __SSE2__
#include <emmintrin.h>

#define KERNEL(name) name##_sse2
#define VW 4

typedef __m128 vf;
typedef __m128i vi;

static inline vf vf_load(const float *p) { return _mm_loadu_ps(p); }
static inline void vf_store(float *p, vf a) { _mm_storeu_ps(p, a); }
static inline vf vf_set1(float a) { return _mm_set1_ps(a); }
static inline vf vf_add(vf a, vf b) { return _mm_add_ps(a, b); }
static inline vf vf_sub(vf a, vf b) { return _mm_sub_ps(a, b); }
static inline vf vf_mul(vf a, vf b) { return _mm_mul_ps(a, b); }
static inline vf vf_div(vf a, vf b) { return _mm_div_ps(a, b); }
static inline vf vf_min(vf a, vf b) { return _mm_min_ps(a, b); }
static inline vf vf_max(vf a, vf b) { return _mm_max_ps(a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm_add_ps(_mm_mul_ps(a, b), c); }
static inline vf vf_fnma(vf a, vf b, vf c) { return _mm_sub_ps(c, _mm_mul_ps(a, b)); }
static inline float vf_sum(vf a)
{
    a = _mm_add_ps(a, _mm_movehl_ps(a, a));
    return _mm_cvtss_f32(_mm_add_ss(a, _mm_shuffle_ps(a, a, 1)));
}
static inline vf vf_where_positive(vf y, vf a)
{
    return _mm_and_ps(_mm_cmpgt_ps(y, _mm_setzero_ps()), a);
}
static inline unsigned vf_active(vf a)
{
    return (unsigned)_mm_movemask_ps(_mm_cmpneq_ps(a, _mm_setzero_ps()));
}
static inline int vf_any(vf a) { return vf_active(a) != 0; }

static inline vi vi_load(const uint32_t *p) { return _mm_loadu_si128((const __m128i *)p); }
static inline vi vi_set1(uint32_t a) { return _mm_set1_epi32((int)a); }
static inline vi vi_add(vi a, vi b) { return _mm_add_epi32(a, b); }
static inline vi vi_xor(vi a, vi b) { return _mm_xor_si128(a, b); }
static inline vi vi_mulhilo(vi a, uint32_t m, vi *high)
{
    vi factor = vi_set1(m);
    vi even = _mm_mul_epu32(a, factor), odd = _mm_mul_epu32(_mm_srli_epi64(a, 32), factor);
    enum { hi = _MM_SHUFFLE(3, 1, 3, 1), lo = _MM_SHUFFLE(2, 0, 2, 0) };
    vi high_even = _mm_shuffle_epi32(even, hi), high_odd = _mm_shuffle_epi32(odd, hi);
    *high = _mm_unpacklo_epi32(high_even, high_odd);
    return _mm_unpacklo_epi32(_mm_shuffle_epi32(even, lo), _mm_shuffle_epi32(odd, lo));
}
static inline vf vf_from_vi(vi a) { return _mm_cvtepi32_ps(a); }
static inline vi vi_from_vf(vf a) { return _mm_cvttps_epi32(a); }
static inline vf two_pairs(const float *p, uint32_t i, uint32_t k)
{
    return _mm_loadh_pi(_mm_loadl_pi(_mm_setzero_ps(), (const __m64 *)(p + i)),
                        (const __m64 *)(p + k));
}
static inline void vf_gather_pairs(const float *p, vi index, vf *first, vf *second)
{
    uint32_t i[4];
    _mm_storeu_si128((__m128i *)i, index);
    vf a = two_pairs(p, i[0], i[1]), b = two_pairs(p, i[2], i[3]);
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
