/* Fewer threads while other processes want the cores.
 *
 * Threads that meet at a barrier go at the pace of the slowest. One that shares its core with
 * another process holds up all others, so a smaller team can be faster. A thread sees it by its CPU
 * time, which then falls behind the clock. Results do not depend on the number of threads. */
#ifndef MLPCORE_CROWDING_H
#define MLPCORE_CROWDING_H

/* What the caller keeps from one training to the next; zero at first. */
typedef struct {
    int threads;  /* so many had room */
    double until; /* when to try all again, in seconds on the clock */
    double pause; /* how long to wait after the last try */
} mlp_crowding;

/* A thread's view of its CPU time since it was last asked. */
typedef struct {
    double clock, cpu;
} mlp_watch;

/* How many of n_threads to start now. */
int mlp_team_size(const mlp_crowding *crowding, int n_threads);

/* Notes that a team of n_threads was too large; it had started at the time `started`. */
void mlp_note_crowd(mlp_crowding *crowding, int n_threads, double started);

mlp_watch mlp_start_watch(void);

/* Whether the calling thread lost its core for a good part of the last tenth of a second. */
int mlp_lost_core(mlp_watch *watch);

#endif
