/* Matrix products of 8-bit integers, for a validation that looks again where they leave a doubt.
 *
 * One instruction multiplies 32 of them and adds neighbours, where one in float32 multiplies eight.
 * A neuron's weights are rounded to multiples of 1/63 of its greatest; an image's inputs to 127
 * steps from its least to its greatest, and states likewise: two products of one and two of the
 * next quadruple then fit into 16 bits, where they are added before they are widened. Sums of
 * integers are exact, so a sample's outputs depend neither on the others nor on the number of
 * threads. The last layer, whose weights vary most and are few, is float32's.
 *
 * Shapes: samples are columns, in groups of 16. Of four inputs 4q ... 4q + 3 a group's numbers lie
 * side by side, [quad][sample][4]; weights in blocks of four neurons, [quad][neuron][4]. An
 * image's least input is most often its background, and so an integer zero: quads that are
 * zero in all of a group are left out.
 */
#include "int8.h"

#if defined(__AVX2__) && defined(__FMA__)
#include <immintrin.h>
#include <math.h>
#include <stdatomic.h>

#include "buffers.h"
#include "threads.h"
#include "vnni.h"

const int mlp_int8_compiled = 1;

enum {
    GROUP = MLP_PANEL, /* samples, */
    BLOCK = 4,         /* and neurons, whose sums lie in registers */
    SAMPLES = 64,      /* that a thread takes through all layers at a time */
    N_GROUPS = SAMPLES / GROUP,
    /* Between which partial sums are stored: a group's inputs stay in the nearest cache, the
     * weights in the next. */
    CHUNK_QUADS = 256,
    CHUNK_ROWS = 16 * BLOCK,
    MOST_CHUNKS = MLP_INT8_MOST_INPUTS / 4 / CHUNK_QUADS,
    WEIGHT_MAX = 63,
    INPUT_MAX = 127
};

_Static_assert(GROUP == 16, "two vectors");

/* Four 8-bit integers, the first lowest. */
typedef uint32_t quad;

/* A layer's weights as integers, and of each neuron what 1 stands for. */
typedef struct {
    quad *values;
    float *step, *bias, *row_sum;
    int n_quads;
} weights;

typedef struct {
    const mlp_kernels *kernels;
    mlp_prediction *task;
    weights *layers; /* all but the last */
    int most_quads;  /* of any of them */
    int vnni;        /* whether mlp_multiply_vnni does the products */
    atomic_int failed;
} prediction;

/* What a thread works with. Inputs are N_GROUPS groups of most_quads quads. */
typedef struct {
    _Alignas(64) int32_t sums[CHUNK_ROWS * SAMPLES];
    _Alignas(64) float states[CHUNK_ROWS * SAMPLES];
    float step[SAMPLES], least[SAMPLES]; /* of the images' inputs */
    float not_finite[SAMPLES];           /* NaN where a state was, else 0 */
    int counts[N_GROUPS][MOST_CHUNKS];
    int *listed; /* quads of the images that are not zero: of a group, from each chunk's first on */
    quad *rows;  /* a group's images, most_quads apart */
    quad *inputs, *next;
    float *last_inputs, *outputs; /* in panels (foreground.h) */
} workspace;

static quad join(const long v[4])
{
    return (uint8_t)v[0] | (quad)(uint8_t)v[1] << 8 | (quad)(uint8_t)v[2] << 16 |
           (quad)(uint8_t)v[3] << 24;
}

/* Quads of a layer's inputs, an even number: two are added at a time. */
static int n_quads(int n_in) { return (n_in + 7) / 8 * 2; }

/* Rows of zeros after the last neuron fill its block. */
static int n_rows(const mlp_layer *layer) { return (layer->n_out + BLOCK - 1) / BLOCK * BLOCK; }

/* 32 floats, of which `least` is taken off first, times the factor: as bytes, when `from_zero`, or
 * as signed ones. */
static inline __m256i to_bytes(const float *x, __m256 least, __m256 factor, int from_zero)
{
    __m256i q[4];
    for (int i = 0; i < 4; i++)
        q[i] = _mm256_cvtps_epi32(
            _mm256_mul_ps(_mm256_sub_ps(_mm256_loadu_ps(x + 8 * i), least), factor));
    const __m256i low = _mm256_packs_epi32(q[0], q[1]), high = _mm256_packs_epi32(q[2], q[3]);
    const __m256i bytes =
        from_zero ? _mm256_packus_epi16(low, high) : _mm256_packs_epi16(low, high);
    return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

/* The greatest magnitude and the sum, which is not finite if any is not. */
static float greatest_weight(const float *w, int n, float *sum)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 most = _mm256_setzero_ps(), sums = most;
    int j = 0;
    for (; j + 8 <= n; j += 8) {
        const __m256 value = _mm256_loadu_ps(w + j);
        most = _mm256_max_ps(most, _mm256_andnot_ps(sign, value));
        sums = _mm256_add_ps(sums, value);
    }
    float sizes[8], parts[8], greatest = *sum = 0.0f;
    _mm256_storeu_ps(sizes, most);
    _mm256_storeu_ps(parts, sums);
    for (int i = 0; i < 8; i++) {
        greatest = sizes[i] > greatest ? sizes[i] : greatest;
        *sum += parts[i];
    }
    for (; j < n; j++) {
        greatest = fabsf(w[j]) > greatest ? fabsf(w[j]) : greatest;
        *sum += w[j];
    }
    return greatest;
}

static void pack_neuron(const mlp_layer *layer, int i, const weights *to)
{
    const float *w = layer->weights + (long)i * layer->stride;
    quad *values = to->values + (long)(i / BLOCK) * to->n_quads * BLOCK + i % BLOCK;
    float sum;
    const float greatest = greatest_weight(w, layer->n_in, &sum), factor = WEIGHT_MAX / greatest;
    to->step[i] = isfinite(sum) ? greatest / WEIGHT_MAX : NAN;
    to->bias[i] = w[layer->n_in];
    to->row_sum[i] = sum;
    if (!isfinite(sum) || !isfinite(factor)) return;
    int j = 0;
    for (; j + 32 <= layer->n_in; j += 32) {
        quad q[8];
        _mm256_storeu_si256((__m256i *)q,
                            to_bytes(w + j, _mm256_setzero_ps(), _mm256_set1_ps(factor), 0));
        for (int k = 0; k < 8; k++) values[(long)(j / 4 + k) * BLOCK] = q[k];
    }
    for (; j < layer->n_in; j += 4) {
        long v[4] = {0};
        for (int k = 0; k < 4 && j + k < layer->n_in; k++) v[k] = lrintf(w[j + k] * factor);
        values[(long)(j / 4) * BLOCK] = join(v);
    }
}

/* A sample's inputs as integers, (x - least) / step, in a row. */
static void round_image(const prediction *p, int image, int s, quad *row, workspace *work)
{
    const int n_in = p->task->network->layers[0].n_in;
    const float *x = p->task->images + (long)image * n_in;
    float least = x[0], greatest = x[0], check = 0.0f;
    for (int j = 0; j < n_in; j++) {
        least = x[j] < least ? x[j] : least;
        greatest = x[j] > greatest ? x[j] : greatest;
        check += x[j] * 0.0f; /* NaN if any is not finite */
    }
    const float range = greatest - least, factor = INPUT_MAX / range;
    work->step[s] = check == 0.0f && isfinite(range) ? range / INPUT_MAX : NAN;
    work->least[s] = least;
    memset(row, 0, sizeof(quad) * (size_t)p->layers[0].n_quads);
    if (!(check == 0.0f) || !isfinite(range) || !isfinite(factor)) return;
    const __m256 leasts = _mm256_set1_ps(least), factors = _mm256_set1_ps(factor);
    int j = 0;
    for (; j + 32 <= n_in; j += 32)
        _mm256_storeu_si256((__m256i *)(row + j / 4), to_bytes(x + j, leasts, factors, 1));
    for (; j < n_in; j += 4) {
        long v[4] = {0};
        for (int k = 0; k < 4 && j + k < n_in; k++) v[k] = lrintf((x[j + k] - least) * factor);
        row[j / 4] = join(v);
    }
}

/* A group's rows as columns: the quads that are not zero, an even number, and which they are. */
static void pack_group(const prediction *p, int group, workspace *work)
{
    const int n = p->layers[0].n_quads;
    for (int first = 0; first < n; first += CHUNK_QUADS) {
        const int last = first + CHUNK_QUADS < n ? first + CHUNK_QUADS : n;
        quad *inputs = work->inputs + ((long)group * p->most_quads + first) * GROUP;
        int *listed = work->listed + (long)group * p->most_quads + first, k = 0;
        for (int q = first; q < last; q++) {
            quad any = 0;
            for (int s = 0; s < GROUP; s++) {
                const quad value = work->rows[(long)s * p->most_quads + q];
                inputs[(long)k * GROUP + s] = value;
                any |= value;
            }
            listed[k] = q;
            k += any != 0;
        }
        if (k % 2) { /* there is room: the number of all is even */
            memset(inputs + (long)k * GROUP, 0, sizeof(quad) * GROUP);
            listed[k++] = first;
        }
        work->counts[group][first / CHUNK_QUADS] = k;
    }
}

static void pack_images(const prediction *p, int begin, int n, workspace *work)
{
    for (int group = 0; group * GROUP < n; group++) {
        for (int s = 0; s < GROUP; s++) {
            const int sample = group * GROUP + s;
            quad *row = work->rows + (long)s * p->most_quads;
            if (sample < n)
                round_image(p, begin + sample, sample, row, work);
            else
                memset(row, 0, sizeof(quad) * (size_t)p->layers[0].n_quads);
        }
        pack_group(p, group, work);
    }
}

/* Sums of a block of neurons and a group of samples: adds those of n quads, an even number, all or
 * those that are listed. */
static inline __attribute__((always_inline)) void multiply(const quad *w, const int *listed,
                                                           const quad *x, int n, int32_t *sums)
{
    const __m256i ones = _mm256_set1_epi16(1);
    __m256i sum[BLOCK][2];
#pragma GCC unroll 4
    for (int r = 0; r < BLOCK; r++)
        for (int v = 0; v < 2; v++)
            sum[r][v] = _mm256_load_si256((const __m256i *)(sums + r * SAMPLES + 8 * v));
    for (int k = 0; k < n; k += 2) {
        const quad *w0 = w + (long)(listed ? listed[k] : k) * BLOCK;
        const quad *w1 = w + (long)(listed ? listed[k + 1] : k + 1) * BLOCK;
        const quad *x0 = x + (long)k * GROUP, *x1 = x0 + GROUP;
        const __m256i a0 = _mm256_load_si256((const __m256i *)x0);
        const __m256i b0 = _mm256_load_si256((const __m256i *)(x0 + 8));
        const __m256i a1 = _mm256_load_si256((const __m256i *)x1);
        const __m256i b1 = _mm256_load_si256((const __m256i *)(x1 + 8));
#pragma GCC unroll 4
        for (int r = 0; r < BLOCK; r++) {
            const __m256i f0 = _mm256_set1_epi32((int)w0[r]), f1 = _mm256_set1_epi32((int)w1[r]);
            const __m256i a =
                _mm256_add_epi16(_mm256_maddubs_epi16(a0, f0), _mm256_maddubs_epi16(a1, f1));
            const __m256i b =
                _mm256_add_epi16(_mm256_maddubs_epi16(b0, f0), _mm256_maddubs_epi16(b1, f1));
            sum[r][0] = _mm256_add_epi32(sum[r][0], _mm256_madd_epi16(a, ones));
            sum[r][1] = _mm256_add_epi32(sum[r][1], _mm256_madd_epi16(b, ones));
        }
    }
#pragma GCC unroll 4
    for (int r = 0; r < BLOCK; r++)
        for (int v = 0; v < 2; v++)
            _mm256_store_si256((__m256i *)(sums + r * SAMPLES + 8 * v), sum[r][v]);
}

/* Layer l's sums of `rows` neurons from `row` on, and n samples. */
static void add_up(const prediction *p, int l, int row, int rows, int n, workspace *work)
{
    const weights *w = &p->layers[l];
    memset(work->sums, 0, sizeof(int32_t) * (size_t)rows * SAMPLES);
    for (int first = 0; first < w->n_quads; first += CHUNK_QUADS)
        for (int group = 0; group * GROUP < n; group++) {
            const long begin = (long)group * p->most_quads + first;
            const quad *x = work->inputs + begin * GROUP;
            const int rest = w->n_quads - first;
            for (int i = 0; i < rows; i += BLOCK) {
                const quad *values = w->values + (long)(row + i) * w->n_quads;
                int32_t *sums = work->sums + i * SAMPLES + group * GROUP;
                const int quads = l == 0               ? work->counts[group][first / CHUNK_QUADS]
                                  : rest < CHUNK_QUADS ? rest
                                                       : CHUNK_QUADS;
                const int *listed = l == 0 ? work->listed + begin : NULL;
                if (l > 0) values += (long)first * BLOCK;
                if (p->vnni)
                    mlp_multiply_vnni(values, listed, x, quads, sums, SAMPLES);
                else if (l == 0)
                    multiply(values, listed, x, quads, sums);
                else /* NULL by name, for a loop without the question */
                    multiply(values, NULL, x, quads, sums);
            }
        }
}

/* The states of these neurons, in float32. */
static void activate(const prediction *p, int l, int row, int rows, workspace *work)
{
    const weights *w = &p->layers[l];
    const __m256 state_step = _mm256_set1_ps(2 * MLP_A / INPUT_MAX);
    for (int i = 0; i < rows; i++) {
        const __m256 step = _mm256_set1_ps(w->step[row + i]);
        const __m256 bias = _mm256_set1_ps(w->bias[row + i]);
        const __m256 row_sum = _mm256_set1_ps(w->row_sum[row + i]);
        for (int s = 0; s < SAMPLES; s += 8) {
            const int at = i * SAMPLES + s;
            const __m256 input_step = l ? state_step : _mm256_loadu_ps(work->step + s);
            const __m256 least = l ? _mm256_set1_ps(-MLP_A) : _mm256_loadu_ps(work->least + s);
            __m256 a = _mm256_cvtepi32_ps(_mm256_load_si256((const __m256i *)(work->sums + at)));
            a = _mm256_fmadd_ps(a, _mm256_mul_ps(step, input_step), bias);
            _mm256_store_ps(work->states + at, _mm256_fmadd_ps(row_sum, least, a));
        }
    }
    p->kernels->activate(work->states, 0, rows * SAMPLES, work->states);
}

/* Four neurons' states of eight samples as inputs of the next layer. */
static __m256i round_states(const float *states, __m256 *not_finite)
{
    const __m256 least = _mm256_set1_ps(-MLP_A), zero = _mm256_setzero_ps();
    const __m256 factor = _mm256_set1_ps(INPUT_MAX / (2 * MLP_A));
    __m256i all = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int k = 3; k >= 0; k--) {
        const __m256 y = _mm256_load_ps(states + k * SAMPLES);
        const __m256i q = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_sub_ps(y, least), factor));
        all = _mm256_or_si256(_mm256_slli_epi32(all, 8), q);
        *not_finite = _mm256_fmadd_ps(y, zero, *not_finite);
    }
    return all;
}

/* What the next layer, the last when `last`, takes of these states; blocks of rows end with
 * zeros. */
static void hand_on(const prediction *p, int l, int row, int rows, int last, workspace *work)
{
    const mlp_layer *above = &p->task->network->layers[l + 1];
    for (int s = 0; s < SAMPLES; s += 8) {
        if (last) {
            float *panel =
                work->last_inputs + (long)(s / GROUP) * above->stride * GROUP + s % GROUP;
            for (int i = 0; i < rows && row + i < above->n_in; i++)
                _mm256_store_ps(panel + (long)(row + i) * GROUP,
                                _mm256_load_ps(work->states + i * SAMPLES + s));
            continue;
        }
        quad *next = work->next + (long)(s / GROUP) * p->most_quads * GROUP + s % GROUP;
        __m256 not_finite = _mm256_loadu_ps(work->not_finite + s);
        for (int i = 0; i < rows; i += 4)
            _mm256_store_si256((__m256i *)(next + (long)(row + i) / 4 * GROUP),
                               round_states(work->states + i * SAMPLES + s, &not_finite));
        _mm256_storeu_ps(work->not_finite + s, not_finite);
    }
}

/* The last layer, in float32. */
static void finish(const prediction *p, int begin, int n, workspace *work)
{
    const mlp_layer *layer = &p->task->network->layers[p->task->network->n_layers - 1];
    const long panel = (long)mlp_padded(layer->n_out) * GROUP;
    const mlp_panels inputs = {.values = work->last_inputs};
    float *outputs = p->task->outputs + (long)begin * layer->n_out;
    p->kernels->product_block(layer, &inputs, n, 0, layer->n_out, work->outputs, panel);
    for (int i = 0; i * GROUP < n; i++)
        p->kernels->activate(work->outputs + i * panel, 0, layer->n_out * GROUP,
                             work->outputs + i * panel);
    mlp_from_panels(work->outputs, panel, layer->n_out, n, outputs, layer->n_out);
    for (int s = 0; s < n; s++)
        for (int i = 0; i < layer->n_out; i++) outputs[s * layer->n_out + i] += work->not_finite[s];
}

/* Outputs of the samples begin ... begin + n - 1, n <= SAMPLES. */
static void predict_samples(const prediction *p, int begin, int n, workspace *work)
{
    const int last = p->task->network->n_layers - 1;
    memset(work->not_finite, 0, sizeof work->not_finite);
    pack_images(p, begin, n, work);
    for (int l = 0; l < last; l++) {
        const int all = n_rows(&p->task->network->layers[l]);
        for (int row = 0; row < all; row += CHUNK_ROWS) {
            const int rows = all - row < CHUNK_ROWS ? all - row : CHUNK_ROWS;
            add_up(p, l, row, rows, n, work);
            activate(p, l, row, rows, work);
            hand_on(p, l, row, rows, l + 1 == last, work);
        }
        quad *swap = work->inputs;
        work->inputs = work->next;
        work->next = swap;
    }
    finish(p, begin, n, work);
}

static void release_workspace(workspace *work)
{
    if (!work) return;
    free(work->listed);
    free(work->rows);
    free(work->inputs);
    free(work->next);
    free(work->last_inputs);
    free(work->outputs);
    free(work);
}

static workspace *allocate_workspace(const prediction *p)
{
    const mlp_layer *last = &p->task->network->layers[p->task->network->n_layers - 1];
    const size_t quads = (size_t)p->most_quads;
    workspace *work = aligned_alloc(64, sizeof *work);
    if (!work) return NULL;
    memset(work, 0, sizeof *work);
    work->listed = calloc(N_GROUPS * quads, sizeof *work->listed);
    work->rows = (quad *)mlp_floats(GROUP * quads);
    work->inputs = (quad *)mlp_floats(SAMPLES * quads);
    work->next = (quad *)mlp_floats(SAMPLES * quads);
    work->last_inputs = mlp_floats(SAMPLES * (size_t)last->stride);
    work->outputs = mlp_floats(SAMPLES * (size_t)mlp_padded(last->n_out));
    if (work->listed && work->rows && work->inputs && work->next && work->last_inputs &&
        work->outputs) {
        for (int s = 0; s < SAMPLES; s++)
            work->last_inputs[(long)(s / GROUP) * last->stride * GROUP + last->n_in * GROUP +
                              s % GROUP] = 1.0f;
        return work;
    }
    release_workspace(work);
    return NULL;
}

static void predict(void *argument, mlp_team *team, int thread, int n_threads)
{
    prediction *p = argument;
    for (int l = 0; l + 1 < p->task->network->n_layers; l++) {
        int begin, end;
        mlp_share(p->task->network->layers[l].n_out, thread, n_threads, &begin, &end);
        for (int i = begin; i < end; i++)
            pack_neuron(&p->task->network->layers[l], i, &p->layers[l]);
    }
    mlp_barrier(team, thread);
    workspace *work = allocate_workspace(p);
    if (!work) p->failed = 1;
    for (int begin, n; work && (n = mlp_next_batch(p->task, thread, SAMPLES, &begin));)
        predict_samples(p, begin, n, work);
    release_workspace(work);
}

static int allocate(prediction *p)
{
    const int n_layers = p->task->network->n_layers;
    p->layers = calloc((size_t)n_layers, sizeof *p->layers);
    if (!p->layers) return -1;
    for (int l = 0; l + 1 < n_layers; l++) {
        const mlp_layer *layer = &p->task->network->layers[l];
        const size_t rows = (size_t)n_rows(layer);
        weights *w = &p->layers[l];
        w->n_quads = n_quads(layer->n_in);
        w->values = (quad *)mlp_floats(rows * (size_t)w->n_quads);
        w->step = mlp_floats(3 * rows);
        if (!w->values || !w->step) return -1;
        w->bias = w->step + rows;
        w->row_sum = w->bias + rows;
        if (w->n_quads > p->most_quads) p->most_quads = w->n_quads;
    }
    return 0;
}

int mlp_predict_int8(const mlp_kernels *kernels, mlp_prediction *task, int n_threads)
{
    if (task->n == 0) return 0;
    task->begun = 0;
    const int vnni = kernels == &mlp_avx512 && mlp_has_vnni();
    prediction p = {.kernels = kernels, .task = task, .vnni = vnni};
    int failed = allocate(&p);
    n_threads = mlp_at_most(n_threads, (task->n - 1) / SAMPLES + 1);
    if (!failed) failed = mlp_run_team(n_threads, predict, &p) == 0 || p.failed;
    for (int l = 0; p.layers && l < task->network->n_layers; l++) {
        free(p.layers[l].values);
        free(p.layers[l].step);
    }
    free(p.layers);
    return failed ? -1 : 0;
}

#else

const int mlp_int8_compiled = 0;

int mlp_predict_int8(const mlp_kernels *kernels, mlp_prediction *task, int n_threads)
{
    (void)kernels, (void)task, (void)n_threads;
    return -1;
}
#endif
