/* Eight floats at a time with fused multiply-add: Haswell (2013), Zen and later. */
#include <stdint.h>

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>

#define KERNEL(name) name##_avx2
#define VW 8

typedef __m256 vf;
typedef uint32_t vi __attribute__((vector_size(32)));

static inline vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }
static inline vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
static inline float vf_sum(vf a)
{
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_shuffle_ps(b, b, 1)));
}
static inline unsigned vf_active(vf a)
{
    return (unsigned)_mm256_movemask_ps(_mm256_cmp_ps(a, _mm256_setzero_ps(), _CMP_NEQ_UQ));
}

static inline vi vi_mulhilo(vi a, uint32_t m, vi *high)
{
    __m256i b = (__m256i)a, factor = _mm256_set1_epi32((int)m);
    __m256i even = _mm256_mul_epu32(b, factor);
    __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(b, 32), factor);
    *high = (vi)_mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
    return (vi)_mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
}
static inline vi vi_round(vf a) { return (vi)_mm256_cvtps_epi32(a); }
/* AMD's gather instructions take three cycles or more a number, plain loads half a cycle. */
static inline __m128 two_pairs(const float *p, uint32_t i, uint32_t k)
{
    return _mm_loadh_pi(_mm_loadl_pi(_mm_setzero_ps(), (const __m64 *)(p + i)),
                        (const __m64 *)(p + k));
}
static inline void vf_gather_pairs(const float *p, vi index, vf *first, vf *second)
{
    uint32_t i[8];
    _mm256_storeu_si256((__m256i *)i, (__m256i)index);
    vf a = _mm256_set_m128(two_pairs(p, i[4], i[5]), two_pairs(p, i[0], i[1]));
    vf b = _mm256_set_m128(two_pairs(p, i[6], i[7]), two_pairs(p, i[2], i[3]));
    *first = _mm256_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0));
    *second = _mm256_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1));
}

enum { SUM_ROWS = 6, SUM_VECTORS = 2 };

#define PACKED_WEIGHTS
#include "kernel_table.h"

DEFINE_KERNEL_TABLE(mlp_avx2, "avx2");

#else
#include "kernels.h"
const mlp_kernels mlp_avx2 = {0}; /* not built for this machine */
#endif
