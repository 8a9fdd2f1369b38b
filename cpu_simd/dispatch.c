/* Which instruction sets run here: compiled in, offered by the CPU (CPUID), and saved by
 * the operating system at a context switch (XGETBV). Compiled for the baseline. */
#include <stddef.h>
#include <string.h>

#include "kernels.h"

#ifdef __x86_64__
#include <cpuid.h>

typedef struct {
    int avx2_fma, avx512f;
} features;

static unsigned enabled_states(void)
{
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static features detect(void)
{
    features found = {0, 0};
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE)) return found;
    int fma = (c & bit_FMA) != 0;
    unsigned states = enabled_states();
    int ymm = (states & 0x06) == 0x06, zmm = (states & 0xE6) == 0xE6;
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return found;
    found.avx2_fma = ymm && fma && (b & bit_AVX2);
    found.avx512f = zmm && (b & bit_AVX512F);
    return found;
}

static int runs_here(const mlp_kernels *kernels)
{
    if (kernels == &mlp_avx512) return detect().avx512f;
    if (kernels == &mlp_avx2) return detect().avx2_fma;
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
