/* The kernels of a block of samples, for the deferred schedule (train_deferred.c). Written once
 * over the vector operations of an instruction set.
 *
 * Included after layer_kernels.h, whose helpers it uses. An instruction set also defines
 *   SUM_ROWS, SUM_VECTORS      the tile of sums that its registers hold beside the operands
 */

/* The dots of `count` samples. The last vector of v may reach past `end`; it is cut there. */
INLINE void dots_samples(int count, const float *h, ptrdiff_t stride, const float *v, int begin,
                         int end, float *dots)
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

static void KERNEL(dots)(const float *h, ptrdiff_t stride, int n, const float *v, int begin,
                         int end, float *dots)
{
    int s = 0;
    for (; s + 8 <= n; s += 8) dots_samples(8, h + s * stride, stride, v, begin, end, dots + s);
    for (; s < n; s++) dots_samples(1, h + s * stride, stride, v, begin, end, dots + s);
}

INLINE void correct_vectors(int count, const float *h, ptrdiff_t stride, int n,
                            const float *coefficients, float *v)
{
    vf sum[4];
    UNROLL for (int j = 0; j < count; j++) sum[j] = vf_load(v + j * VW);
    for (int s = 0; s < n; s++) {
        vf c = vf_set1(coefficients[s]);
        UNROLL for (int j = 0; j < count; j++) sum[j] =
            vf_fma(c, vf_load(h + s * stride + j * VW), sum[j]);
    }
    UNROLL for (int j = 0; j < count; j++) vf_store(v + j * VW, sum[j]);
}

static void KERNEL(correct)(const float *h, ptrdiff_t stride, int n, const float *coefficients,
                            int begin, int end, float *v)
{
    int i = begin;
    for (; i + 4 * VW <= end; i += 4 * VW)
        correct_vectors(4, h + i, stride, n, coefficients, v + i);
    for (; i < end; i += VW) correct_vectors(1, h + i, stride, n, coefficients, v + i);
}

/* ---- matrix products ---- */

/* Rows of W that a product or an update takes together. */
enum { CHUNK_ROWS = 64 };

/* sum[r][v] += sum over k < n, in order, of scalars[r * row + index[k] * step] x[k][v].
 *
 * x[k] is at x + k * x_step, its vectors are `apart` floats from each other. A NULL index means
 * index[k] = k. */
INLINE void outer_products(int rows, int vectors, const float *scalars, ptrdiff_t row,
                           ptrdiff_t step, const int *index, const float *x, ptrdiff_t x_step,
                           ptrdiff_t apart, int n, vf sum[SUM_ROWS * SUM_VECTORS][SUM_VECTORS])
{
    for (int k = 0; k < n; k++) {
        const float *column = scalars + (index ? index[k] : k) * step;
        if (index) __asm__("" : "+r"(column)); /* one address for all rows; GCC would keep many */
        vf xk[SUM_VECTORS];
        UNROLL for (int v = 0; v < vectors; v++) xk[v] = vf_load(x + k * x_step + v * apart);
        UNROLL for (int r = 0; r < rows; r++)
        {
            vf factor = vf_set1(column[r * row]);
            UNROLL for (int v = 0; v < vectors; v++) sum[r][v] = vf_fma(factor, xk[v], sum[r][v]);
        }
    }
}

/* Runs CALL(rows) over [begin, end) in blocks of `most` rows, then of `some`, then of four. Smaller
 * blocks have too few sums to keep the multipliers busy, so the last eight rows go as four and
 * four when `most` is five or six. */
#define FOR_SUM_ROWS(most, some, begin, end, CALL)           \
    do {                                                     \
        int i = (begin);                                     \
        while (i + (most) <= (end) && i + 8 != (end)) {      \
            CALL(most);                                      \
            i += (most);                                     \
        }                                                    \
        for (; i + (some) <= (end); i += (some)) CALL(some); \
        for (; i + 4 <= (end); i += 4) CALL(4);              \
        for (; i < (end); i++) CALL(1);                      \
    } while (0)

/* steps[s * CHUNK_ROWS + r] = -eta times the delta of row r at sample s. */
typedef float step_chunk[MLP_CHUNK_SAMPLES * CHUNK_ROWS];

INLINE void set_steps(const float *d, ptrdiff_t d_stride, int n, float eta, int begin, int end,
                      step_chunk steps)
{
    for (int s = 0; s < n; s++)
        for (int r = 0; r < end - begin; r += VW)
            vf_store(steps + s * CHUNK_ROWS + r, -eta * vf_load(d + s * d_stride + begin + r));
}

/* W += sum over k of steps[index[k]] x[k], for the tile of `rows` rows by `vectors` vectors at w.
 * Each row also gets its `base` unless that is NULL. */
INLINE void update_tile(int rows, int vectors, float *w, ptrdiff_t stride, const float *steps,
                        const int *index, const float *x, int n, const float *base)
{
    vf sum[SUM_ROWS * SUM_VECTORS][SUM_VECTORS];
    /* The next columns. The CPU's own prefetchers do not follow so many rows. */
    const int width = vectors * VW, next = width < LINE ? LINE : width;
    UNROLL for (int r = 0; r < rows; r++) for (int j = 0; j < width; j += LINE)
        __builtin_prefetch(w + r * stride + next + j, 1);
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) sum[r][v] =
        vf_set1(base ? base[r] : 0.0f);
    outer_products(rows, vectors, steps, 1, CHUNK_ROWS, index, x, vectors * VW, VW, n, sum);
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++)
    {
        float *wv = w + r * stride + v * VW;
        vf_store(wv, vf_load(wv) + sum[r][v]);
    }
}

/* Updates the rows' `vectors` vectors of columns from column j on. These columns of X are copied
 * together first, because each of its rows is on another page. */
INLINE void update_panel(int vectors, const mlp_layer *layer, int j, const float *steps,
                         const float *x, int n, int begin, int end)
{
    const ptrdiff_t stride = layer->stride;
    float panel[MLP_CHUNK_SAMPLES * SUM_VECTORS * VW];
    for (int s = 0; s < n; s++)
        UNROLL for (int v = 0; v < vectors; v++)
            vf_store(panel + (s * vectors + v) * VW, vf_load(x + s * stride + j + v * VW));
#define CALL(rows) \
    update_tile(rows, vectors, ROW(i) + j, stride, steps + i - begin, NULL, panel, n, NULL)
    FOR_SUM_ROWS(SUM_ROWS, 4, begin, end, CALL);
#undef CALL
}

static void KERNEL(update_block)(const mlp_layer *layer, const float *d, ptrdiff_t d_stride,
                                 const float *x, int n, float eta, int begin, int end)
{
    const ptrdiff_t stride = layer->stride;
    step_chunk steps;
    for (int i = begin; i < end; i += CHUNK_ROWS) {
        const int last = end - i < CHUNK_ROWS ? end : i + CHUNK_ROWS;
        for (int s = 0; s < n; s += MLP_CHUNK_SAMPLES) {
            const int samples = n - s < MLP_CHUNK_SAMPLES ? n - s : MLP_CHUNK_SAMPLES;
            const float *xs = x + s * stride;
            set_steps(d + s * d_stride, d_stride, samples, eta, i, last, steps);
            int j = 0;
            for (; j + SUM_VECTORS * VW <= stride; j += SUM_VECTORS * VW)
                update_panel(SUM_VECTORS, layer, j, steps, xs, samples, i, last);
            for (; j < stride; j += VW) update_panel(1, layer, j, steps, xs, samples, i, last);
        }
    }
}

/* Whether a group has a background. Groups with the bias or the padding have none. */
INLINE int has_background(const mlp_layer *layer, int group)
{
    return (group + 1) * VW <= layer->n_in;
}

static void KERNEL(pack_groups)(const mlp_layer *layer, const float *x, int n, int first, int last,
                                mlp_groups *groups)
{
    for (int g = first; g < last; g++) {
        const int with_background = has_background(layer, g);
        const float *background = groups->background, *columns = x + g * VW;
        float *values = groups->values + (ptrdiff_t)g * groups->room * VW;
        int *samples = groups->samples + (ptrdiff_t)g * groups->room;
        int k = 0;
        for (int s = 0; s < n; s++, columns += layer->stride) {
            vf z = vf_load(columns);
            if (with_background) z = z - background[s];
            vf_store(values + k * VW, z);
            samples[k] = s;
            k += vf_active(z) != 0;
        }
        groups->counts[g] = k;
    }
}

/* Updates the rows' columns of one group, a vector. */
INLINE void update_group(const mlp_layer *layer, int group, const float *steps, const int *samples,
                         const float *z, int n, const float *base, int begin, int end)
{
#define CALL(rows)                                                                             \
    update_tile(rows, 1, ROW(i) + group * VW, layer->stride, steps + i - begin, samples, z, n, \
                base ? base + i - begin : NULL)
    FOR_SUM_ROWS(SUM_ROWS * SUM_VECTORS, 8, begin, end, CALL);
#undef CALL
}

static void KERNEL(update_foreground)(const mlp_layer *layer, const float *d, ptrdiff_t d_stride,
                                      int n, const mlp_groups *x, float eta, int begin, int end)
{
    const ptrdiff_t stride = layer->stride;
    step_chunk steps;
    float base[CHUNK_ROWS];
    for (int i = begin; i < end; i += CHUNK_ROWS) {
        const int last = end - i < CHUNK_ROWS ? end : i + CHUNK_ROWS;
        set_steps(d, d_stride, n, eta, i, last, steps);
        for (int r = 0; r < last - i; r += VW) {
            vf sum = vf_set1(0.0f);
            for (int s = 0; s < n; s++)
                sum = vf_fma(vf_set1(x->background[s]), vf_load(steps + s * CHUNK_ROWS + r), sum);
            vf_store(base + r, sum);
        }
        for (int g = 0; g < stride / VW; g++) {
            const ptrdiff_t first = (ptrdiff_t)g * x->room;
            update_group(layer, g, steps, x->samples + first, x->values + first * VW, x->counts[g],
                         has_background(layer, g) ? base : NULL, i, last);
        }
    }
}

/* Floats between two vectors of samples, when panels are `panel` floats apart. */
INLINE ptrdiff_t vectors_apart(ptrdiff_t panel) { return VW < MLP_PANEL ? VW : panel; }

/* Adds n columns' part to a tile of the products: `rows` rows of W by `vectors` vectors of samples.
 * Row k of x belongs to column columns[k] of W. The first part overwrites the tile and adds the
 * background's share. */
INLINE void product_tile(int rows, int vectors, const float *w, ptrdiff_t stride,
                         const int *columns, const float *x, int n, int first,
                         const float *row_sums, const float *background, float *a,
                         ptrdiff_t a_panel)
{
    vf sum[SUM_ROWS * SUM_VECTORS][SUM_VECTORS];
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++) sum[r][v] =
        vf_set1(0.0f);
    outer_products(rows, vectors, w, stride, 1, columns, x, MLP_PANEL,
                   vectors_apart(stride * MLP_PANEL), n, sum);
    UNROLL for (int r = 0; r < rows; r++) UNROLL for (int v = 0; v < vectors; v++)
    {
        float *av = a + r * MLP_PANEL + v * vectors_apart(a_panel);
        if (!first)
            sum[r][v] = sum[r][v] + vf_load(av);
        else if (row_sums)
            sum[r][v] = vf_fma(vf_set1(row_sums[r]), vf_load(background + v * VW), sum[r][v]);
        vf_store(av, sum[r][v]);
    }
}

/* Products of the rows with a chunk of columns from j on, for `vectors` vectors of samples from s
 * on. */
INLINE void product_panel(int vectors, const mlp_layer *layer, int j, const mlp_panels *x, int s,
                          int begin, int end, float *a, ptrdiff_t a_panel)
{
    const ptrdiff_t stride = layer->stride;
    const float *xs = x->values + (s / MLP_PANEL * stride + j) * MLP_PANEL + s % MLP_PANEL;
    float *as = a + s / MLP_PANEL * a_panel + s % MLP_PANEL;
    if (x->columns) {
        const ptrdiff_t list = s / x->together;
        const int *columns = x->columns + list * stride + j;
        const int n = x->counts[list * mlp_n_chunks(layer->stride) + j / MLP_CHUNK_COLUMNS];
#define CALL(rows)                                                                       \
    product_tile(rows, vectors, ROW(i), stride, columns, xs, n, j == 0, x->row_sums + i, \
                 x->background + s, as + (i - begin) * MLP_PANEL, a_panel)
        FOR_SUM_ROWS(SUM_ROWS, 4, begin, end, CALL);
#undef CALL
    } else {
        const int rest = layer->stride - j, n = rest < MLP_CHUNK_COLUMNS ? rest : MLP_CHUNK_COLUMNS;
#define CALL(rows)                                                                   \
    product_tile(rows, vectors, ROW(i) + j, stride, NULL, xs, n, j == 0, NULL, NULL, \
                 as + (i - begin) * MLP_PANEL, a_panel)
        FOR_SUM_ROWS(SUM_ROWS, 4, begin, end, CALL);
#undef CALL
    }
}

static void KERNEL(product_block)(const mlp_layer *layer, const mlp_panels *x, int n, int begin,
                                  int end, float *a, ptrdiff_t a_panel)
{
    for (int i = begin; i < end; i += CHUNK_ROWS) {
        const int last = end - i < CHUNK_ROWS ? end : i + CHUNK_ROWS;
        float *ai = a + (ptrdiff_t)(i - begin) * MLP_PANEL;
        for (int j = 0; j < layer->stride; j += MLP_CHUNK_COLUMNS) {
            int s = 0;
            for (; s + SUM_VECTORS * VW <= mlp_padded(n); s += SUM_VECTORS * VW)
                product_panel(SUM_VECTORS, layer, j, x, s, i, last, ai, a_panel);
            for (; s < n; s += VW) product_panel(1, layer, j, x, s, i, last, ai, a_panel);
        }
    }
}

/* Samples of a product's registers, in whole panels. */
enum { TOGETHER = SUM_VECTORS * VW > MLP_PANEL ? SUM_VECTORS * VW : MLP_PANEL };
