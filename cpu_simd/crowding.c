/* Fewer threads while other processes want the cores. */
#include "crowding.h"

#include <time.h>

#include "poll.h"

/* A competitor takes half of a core. A short interruption takes less of a tenth of a second. */
#define WINDOW 0.1
#define LOST 0.3

/* Seconds between two tries with all threads. */
#define FIRST_PAUSE 0.5
#define LONGEST_PAUSE 8.0

int mlp_team_size(const mlp_crowding *crowding, int n_threads)
{
    if (crowding->threads == 0 || mlp_seconds() >= crowding->until) return n_threads;
    return crowding->threads < n_threads ? crowding->threads : n_threads;
}

void mlp_note_crowd(mlp_crowding *crowding, int n_threads, double started)
{
    const double now = mlp_seconds(), longer = 2.0 * crowding->pause;
    const int at_once = now - started < 3.0 * WINDOW && crowding->pause > 0.0;
    crowding->threads = (n_threads + 1) / 2;
    crowding->pause = !at_once ? FIRST_PAUSE : longer < LONGEST_PAUSE ? longer : LONGEST_PAUSE;
    crowding->until = now + crowding->pause;
}

static double cpu_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

mlp_watch mlp_start_watch(void) { return (mlp_watch){mlp_seconds(), cpu_seconds()}; }

int mlp_lost_core(mlp_watch *watch)
{
    const double passed = mlp_seconds() - watch->clock;
    if (passed < WINDOW) return 0;
    const mlp_watch now = mlp_start_watch();
    const int lost = passed - (now.cpu - watch->cpu) > LOST * passed;
    *watch = now;
    return lost;
}
