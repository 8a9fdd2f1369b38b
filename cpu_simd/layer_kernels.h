/* The kernels of one sample, written once over the vector operations of an instruction set.
 *
 * The file of an instruction set defines first
 *   KERNEL(name)   the name with the instruction set's suffix
 *   VW, vf, vi     floats per vector, and the types of vectors of floats and of uint32_t, or with a
 *                  single float these themselves: operators work on both
 *   vf_*           min, max, fma, sum
 *
 * Rows are taken in blocks of 8, 4, 2 and 1, so that a vector of x or of the partial sums is
 * read once for several rows. Each row's dot product runs over the columns in the same
 * order whatever the block, so it does not depend on how the rows are shared out. The way
 * down takes the rows from the last to the first, because those that the way up has read
 * last are still in the cache.
 */
#include <math.h>
#include <string.h>

#include "kernels.h"

#define INLINE static inline __attribute__((always_inline))
#define LINE MLP_ALIGN /* floats per cache line */
#define UNROLL _Pragma("GCC unroll 32")

/* Vectors at any address. */
typedef vf unaligned_vf __attribute__((aligned(4), may_alias));
typedef vi unaligned_vi __attribute__((aligned(4), may_alias));

INLINE vf vf_load(const float *p) { return *(const unaligned_vf *)p; }
INLINE void vf_store(float *p, vf a) { *(unaligned_vf *)p = a; }
INLINE vi vi_load(const uint32_t *p) { return *(const unaligned_vi *)p; }
INLINE void vi_store(uint32_t *p, vi a) { *(unaligned_vi *)p = a; }
INLINE vi vi_set1(uint32_t a) { return (vi){0} + a; }
INLINE vf vf_set1(float a) { return a - (vf){0}; } /* -0 stays -0 */

#if VW > 1
typedef int32_t signed_vi __attribute__((vector_size(4 * VW)));

INLINE vf vf_from_vi(vi a) { return __builtin_convertvector((signed_vi)a, vf); }
INLINE vi vi_from_vf(vf a) { return (vi) __builtin_convertvector(a, signed_vi); }

/* a where y > 0, else 0. */
INLINE vf vf_where_positive(vf y, vf a) { return (vf)((vi)(y > vf_set1(0.0f)) & (vi)a); }
#endif

/* y = A tanh(B a). tanh z = z P(z^2) / Q(z^2) on [-9, 9], a minimax fit of the relative
 * error (2e-8; 4e-7 after rounding); beyond 9 tanh is 1 in single precision. */
INLINE vf scaled_tanh(vf a)
{
    vf z = MLP_B * a;
    z = vf_max(vf_set1(-9.0f), vf_min(vf_set1(9.0f), z));
    vf t = z * z;
    vf p = vf_fma(vf_set1(1.3354665817644218e-08f), t, vf_set1(2.0609089915524237e-05f));
    p = vf_fma(p, t, vf_set1(3.495588665828109e-03f));
    p = vf_fma(p, t, vf_set1(1.3381026685237885e-01f));
    p = vf_fma(p, t, vf_set1(1.0f));
    vf q = vf_fma(vf_set1(7.776561119499092e-07f), t, vf_set1(3.285635611973703e-04f));
    q = vf_fma(q, t, vf_set1(2.5876984000205994e-02f));
    q = vf_fma(q, t, vf_set1(4.671434164047241e-01f));
    q = vf_fma(q, t, vf_set1(1.0f));
    vf y = z * p / q;
    return MLP_A * vf_max(vf_set1(-1.0f), vf_min(vf_set1(1.0f), y));
}

/* max(0, a). NaN stays NaN: max returns its second operand then. */
INLINE vf rectified(vf a) { return vf_max(vf_set1(0.0f), a); }

/* Linear outputs. Those of a softmax layer stay sums here; see output.h. */
INLINE vf identity(vf a) { return a; }

/* What follows y[end - 1] is the next layer's bias input and must stay. */
#define DEFINE_ACTIVATE(name, function)                                           \
    static void KERNEL(name)(const float *a, int begin, int end, float *y)        \
    {                                                                             \
        int i = begin;                                                            \
        for (; i + VW <= end; i += VW) vf_store(y + i, function(vf_load(a + i))); \
        if (i < end) {                                                            \
            float tail[VW];                                                       \
            vf_store(tail, function(vf_load(a + i)));                             \
            memcpy(y + i, tail, sizeof(float) * (size_t)(end - i));               \
        }                                                                         \
    }
DEFINE_ACTIVATE(activate_tanh, scaled_tanh)
DEFINE_ACTIVATE(activate_relu, rectified)
DEFINE_ACTIVATE(activate_identity, identity)

INLINE void product_rows(int rows, const float *w, int stride, const float *x, float *a)
{
    vf sum[8];
    UNROLL for (int r = 0; r < rows; r++) sum[r] = vf_set1(0.0f);
    for (int line = 0; line < stride; line += LINE) {
        UNROLL for (int j = line; j < line + LINE; j += VW)
        {
            vf xj = vf_load(x + j);
            UNROLL for (int r = 0; r < rows; r++) sum[r] =
                vf_fma(vf_load(w + r * (ptrdiff_t)stride + j), xj, sum[r]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) a[r] = vf_sum(sum[r]);
}

INLINE void backward_rows(int rows, const float *w, int stride, const float *delta, int first,
                          float *partial)
{
    vf d[8];
    UNROLL for (int r = 0; r < rows; r++) d[r] = vf_set1(delta[r]);
    for (int line = 0; line < stride; line += LINE) {
        UNROLL for (int j = line; j < line + LINE; j += VW)
        {
            vf sum = first ? vf_set1(0.0f) : vf_load(partial + j);
            UNROLL for (int r = 0; r < rows; r++) sum =
                vf_fma(vf_load(w + r * (ptrdiff_t)stride + j), d[r], sum);
            vf_store(partial + j, sum);
        }
    }
}

/* Runs CALL(rows) for rows i ... i + rows - 1 over [begin, end) in blocks of 8, 4, 2, 1. */
#define FOR_ROW_BLOCKS(begin, end, CALL)        \
    do {                                        \
        int i = (begin);                        \
        for (; i + 8 <= (end); i += 8) CALL(8); \
        for (; i + 4 <= (end); i += 4) CALL(4); \
        for (; i + 2 <= (end); i += 2) CALL(2); \
        if (i < (end)) CALL(1);                 \
    } while (0)

/* The same from the last rows down. */
#define FOR_ROW_BLOCKS_DOWN(begin, end, CALL)       \
    do {                                            \
        int i = (end) - 8;                          \
        for (; i >= (begin); i -= 8) CALL(8);       \
        for (i += 4; i >= (begin); i -= 4) CALL(4); \
        for (i += 2; i >= (begin); i -= 2) CALL(2); \
        if (++i >= (begin)) CALL(1);                \
    } while (0)

#define ROW(i) (layer->weights + (ptrdiff_t)(i) * layer->stride)

static void KERNEL(product)(const mlp_layer *layer, const float *x, int begin, int end, float *a)
{
#define CALL(rows) product_rows(rows, ROW(i), layer->stride, x, a + i)
    FOR_ROW_BLOCKS(begin, end, CALL);
#undef CALL
}

static void KERNEL(backward)(const mlp_layer *layer, const float *delta, int begin, int end,
                             float *partial)
{
#define CALL(rows) backward_rows(rows, ROW(i), layer->stride, delta + i, i + rows == end, partial)
    FOR_ROW_BLOCKS_DOWN(begin, end, CALL);
#undef CALL
}

/* y'(a) = (B / A) (A - y) (A + y). */
INLINE vf derivative(vf y) { return MLP_B / MLP_A * ((MLP_A - y) * (MLP_A + y)); }

static void KERNEL(delta_tanh)(const float *sum, const float *y, int begin, int end, float *delta)
{
    for (int i = begin; i < end; i += VW)
        vf_store(delta + i, vf_load(sum + i) * derivative(vf_load(y + i)));
}

static void KERNEL(delta_relu)(const float *sum, const float *y, int begin, int end, float *delta)
{
    for (int i = begin; i < end; i += VW)
        vf_store(delta + i, vf_where_positive(vf_load(y + i), vf_load(sum + i)));
}
