/* As many threads as train fastest. */
#include "pace.h"

#include <math.h>

#include "poll.h"

/* Seconds of a trial: many blocks of a network for which it matters. */
#define TRIAL 0.02

/* Half of the threads must be faster by this much: times are noisy. */
#define GAIN 1.05

/* The barriers of a step of so many seconds do not matter. */
#define LONG_STEP 5e-5

/* Seconds between two trials. */
#define FIRST_PAUSE 4.0
#define LONGEST_PAUSE 64.0

static void start_trial(mlp_pace *pace, int threads)
{
    pace->trying = threads;
    pace->samples = pace->passed = 0.0;
}

static void end_trials(mlp_pace *pace)
{
    const double longer = 2.0 * pace->pause;
    pace->trying = 0;
    pace->pause = longer == 0.0 ? FIRST_PAUSE : longer < LONGEST_PAUSE ? longer : LONGEST_PAUSE;
    pace->again = mlp_seconds() + pace->pause;
}

int mlp_paced_threads(mlp_pace *pace, long n_weights, int n_threads)
{
    if (pace->n_weights != n_weights || pace->most != n_threads)
        *pace = (mlp_pace){.n_weights = n_weights, .most = n_threads, .best = n_threads};
    if (n_threads > 1 && !pace->trying && mlp_seconds() >= pace->again) {
        pace->best_pace = 0.0;
        start_trial(pace, n_threads);
    }
    return pace->trying ? pace->trying : pace->best;
}

double mlp_trial_end(const mlp_pace *pace)
{
    return pace->trying ? mlp_seconds() + TRIAL - pace->passed : INFINITY;
}

void mlp_note_pace(mlp_pace *pace, int samples, double seconds)
{
    if (!pace->trying) return;
    pace->samples += samples;
    pace->passed += seconds;
    if (pace->passed < TRIAL) return;
    const double found = pace->samples / pace->passed;
    const int faster = found > (pace->trying == pace->most ? 0.0 : GAIN * pace->best_pace);
    if (faster) {
        pace->best = pace->trying;
        pace->best_pace = found;
    }
    if (faster && pace->trying > 1 && found * LONG_STEP > 1.0)
        start_trial(pace, (pace->trying + 1) / 2);
    else
        end_trials(pace);
}

void mlp_drop_trial(mlp_pace *pace)
{
    if (pace->trying) end_trials(pace);
}
