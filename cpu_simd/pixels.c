#include "pixels.h"

#include "allocate.h"
#include "threads.h"

typedef struct {
    const mlp_pixels *pixels;
    int *low;        /* of each column: the pixel at its left or under it */
    float *fraction; /* and how far it is on the way to the next one */
    int *run;        /* the number of columns from this one on with consecutive pixels */
    float *scratch;  /* a picture and a row for each thread */
} inputs_context;

/* Moves so many consecutive columns towards the ones at their right. */
static void move_columns(const float *restrict left, const float *restrict fraction, int n,
                         float *restrict out)
{
    for (int x = 0; x < n; x++) out[x] = (left[x + 1] - left[x]) * fraction[x] + left[x];
}

static void resize_picture(const inputs_context *context, int i, float *picture, float *row)
{
    const mlp_pixels *p = context->pixels;
    const int h = p->in_height, w = p->in_width;
    const uint8_t *pixels = p->pixels + (ptrdiff_t)i * h * w;
    float *out = p->out + (ptrdiff_t)i * p->height * p->width;
    for (int k = 0; k < h * w; k++) picture[k] = p->values[pixels[k]];
    for (int y = 0; y < p->height; y++, out += p->width) {
        const int up = y * (h - 1) / (p->height - 1), rest = y * (h - 1) % (p->height - 1);
        const float fraction = (float)((double)rest / (p->height - 1));
        const float *above = picture + up * w, *below = up + 1 < h ? above + w : above;
        for (int x = 0; x < w; x++) row[x] = (below[x] - above[x]) * fraction + above[x];
        row[w] = row[w - 1];
        for (int x = 0, n; x < p->width; x += n) {
            n = context->run[x];
            move_columns(row + context->low[x], context->fraction + x, n, out + x);
        }
        for (int x = 0; p->unit && x < p->width; x++) out[x] = (out[x] + 1.0f) / 2.0f;
    }
}

static void inputs_task(void *argument, mlp_team *team, int thread, int n_threads)
{
    (void)team;
    const inputs_context *context = argument;
    const mlp_pixels *p = context->pixels;
    float *picture = context->scratch + (ptrdiff_t)thread * (p->in_height + 1) * (p->in_width + 1);
    float *row = picture + (ptrdiff_t)p->in_height * p->in_width;
    int begin, end;
    mlp_share(p->n, thread, n_threads, &begin, &end);
    for (int i = begin; i < end; i++) resize_picture(context, i, picture, row);
}

int mlp_to_inputs(const mlp_pixels *pixels, int n_threads)
{
    const size_t width = (size_t)pixels->width;
    const size_t each = (size_t)(pixels->in_height + 1) * (size_t)(pixels->in_width + 1);
    inputs_context context = {.pixels = pixels};
    mlp_memory memory = {0};
    n_threads = mlp_at_most(n_threads, pixels->n);
    context.low = mlp_keep(&memory, mlp_allocate(width * sizeof *context.low));
    context.fraction = mlp_keep(&memory, mlp_allocate(width * sizeof *context.fraction));
    context.run = mlp_keep(&memory, mlp_allocate(width * sizeof *context.run));
    context.scratch = mlp_keep(&memory, mlp_allocate((size_t)n_threads * each * sizeof(float)));
    for (int x = 0; !memory.failed && x < pixels->width; x++) {
        const int at = x * (pixels->in_width - 1), steps = pixels->width - 1;
        context.low[x] = at / steps;
        context.fraction[x] = (float)((double)(at % steps) / steps);
    }
    for (int x = pixels->width - 1; !memory.failed && x >= 0; x--) {
        const int goes_on = x + 1 < pixels->width && context.low[x + 1] == context.low[x] + 1;
        context.run[x] = 1 + (goes_on ? context.run[x + 1] : 0);
    }
    if (!memory.failed) mlp_run_team(n_threads, inputs_task, &context);
    mlp_free_kept(&memory);
    return memory.failed ? -1 : 0;
}
