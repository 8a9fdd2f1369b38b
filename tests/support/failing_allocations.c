/* Lets one allocation, or one start of a thread, of mlpcore's compiled modules fail.
 *
 * A test loads this library before Python (LD_PRELOAD). It stands before the C library's functions,
 * and asks by the return address whether a module in a folder "mlpcore" has called them. It needs
 * the GNU C library, for the functions' other names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_memalign(size_t, size_t);
extern void __libc_free(void *);

enum { MODULES = 16, BLOCKS = 4096 };

static struct {
    uintptr_t begin, end;
} modules[MODULES];
static int n_modules;
static atomic_long left;               /* calls until one fails; 0: none fails */
static atomic_int failed, watching;    /* whether one has failed; whether blocks are noted */
static _Atomic(void *) blocks[BLOCKS]; /* allocated by a module and not yet freed */

static int note_module(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    if (!strstr(info->dlpi_name, "/mlpcore/")) return 0;
    for (int i = 0; i < info->dlpi_phnum && n_modules < MODULES; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X)) {
            modules[n_modules].begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            modules[n_modules].end = modules[n_modules].begin + info->dlpi_phdr[i].p_memsz;
            n_modules++;
        }
    return 0;
}

static int is_ours(const void *caller)
{
    if (!watching) return 0;
    for (int i = 0; i < n_modules; i++)
        if (modules[i].begin <= (uintptr_t)caller && (uintptr_t)caller < modules[i].end) return 1;
    return 0;
}

static int fails(void)
{
    if (left <= 0 || atomic_fetch_sub(&left, 1) != 1) return 0;
    failed = 1;
    errno = ENOMEM;
    return 1;
}

static void *noted(void *block)
{
    for (int i = 0; block && i < BLOCKS; i++) {
        void *none = NULL;
        if (atomic_compare_exchange_strong(&blocks[i], &none, block)) break;
    }
    return block;
}

void *malloc(size_t size)
{
    if (!is_ours(__builtin_return_address(0))) return __libc_malloc(size);
    return fails() ? NULL : noted(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
    if (!is_ours(__builtin_return_address(0))) return __libc_calloc(n, size);
    return fails() ? NULL : noted(__libc_calloc(n, size));
}

void *aligned_alloc(size_t alignment, size_t size)
{
    if (!is_ours(__builtin_return_address(0))) return __libc_memalign(alignment, size);
    return fails() ? NULL : noted(__libc_memalign(alignment, size));
}

void free(void *block)
{
    for (int i = 0; block && watching && i < BLOCKS; i++) {
        void *same = block;
        if (atomic_compare_exchange_strong(&blocks[i], &same, NULL)) break;
    }
    __libc_free(block);
}

typedef int start_function(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    static start_function *start;
    if (is_ours(__builtin_return_address(0)) && fails()) return EAGAIN;
    if (!start) *(void **)&start = dlsym(RTLD_NEXT, "pthread_create");
    return start(thread, attributes, run, argument);
}

/* Lets call number n from now on fail, and forgets the blocks so far. */
void fail_at(long n)
{
    for (int i = 0; i < BLOCKS; i++) blocks[i] = NULL;
    n_modules = 0;
    dl_iterate_phdr(note_module, NULL);
    failed = 0;
    left = n;
    watching = 1;
}

/* How many blocks the modules have allocated since and not freed. */
int blocks_left(void)
{
    int n = 0;
    for (int i = 0; i < BLOCKS; i++) n += blocks[i] != NULL;
    return n;
}

/* No more calls fail. Returns whether one has. */
int stop_failing(void)
{
    left = 0;
    return failed;
}
