/* How many threads train. */
#include "team_size.h"

#include <math.h>
#include <time.h>

#include "poll.h"

/* Seconds of a trial: many blocks of a network for which it matters. */
#define TRIAL 0.02

/* Half of the threads must be faster by this much: times are noisy. */
#define GAIN 1.05

/* The barriers of a step of so many seconds do not matter. */
#define LONG_STEP 5e-5

/* A competitor takes half of a core. A short interruption takes less of a tenth of a second. */
#define WINDOW 0.1
#define LOST 0.3

/* Twice the pause before, within bounds. */
static double longer(double pause, double first, double longest)
{
    return pause == 0.0 ? first : fmin(2.0 * pause, longest);
}

static void start_trial(mlp_team_size *size, int threads)
{
    size->trying = threads;
    size->samples = size->passed = 0.0;
}

static void end_trials(mlp_team_size *size)
{
    size->trying = 0;
    size->trial_pause = longer(size->trial_pause, 4.0, 64.0);
    size->trial_at = mlp_seconds() + size->trial_pause;
}

int mlp_choose_team(mlp_team_size *size, ptrdiff_t n_weights, int n_threads, double *until)
{
    *until = INFINITY;
    if (size->room && size->room < n_threads && mlp_seconds() < size->room_until) return size->room;
    if (size->n_weights != n_weights || size->most != n_threads)
        *size = (mlp_team_size){.n_weights = n_weights,
                                .most = n_threads,
                                .best = n_threads,
                                .room_pause = size->room_pause};
    if (n_threads > 1 && !size->trying && mlp_seconds() >= size->trial_at) {
        size->best_pace = 0.0;
        start_trial(size, n_threads);
    }
    if (size->trying) *until = mlp_seconds() + TRIAL - size->passed;
    return size->trying ? size->trying : size->best;
}

static void note_trial(mlp_team_size *size, int samples, double seconds)
{
    size->samples += samples;
    size->passed += seconds;
    if (size->passed < TRIAL) return;
    const double found = size->samples / size->passed;
    const int faster = found > (size->trying == size->most ? 0.0 : GAIN * size->best_pace);
    if (faster) {
        size->best = size->trying;
        size->best_pace = found;
    }
    if (faster && size->trying > 1 && found * LONG_STEP > 1.0)
        start_trial(size, (size->trying + 1) / 2);
    else
        end_trials(size);
}

void mlp_note_team(mlp_team_size *size, int threads, int samples, double seconds, int lost_core)
{
    if (lost_core) {
        size->room = (threads + 1) / 2;
        size->room_pause = longer(seconds < 3.0 * WINDOW ? size->room_pause : 0.0, 0.5, 8.0);
        size->room_until = mlp_seconds() + size->room_pause;
    }
    if (size->trying && lost_core) end_trials(size); /* which say nothing then */
    if (size->trying) note_trial(size, samples, seconds);
}

mlp_watch mlp_start_watch(void)
{
    struct timespec cpu;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
    return (mlp_watch){mlp_seconds(), (double)cpu.tv_sec + 1e-9 * (double)cpu.tv_nsec};
}

int mlp_lost_core(mlp_watch *watch)
{
    const double passed = mlp_seconds() - watch->clock;
    if (passed < WINDOW) return 0;
    const mlp_watch now = mlp_start_watch();
    const int lost = passed - (now.cpu - watch->cpu) > LOST * passed;
    *watch = now;
    return lost;
}
