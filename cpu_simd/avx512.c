/* Sixteen floats at a time: AVX-512 F alone, so every CPU that has any AVX-512. */
#include <stdint.h>

#ifdef __AVX512F__
#include <immintrin.h>

#define KERNEL(name) name##_avx512
#define VW 16

typedef __m512 vf;
typedef uint32_t vi __attribute__((vector_size(64)));

static inline vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
static inline vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
static inline float vf_sum(vf a) { return _mm512_reduce_add_ps(a); }
static inline unsigned vf_active(vf a)
{
    return _mm512_cmp_ps_mask(a, _mm512_setzero_ps(), _CMP_NEQ_UQ);
}
/* Appends to `list` the numbers first + i of the lanes i that are not zero; returns how many. */
#define HAS_LIST_ACTIVE
static inline int vf_list_active(vf a, int first, int *list)
{
    const __mmask16 active = (__mmask16)vf_active(a);
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i numbers = _mm512_add_epi32(lanes, _mm512_set1_epi32(first));
    /* Compressing straight into memory is slow on some CPUs. */
    _mm512_storeu_si512(list, _mm512_maskz_compress_epi32(active, numbers));
    return __builtin_popcount(active);
}

static inline vi vi_mulhilo(vi a, uint32_t m, vi *high)
{
    __m512i b = (__m512i)a, factor = _mm512_set1_epi32((int)m);
    __m512i even = _mm512_mul_epu32(b, factor);
    __m512i odd = _mm512_mul_epu32(_mm512_srli_epi64(b, 32), factor);
    *high = (vi)_mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 32), odd);
    return (vi)_mm512_mask_blend_epi32(0xAAAA, even, _mm512_slli_epi64(odd, 32));
}
static inline vi vi_round(vf a) { return (vi)_mm512_cvtps_epi32(a); }
static inline __m128 two_pairs(const float *p, uint32_t i, uint32_t k)
{
    return _mm_loadh_pi(_mm_loadl_pi(_mm_setzero_ps(), (const __m64 *)(p + i)),
                        (const __m64 *)(p + k));
}
/* Gather instructions take longer, on AMD's CPUs above all (avx2.c). */
static inline __m512 eight_pairs(const float *p, const uint32_t *i)
{
    const __m512 two = _mm512_castps128_ps512(two_pairs(p, i[0], i[1]));
    const __m512 four = _mm512_insertf32x4(two, two_pairs(p, i[4], i[5]), 1);
    const __m512 six = _mm512_insertf32x4(four, two_pairs(p, i[8], i[9]), 2);
    return _mm512_insertf32x4(six, two_pairs(p, i[12], i[13]), 3);
}
static inline void vf_gather_pairs(const float *p, vi index, vf *first, vf *second)
{
    uint32_t i[16];
    _mm512_storeu_si512(i, (__m512i)index);
    const vf a = eight_pairs(p, i), b = eight_pairs(p, i + 2);
    *first = _mm512_shuffle_ps(a, b, _MM_SHUFFLE(2, 0, 2, 0));
    *second = _mm512_shuffle_ps(a, b, _MM_SHUFFLE(3, 1, 3, 1));
}

enum { SUM_ROWS = 12, SUM_VECTORS = 2 };

#define PACKED_WEIGHTS
#include "kernel_table.h"

DEFINE_KERNEL_TABLE(mlp_avx512, "avx512");

#else
#include "kernels.h"
const mlp_kernels mlp_avx512 = {0}; /* not built for this machine */
#endif
