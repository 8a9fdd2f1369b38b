/* Sixteen floats at a time: AVX-512 F alone, so every CPU that has any AVX-512. */
#include <stdint.h>

#ifdef __AVX512F__
#include <immintrin.h>

#define KERNEL(name) name##_avx512
#define VW 16

typedef __m512 vf;
typedef __m512i vi;

static inline vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void vf_store(float *p, vf a) { _mm512_storeu_ps(p, a); }
static inline vf vf_set1(float a) { return _mm512_set1_ps(a); }
static inline vf vf_add(vf a, vf b) { return _mm512_add_ps(a, b); }
static inline vf vf_sub(vf a, vf b) { return _mm512_sub_ps(a, b); }
static inline vf vf_mul(vf a, vf b) { return _mm512_mul_ps(a, b); }
static inline vf vf_div(vf a, vf b) { return _mm512_div_ps(a, b); }
static inline vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
static inline vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
static inline vf vf_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); }
static inline float vf_sum(vf a) { return _mm512_reduce_add_ps(a); }
/* a where y > 0, else 0. */
static inline vf vf_where_positive(vf y, vf a)
{
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(y, _mm512_setzero_ps(), _CMP_GT_OQ), a);
}
/* Appends to `list` the numbers first + i of the lanes i that are not zero; returns how many. */
#define HAS_LIST_ACTIVE
static inline int vf_list_active(vf a, int first, int *list)
{
    const __mmask16 active = _mm512_cmp_ps_mask(a, _mm512_setzero_ps(), _CMP_NEQ_UQ);
    const __m512i lanes = _mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i numbers = _mm512_add_epi32(lanes, _mm512_set1_epi32(first));
    /* Compressing straight into memory is slow on some CPUs. */
    _mm512_storeu_si512(list, _mm512_maskz_compress_epi32(active, numbers));
    return __builtin_popcount(active);
}
static inline int vf_any(vf a)
{
    return _mm512_cmp_ps_mask(a, _mm512_setzero_ps(), _CMP_NEQ_UQ) != 0;
}

static inline vi vi_load(const uint32_t *p) { return _mm512_loadu_si512(p); }
static inline vi vi_set1(uint32_t a) { return _mm512_set1_epi32((int)a); }
static inline void vi_store(uint32_t *p, vi a) { _mm512_storeu_si512(p, a); }
static inline vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
static inline vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
static inline vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
static inline vi vi_shl(vi a, unsigned n) { return _mm512_slli_epi32(a, n); }
static inline vi vi_shr(vi a, unsigned n) { return _mm512_srli_epi32(a, n); }
static inline vi vi_or_and(vi a, vi b, vi c) { return _mm512_ternarylogic_epi32(a, b, c, 0xF8); }
static inline vi vi_xor(vi a, vi b) { return _mm512_xor_si512(a, b); }
static inline vi vi_mulhilo(vi a, uint32_t m, vi *high)
{
    vi factor = vi_set1(m);
    vi even = _mm512_mul_epu32(a, factor);
    vi odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), factor);
    *high = _mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 32), odd);
    return _mm512_mask_blend_epi32(0xAAAA, even, _mm512_slli_epi64(odd, 32));
}
static inline vf vf_from_vi(vi a) { return _mm512_cvtepi32_ps(a); }
static inline vi vi_from_vf(vf a) { return _mm512_cvttps_epi32(a); }
static inline vi vi_round(vf a) { return _mm512_cvtps_epi32(a); }
static inline void vf_gather_pairs(const float *p, vi index, vf *first, vf *second)
{
    *first = _mm512_i32gather_ps(index, p, 4);
    *second = _mm512_i32gather_ps(index, p + 1, 4);
}

enum { SUM_ROWS = 12, SUM_VECTORS = 2 };

#define PACKED_WEIGHTS
#include "kernel_table.h"

DEFINE_KERNEL_TABLE(mlp_avx512, "avx512");

#else
#include "kernels.h"
const mlp_kernels mlp_avx512 = {0}; /* not built for this machine */
#endif
