/* Which instruction sets run here: compiled in, offered by the CPU (CPUID), and saved by
 * the operating system at a context switch (XGETBV). Compiled for the baseline. */
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "kernels.h"

#ifdef __x86_64__
#include <cpuid.h>

/* What the CPU has, as the bits of a number; 0 means that it is not known yet. */
enum { DETECTED = 1, AVX2_FMA = 2, AVX512F = 4 };

static int detect(void)
{
    unsigned a, b, c, d, states, unused;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return DETECTED;
    int fma = (c & bit_FMA) != 0;
    __asm__ volatile("xgetbv" : "=a"(states), "=d"(unused) : "c"(0));
    int ymm = (states & 0x06) == 0x06, zmm = (states & 0xE6) == 0xE6;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return DETECTED;
    return DETECTED | (ymm && fma && (b & bit_AVX2) ? AVX2_FMA : 0) |
           (zmm && (b & bit_AVX512F) ? AVX512F : 0);
}

/* Asked once: on a virtual machine CPUID takes longer than to deform an image. */
static int has(int feature)
{
    static atomic_int known;
    int features = atomic_load_explicit(&known, memory_order_relaxed);
    if (!features) atomic_store_explicit(&known, features = detect(), memory_order_relaxed);
    return (features & feature) != 0;
}

static int runs_here(const mlp_kernels *kernels)
{
    if (kernels == &mlp_avx512) return has(AVX512F);
    if (kernels == &mlp_avx2) return has(AVX2_FMA);
    return 1;
}
#else
static int runs_here(const mlp_kernels *kernels)
{
    return kernels == &mlp_scalar || kernels == &mlp_neon;
}
#endif

const mlp_kernels *mlp_find_kernels(const char *name, const char **reason)
{
    static const struct {
        const char *name;
        const mlp_kernels *kernels;
    } all[] = {
        {"scalar", &mlp_scalar}, {"sse2", &mlp_sse2},     {"neon", &mlp_neon},
        {"avx2", &mlp_avx2},     {"avx512", &mlp_avx512},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(name, all[i].name)) continue;
        *reason = !all[i].kernels->name
                      ? "not compiled in: another processor, or too old a compiler"
                      : "this CPU or operating system does not support it";
        return all[i].kernels->name && runs_here(all[i].kernels) ? all[i].kernels : NULL;
    }
    *reason = "no such instruction set";
    return NULL;
}
