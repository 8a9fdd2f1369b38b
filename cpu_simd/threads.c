#if defined(__linux__) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* for sched_getcpu and sets of CPUs */
#endif
#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include "allocate.h"

#if defined(__x86_64__) || defined(__i386__)
#define PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define PAUSE() __asm__ volatile("isb") /* `yield` takes no time on most of them */
#else
#define PAUSE() ((void)0)
#endif

/* How a thread waits, in nanoseconds. Waking takes time: if threads slept early, a sleeper would
 * make the next one wait long enough to sleep as well. A longer wait means that some thread has
 * lost its core. Yielding would give away a whole time slice. */
enum { CROWDED = 30000, SLEEP = 200000 };

/* Turns between two looks at the clock. */
enum { TURNS = 64 };

/* A thread, and the CPU on which it was last seen; on a cache line of its own. */
typedef struct {
    _Alignas(64) atomic_int cpu;
    int thread;
    mlp_team *team;
    pthread_t handle;
} member;

/* In place of a CPU: the thread sleeps; or it was woken and may still wait for any core. */
enum { ASLEEP = -2, WOKEN = -1 };

struct mlp_team {
    int n_threads;
    mlp_task task;
    void *context;
    member *members;
    _Alignas(64) atomic_int arrived;
    _Alignas(64) atomic_uint generation;
    atomic_int sleepers;
    pthread_mutex_t mutex;
    pthread_cond_t released;
};

#ifdef __linux__
static void note_place(mlp_team *team, int thread)
{
    atomic_int *noted = &team->members[thread].cpu;
    const int cpu = sched_getcpu();
    if (atomic_load_explicit(noted, memory_order_relaxed) != cpu)
        atomic_store_explicit(noted, cpu, memory_order_relaxed);
}

/* Moves to a core that no other thread of the team is on, or may be waiting for.
 *
 * Beside another busy process, Linux may put two threads of a team on one core and leave them
 * there: they take turns in sleeping, so it sees a single busy thread. Every barrier then costs a
 * whole wait, and net1 trained four times slower than on one thread. The thread's set of allowed
 * CPUs is the same afterwards. */
static void leave_crowd(mlp_team *team, int thread)
{
    cpu_set_t allowed, others;
    const int here = sched_getcpu();
    int crowded = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed)) return;
    others = allowed;
    for (int i = 0; i < team->n_threads; i++) {
        if (i == thread) continue;
        const int cpu = atomic_load_explicit(&team->members[i].cpu, memory_order_relaxed);
        crowded |= cpu == here || cpu == WOKEN;
        if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_CLR(cpu, &others);
    }
    if (!crowded || CPU_COUNT(&others) == 0) return;
    if (sched_setaffinity(0, sizeof others, &others) == 0)
        sched_setaffinity(0, sizeof allowed, &allowed);
    note_place(team, thread);
}
#else
static void note_place(mlp_team *team, int thread) { (void)team, (void)thread; }
static void leave_crowd(mlp_team *team, int thread) { (void)team, (void)thread; }
#endif

static int64_t nanoseconds_since(const struct timespec *start)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - start->tv_sec) * 1000000000 + (now.tv_nsec - start->tv_nsec);
}

/* Whether the team was released before it was time to sleep. */
static int spin_until_released(mlp_team *team, int thread, unsigned generation)
{
    struct timespec start;
    int looked_around = 0;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (int64_t waited = 0; waited < SLEEP; waited = nanoseconds_since(&start)) {
        if (waited > CROWDED && !looked_around) {
            leave_crowd(team, thread);
            looked_around = 1;
        }
        for (int turn = 0; turn < TURNS; turn++) {
            if (atomic_load_explicit(&team->generation, memory_order_acquire) != generation)
                return 1;
            PAUSE();
        }
    }
    return 0;
}

static void sleep_until_released(mlp_team *team, int thread, unsigned generation)
{
    pthread_mutex_lock(&team->mutex);
    atomic_fetch_add(&team->sleepers, 1);
    if (atomic_load(&team->generation) == generation)
        atomic_store_explicit(&team->members[thread].cpu, ASLEEP, memory_order_relaxed);
    while (atomic_load(&team->generation) == generation)
        pthread_cond_wait(&team->released, &team->mutex);
    atomic_fetch_sub(&team->sleepers, 1);
    pthread_mutex_unlock(&team->mutex);
    note_place(team, thread);
}

static void wake_sleepers(mlp_team *team)
{
    pthread_mutex_lock(&team->mutex);
    for (int i = 0; i < team->n_threads; i++) {
        int asleep = ASLEEP;
        atomic_compare_exchange_strong(&team->members[i].cpu, &asleep, WOKEN);
    }
    pthread_cond_broadcast(&team->released);
    pthread_mutex_unlock(&team->mutex);
}

void mlp_barrier(mlp_team *team, int thread)
{
    if (team->n_threads == 1) return;
    note_place(team, thread);
    unsigned generation = atomic_load_explicit(&team->generation, memory_order_relaxed);
    if (atomic_fetch_add_explicit(&team->arrived, 1, memory_order_acq_rel) == team->n_threads - 1) {
        atomic_store_explicit(&team->arrived, 0, memory_order_relaxed);
        /* Sequentially consistent, as is `sleepers`: either the sleeper sees the new
         * generation before it sleeps, or it is seen here and woken. */
        atomic_store(&team->generation, generation + 1);
        if (atomic_load(&team->sleepers)) wake_sleepers(team);
        return;
    }
    if (!spin_until_released(team, thread, generation))
        sleep_until_released(team, thread, generation);
}

static void *run_member(void *argument)
{
    member *self = argument;
    mlp_team *team = self->team;
    /* Wait until it is known how many threads have started. */
    pthread_mutex_lock(&team->mutex);
    pthread_mutex_unlock(&team->mutex);
    team->task(team->context, team, self->thread, team->n_threads);
    return NULL;
}

static void wait_for_ever(void *unused)
{
    (void)unused;
    const struct timespec day = {.tv_sec = 24 * 60 * 60};
    for (;;) nanosleep(&day, NULL);
}

/* The caller's part. While the interpreter shuts down, Python ends a daemon thread that wants to
 * run Python code. The team uses what is on that thread's stack, so it waits for the process's end.
 */
static void run_first(mlp_team *team)
{
    pthread_cleanup_push(wait_for_ever, NULL);
    team->task(team->context, team, 0, team->n_threads);
    pthread_cleanup_pop(0);
}

void mlp_run_team(int n_threads, mlp_task task, void *context)
{
    mlp_team team = {.n_threads = 1, .task = task, .context = context};
    member *members = n_threads > 1 ? mlp_allocate(sizeof *members * (size_t)n_threads) : NULL;
    if (!members) {
        task(context, &team, 0, 1);
        return;
    }
    team.members = members;
    for (int i = 0; i < n_threads; i++) {
        members[i] = (member){.team = &team, .thread = i};
        atomic_init(&members[i].cpu, WOKEN);
    }
    pthread_mutex_init(&team.mutex, NULL);
    pthread_cond_init(&team.released, NULL);
    pthread_mutex_lock(&team.mutex);
    int n = 1;
    for (; n < n_threads; n++)
        if (mlp_call_fails() || pthread_create(&members[n].handle, NULL, run_member, &members[n]))
            break;
    team.n_threads = n;
    pthread_mutex_unlock(&team.mutex);
    run_first(&team);
    for (int i = 1; i < n; i++) pthread_join(members[i].handle, NULL);
    pthread_cond_destroy(&team.released);
    pthread_mutex_destroy(&team.mutex);
    mlp_free(members);
}
