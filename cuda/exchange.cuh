// How blocks that run side by side hand each other numbers: one small header of PTX, and its
// twin for the emulation.
//
// A word is 8 bytes, a value and the epoch in which it is valid, and is stored and loaded whole:
// the PTX memory model makes an aligned 64-bit scalar access a single one. Who finds the epoch
// that it waits for has the value of that epoch in its hands, so no other access has to be
// ordered before or after, and neither a fence nor acquire and release is needed. `relaxed.gpu`
// is the weakest access that other multiprocessors are sure to see: it goes to L2, never to a
// copy in L1, and never splits. That a word is written again only after it was read needs no more
// either: the reader's next store depends on what it has loaded, and the writer's next on that.
#pragma once

#include <cstdint>

typedef unsigned long long exchange_word;

#ifdef __CUDACC__

__device__ __forceinline__ void store_word(exchange_word *word, float value, unsigned epoch)
{
    const exchange_word both = (exchange_word)epoch << 32 | __float_as_uint(value);
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(both));
}

__device__ __forceinline__ exchange_word load_word(const exchange_word *word)
{
    exchange_word both;
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(both) : "l"(word));
    return both;
}

__device__ __forceinline__ float word_value(exchange_word word)
{
    return __uint_as_float((unsigned)word);
}

// The same number, of which the compiler knows nothing: what is computed from it before a long
// loop is computed again behind it, instead of occupying registers meanwhile.
__device__ __forceinline__ int known_anew(int number)
{
    asm volatile("" : "+r"(number));
    return number;
}

__device__ __forceinline__ int load_flag(const int *flag)
{
    int value;
    asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(flag));
    return value;
}

// For the barrier: what this thread, and all that it has met at __syncthreads, stored before
// is visible to whoever acquires the count.
__device__ __forceinline__ void release_count(unsigned *count)
{
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(count) : "memory");
}

__device__ __forceinline__ unsigned acquire_count(const unsigned *count)
{
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(count) : "memory");
    return value;
}

__device__ __forceinline__ unsigned long long nanoseconds()
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// Between two polls: nothing, since each takes the way to L2 and back.
__device__ __forceinline__ void poll_again() {}

#else

// One thread of the host runs all, and it changes to another in `poll_again` or at a barrier
// only: plain accesses are whole.
inline void store_word(exchange_word *word, float value, unsigned epoch)
{
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    *word = (exchange_word)epoch << 32 | bits;
}

inline exchange_word load_word(const exchange_word *word) { return *word; }

inline float word_value(exchange_word word)
{
    const uint32_t bits = (uint32_t)word;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline int known_anew(int number) { return number; }
inline int load_flag(const int *flag) { return *flag; }
inline void release_count(unsigned *count) { ++*count; }
inline unsigned acquire_count(const unsigned *count) { return *count; }
inline unsigned long long nanoseconds() { return emulation::idle_nanoseconds(); }
inline void poll_again() { emulation::yield(); }

#endif

__device__ inline unsigned word_epoch(exchange_word word) { return (unsigned)(word >> 32); }
