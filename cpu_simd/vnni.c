/* One instruction multiplies a quad of each of 16 samples by a neuron's, and adds the four products
 * to a sum of 32 bits: the same integers as int8.c's own instructions, in a third as many. */
#include "vnni.h"

#if defined(__AVX512F__) && defined(__AVX512VNNI__)
#include <immintrin.h>

const int mlp_vnni_compiled = 1;

enum { GROUP = 16, BLOCK = 4 };

void mlp_multiply_vnni(const uint32_t *w, const int *listed, const uint32_t *x, int n,
                       int32_t *sums, long apart)
{
    /* Two quads at a time, into sums of their own: the next addition need not wait. */
    __m512i even[BLOCK], odd[BLOCK];
#pragma GCC unroll 4
    for (int r = 0; r < BLOCK; r++) {
        even[r] = _mm512_loadu_si512(sums + r * apart);
        odd[r] = _mm512_setzero_si512();
    }
    for (int k = 0; k < n; k += 2) {
        const uint32_t *w0 = w + (long)(listed ? listed[k] : k) * BLOCK;
        const uint32_t *w1 = w + (long)(listed ? listed[k + 1] : k + 1) * BLOCK;
        const __m512i x0 = _mm512_loadu_si512(x + (long)k * GROUP);
        const __m512i x1 = _mm512_loadu_si512(x + (long)(k + 1) * GROUP);
#pragma GCC unroll 4
        for (int r = 0; r < BLOCK; r++) {
            even[r] = _mm512_dpbusd_epi32(even[r], x0, _mm512_set1_epi32((int)w0[r]));
            odd[r] = _mm512_dpbusd_epi32(odd[r], x1, _mm512_set1_epi32((int)w1[r]));
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < BLOCK; r++)
        _mm512_storeu_si512(sums + r * apart, _mm512_add_epi32(even[r], odd[r]));
}

#else

const int mlp_vnni_compiled = 0;

void mlp_multiply_vnni(const uint32_t *w, const int *listed, const uint32_t *x, int n,
                       int32_t *sums, long apart)
{
    (void)w, (void)listed, (void)x, (void)n, (void)sums, (void)apart;
}
#endif
