/* Grids, tiles and threads of the deformation; the arithmetic is in deformation_kernels.h. */
#include "deformation.h"

#include <stdatomic.h>

#include "buffers.h"
#include "threads.h"

enum { MARGIN = MLP_TAPS - 1 };

/* ---- one image --------------------------------------------------------------------- */

static size_t padded_image_size(int height, int width)
{
    return (size_t)(height + 3) * (size_t)mlp_image_pitch(width);
}

/* `padded` has been filled with background once. Its rows have room for a whole vector. */
static void lookup_image(const mlp_kernels *kernels, const float *image, int height, int width,
                         const float affine[4], const float *dx, const float *dy, long field_stride,
                         float *padded, float *row, float *out)
{
    int pitch = mlp_image_pitch(width);
    size_t bytes = sizeof(float) * (size_t)width;
    for (int y = 0; y < height; y++) memcpy(padded + (y + 1) * pitch + 1, image + y * width, bytes);
    for (int y = 0; y < height; y++) {
        kernels->lookup_row(padded, height, width, affine, dx + y * field_stride,
                            dy + y * field_stride, y, row);
        memcpy(out + y * width, row, bytes);
    }
}

static void fill(float *padded, int height, int width, float background)
{
    size_t n = padded_image_size(height, width);
    for (size_t i = 0; i < n; i++) padded[i] = background;
}

/* ---- noise and field, as operations of their own ------------------------------------ */

int mlp_noise(const mlp_kernels *kernels, const uint32_t key[2], uint32_t epoch, uint32_t grid,
              uint32_t purpose, int rows, int columns, float *noise)
{
    const uint32_t counter[4] = {0, grid, epoch, purpose};
    int stride = mlp_padded(columns);
    float *group = mlp_floats(4 * (size_t)stride);
    if (!group) return -1;
    for (int y = 0; y < rows; y++) {
        if (y % 4 == 0) kernels->noise(key, counter, (uint32_t)y / 4, columns, group, stride);
        memcpy(noise + (long)y * columns, group + (y % 4) * stride,
               sizeof(float) * (size_t)columns);
    }
    free(group);
    return 0;
}

/* One row of the field from the 21 rows of noise at `noise`. */
static void field_row(const mlp_kernels *kernels, const float *noise, int stride,
                      const float taps[MLP_TAPS], const float scaled_taps[MLP_TAPS], int columns,
                      float *middle, float *out)
{
    kernels->convolve_columns(noise, stride, taps, columns, middle);
    kernels->convolve_row(middle, scaled_taps, columns - MARGIN, out);
}

static void scale_taps(const float taps[MLP_TAPS], float alpha, float scaled[MLP_TAPS])
{
    for (int i = 0; i < MLP_TAPS; i++) scaled[i] = alpha * taps[i];
}

int mlp_displacement_field(const mlp_kernels *kernels, const float *noise, int rows, int columns,
                           const float taps[MLP_TAPS], float alpha, float *field)
{
    float scaled[MLP_TAPS];
    scale_taps(taps, alpha, scaled);
    int stride = mlp_padded(columns), width = columns - MARGIN;
    float *copy = mlp_floats((size_t)rows * (size_t)stride);
    float *middle = mlp_floats((size_t)stride + 2 * MLP_ALIGN);
    float *row = mlp_floats((size_t)stride);
    int status = copy && middle && row ? 0 : -1;
    if (status == 0) {
        for (long y = 0; y < rows; y++)
            memcpy(copy + y * stride, noise + y * columns, sizeof(float) * (size_t)columns);
        for (long y = 0; y < rows - MARGIN; y++) {
            field_row(kernels, copy + y * stride, stride, taps, scaled, columns, middle, row);
            memcpy(field + y * width, row, sizeof(float) * (size_t)width);
        }
    }
    free(copy);
    free(middle);
    free(row);
    return status;
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
    long size = (long)h * w;
    float *dx = context->scratch + (size_t)thread * context->per_thread;
    float *dy = dx + (long)h * stride, *row = dy + (long)h * stride, *padded = row + stride;
    fill(padded, h, w, context->background);
    mlp_share(context->n, thread, n_threads, &begin, &end);
    for (long i = begin; i < end; i++) {
        const float *given = context->displacement + 2 * i * size;
        for (int y = 0; y < h; y++) {
            memcpy(dx + y * stride, given + y * w, sizeof(float) * (size_t)w);
            memcpy(dy + y * stride, given + size + y * w, sizeof(float) * (size_t)w);
        }
        lookup_image(context->kernels, context->images + i * size, h, w, context->affine + 4 * i,
                     dx, dy, stride, padded, row, context->out + i * size);
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
    int ok = context.scratch && mlp_run_team(n_threads, lookup_task, &context);
    free(context.scratch);
    return ok ? 0 : -1;
}

/* ---- a whole set --------------------------------------------------------------------- */

typedef struct {
    const mlp_kernels *kernels;
    const mlp_deformation *deformation;
    float scaled_taps[MLP_TAPS]; /* alpha * taps */
    const float *images, *affine;
    uint32_t first;
    int n;
    float *out;
    atomic_uint next_grid;
    float *scratch;
    size_t per_thread;
} deform_context;

/* One thread's buffers; sizes in floats are those of make_workspace. */
typedef struct {
    int noise_stride, noise_rows, field_stride;
    float *noise[2]; /* rows `base` and on of the grid's noise, x and y */
    float *field[2]; /* displacements of one row of tiles */
    float *middle;   /* one row between the two convolutions */
    float *padded, *row;
} workspace;

/* Places the buffers in `memory`; returns the floats that they take. */
static size_t make_workspace(workspace *work, const mlp_deformation *d, float *memory)
{
    int columns = MLP_GRID * d->width;
    work->noise_stride = mlp_padded(columns + MARGIN);
    work->noise_rows = (d->height + MARGIN + 3 + 3) / 4 * 4;
    work->field_stride = mlp_padded(columns) + MLP_ALIGN;
    size_t noise = (size_t)work->noise_rows * (size_t)work->noise_stride;
    size_t field = (size_t)d->height * (size_t)work->field_stride;
    size_t at = 0;
    const size_t sizes[] = {noise,
                            noise,
                            field,
                            field,
                            (size_t)work->noise_stride + 2 * MLP_ALIGN,
                            (size_t)mlp_padded(d->width),
                            padded_image_size(d->height, d->width)};
    float **parts[] = {&work->noise[0], &work->noise[1], &work->field[0], &work->field[1],
                       &work->middle,   &work->row,      &work->padded};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (memory) *parts[i] = memory + at;
        at += (sizes[i] + MLP_ALIGN - 1) / MLP_ALIGN * MLP_ALIGN;
    }
    return at;
}

/* Draws the rows of noise that a row of tiles needs, and keeps those of the row before. The buffers
 * hold rows [*base, *filled) of the grid, both multiples of 4. */
static void draw_noise(const deform_context *context, workspace *work, uint32_t grid, int tile_row,
                       int *base, int *filled)
{
    const mlp_deformation *d = context->deformation;
    int need_begin = tile_row * d->height, need_end = need_begin + d->height + MARGIN;
    int new_base = need_begin / 4 * 4, begin = *filled > new_base ? *filled : new_base;
    for (int f = 0; f < 2; f++) {
        const uint32_t counter[4] = {0, grid, d->epoch,
                                     f == 0 ? MLP_PURPOSE_NOISE_X : MLP_PURPOSE_NOISE_Y};
        float *noise = work->noise[f];
        if (*filled > new_base)
            memmove(noise, noise + (long)(new_base - *base) * work->noise_stride,
                    sizeof(float) * (size_t)(*filled - new_base) * (size_t)work->noise_stride);
        for (int y = begin; y < need_end; y += 4)
            context->kernels->noise(d->key, counter, (uint32_t)y / 4, MLP_GRID * d->width + MARGIN,
                                    noise + (long)(y - new_base) * work->noise_stride,
                                    work->noise_stride);
    }
    *base = new_base;
    *filled = begin > need_end ? begin : begin + (need_end - begin + 3) / 4 * 4;
}

/* The images [begin, end) of the set, all in one row of tiles of one grid. */
static void deform_tiles(const deform_context *context, workspace *work, int base, uint32_t begin,
                         uint32_t end)
{
    const mlp_deformation *d = context->deformation;
    int tile_row = (int)(begin % MLP_PER_GRID) / MLP_GRID;
    long size = (long)d->height * d->width;
    for (int f = 0; f < 2; f++)
        for (int y = 0; y < d->height; y++)
            field_row(context->kernels,
                      work->noise[f] + (long)(tile_row * d->height + y - base) * work->noise_stride,
                      work->noise_stride, d->taps, context->scaled_taps,
                      MLP_GRID * d->width + MARGIN, work->middle,
                      work->field[f] + (long)y * work->field_stride);
    for (uint32_t image = begin; image < end; image++) {
        long i = (long)(image - context->first);
        int column = (int)(image % MLP_GRID) * d->width;
        lookup_image(context->kernels, context->images + i * size, d->height, d->width,
                     context->affine + 4 * i, work->field[0] + column, work->field[1] + column,
                     work->field_stride, work->padded, work->row, context->out + i * size);
    }
}

static void deform_task(void *argument, mlp_team *team, int thread, int n_threads)
{
    (void)team, (void)n_threads;
    deform_context *context = argument;
    const mlp_deformation *d = context->deformation;
    const uint32_t first = context->first, stop = first + (uint32_t)context->n;
    workspace work;
    make_workspace(&work, d, context->scratch + (size_t)thread * context->per_thread);
    fill(work.padded, d->height, d->width, d->background);
    for (;;) {
        uint32_t grid = atomic_fetch_add(&context->next_grid, 1);
        if (grid > (stop - 1) / MLP_PER_GRID) break;
        int base = 0, filled = 0;
        for (int tile_row = 0; tile_row < MLP_GRID; tile_row++) {
            uint32_t begin = grid * MLP_PER_GRID + (uint32_t)tile_row * MLP_GRID;
            uint32_t end = begin + MLP_GRID;
            if (begin < first) begin = first;
            if (end > stop) end = stop;
            if (begin >= end) continue;
            draw_noise(context, &work, grid, tile_row, &base, &filled);
            deform_tiles(context, &work, base, begin, end);
        }
    }
}

int mlp_deform(const mlp_kernels *kernels, const mlp_deformation *deformation, const float *images,
               uint32_t first, int n, const float *affine, float *out, int n_threads)
{
    if (n == 0) return 0;
    deform_context context = {.kernels = kernels,
                              .deformation = deformation,
                              .images = images,
                              .affine = affine,
                              .first = first,
                              .n = n,
                              .out = out,
                              .next_grid = first / MLP_PER_GRID};
    const uint32_t last_grid = (first + (uint32_t)n - 1) / MLP_PER_GRID;
    n_threads = mlp_at_most(n_threads, (int)(last_grid - first / MLP_PER_GRID + 1));
    scale_taps(deformation->taps, deformation->alpha, context.scaled_taps);
    workspace sizes;
    context.per_thread = make_workspace(&sizes, deformation, NULL);
    context.scratch = mlp_floats((size_t)n_threads * context.per_thread);
    int ok = context.scratch && mlp_run_team(n_threads, deform_task, &context);
    free(context.scratch);
    return ok ? 0 : -1;
}
