/* Matrix products in float32's precision by a unit that multiplies bfloat16: Intel AMX.
 *
 * A float32 is split into the nearest bfloat16, hi, and the bfloat16 nearest to the rest, lo:
 * x = hi + lo to 2^-18 of x. Of the product (hi + lo)(hi' + lo') the term lo lo', 2^-18 of the
 * whole at most, is left out; the other three are exact and are summed in float32. So a sum of
 * n products is off by at most 3 * 2^-18 of their magnitudes besides its rounding, which is less
 * than the n * 2^-24 that a sum in float32 may be off when n is 192 or more. Three products of
 * bfloat16 here take less than a third of the time of one in float32 by AVX-512.
 *
 * Shapes: a tile register holds 16 rows of 64 bytes. A layer's inputs are rows of k bfloat16 per
 * sample, the bias input 1 after the last; its weights lie in panels of 16 neurons,
 * [k / 2][neuron][2], as the unit wants its right operand. Sums are formed in the order of k,
 * so a sample's outputs depend neither on the others nor on the number of threads.
 */
#include "amx.h"

#if defined(__AMX_BF16__) && defined(__AVX512F__) && defined(__linux__)
#include <immintrin.h>

#include "buffers.h"
#include "threads.h"

const int mlp_amx_compiled = 1;

enum {
    SIDE = 16,     /* samples or neurons of a tile */
    DEPTH = 32,    /* inputs of a tile */
    SAMPLES = 128, /* that a thread takes through all layers at a time: their inputs fit into L2 */
};

/* Operands as hi and lo parts. */
typedef struct {
    uint16_t *hi, *lo;
} halves;

typedef struct {
    const mlp_kernels *kernels;
    mlp_prediction *task;
    halves *weights; /* per layer */
    halves *inputs;  /* per thread, SAMPLES rows of the deepest layer */
    float **sums;    /* per thread, SAMPLES rows of the widest layer */
    halves *rows;    /* per thread, SIDE rows of weights on their way to a panel */
} prediction;

static int depth(const mlp_layer *layer) { return (layer->n_in + 1 + DEPTH - 1) / DEPTH * DEPTH; }

/* Pairs of panels: two are multiplied at a time. */
static int n_pairs(const mlp_layer *layer) { return (layer->n_out + 2 * SIDE - 1) / (2 * SIDE); }

static void configure_tiles(void)
{
    struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } config = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        config.row_bytes[i] = 64;
        config.rows[i] = SIDE;
    }
    _tile_loadconfig(&config);
}

/* The nearest bfloat16, ties to even, in the upper half of each float. */
static inline __m512i nearest(__m512 x)
{
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    return _mm512_and_si512(rounded, _mm512_set1_epi32((int)0xffff0000));
}

/* Row `row` of `to` from n floats, zeros after them up to k. */
static void split(const float *x, int n, halves to, long row, int k)
{
    uint16_t *hi = to.hi + row * k, *lo = to.lo + row * k;
    for (int j = 0; j < k; j += 16) {
        const int left = n - j;
        const __mmask16 there = left >= 16 ? 0xffff : left > 0 ? (1u << left) - 1 : 0;
        const __m512 v = _mm512_maskz_loadu_ps(there, x + j);
        const __m512i h = nearest(v);
        const __m512i l = nearest(_mm512_sub_ps(v, _mm512_castsi512_ps(h)));
        _mm512_mask_cvtepi32_storeu_epi16(hi + j, 0xffff, _mm512_srli_epi32(h, 16));
        _mm512_mask_cvtepi32_storeu_epi16(lo + j, 0xffff, _mm512_srli_epi32(l, 16));
    }
}

/* Pairs of inputs of 16 rows of k, side by side. */
static void interleave(const uint16_t *rows, int k, uint16_t *panel)
{
    const __m512i index =
        _mm512_mullo_epi32(_mm512_set_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),
                           _mm512_set1_epi32(k / 2));
    for (int j = 0; j < k / 2; j++)
        _mm512_store_si512(panel + (long)j * 2 * SIDE,
                           _mm512_i32gather_epi32(index, (const int *)rows + j, 4));
}

static void pack_panel(const mlp_layer *layer, int panel, halves rows, halves weights)
{
    const int k = depth(layer);
    for (int i = 0; i < SIDE; i++) {
        const int neuron = panel * SIDE + i;
        const float *w =
            neuron < layer->n_out ? layer->weights + (long)neuron * layer->stride : NULL;
        split(w, w ? layer->n_in + 1 : 0, rows, i, k);
    }
    interleave(rows.hi, k, weights.hi + (long)panel * k * SIDE);
    interleave(rows.lo, k, weights.lo + (long)panel * k * SIDE);
}

/* Sums of 32 samples and 32 neurons: two tiles by two. */
static void multiply(const uint16_t *x_hi, const uint16_t *x_lo, const uint16_t *w_hi,
                     const uint16_t *w_lo, int k, float *sums, int stride)
{
    const long below = (long)SIDE * k, panel = below;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int j = 0; j < k; j += DEPTH) {
        _tile_loadd(4, x_hi + j, 2 * k);
        _tile_loadd(5, x_hi + j + below, 2 * k);
        _tile_loadd(6, w_lo + (long)j * SIDE, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(2, 5, 6);
        _tile_loadd(7, w_lo + (long)j * SIDE + panel, 64);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(3, 5, 7);
        _tile_loadd(6, w_hi + (long)j * SIDE, 64);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(2, 5, 6);
        _tile_loadd(7, w_hi + (long)j * SIDE + panel, 64);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(3, 5, 7);
        _tile_loadd(4, x_lo + j, 2 * k);
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_loadd(5, x_lo + j + below, 2 * k);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_stored(0, sums, 4 * stride);
    _tile_stored(1, sums + SIDE, 4 * stride);
    _tile_stored(2, sums + (long)SIDE * stride, 4 * stride);
    _tile_stored(3, sums + (long)SIDE * stride + SIDE, 4 * stride);
}

/* Outputs of the samples begin ... begin + n - 1, n <= SAMPLES. */
static void predict_samples(const prediction *p, int begin, int n, halves x, float *sums)
{
    const mlp_network *network = p->task->network;
    const float *states = p->task->images + (long)begin * network->layers[0].n_in;
    int states_stride = network->layers[0].n_in;
    for (int l = 0; l < network->n_layers; l++) {
        const mlp_layer *layer = &network->layers[l];
        const int k = depth(layer), stride = 2 * SIDE * n_pairs(layer);
        for (int i = 0; i < n; i++) {
            split(states + (long)i * states_stride, layer->n_in, x, i, k);
            x.hi[(long)i * k + layer->n_in] = 0x3f80; /* the bias input, 1 */
        }
        /* Rows beyond n hold what they held before, and give sums that nobody reads. */
        for (int pair = 0; pair < n_pairs(layer); pair++)
            for (int i = 0; i < n; i += 2 * SIDE) {
                const long w = (long)pair * 2 * SIDE * k, row = (long)i * k;
                multiply(x.hi + row, x.lo + row, p->weights[l].hi + w, p->weights[l].lo + w, k,
                         sums + (long)i * stride + 2 * SIDE * pair, stride);
            }
        const int last = l + 1 == network->n_layers;
        for (int i = 0; i < n; i++) {
            float *row = sums + (long)i * stride;
            p->kernels->activate(row, 0, layer->n_out, row);
            if (last)
                memcpy(p->task->outputs + (long)(begin + i) * layer->n_out, row,
                       sizeof(float) * (size_t)layer->n_out);
        }
        states = sums;
        states_stride = stride;
    }
}

static void predict(void *argument, mlp_team *team, int thread, int n_threads)
{
    prediction *p = argument;
    for (int l = 0; l < p->task->network->n_layers; l++) {
        const mlp_layer *layer = &p->task->network->layers[l];
        int begin, end;
        mlp_share(2 * n_pairs(layer), thread, n_threads, &begin, &end);
        for (int panel = begin; panel < end; panel++)
            pack_panel(layer, panel, p->rows[thread], p->weights[l]);
    }
    mlp_barrier(team, thread);
    for (int begin, n; (n = mlp_next_batch(p->task, thread, SAMPLES, &begin));) {
        configure_tiles(); /* each time: who was asked may have used them */
        predict_samples(p, begin, n, p->inputs[thread], p->sums[thread]);
    }
    _tile_release();
}

/* Room for n bfloat16 of each part; -1 when there is none. */
static int allocate_halves(halves *h, size_t n)
{
    h->hi = (uint16_t *)mlp_floats((n + 1) / 2);
    h->lo = (uint16_t *)mlp_floats((n + 1) / 2);
    return h->hi && h->lo ? 0 : -1;
}

static void free_halves(halves *all, int n)
{
    for (int i = 0; all && i < n; i++) {
        free(all[i].hi);
        free(all[i].lo);
    }
    free(all);
}

static int allocate(prediction *p, int n_threads)
{
    const mlp_network *network = p->task->network;
    size_t deepest = 0, widest = 0;
    p->weights = calloc((size_t)network->n_layers, sizeof *p->weights);
    p->inputs = calloc((size_t)n_threads, sizeof *p->inputs);
    p->rows = calloc((size_t)n_threads, sizeof *p->rows);
    p->sums = calloc((size_t)n_threads, sizeof *p->sums);
    if (!p->weights || !p->inputs || !p->rows || !p->sums) return -1;
    for (int l = 0; l < network->n_layers; l++) {
        const size_t k = (size_t)depth(&network->layers[l]);
        const size_t width = 2 * SIDE * (size_t)n_pairs(&network->layers[l]);
        if (allocate_halves(&p->weights[l], k * width)) return -1;
        if (k > deepest) deepest = k;
        if (width > widest) widest = width;
    }
    for (int i = 0; i < n_threads; i++) {
        if (allocate_halves(&p->inputs[i], SAMPLES * deepest)) return -1;
        if (allocate_halves(&p->rows[i], SIDE * deepest)) return -1;
        if (!(p->sums[i] = mlp_floats(SAMPLES * widest))) return -1;
    }
    return 0;
}

int mlp_predict_amx(const mlp_kernels *kernels, mlp_prediction *task, int n_threads)
{
    if (task->n == 0) return 0;
    task->begun = 0;
    prediction p = {.kernels = kernels, .task = task};
    int status = allocate(&p, n_threads);
    if (status == 0 && mlp_run_team(n_threads, predict, &p) == 0) status = -1;
    free_halves(p.weights, task->network->n_layers);
    free_halves(p.inputs, n_threads);
    free_halves(p.rows, n_threads);
    for (int i = 0; p.sums && i < n_threads; i++) free(p.sums[i]);
    free(p.sums);
    return status;
}

#else

const int mlp_amx_compiled = 0;

int mlp_predict_amx(const mlp_kernels *kernels, mlp_prediction *task, int n_threads)
{
    (void)kernels, (void)task, (void)n_threads;
    return -1;
}
#endif
