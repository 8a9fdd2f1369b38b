/* Packing weights (packed.h), and the two passes over packed weights. Written once over the vector
 * operations of an instruction set.
 *
 * Included after layer_kernels.h, whose helpers it uses. An instruction set also defines
 *   vi_round         rounding to the nearest integer
 * The order and the blocks of rows are those of layer_kernels.h.
 */
#include <math.h>

#include "packed.h"

/* Deltas are scaled by 2^16 before the sums and by 2^-16 after them. Unscaled, scale x delta would
 * be denormal. Scaled by 2^31, the sums would overflow. */
#define PACKED_LATER 65536.0f

#define PACKED_LOW ((1u << MLP_PACKED_REST) - 1)

enum { GROUP_VECTORS = MLP_PACKED_VECTORS, GROUP_WORDS = MLP_PACKED_WORDS * VW };

/* The three vectors of a group, as floats. */
INLINE void unpack_group(const uint32_t *group, vf w[GROUP_VECTORS])
{
    const vi first = vi_load(group), second = vi_load(group + VW);
    w[0] = vf_from_vi(first);
    w[1] = vf_from_vi(second);
    w[2] = vf_from_vi(first << (32 - MLP_PACKED_REST) | (second << (32 - 2 * MLP_PACKED_REST) &
                                                         PACKED_LOW << (32 - 2 * MLP_PACKED_REST)));
}

/* sum[r] += W[r] x over the first `vectors` vectors of a group. */
INLINE void product_group(int rows, int vectors, const uint32_t *words, ptrdiff_t stride,
                          const float *x, vf sum[8])
{
    vf xk[GROUP_VECTORS], w[GROUP_VECTORS];
    UNROLL for (int k = 0; k < vectors; k++) xk[k] = vf_load(x + k * VW);
    UNROLL for (int r = 0; r < rows; r++)
    {
        unpack_group(words + r * stride, w);
        UNROLL for (int k = 0; k < vectors; k++) sum[r] = vf_fma(w[k], xk[k], sum[r]);
    }
}

INLINE void product_packed_rows(int rows, const uint32_t *words, ptrdiff_t stride, int vectors,
                                const float *scales, const float *x, float *a)
{
    vf sum[8];
    UNROLL for (int r = 0; r < rows; r++) sum[r] = vf_set1(0.0f);
    for (; vectors >= GROUP_VECTORS; vectors -= GROUP_VECTORS) {
        product_group(rows, GROUP_VECTORS, words, stride, x, sum);
        words += GROUP_WORDS;
        x += GROUP_VECTORS * VW;
    }
    if (vectors == 2) product_group(rows, 2, words, stride, x, sum);
    if (vectors == 1) product_group(rows, 1, words, stride, x, sum);
    UNROLL for (int r = 0; r < rows; r++) a[r] = scales[r] * vf_sum(sum[r]);
}

static void KERNEL(product_packed)(const mlp_layer *layer, const mlp_packed *packed, const float *x,
                                   int begin, int end, float *a)
{
#define CALL(rows)                                                                \
    product_packed_rows(rows, packed->words + i * packed->stride, packed->stride, \
                        layer->stride / VW, packed->scales + i, x, a + i)
    FOR_ROW_BLOCKS(begin, end, CALL);
#undef CALL
}

/* partial += sum over the rows of W[r] d[r], over the first `vectors` vectors of a group. */
INLINE void backward_group(int rows, int vectors, const uint32_t *words, ptrdiff_t stride,
                           const vf d[8], int first, int last, float *partial)
{
    vf sum[GROUP_VECTORS], w[GROUP_VECTORS];
    UNROLL for (int k = 0; k < vectors; k++) sum[k] =
        first ? vf_set1(0.0f) : vf_load(partial + k * VW);
    UNROLL for (int r = 0; r < rows; r++)
    {
        unpack_group(words + r * stride, w);
        UNROLL for (int k = 0; k < vectors; k++) sum[k] = vf_fma(w[k], d[r], sum[k]);
    }
    if (last) UNROLL for (int k = 0; k < vectors; k++) sum[k] = 1 / PACKED_LATER * sum[k];
    UNROLL for (int k = 0; k < vectors; k++) vf_store(partial + k * VW, sum[k]);
}

INLINE void backward_packed_rows(int rows, const uint32_t *words, ptrdiff_t stride, int vectors,
                                 const float *scales, const float *delta, int first, int last,
                                 float *partial)
{
    vf d[8];
    UNROLL for (int r = 0; r < rows; r++) d[r] = vf_set1(PACKED_LATER * scales[r] * delta[r]);
    for (; vectors >= GROUP_VECTORS; vectors -= GROUP_VECTORS) {
        backward_group(rows, GROUP_VECTORS, words, stride, d, first, last, partial);
        words += GROUP_WORDS;
        partial += GROUP_VECTORS * VW;
    }
    if (vectors == 2) backward_group(rows, 2, words, stride, d, first, last, partial);
    if (vectors == 1) backward_group(rows, 1, words, stride, d, first, last, partial);
}

static void KERNEL(backward_packed)(const mlp_layer *layer, const mlp_packed *packed,
                                    const float *delta, int begin, int end, float *partial)
{
#define CALL(rows)                                                                           \
    backward_packed_rows(rows, packed->words + i * packed->stride, packed->stride,           \
                         layer->stride / VW, packed->scales + i, delta + i, i + rows == end, \
                         i == begin, partial)
    FOR_ROW_BLOCKS_DOWN(begin, end, CALL);
#undef CALL
}

/* The integer of a row's greatest weight: just below 2^31, so that rounding cannot reach that. */
#define PACKED_MOST 2147467264.0f

/* The scale of a smaller weight would have no inverse. */
#define PACKED_LEAST 1e-28f

/* The scale of a row; NaN if one of its weights is infinite or NaN. */
static float KERNEL(packed_scale)(const float *w, int stride)
{
    vf most = vf_set1(PACKED_LEAST), zero = vf_set1(0.0f), check = zero;
    for (int j = 0; j < stride; j += VW) {
        const vf wj = vf_load(w + j);
        most = vf_max(most, vf_max(wj, zero - wj));
        check = vf_fma(wj, zero, check);
    }
    float lanes[VW], greatest = PACKED_LEAST;
    vf_store(lanes, most);
    for (int i = 0; i < VW; i++) greatest = lanes[i] > greatest ? lanes[i] : greatest;
    return vf_sum(check) == 0.0f ? greatest / PACKED_MOST : NAN;
}

/* The nearest integer whose low bits are `rest`. */
INLINE vi ending_in(vi number, vi rest)
{
    return rest | ((number - rest + (1u << (MLP_PACKED_REST - 1))) & ~PACKED_LOW);
}

/* Packs `vectors` vectors of weights at w into a group; the rest of the group is zero. */
INLINE void pack_group(int vectors, const float *w, vf inverse, uint32_t *group)
{
    vi number[GROUP_VECTORS];
    UNROLL for (int k = 0; k < GROUP_VECTORS; k++) number[k] =
        k < vectors ? vi_round(vf_load(w + k * VW) * inverse) : vi_set1(0);
    const vi third = number[2] + (1u << (31 - 2 * MLP_PACKED_REST));
    const vi upper = third >> (32 - MLP_PACKED_REST);
    const vi lower = third >> (32 - 2 * MLP_PACKED_REST) & PACKED_LOW;
    vi_store(group, ending_in(number[0], upper));
    vi_store(group + VW, ending_in(number[1], lower));
}

static void KERNEL(pack_weights)(const mlp_layer *layer, int begin, int end, mlp_packed *packed)
{
    for (int i = begin; i < end; i++) {
        const float *w = ROW(i), scale = KERNEL(packed_scale)(w, layer->stride);
        const vf inverse = vf_set1(1.0f / scale);
        uint32_t *group = packed->words + i * packed->stride;
        int vectors = layer->stride / VW;
        for (; vectors >= GROUP_VECTORS; vectors -= GROUP_VECTORS) {
            pack_group(GROUP_VECTORS, w, inverse, group);
            w += GROUP_VECTORS * VW;
            group += GROUP_WORDS;
        }
        if (vectors) pack_group(vectors, w, inverse, group);
        packed->scales[i] = scale;
    }
}

/* The entries of kernel_table.h. */
#define PACKED_ENTRIES ENTRY(pack_weights), ENTRY(product_packed), ENTRY(backward_packed)
