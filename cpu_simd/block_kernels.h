/* The kernels of a block of samples, written once over the vector operations of an instruction
 * set; the deferred schedule (train_deferred.c) says what they are for.
 *
 * Included after layer_kernels.h, whose helpers it uses. An instruction set defines besides
 *   SUM_ROWS, SUM_VECTORS      registers that matrix products are added up in
 * as many as its registers hold beside the operands.
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

/* ---- matrix products ---- */

/* The rows of W that are worked on together, the columns of a partial product, and the samples of
 * a partial update: what is used again meanwhile stays in the nearest cache. */
enum { CHUNK_ROWS = 64, CHUNK_COLUMNS = 128, CHUNK_SAMPLES = 64 };

/* sum[r][v] = sum over k < n of scalars[r * row + k * step] times row k of x, in order: the outer
 * products of columns of `rows` numbers with rows of `vectors` vectors, which are `apart`. */
INLINE void outer_products(int rows, int vectors, const float *scalars, long row, long step,
                           const float *x, long x_step, long apart, int n,
                           vf sum[SUM_ROWS][SUM_VECTORS])
{
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) sum[r][v] =
        vf_set1(0.0f);
    for (int k = 0; k < n; k++) {
        vf xk[SUM_VECTORS];
        UNROLL for (int v = 0; v < vectors; v++) xk[v] = vf_load(x + k * x_step + v * apart);
        UNROLL for (int r = 0; r < rows; r++)
        {
            vf factor = vf_set1(scalars[r * row + k * step]);
            UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = vf_fma(factor, xk[v], sum[r][v]);
        }
    }
}

/* Runs CALL(rows) for all rows of [begin, end) in groups that keep the multipliers busy: fewer
 * than four rows have too few sums to. */
#define FOR_SUM_ROWS(begin, end, CALL)                    \
    do {                                                  \
        int i = (begin);                                  \
        while (i + SUM_ROWS <= (end) && i + 8 != (end)) { \
            CALL(SUM_ROWS);                               \
            i += SUM_ROWS;                                \
        }                                                 \
        for (; i + 4 <= (end); i += 4) CALL(4);           \
        for (; i < (end); i++) CALL(1);                   \
    } while (0)

/* `rows` rows of W by `vectors` vectors of columns, at w. */
INLINE void update_tile(int rows, int vectors, float *w, long stride, const float *d,
                        const float *x, int n, vf eta)
{
    vf sum[SUM_ROWS][SUM_VECTORS];
    /* The next rows: further apart than the CPU's own prefetchers look. */
    UNROLL for (int r = 0; r < rows; r++) for (int j = 0; j < vectors * VW; j += LINE)
        __builtin_prefetch(w + (rows + r) * stride + j, 1);
    outer_products(rows, vectors, d, 1, CHUNK_ROWS, x, SUM_VECTORS * VW, VW, n, sum);
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++)
    {
        float *wv = w + r * stride + v * VW;
        vf_store(wv, vf_fnma(eta, sum[r][v], vf_load(wv)));
    }
}

/* The rows by `vectors` vectors of columns from j on; X's part is copied to one place, because
 * its rows lie on as many pages. */
INLINE void update_panel(int vectors, const mlp_layer *layer, int j, const float *d, const float *x,
                         int n, vf eta, int begin, int end)
{
    const long stride = layer->stride;
    float panel[CHUNK_SAMPLES * SUM_VECTORS * VW];
    for (int s = 0; s < n; s++)
        UNROLL for (int v = 0; v < vectors; v++)
            vf_store(panel + (s * SUM_VECTORS + v) * VW, vf_load(x + s * stride + j + v * VW));
#define CALL(rows) update_tile(rows, vectors, ROW(i) + j, stride, d + i - begin, panel, n, eta)
    FOR_SUM_ROWS(begin, end, CALL);
#undef CALL
}

/* At most CHUNK_ROWS rows and CHUNK_SAMPLES samples. */
INLINE void update_chunk(const mlp_layer *layer, const float *d, long d_stride, const float *x,
                         int n, vf eta, int begin, int end)
{
    float deltas[CHUNK_SAMPLES * CHUNK_ROWS];
    for (int s = 0; s < n; s++)
        memcpy(deltas + s * CHUNK_ROWS, d + s * d_stride + begin,
               sizeof(float) * (size_t)(end - begin));
    int j = 0;
    for (; j + SUM_VECTORS * VW <= layer->stride; j += SUM_VECTORS * VW)
        update_panel(SUM_VECTORS, layer, j, deltas, x, n, eta, begin, end);
    for (; j < layer->stride; j += VW) update_panel(1, layer, j, deltas, x, n, eta, begin, end);
}

static void KERNEL(update_block)(const mlp_layer *layer, const float *d, long d_stride,
                                 const float *x, int n, float eta, int begin, int end)
{
    for (int i = begin; i < end; i += CHUNK_ROWS) {
        int rest = end - i, rows = rest < CHUNK_ROWS ? rest : CHUNK_ROWS;
        for (int s = 0; s < n; s += CHUNK_SAMPLES) {
            int samples = n - s < CHUNK_SAMPLES ? n - s : CHUNK_SAMPLES;
            update_chunk(layer, d + s * d_stride, d_stride, x + s * (long)layer->stride, samples,
                         vf_set1(eta), i, i + rows);
        }
    }
}

/* Between two vectors of samples whose panels are `panel` floats apart. */
INLINE long vectors_apart(long panel) { return VW < MLP_PANEL ? VW : panel; }

/* Adds the part of `n` columns to `rows` rows of the products with `vectors` vectors of samples,
 * or puts it there when it is the first. */
INLINE void product_tile(int rows, int vectors, const float *w, long stride, const float *x, int n,
                         int first, float *a, long a_panel)
{
    vf sum[SUM_ROWS][SUM_VECTORS];
    outer_products(rows, vectors, w, stride, 1, x, MLP_PANEL, vectors_apart(stride * MLP_PANEL), n,
                   sum);
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++)
    {
        float *av = a + r * MLP_PANEL + v * vectors_apart(a_panel);
        vf_store(av, first ? sum[r][v] : vf_add(sum[r][v], vf_load(av)));
    }
}

/* The rows by `columns` columns from j on, with `vectors` vectors of samples from s on. */
INLINE void product_panel(int vectors, const mlp_layer *layer, int j, int columns, const float *x,
                          int s, int begin, int end, float *a, long a_panel)
{
    const float *xs = x + ((long)(s / MLP_PANEL) * layer->stride + j) * MLP_PANEL + s % MLP_PANEL;
    float *as = a + s / MLP_PANEL * a_panel + s % MLP_PANEL;
#define CALL(rows)                                                              \
    product_tile(rows, vectors, ROW(i) + j, layer->stride, xs, columns, j == 0, \
                 as + (i - begin) * MLP_PANEL, a_panel)
    FOR_SUM_ROWS(begin, end, CALL);
#undef CALL
}

static void KERNEL(product_block)(const mlp_layer *layer, const float *x, int n, int begin, int end,
                                  float *a, long a_panel)
{
    for (int i = begin; i < end; i += CHUNK_ROWS) {
        int last = end - i < CHUNK_ROWS ? end : i + CHUNK_ROWS;
        float *ai = a + (long)(i - begin) * MLP_PANEL;
        for (int j = 0; j < layer->stride; j += CHUNK_COLUMNS) {
            int rest = layer->stride - j, columns = rest < CHUNK_COLUMNS ? rest : CHUNK_COLUMNS;
            int s = 0;
            for (; s + SUM_VECTORS * VW <= mlp_padded(n); s += SUM_VECTORS * VW)
                product_panel(SUM_VECTORS, layer, j, columns, x, s, i, last, ai, a_panel);
            for (; s < n; s += VW) product_panel(1, layer, j, columns, x, s, i, last, ai, a_panel);
        }
    }
}
