/* Grids, tiles, displacement fields and threads of the deformation; its arithmetic is in
 * deformation_kernels.h. */
#include "deformation.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "allocate.h"
#include "threads.h"

enum { GRID = 10, PER_GRID = GRID * GRID };

/* What a Philox counter is used for: its last word. */
enum { PURPOSE_NOISE_X = 1, PURPOSE_NOISE_Y = 2 };

typedef struct {
    const mlp_kernels *kernels;
    const mlp_deformation *deformation;
    int *parts; /* where each part of the images begins that one thread deforms, and the end */
    int n_parts, most_tiles; /* tiles of the longest strip */
    atomic_int next_part;
    float *scratch;
    size_t per_thread; /* floats of it */
} deform_context;

/* Consecutive tiles [begin, end) in a row of tiles of a grid, and which images have them. An image
 * may be there more than once. */
typedef struct {
    uint32_t grid;
    int row, begin, end;
    int first, stop;
} strip;

/* One thread's buffers; sizes in floats are those of make_workspace. */
typedef struct {
    int noise_stride, noise_rows, field_stride;
    float *noise[2]; /* rows [base, filled) of the strip's noise, x and y; multiples of 4 */
    float *field[2]; /* displacements of the strip */
    float *middle;   /* between the two convolutions */
    float *padded, *row;
    float *scaled;    /* the taps times alpha */
    float background; /* around the image in `padded` */
    int base, filled;
} workspace;

/* The most cells that n pixels touch. */
static int cells_of(int n, int cell) { return (n + cell - 2) / cell + 1; }

/* Floats of a row between the two convolutions, which read and write whole vectors, beyond the end
 * of a row. */
static int middle_stride(const mlp_deformation *d, int width)
{
    return mlp_padded(d->cell == 1 ? width + d->n_taps - 1 : width) + 2 * MLP_ALIGN;
}

/* Places the buffers in `memory`; returns the floats that they take. */
static size_t make_workspace(workspace *work, const mlp_deformation *d, int tiles, float *memory)
{
    const int columns = tiles * d->width, margin = d->n_taps - 1;
    const int middle_rows = d->cell == 1 ? 1 : cells_of(d->height, d->cell) + margin;
    work->noise_stride = mlp_padded(cells_of(columns, d->cell) + margin);
    work->noise_rows = (cells_of(d->height, d->cell) + margin + 3 + 3) / 4 * 4;
    work->field_stride = mlp_padded(columns) + MLP_ALIGN;
    size_t noise = (size_t)work->noise_rows * (size_t)work->noise_stride + 2 * MLP_ALIGN;
    size_t field = (size_t)d->height * (size_t)work->field_stride;
    size_t at = 0;
    const size_t sizes[] = {noise,
                            noise,
                            field,
                            field,
                            (size_t)middle_rows * (size_t)middle_stride(d, columns),
                            (size_t)mlp_padded(columns),
                            (size_t)(d->in_height + 3) * (size_t)mlp_image_pitch(d->in_width),
                            (size_t)d->cell * (size_t)d->n_taps};
    float **parts[] = {&work->noise[0], &work->noise[1], &work->field[0], &work->field[1],
                       &work->middle,   &work->row,      &work->padded,   &work->scaled};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (memory) *parts[i] = memory + at;
        at += (sizes[i] + MLP_ALIGN - 1) / MLP_ALIGN * MLP_ALIGN;
    }
    return at;
}

/* The longest strip that begins with image `first` and ends before `stop`. Given displacements need
 * no strips of several images. */
static strip next_strip(const mlp_deformation *d, int first, int stop)
{
    const uint32_t number = d->indices[first];
    const int tile = (int)(number % PER_GRID);
    strip s = {number / PER_GRID, tile / GRID, tile % GRID, 0, first, first};
    uint32_t last = number;
    const uint32_t beyond = d->given ? number + 1 : number - (uint32_t)s.begin + GRID;
    for (; s.stop < stop; s.stop++) {
        if (d->indices[s.stop] > last + 1 || d->indices[s.stop] >= beyond) break;
        last = d->indices[s.stop];
    }
    s.end = (int)(last % GRID) + 1;
    return s;
}

/* ---- displacement fields ------------------------------------------------------------- */

/* Draws the rows of noise that a strip needs, and keeps those that it shares with the strip
 * before. */
static void draw_noise(const deform_context *context, workspace *work, const strip *s,
                       const strip *before)
{
    const mlp_deformation *d = context->deformation;
    if (!(before->grid == s->grid && before->row + 1 == s->row && before->begin == s->begin &&
          before->end == s->end))
        work->base = work->filled = 0;
    const int left = s->begin * d->width / d->cell, right = (s->end * d->width - 1) / d->cell;
    const int need_begin = s->row * d->height / d->cell;
    const int need_end = ((s->row + 1) * d->height - 1) / d->cell + d->n_taps;
    int new_base = need_begin / 4 * 4, begin = work->filled > new_base ? work->filled : new_base;
    for (int f = 0; f < 2; f++) {
        const uint32_t counter[4] = {(uint32_t)left, s->grid, d->epoch,
                                     f == 0 ? PURPOSE_NOISE_X : PURPOSE_NOISE_Y};
        float *noise = work->noise[f];
        if (work->filled > new_base)
            memmove(noise, noise + (ptrdiff_t)(new_base - work->base) * work->noise_stride,
                    sizeof(float) * (size_t)(work->filled - new_base) * (size_t)work->noise_stride);
        for (int y = begin; y < need_end; y += 4)
            context->kernels->noise(d->key, counter, (uint32_t)y / 4, right - left + d->n_taps,
                                    noise + (ptrdiff_t)(y - new_base) * work->noise_stride,
                                    work->noise_stride);
    }
    work->base = new_base;
    work->filled = begin > need_end ? begin : begin + (need_end - begin + 3) / 4 * 4;
}

static void copy_row(const float *in, ptrdiff_t in_step, float *out, ptrdiff_t out_step, int n)
{
    if (in_step == 1 && out_step == 1)
        memcpy(out, in, sizeof(float) * (size_t)n);
    else
        for (int i = 0; i < n; i++) out[i * out_step] = in[i * in_step];
}

/* One row of noise along the row, for n pixels, the first of them `skip` after a cell begins. */
static void smooth_row(const deform_context *context, const float *noise, int skip, int n,
                       float *row, float *out)
{
    const mlp_deformation *d = context->deformation;
    for (int x = 0; x < n && x < d->cell; x++) {
        const int first = (x + skip) / d->cell, phase = (x + skip) % d->cell;
        const int count = (n - x + d->cell - 1) / d->cell;
        context->kernels->convolve(noise + first, 1, d->taps + (ptrdiff_t)phase * d->n_taps,
                                   d->n_taps, count, row);
        copy_row(row, 1, out + x, d->cell, count);
    }
}

/* A strip's displacements in x or y, from the noise of its first cell and on. */
static void smooth(const deform_context *context, workspace *work, const strip *s,
                   const float *noise, float *field)
{
    const mlp_deformation *d = context->deformation;
    const int cell = d->cell, n_taps = d->n_taps, width = (s->end - s->begin) * d->width;
    const int left = s->begin * d->width % cell, top = s->row * d->height % cell;
    const int rows = (top + d->height - 1) / cell + n_taps, between = middle_stride(d, width);
    for (int y = 0; cell > 1 && y < rows; y++)
        smooth_row(context, noise + (ptrdiff_t)y * work->noise_stride, left, width, work->row,
                   work->middle + (ptrdiff_t)y * between);
    for (int y = 0; y < d->height; y++, field += work->field_stride) {
        if (cell > 1) {
            const int first = (top + y) / cell, phase = (top + y) % cell;
            context->kernels->convolve(work->middle + (ptrdiff_t)first * between, between,
                                       work->scaled + (ptrdiff_t)phase * n_taps, n_taps, width,
                                       field);
        } else {
            context->kernels->convolve(noise + (ptrdiff_t)y * work->noise_stride,
                                       work->noise_stride, d->taps, n_taps, width + n_taps - 1,
                                       work->middle);
            context->kernels->convolve(work->middle, 1, work->scaled, n_taps, width, field);
        }
    }
}

static void compute_field(const deform_context *context, workspace *work, const strip *s)
{
    const mlp_deformation *d = context->deformation;
    const ptrdiff_t row = s->row * d->height / d->cell - work->base;
    for (int f = 0; f < 2; f++)
        smooth(context, work, s, work->noise[f] + row * work->noise_stride, work->field[f]);
}

/* The first column of image i in the strip's field. */
static int column_of(const mlp_deformation *d, const strip *s, int i)
{
    return ((int)(d->indices[i] % GRID) - s->begin) * d->width;
}

/* Copies the displacements of the strip's images from what is given, or to where they are wanted.
 */
static void copy_fields(const mlp_deformation *d, workspace *work, const strip *s)
{
    const size_t bytes = sizeof(float) * (size_t)d->width;
    for (int i = s->first; i < s->stop; i++)
        for (int f = 0; f < 2; f++)
            for (int y = 0; y < d->height; y++) {
                const ptrdiff_t row = (2 * (ptrdiff_t)d->places[i] + f) * d->height + y;
                float *field = work->field[f] + (ptrdiff_t)y * work->field_stride;
                field += column_of(d, s, i);
                if (d->given)
                    memcpy(field, d->given + row * d->width, bytes);
                else
                    memcpy(d->fields + row * d->width, field, bytes);
            }
}

/* ---- lookup -------------------------------------------------------------------------- */

static void fill(const mlp_deformation *d, workspace *work, float background)
{
    const ptrdiff_t n = (ptrdiff_t)(d->in_height + 3) * mlp_image_pitch(d->in_width);
    for (ptrdiff_t i = 0; i < n; i++) work->padded[i] = background;
    work->background = background;
}

/* Channel c of image i. Only `padded` has room for whole vectors. */
static void look_up_image(const deform_context *context, workspace *work, int i, int c, int column)
{
    const mlp_deformation *d = context->deformation;
    const ptrdiff_t place = d->places[i], *in_step = d->in_step, *out_step = d->out_step;
    const int height = d->height, width = d->width, pitch = mlp_image_pitch(d->in_width);
    ptrdiff_t at = place * in_step[0] + c * in_step[1];
    float *out = d->out + place * out_step[0] + c * out_step[1];
    const float *dx = work->field[0] + column, *dy = work->field[1] + column;
    float *row = work->row, *padded = work->padded + pitch + 1;
    if (work->background != d->backgrounds[c]) fill(d, work, d->backgrounds[c]);
    for (int y = 0; y < d->in_height; y++, at += in_step[2], padded += pitch)
        if (d->values)
            for (int x = 0; x < d->in_width; x++)
                padded[x] = d->values[((const uint8_t *)d->images)[at + x * in_step[3]]];
        else
            copy_row((const float *)d->images + at, in_step[3], padded, 1, d->in_width);
    for (int y = 0; y < height; y++, out += out_step[2]) {
        context->kernels->lookup_row(work->padded, d->in_height, d->in_width, height, width,
                                     d->affine + 4 * place, dx + y * work->field_stride,
                                     dy + y * work->field_stride, y, row);
        copy_row(row, 1, out, out_step[3], width);
    }
}

static void deform_strip(const deform_context *context, workspace *work, const strip *s,
                         const strip *before)
{
    const mlp_deformation *d = context->deformation;
    if (!d->given) {
        draw_noise(context, work, s, before);
        compute_field(context, work, s);
    }
    if (d->given || d->fields) copy_fields(d, work, s);
    for (int i = s->first; !d->fields && i < s->stop; i++)
        for (int c = 0; c < d->channels; c++)
            look_up_image(context, work, i, c, column_of(d, s, i));
}

static void deform_task(void *argument, mlp_team *team, int thread, int n_threads)
{
    (void)team, (void)n_threads;
    deform_context *context = argument;
    const mlp_deformation *d = context->deformation;
    workspace work;
    make_workspace(&work, d, context->most_tiles,
                   context->scratch + (size_t)thread * context->per_thread);
    work.background = NAN;
    for (int i = 0; i < d->cell * d->n_taps; i++) work.scaled[i] = d->alpha * d->taps[i];
    for (int part; (part = atomic_fetch_add(&context->next_part, 1)) < context->n_parts;) {
        strip before = {.row = -2};
        for (int first = context->parts[part]; first < context->parts[part + 1];) {
            strip s = next_strip(d, first, context->parts[part + 1]);
            deform_strip(context, &work, &s, &before);
            first = s.stop;
            before = s;
        }
    }
}

/* Finds the longest strip, and the parts: the images of a grid share noise. */
static void find_parts(deform_context *context)
{
    const mlp_deformation *d = context->deformation;
    uint32_t grid = 0;
    for (int first = 0; first < d->n;) {
        strip s = next_strip(d, first, d->n);
        if (first == 0 || s.grid != grid || d->given) context->parts[context->n_parts++] = first;
        if (s.end - s.begin > context->most_tiles) context->most_tiles = s.end - s.begin;
        grid = s.grid;
        first = s.stop;
    }
    context->parts[context->n_parts] = d->n;
}

int mlp_deform(const mlp_kernels *kernels, const mlp_deformation *deformation, int n_threads)
{
    if (deformation->n == 0) return 0;
    deform_context context = {.kernels = kernels, .deformation = deformation};
    context.parts = mlp_allocate(sizeof(int) * ((size_t)deformation->n + 1));
    if (!context.parts) return -1;
    find_parts(&context);
    n_threads = mlp_at_most(n_threads, context.n_parts);
    workspace sizes;
    context.per_thread = make_workspace(&sizes, deformation, context.most_tiles, NULL);
    context.scratch = mlp_zeros((size_t)n_threads * context.per_thread, sizeof(float));
    const int status = context.scratch ? 0 : -1;
    if (status == 0) mlp_run_team(n_threads, deform_task, &context);
    mlp_free(context.scratch);
    mlp_free(context.parts);
    return status;
}
