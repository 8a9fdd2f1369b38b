/* As many threads as train fastest.
 *
 * Threads of a small network spend more time on meeting at barriers than they save, and how much a
 * meeting costs differs from machine to machine and from minute to minute. So it is tried: all
 * threads train for a moment, then half of them, and so on while that is faster. Results do not
 * depend on the number of threads. */
#ifndef MLPCORE_PACE_H
#define MLPCORE_PACE_H

/* What the caller keeps from one training to the next; zero at first. */
typedef struct {
    long n_weights;         /* of the network that the rest is about */
    int most;               /* threads that it may have */
    int best, trying;       /* the fastest number of threads so far; that on trial, or 0 */
    double best_pace;       /* samples a second */
    double samples, passed; /* on trial so far, and the seconds that they took */
    double again, pause;    /* when to try again, in seconds on the clock; how long after that */
} mlp_pace;

/* How many of n_threads to start now for a network. */
int mlp_paced_threads(mlp_pace *pace, long n_weights, int n_threads);

/* When the team has to end, so that another can be tried; infinity without a trial. */
double mlp_trial_end(const mlp_pace *pace);

/* Notes the samples and the seconds of a team that has ended. */
void mlp_note_pace(mlp_pace *pace, int samples, double seconds);

/* The trial says nothing, because another process took a core meanwhile. */
void mlp_drop_trial(mlp_pace *pace);

#endif
