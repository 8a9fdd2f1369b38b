/* Grids, tiles and threads of the deformation; its fields are those of displacement.c. */
#include "deformation.h"

#include <stdatomic.h>

#include "buffers.h"
#include "displacement.h"
#include "threads.h"

/* ---- one image --------------------------------------------------------------------- */

static size_t padded_image_size(int height, int width)
{
    return (size_t)(height + 3) * (size_t)mlp_image_pitch(width);
}

/* `padded` has been filled with background once. Its rows have room for a whole vector. Pixel (x,
 * y) of `image` and of `out` is at y * step[0] + x * step[1]. */
static void lookup_image(const mlp_kernels *kernels, const float *image, const ptrdiff_t in_step[2],
                         int height, int width, const float affine[4], const float *dx,
                         const float *dy, ptrdiff_t field_stride, float *padded, float *row,
                         float *out, const ptrdiff_t out_step[2])
{
    int pitch = mlp_image_pitch(width);
    for (int y = 0; y < height; y++)
        mlp_copy_row(image + y * in_step[0], in_step[1], padded + (y + 1) * pitch + 1, 1, width);
    for (int y = 0; y < height; y++) {
        kernels->lookup_row(padded, height, width, affine, dx + y * field_stride,
                            dy + y * field_stride, y, row);
        mlp_copy_row(row, 1, out + y * out_step[0], out_step[1], width);
    }
}

static void fill(float *padded, int height, int width, float background)
{
    size_t n = padded_image_size(height, width);
    for (size_t i = 0; i < n; i++) padded[i] = background;
}

/* ---- lookup by a given displacement ------------------------------------------------- */

typedef struct {
    const mlp_kernels *kernels;
    const float *images, *affine, *displacement;
    int n, height, width;
    float background;
    float *out;
    float *scratch;    /* per thread */
    size_t per_thread; /* floats of it */
} lookup_context;

static void lookup_task(void *argument, mlp_team *team, int thread, int n_threads)
{
    (void)team;
    const lookup_context *context = argument;
    int h = context->height, w = context->width, stride = mlp_padded(w), begin, end;
    const ptrdiff_t size = (ptrdiff_t)h * w, step[2] = {w, 1};
    float *dx = context->scratch + (size_t)thread * context->per_thread;
    float *dy = dx + (ptrdiff_t)h * stride, *row = dy + (ptrdiff_t)h * stride,
          *padded = row + stride;
    fill(padded, h, w, context->background);
    mlp_share(context->n, thread, n_threads, &begin, &end);
    for (ptrdiff_t i = begin; i < end; i++) {
        const float *given = context->displacement + 2 * i * size;
        for (int y = 0; y < h; y++) {
            memcpy(dx + y * stride, given + y * w, sizeof(float) * (size_t)w);
            memcpy(dy + y * stride, given + size + y * w, sizeof(float) * (size_t)w);
        }
        lookup_image(context->kernels, context->images + i * size, step, h, w,
                     context->affine + 4 * i, dx, dy, stride, padded, row, context->out + i * size,
                     step);
    }
}

int mlp_deform_by(const mlp_kernels *kernels, const float *images, int n, int height, int width,
                  const float *affine, const float *displacement, float background, float *out,
                  int n_threads)
{
    lookup_context context = {.kernels = kernels,
                              .images = images,
                              .affine = affine,
                              .displacement = displacement,
                              .n = n,
                              .height = height,
                              .width = width,
                              .background = background,
                              .out = out};
    n_threads = mlp_at_most(n_threads, n);
    size_t stride = (size_t)mlp_padded(width);
    context.per_thread = (2 * (size_t)height + 1) * stride + padded_image_size(height, width);
    context.scratch = mlp_floats((size_t)n_threads * context.per_thread);
    const int status = context.scratch ? 0 : -1;
    if (status == 0) mlp_run_team(n_threads, lookup_task, &context);
    mlp_free(context.scratch);
    return status;
}

/* ---- images of a set ------------------------------------------------------------------ */

typedef struct {
    const mlp_kernels *kernels;
    const mlp_deformation *deformation;
    const mlp_selection *selection;
    float *fields;           /* (n, 2, h, w), where these are asked for */
    int *grids;              /* where in the selection each of the grids begins, and the end */
    int n_grids, most_tiles; /* tiles of the longest strip */
    atomic_int next_grid;
    float *scratch;
    size_t per_thread;
} deform_context;

/* Consecutive tiles [begin, end) in a row of tiles of a grid, and where its images are in the
 * selection. An image may be there more than once. */
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
    float background; /* around the image in `padded` */
    mlp_gaussian gaussian;
    int base, filled;
} workspace;

/* Places the buffers in `memory`; returns the floats that they take. */
static size_t make_workspace(workspace *work, const mlp_deformation *d, int tiles, float *memory)
{
    const int columns = tiles * d->width, margin = d->n_taps - 1;
    work->gaussian = (mlp_gaussian){.taps = d->taps, .cell = d->cell, .n_taps = d->n_taps};
    work->noise_stride = mlp_padded(mlp_cells_of(columns, d->cell) + margin);
    work->noise_rows = (mlp_cells_of(d->height, d->cell) + margin + 3 + 3) / 4 * 4;
    work->field_stride = mlp_padded(columns) + MLP_ALIGN;
    size_t noise = (size_t)work->noise_rows * (size_t)work->noise_stride + 2 * MLP_ALIGN;
    size_t field = (size_t)d->height * (size_t)work->field_stride;
    size_t at = 0;
    const size_t sizes[] = {noise,
                            noise,
                            field,
                            field,
                            mlp_middle_size(&work->gaussian, d->height, columns),
                            (size_t)mlp_padded(columns),
                            padded_image_size(d->height, d->width),
                            (size_t)d->cell * (size_t)d->n_taps};
    float **parts[] = {&work->noise[0], &work->noise[1], &work->field[0], &work->field[1],
                       &work->middle,   &work->row,      &work->padded,   &work->gaussian.scaled};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (memory) *parts[i] = memory + at;
        at += (sizes[i] + MLP_ALIGN - 1) / MLP_ALIGN * MLP_ALIGN;
    }
    return at;
}

static uint32_t number_of(const mlp_selection *selection, int i)
{
    return selection->indices ? selection->indices[i] : selection->first + (uint32_t)i;
}

static int place_of(const mlp_selection *selection, int i)
{
    return selection->places ? selection->places[i] : i;
}

/* The longest strip that begins with image `first` of the selection and ends before `stop`. */
static strip next_strip(const mlp_selection *selection, int first, int stop)
{
    uint32_t number = number_of(selection, first);
    int tile = (int)(number % MLP_PER_GRID);
    strip s = {number / MLP_PER_GRID, tile / MLP_GRID, tile % MLP_GRID, 0, first, first};
    uint32_t last = number;
    const uint32_t beyond = number - (uint32_t)s.begin + MLP_GRID;
    while (s.stop < stop) {
        number = number_of(selection, s.stop);
        if (number > last + 1 || number >= beyond) break;
        last = number;
        s.stop++;
    }
    s.end = (int)(last % MLP_GRID) + 1;
    return s;
}

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
                                     f == 0 ? MLP_PURPOSE_NOISE_X : MLP_PURPOSE_NOISE_Y};
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

static void compute_field(const deform_context *context, workspace *work, const strip *s)
{
    const mlp_deformation *d = context->deformation;
    const int top = s->row * d->height, left = s->begin * d->width;
    const ptrdiff_t row = top / d->cell - work->base;
    for (int f = 0; f < 2; f++)
        mlp_smooth(context->kernels, &work->gaussian, work->noise[f] + row * work->noise_stride,
                   work->noise_stride, top % d->cell, left % d->cell, d->height,
                   (s->end - s->begin) * d->width, work->middle, work->row, work->field[f],
                   work->field_stride);
}

static void look_up_strip(const deform_context *context, workspace *work, const strip *s)
{
    const mlp_deformation *d = context->deformation;
    const mlp_selection *selection = context->selection;
    for (int i = s->first; i < s->stop; i++) {
        ptrdiff_t place = place_of(selection, i);
        int column = ((int)(number_of(selection, i) % MLP_GRID) - s->begin) * d->width;
        for (int c = 0; c < selection->channels; c++) {
            if (work->background != d->backgrounds[c]) {
                work->background = d->backgrounds[c];
                fill(work->padded, d->height, d->width, work->background);
            }
            lookup_image(
                context->kernels,
                selection->images + place * selection->in_step[0] + c * selection->in_step[1],
                selection->in_step + 2, d->height, d->width, selection->affine + 4 * place,
                work->field[0] + column, work->field[1] + column, work->field_stride, work->padded,
                work->row,
                selection->out + place * selection->out_step[0] + c * selection->out_step[1],
                selection->out_step + 2);
        }
    }
}

static void copy_fields(const deform_context *context, workspace *work, const strip *s)
{
    const mlp_deformation *d = context->deformation;
    const ptrdiff_t size = (ptrdiff_t)d->height * d->width;
    for (int i = s->first; i < s->stop; i++) {
        int column = ((int)(number_of(context->selection, i) % MLP_GRID) - s->begin) * d->width;
        float *out = context->fields + 2 * size * place_of(context->selection, i);
        for (int f = 0; f < 2; f++)
            for (int y = 0; y < d->height; y++)
                memcpy(out + f * size + (ptrdiff_t)y * d->width,
                       work->field[f] + (ptrdiff_t)y * work->field_stride + column,
                       sizeof(float) * (size_t)d->width);
    }
}

static void deform_task(void *argument, mlp_team *team, int thread, int n_threads)
{
    (void)team, (void)n_threads;
    deform_context *context = argument;
    const mlp_deformation *d = context->deformation;
    workspace work;
    make_workspace(&work, d, context->most_tiles,
                   context->scratch + (size_t)thread * context->per_thread);
    work.background = d->backgrounds[0];
    fill(work.padded, d->height, d->width, work.background);
    mlp_scale_taps(&work.gaussian, d->alpha);
    for (;;) {
        int grid = atomic_fetch_add(&context->next_grid, 1);
        if (grid >= context->n_grids) break;
        strip before = {.row = -2};
        for (int first = context->grids[grid]; first < context->grids[grid + 1];) {
            strip s = next_strip(context->selection, first, context->grids[grid + 1]);
            draw_noise(context, &work, &s, &before);
            compute_field(context, &work, &s);
            if (context->fields)
                copy_fields(context, &work, &s);
            else
                look_up_strip(context, &work, &s);
            first = s.stop;
            before = s;
        }
    }
}

/* Finds where grids begin, and the longest strip. */
static void find_grids(deform_context *context)
{
    const int n = context->selection->n;
    uint32_t grid = 0;
    for (int first = 0; first < n;) {
        strip s = next_strip(context->selection, first, n);
        if (first == 0 || s.grid != grid) context->grids[context->n_grids++] = first;
        if (s.end - s.begin > context->most_tiles) context->most_tiles = s.end - s.begin;
        grid = s.grid;
        first = s.stop;
    }
    context->grids[context->n_grids] = n;
}

static int run(const mlp_kernels *kernels, const mlp_deformation *deformation,
               const mlp_selection *selection, float *fields, int n_threads)
{
    if (selection->n == 0) return 0;
    deform_context context = {.kernels = kernels,
                              .deformation = deformation,
                              .selection = selection,
                              .fields = fields,
                              .grids = mlp_allocate(sizeof(int) * ((size_t)selection->n + 1))};
    if (!context.grids) return -1;
    find_grids(&context);
    n_threads = mlp_at_most(n_threads, context.n_grids);
    workspace sizes;
    context.per_thread = make_workspace(&sizes, deformation, context.most_tiles, NULL);
    context.scratch = mlp_floats((size_t)n_threads * context.per_thread);
    const int status = context.scratch ? 0 : -1;
    if (status == 0) mlp_run_team(n_threads, deform_task, &context);
    mlp_free(context.scratch);
    mlp_free(context.grids);
    return status;
}

int mlp_deform(const mlp_kernels *kernels, const mlp_deformation *deformation,
               const mlp_selection *selection, int n_threads)
{
    return run(kernels, deformation, selection, NULL, n_threads);
}

int mlp_fields(const mlp_kernels *kernels, const mlp_deformation *deformation,
               const mlp_selection *selection, float *fields, int n_threads)
{
    return run(kernels, deformation, selection, fields, n_threads);
}
