/* Takes the place of the compiler's header for cpu_simd/amx.c: the intrinsics that it calls, in
 * plain C for any CPU. Vectors are the compiler's own (GCC and clang). A tile that has not been
 * configured, or has been released, is NaN and stays so. */
#ifndef AMX_EMULATION_H
#define AMX_EMULATION_H

#include <stdint.h>
#include <string.h>

/* ---- the AVX-512 that it needs ---- */

typedef float __m512 __attribute__((vector_size(64)));
typedef int32_t __m512i __attribute__((vector_size(64)));
typedef uint32_t emulated_words __attribute__((vector_size(64)));
typedef uint16_t __mmask16;

static inline __m512i _mm512_castps_si512(__m512 a) { return (__m512i)a; }
static inline __m512 _mm512_castsi512_ps(__m512i a) { return (__m512)a; }
static inline __m512 _mm512_sub_ps(__m512 a, __m512 b) { return a - b; }
static inline __m512i _mm512_and_si512(__m512i a, __m512i b) { return a & b; }
static inline __m512i _mm512_set1_epi32(int a) { return a - (__m512i){0}; }

static inline __m512i _mm512_set_epi32(int p, int o, int n, int m, int l, int k, int j, int i,
                                       int h, int g, int f, int e, int d, int c, int b, int a)
{
    return (__m512i){a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p};
}

static inline __m512i _mm512_srli_epi32(__m512i a, unsigned bits)
{
    return (__m512i)((emulated_words)a >> bits);
}

static inline __m512i _mm512_add_epi32(__m512i a, __m512i b)
{
    return (__m512i)((emulated_words)a + (emulated_words)b);
}

static inline __m512i _mm512_mullo_epi32(__m512i a, __m512i b)
{
    return (__m512i)((emulated_words)a * (emulated_words)b);
}

static inline __m512 _mm512_maskz_loadu_ps(__mmask16 mask, const float *p)
{
    __m512 a = {0};
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1) a[i] = p[i];
    return a;
}

static inline void _mm512_mask_cvtepi32_storeu_epi16(void *p, __mmask16 mask, __m512i a)
{
    for (int i = 0; i < 16; i++)
        if (mask >> i & 1) ((uint16_t *)p)[i] = (uint16_t)a[i];
}

static inline __m512i _mm512_i32gather_epi32(__m512i index, const int *p, int scale)
{
    __m512i a;
    for (int i = 0; i < 16; i++) {
        int32_t word;
        memcpy(&word, (const char *)p + (int64_t)index[i] * scale, sizeof word);
        a[i] = word;
    }
    return a;
}

static inline void _mm512_store_si512(void *p, __m512i a) { memcpy(p, &a, sizeof a); }

/* ---- the matrix unit: eight tiles of 16 rows of 64 bytes, for each thread its own ---- */

enum { EMULATED_ROWS = 16, EMULATED_BYTES = 64 };

static _Thread_local struct {
    int configured;
    uint8_t tiles[8][EMULATED_ROWS][EMULATED_BYTES];
} emulated_unit;

static inline void _tile_release(void)
{
    emulated_unit.configured = 0;
    memset(emulated_unit.tiles, 0xff, sizeof emulated_unit.tiles);
}

/* All that amx.c asks for is tiles of full size. */
static inline void _tile_loadconfig(const void *config)
{
    const uint8_t *bytes = config, *rows = bytes + 48;
    _tile_release();
    emulated_unit.configured = bytes[0] == 1;
    for (int tile = 0; tile < 8; tile++) {
        uint16_t row_bytes;
        memcpy(&row_bytes, bytes + 16 + 2 * tile, sizeof row_bytes);
        emulated_unit.configured &= row_bytes == EMULATED_BYTES && rows[tile] == EMULATED_ROWS;
    }
}

static inline void _tile_zero(int tile)
{
    if (emulated_unit.configured)
        memset(emulated_unit.tiles[tile], 0, sizeof emulated_unit.tiles[tile]);
}

static inline void _tile_loadd(int tile, const void *from, int64_t stride)
{
    for (int i = 0; emulated_unit.configured && i < EMULATED_ROWS; i++)
        memcpy(emulated_unit.tiles[tile][i], (const char *)from + i * stride, EMULATED_BYTES);
}

static inline void _tile_stored(int tile, void *to, int64_t stride)
{
    for (int i = 0; i < EMULATED_ROWS; i++)
        memcpy((char *)to + i * stride, emulated_unit.tiles[tile][i], EMULATED_BYTES);
}

/* Of pairs of bfloat16, side by side in both operands. The unit takes numbers too small for a
 * normal float32 for zero, which this does not. */
static inline void _tile_dpbf16ps(int sums, int left, int right)
{
    for (int i = 0; emulated_unit.configured && i < EMULATED_ROWS; i++) {
        float sum[16];
        uint32_t a[16], b[16];
        memcpy(sum, emulated_unit.tiles[sums][i], sizeof sum);
        memcpy(a, emulated_unit.tiles[left][i], sizeof a);
        for (int k = 0; k < 16; k++) {
            memcpy(b, emulated_unit.tiles[right][k], sizeof b);
            for (int j = 0; j < 16; j++)
                for (int half = 0; half < 2; half++) { /* the low one is in the lower bits */
                    const uint32_t bits[2] = {half ? a[k] & 0xffff0000 : a[k] << 16,
                                              half ? b[j] & 0xffff0000 : b[j] << 16};
                    float factors[2];
                    memcpy(factors, bits, sizeof factors);
                    sum[j] += factors[0] * factors[1];
                }
        }
        memcpy(emulated_unit.tiles[sums][i], sum, sizeof sum);
    }
}

#endif
