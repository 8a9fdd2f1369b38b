/* A team of threads that runs one function together, and its barrier. */
#pragma once

typedef struct mlp_team mlp_team;

typedef void (*mlp_task)(void *context, mlp_team *team, int thread, int n_threads);

/* Runs task on n_threads threads, the caller's being thread 0, and waits for all of them.
 * When fewer threads can be started, the task runs on those: the results do not depend on
 * their number. */
void mlp_run_team(int n_threads, mlp_task task, void *context);

/* Returns when every thread of the team has called it. What a thread wrote before is seen
 * by all after. Spins and then sleeps, so an oversubscribed machine goes on. */
void mlp_barrier(mlp_team *team, int thread);

/* No more threads than there are parts of the work. */
static inline int mlp_at_most(int n_threads, int n_parts)
{
    return n_threads < n_parts ? n_threads : n_parts;
}

/* The part [*begin, *end) of n items that falls to a thread. */
static inline void mlp_share(int n, int thread, int n_threads, int *begin, int *end)
{
    *begin = (int)((long long)n * thread / n_threads);
    *end = (int)((long long)n * (thread + 1) / n_threads);
}
