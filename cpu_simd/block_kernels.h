/* The kernels of a block of samples, written once over the vector operations of an instruction
 * set; the deferred schedule (train_deferred.c) says what they are for.
 *
 * Included after layer_kernels.h, whose helpers it uses. An instruction set defines besides
 *   UPDATE_ROWS, UPDATE_VECTORS      registers that update_block adds up in
 *   PRODUCT_ROWS, PRODUCT_SAMPLES    the same for product_block
 * as many as its registers hold beside the operands. Each weight's sum runs over the samples
 * in order and each product's over the columns in order, whatever the blocks.
 */

/* dots of `count` samples; the last vector of v may run past `end` and is cut there. */
INLINE void dots_samples(int count, const float *h, long stride, const float *v, int begin, int end,
                         float *dots)
{
    vf sum[8];
    UNROLL for (int s = 0; s < count; s++) sum[s] = vf_set1(0.0f);
    int i = begin;
    for (; i + VW <= end; i += VW) {
        vf values = vf_load(v + i);
        UNROLL for (int s = 0; s < count; s++) sum[s] =
            vf_fma(vf_load(h + s * stride + i), values, sum[s]);
    }
    if (i < end) {
        float tail[VW] = {0};
        memcpy(tail, v + i, sizeof(float) * (size_t)(end - i));
        UNROLL for (int s = 0; s < count; s++) sum[s] =
            vf_fma(vf_load(h + s * stride + i), vf_load(tail), sum[s]);
    }
    UNROLL for (int s = 0; s < count; s++) dots[s] = vf_sum(sum[s]);
}

static void KERNEL(dots)(const float *h, long stride, int n, const float *v, int begin, int end,
                         float *dots)
{
    int s = 0;
    for (; s + 8 <= n; s += 8) dots_samples(8, h + s * stride, stride, v, begin, end, dots + s);
    for (; s < n; s++) dots_samples(1, h + s * stride, stride, v, begin, end, dots + s);
}

INLINE void correct_vectors(int count, const float *h, long stride, int n,
                            const float *coefficients, float *v)
{
    vf sum[4];
    UNROLL for (int j = 0; j < count; j++) sum[j] = vf_load(v + j * VW);
    for (int s = 0; s < n; s++) {
        vf c = vf_set1(coefficients[s]);
        UNROLL for (int j = 0; j < count; j++) sum[j] =
            vf_fnma(c, vf_load(h + s * stride + j * VW), sum[j]);
    }
    UNROLL for (int j = 0; j < count; j++) vf_store(v + j * VW, sum[j]);
}

static void KERNEL(correct)(const float *h, long stride, int n, const float *coefficients,
                            int begin, int end, float *v)
{
    int i = begin;
    for (; i + 4 * VW <= end; i += 4 * VW)
        correct_vectors(4, h + i, stride, n, coefficients, v + i);
    for (; i < end; i += VW) correct_vectors(1, h + i, stride, n, coefficients, v + i);
}

/* `rows` rows of W by `vectors` vectors of columns, at w. */
INLINE void update_tile(int rows, int vectors, float *w, int stride, const float *d, long d_stride,
                        const float *x, int n, vf eta)
{
    vf sum[UPDATE_ROWS][UPDATE_VECTORS];
    UNROLL for (int r = 0; r < rows; r++)
    {
        /* The next rows: further apart than the CPU's own prefetchers look. */
        for (int j = 0; j < vectors * VW; j += LINE)
            __builtin_prefetch(w + (rows + r) * (long)stride + j, 1);
        UNROLL for (int j = 0; j < vectors; j++) sum[r][j] = vf_set1(0.0f);
    }
    for (int s = 0; s < n; s++) {
        vf xs[UPDATE_VECTORS];
        UNROLL for (int j = 0; j < vectors; j++) xs[j] = vf_load(x + s * (long)stride + j * VW);
        UNROLL for (int r = 0; r < rows; r++)
        {
            vf ds = vf_set1(d[s * d_stride + r]);
            UNROLL for (int j = 0; j < vectors; j++) sum[r][j] = vf_fma(ds, xs[j], sum[r][j]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int j = 0; j < vectors; j++)
    {
        float *wj = w + r * (long)stride + j * VW;
        vf_store(wj, vf_fnma(eta, sum[r][j], vf_load(wj)));
    }
}

/* All rows by `vectors` vectors of columns from j on, whose part of X stays in the cache. */
INLINE void update_panel(int vectors, const mlp_layer *layer, int j, const float *d, long d_stride,
                         const float *x, int n, vf eta, int begin, int end)
{
    const int stride = layer->stride;
    int i = begin;
    for (; i + UPDATE_ROWS <= end; i += UPDATE_ROWS)
        update_tile(UPDATE_ROWS, vectors, ROW(i) + j, stride, d + i, d_stride, x + j, n, eta);
    for (; i + 4 <= end; i += 4)
        update_tile(4, vectors, ROW(i) + j, stride, d + i, d_stride, x + j, n, eta);
    for (; i < end; i++)
        update_tile(1, vectors, ROW(i) + j, stride, d + i, d_stride, x + j, n, eta);
}

static void KERNEL(update_block)(const mlp_layer *layer, const float *d, long d_stride,
                                 const float *x, int n, float eta, int begin, int end)
{
    int j = 0;
    vf etas = vf_set1(eta);
    for (; j + UPDATE_VECTORS * VW <= layer->stride; j += UPDATE_VECTORS * VW)
        update_panel(UPDATE_VECTORS, layer, j, d, d_stride, x, n, etas, begin, end);
    for (; j < layer->stride; j += VW)
        update_panel(1, layer, j, d, d_stride, x, n, etas, begin, end);
}

/* a[s][r] for `rows` rows of W at w and `samples` rows of X at x. */
INLINE void product_tile(int rows, int samples, const float *w, int stride, const float *x,
                         float *a, long a_stride)
{
    vf sum[PRODUCT_ROWS][PRODUCT_SAMPLES];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int s = 0; s < samples; s++) sum[r][s] =
        vf_set1(0.0f);
    for (int j = 0; j < stride; j += VW) {
        vf xs[PRODUCT_SAMPLES];
        UNROLL for (int s = 0; s < samples; s++) xs[s] = vf_load(x + s * (long)stride + j);
        UNROLL for (int r = 0; r < rows; r++)
        {
            vf wr = vf_load(w + r * (long)stride + j);
            UNROLL for (int s = 0; s < samples; s++) sum[r][s] = vf_fma(wr, xs[s], sum[r][s]);
        }
    }
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int s = 0; s < samples; s++)
        a[s * a_stride + r] = vf_sum(sum[r][s]);
}

INLINE void product_rows_by_block(int rows, const float *w, int stride, const float *x, int n,
                                  float *a, long a_stride)
{
    int s = 0;
    for (; s + PRODUCT_SAMPLES <= n; s += PRODUCT_SAMPLES)
        product_tile(rows, PRODUCT_SAMPLES, w, stride, x + s * (long)stride, a + s * a_stride,
                     a_stride);
    for (; s < n; s++)
        product_tile(rows, 1, w, stride, x + s * (long)stride, a + s * a_stride, a_stride);
}

static void KERNEL(product_block)(const mlp_layer *layer, const float *x, int n, int begin, int end,
                                  float *a, long a_stride)
{
    int i = begin;
    for (; i + PRODUCT_ROWS <= end; i += PRODUCT_ROWS)
        product_rows_by_block(PRODUCT_ROWS, ROW(i), layer->stride, x, n, a + i, a_stride);
    for (; i < end; i++) product_rows_by_block(1, ROW(i), layer->stride, x, n, a + i, a_stride);
}
