/* How many threads train: as many as are fastest, and fewer while other processes want the cores.
 *
 * Threads of a small network spend more time on meeting at barriers than they save, and how much a
 * meeting costs differs from machine to machine and from minute to minute. So it is tried: all
 * threads train for a moment, then half of them, and so on while that is faster.
 *
 * A thread that shares its core with another process holds up all others. It sees that by its CPU
 * time, which then falls behind the clock, and half of the threads go on alone for a while.
 *
 * Results do not depend on the number of threads. */
#pragma once

#include <stddef.h>

/* What the caller keeps from one training to the next; zero at first. Times are in seconds. */
typedef struct {
    ptrdiff_t n_weights;           /* of the network that the rest is about */
    int most;                      /* threads that it may have */
    int best, trying;              /* the fastest number so far; the number on trial, or 0 */
    int room;                      /* the number that other processes leave room for, or 0 */
    double best_pace;              /* samples a second */
    double samples, passed;        /* on trial so far, and the time that they took */
    double trial_at, trial_pause;  /* when to try numbers again, and how long after that */
    double room_until, room_pause; /* how long `room` holds, and how long it did last */
} mlp_team_size;

/* How many of n_threads to start now for a network, and when they have to end so that another
 * number can be tried: infinity without a trial. */
int mlp_choose_team(mlp_team_size *size, ptrdiff_t n_weights, int n_threads, double *until);

/* Notes a team that has ended: its samples, their time, and whether one of its threads lost its
 * core. */
void mlp_note_team(mlp_team_size *size, int threads, int samples, double seconds, int lost_core);

/* A thread's view of its CPU time since it was last asked. */
typedef struct {
    double clock, cpu;
} mlp_watch;

mlp_watch mlp_start_watch(void);

/* Whether the calling thread lost its core for a good part of the last tenth of a second. */
int mlp_lost_core(mlp_watch *watch);
