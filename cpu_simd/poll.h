/* Asks the caller now and then, on the caller's own thread, whether to stop. */
#pragma once

#include <stdatomic.h>
#include <time.h>

typedef struct {
    /* Called about every twentieth of a second; non-zero means stop. NULL: nobody is asked. */
    int (*ask)(void *argument);
    void *argument;
    double next;     /* in seconds on the clock */
    atomic_int stop; /* any thread may read it */
} mlp_poll;

static inline void mlp_start_poll(mlp_poll *poll, int (*ask)(void *argument), void *argument)
{
    poll->ask = ask;
    poll->argument = argument;
    poll->next = 0.0;
    poll->stop = 0;
}

static inline double mlp_seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* For thread 0. */
static inline void mlp_ask(mlp_poll *poll)
{
    if (!poll->ask || poll->stop || mlp_seconds() < poll->next) return;
    if (poll->ask(poll->argument)) poll->stop = 1;
    poll->next = mlp_seconds() + 0.05;
}
