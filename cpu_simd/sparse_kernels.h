/* The kernels of layers stored by their inputs (sparse.h). Written once over the vector operations
 * of an instruction set.
 *
 * Included after layer_kernels.h, whose helpers it uses. An instruction set also defines
 *   vf_active            the bits of the lanes that are not zero, and
 *   vf_list_active       the numbers of these lanes, with HAS_LIST_ACTIVE
 */

#ifndef HAS_LIST_ACTIVE
INLINE int vf_list_active(vf a, int first, int *list)
{
    int n = 0;
    for (unsigned bits = vf_active(a); bits; bits &= bits - 1)
        list[n++] = first + __builtin_ctz(bits);
    return n;
}
#endif

static int KERNEL(list_active)(const float *x, int begin, int end, int *list)
{
    int n = 0, j = begin;
    for (; j + VW <= end; j += VW) n += vf_list_active(vf_load(x + j), j, list + n);
    for (; j < end; j++)
        if (x[j] != 0.0f) list[n++] = j;
    return n;
}

/* Vectors of a row that a pass keeps in registers, and the rows that it prefetches: which one comes
 * is known here, but not to the CPU. An update takes them in order. */
enum { ROW_VECTORS = 8, LISTED_AHEAD = 16, ROWS_AHEAD = 8 };

/* Into the second-level cache, because the first level has no room for so many rows. */
INLINE void prefetch_row(int vectors, const float *w, ptrdiff_t width, const int *list, int k,
                         int n)
{
    const int next = list[k + LISTED_AHEAD < n ? k + LISTED_AHEAD : n - 1];
    if (next == list[k] + LISTED_AHEAD) return; /* the CPU foresees rows without gaps */
    const float *row = w + next * width;
    for (int c = 0; c < vectors * VW; c += LINE) __builtin_prefetch(row + c, 0, 2);
}

INLINE void product_columns(int vectors, const float *w, ptrdiff_t width, const int *list, int n,
                            const float *x, int first, float *a)
{
    vf sum[ROW_VECTORS];
    UNROLL for (int v = 0; v < vectors; v++) sum[v] = first ? vf_set1(0.0f) : vf_load(a + v * VW);
    for (int k = 0; k < n; k++) {
        const float *row = w + list[k] * width;
        if (first) prefetch_row(vectors, w, width, list, k, n);
        const vf xk = vf_set1(x[list[k]]);
        UNROLL for (int v = 0; v < vectors; v++) sum[v] = vf_fma(xk, vf_load(row + v * VW), sum[v]);
    }
    UNROLL for (int v = 0; v < vectors; v++) vf_store(a + v * VW, sum[v]);
}

/* Runs CALL(vectors) over the vectors of a row from column c on, in pieces of 8, 4, 2 and 1. */
#define FOR_ROW_VECTORS(width, CALL)                        \
    do {                                                    \
        int c = 0;                                          \
        for (; c + 8 * VW <= (width); c += 8 * VW) CALL(8); \
        if (c + 4 * VW <= (width)) {                        \
            CALL(4);                                        \
            c += 4 * VW;                                    \
        }                                                   \
        if (c + 2 * VW <= (width)) {                        \
            CALL(2);                                        \
            c += 2 * VW;                                    \
        }                                                   \
        if (c < (width)) CALL(1);                           \
    } while (0)

static void KERNEL(product_rows)(const float *w, int width, const int *list, int n, const float *x,
                                 int first, float *a)
{
#define CALL(vectors) product_columns(vectors, w + c, width, list, n, x, first, a + c)
    FOR_ROW_VECTORS(width, CALL);
#undef CALL
}

INLINE void put_sums(int vectors, const mlp_products *p, int c, int s, const vf *sum)
{
    float *sums = p->sums + s * p->room + c;
    UNROLL for (int v = 0; v < vectors; v++)
    {
        vf total = sum[v];
        if (!p->first)
            total = total + vf_load(sums + v * VW);
        else if (p->row_sums)
            total = vf_fma(vf_load(p->row_sums + c + v * VW), vf_set1(p->background[s]), total);
        vf_store(sums + v * VW, total);
    }
}

INLINE void product_samples(int vectors, const mlp_products *p, int c)
{
    /* Of the next chunk, which the caches have not seen. */
    const float *next = p->weights + MLP_CHUNK_COLUMNS * MLP_ACTIVE_WIDTH;
    for (int s = 0; s < p->n; s++, next += MLP_ACTIVE_WIDTH) {
        for (int k = 0; k < MLP_ACTIVE_WIDTH; k += LINE) __builtin_prefetch(next + k, 0, 2);
        const mlp_input *inputs = p->inputs + s * p->room;
        vf sum[ROW_VECTORS];
        UNROLL for (int v = 0; v < vectors; v++) sum[v] = vf_set1(0.0f);
        for (int k = 0; k < p->counts[s]; k++) {
            const float *row = p->weights + c + inputs[k].row;
            const vf x = vf_set1(inputs[k].value);
            UNROLL for (int v = 0; v < vectors; v++) sum[v] =
                vf_fma(x, vf_load(row + v * VW), sum[v]);
        }
        put_sums(vectors, p, c, s, sum);
    }
}

static void KERNEL(product_active)(const mlp_products *p, int width)
{
#define CALL(vectors) product_samples(vectors, p, c)
    FOR_ROW_VECTORS(width, CALL);
#undef CALL
}

INLINE void dot_columns(int vectors, const float *w, ptrdiff_t width, const int *list, int n,
                        const float *delta, int first, float *sums)
{
    vf d[ROW_VECTORS];
    UNROLL for (int v = 0; v < vectors; v++) d[v] = vf_load(delta + v * VW);
    for (int k = 0; k < n; k++) {
        const float *row = w + list[k] * width;
        prefetch_row(vectors, w, width, list, k, n);
        vf sum = vf_load(row) * d[0];
        UNROLL for (int v = 1; v < vectors; v++) sum = vf_fma(vf_load(row + v * VW), d[v], sum);
        sums[list[k]] = vf_sum(sum) + (first ? 0.0f : sums[list[k]]);
    }
}

static void KERNEL(dot_rows)(const float *w, int width, const int *list, int n, const float *delta,
                             float *sums)
{
#define CALL(vectors) dot_columns(vectors, w + c, width, list, n, delta + c, c == 0, sums)
    FOR_ROW_VECTORS(width, CALL);
#undef CALL
}

/* `dot` and `first` are known when this is compiled. */
INLINE void step_columns(int vectors, float *w, ptrdiff_t width, const int *list, int n,
                         const float *x, const float *delta, float eta, int dot, int first,
                         float *sums)
{
    vf d[ROW_VECTORS];
    UNROLL for (int v = 0; v < vectors; v++) d[v] = vf_load(delta + v * VW);
    for (int k = 0; k < n; k++) {
        float *row = w + list[k] * width;
        prefetch_row(vectors, w, width, list, k, n);
        const vf step = vf_set1(-eta * x[list[k]]);
        vf sum = vf_set1(0.0f);
        UNROLL for (int v = 0; v < vectors; v++)
        {
            const vf old = vf_load(row + v * VW);
            if (dot) sum = vf_fma(old, d[v], sum);
            vf_store(row + v * VW, vf_fma(step, d[v], old));
        }
        if (dot) sums[list[k]] = vf_sum(sum) + (first ? 0.0f : sums[list[k]]);
    }
}

static void KERNEL(step_rows)(float *w, int width, const int *list, int n, const float *x,
                              const float *delta, float eta, int first, float *sums)
{
#define CALL(vectors) \
    step_columns(vectors, w + c, width, list, n, x, delta + c, eta, 1, first && c == 0, sums)
    if (sums) FOR_ROW_VECTORS(width, CALL);
#undef CALL
#define CALL(vectors) step_columns(vectors, w + c, width, list, n, x, delta + c, eta, 0, 0, NULL)
    if (!sums) FOR_ROW_VECTORS(width, CALL);
#undef CALL
}

INLINE void move_columns(int vectors, float *to, const float *from, ptrdiff_t width,
                         const int *list, int n, const float *shares)
{
    for (int k = 0; k < n; k++) {
        prefetch_row(vectors, to, width, list, k, n);
        prefetch_row(vectors, from, width, list, k, n);
        if (shares[k] == 0.0f) continue;
        const vf share = vf_set1(shares[k]);
        const ptrdiff_t row = list[k] * width;
        UNROLL for (int v = 0; v < vectors; v++)
        {
            const vf old = vf_load(to + row + v * VW);
            vf_store(to + row + v * VW, vf_fma(share, vf_load(from + row + v * VW) - old, old));
        }
    }
}

static void KERNEL(move_rows)(float *to, const float *from, int width, const int *list, int n,
                              const float *shares)
{
#define CALL(vectors) move_columns(vectors, to + c, from + c, width, list, n, shares)
    FOR_ROW_VECTORS(width, CALL);
#undef CALL
}

INLINE void update_columns(int vectors, float *row, const mlp_use *uses, int n, const float *d,
                           ptrdiff_t d_stride, float eta)
{
    vf w[ROW_VECTORS];
    UNROLL for (int v = 0; v < vectors; v++) w[v] = vf_load(row + v * VW);
    for (int k = 0; k < n; k++) {
        const vf step = vf_set1(-eta * uses[k].value);
        const float *delta = d + uses[k].sample * d_stride;
        UNROLL for (int v = 0; v < vectors; v++) w[v] = vf_fma(step, vf_load(delta + v * VW), w[v]);
    }
    UNROLL for (int v = 0; v < vectors; v++) vf_store(row + v * VW, w[v]);
}

static void KERNEL(update_rows)(float *w, int width, const mlp_uses *uses, int begin, int end,
                                const float *d, ptrdiff_t d_stride, float eta)
{
    for (int j = begin; j < end; j++) {
        float *row = w + (ptrdiff_t)j * width;
        const mlp_use *own = uses->uses + (ptrdiff_t)j * uses->room;
        const int count = uses->counts[j];
        for (int c = 0; c < width; c += LINE) __builtin_prefetch(row + ROWS_AHEAD * width + c, 1);
        if (count == 0) continue;
#define CALL(vectors) update_columns(vectors, row + c, own, count, d + c, d_stride, eta)
        FOR_ROW_VECTORS(width, CALL);
#undef CALL
    }
}

/* The sums of some columns, in registers. The compiler makes vectors of this and the following. */
INLINE void linear_columns(int columns, const float *w, int width, const int *list, int n,
                           const float *x, float *restrict sums)
{
    UNROLL for (int c = 0; c < columns; c++) sums[c] = 0.0f;
    for (int k = 0; k < n; k++) {
        const float *row = w + (ptrdiff_t)list[k] * width;
        UNROLL for (int c = 0; c < columns; c++) sums[c] += x[list[k]] * row[c];
    }
}

static void KERNEL(linear_rows)(const float *w, int width, const int *list, int n, const float *x,
                                float *sums)
{
    int c = 0;
    for (; c + 8 <= width; c += 8) linear_columns(8, w + c, width, list, n, x, sums + c);
    for (; c + 2 <= width; c += 2) linear_columns(2, w + c, width, list, n, x, sums + c);
    if (c < width) linear_columns(1, w + c, width, list, n, x, sums + c);
}

/* Rows that follow each other are one long vector. */
static void KERNEL(fisher_rows)(float *restrict w, float *restrict rates, int width,
                                const int *list, int n, const float *x, const float *delta,
                                const float *step, float least)
{
    float gradients[MLP_LINEAR_WIDTH], steps[MLP_LINEAR_WIDTH];
    for (int k = 0; k < n;) {
        const ptrdiff_t begin = (ptrdiff_t)list[k] * width;
        int m = 0;
        do {
            for (int c = 0; c < width; c++) {
                gradients[m + c] = x[list[k]] * delta[c];
                steps[m + c] = x[list[k]] * step[c];
            }
            m += width;
            k++;
        } while (k < n && list[k] == list[k - 1] + 1 && m + width <= MLP_LINEAR_WIDTH);
        for (int i = 0; i < m; i++) {
            const float g = gradients[i], before = rates[begin + i];
            const float rate = before / (1.0f + before * g * g);
            rates[begin + i] = rate > least ? rate : least;
            w[begin + i] -= rates[begin + i] * steps[i];
        }
    }
}
