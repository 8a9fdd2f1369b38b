// How blocks that run side by side hand each other numbers: one small header of PTX, and its
// twin for the emulation.
//
// A word is 4 bytes: a value, whose last bit says of which epoch it is. Epochs e and e + 2 share
// a buffer (see resident.cu) and differ in that bit, which is bit 1 of the epoch. One bit is enough
// because a word is stored in every epoch, and read in every epoch by the same threads: one that
// has read e - 2 cannot find e - 4 there any more, whose bit is that of e. So whoever finds the bit
// has the value of its epoch in its hands; no other access has to be ordered before or after, and
// neither a fence nor acquire and release is needed. `relaxed.gpu` is the weakest access that other
// multiprocessors are sure to see: it goes to L2, never to a copy in L1. That a word is written
// again only after it was read needs no more either: the reader's next store depends on what it
// has loaded, and the writer's next on that.
//
// The bit costs a value its last one: if that is 1, the value becomes the neighbour that ends
// in 10. So it is the same whatever the epoch, and results do not depend on when training began; it
// goes up as often as down; and nothing is carried, which would make a number of a NaN.
#pragma once

#include <cstdint>

typedef unsigned exchange_word;

__device__ inline exchange_word epoch_bit(unsigned epoch) { return epoch >> 1 & 1; }

__device__ inline exchange_word rounded(exchange_word bits)
{
    return (bits | (bits & 1) << 1) & ~1u;
}

#ifdef __CUDACC__

__device__ __forceinline__ void store_word(exchange_word *word, float value, exchange_word bit)
{
    const exchange_word both = rounded(__float_as_uint(value)) | bit;
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(word), "r"(both));
}

__device__ __forceinline__ exchange_word load_word(const exchange_word *word)
{
    exchange_word both;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(both) : "l"(word));
    return both;
}

__device__ __forceinline__ float word_value(exchange_word word)
{
    return __uint_as_float(word & ~1u);
}

// With its last bit set if one of two words is of another epoch. Opaque to the compiler, as
// `either` is, which would make a predicate of each word, and look at the first before it has sent
// for the last.
__device__ __forceinline__ exchange_word either_other(exchange_word one, exchange_word other,
                                                      exchange_word bit)
{
    exchange_word differ;
    asm("lop3.b32 %0, %1, %2, %3, 0x7e;"  // whether they and the epoch's bit are not all the same
        : "=r"(differ)
        : "r"(one), "r"(other), "r"(bit));
    return differ;
}

__device__ __forceinline__ exchange_word either(exchange_word one, exchange_word other)
{
    exchange_word both;
    asm("or.b32 %0, %1, %2;" : "=r"(both) : "r"(one), "r"(other));
    return both;
}

// The same number, of which the compiler knows nothing: it stays in a register, instead of being
// computed again when it is needed; and what is computed from it before a long loop is computed
// again behind it, instead of staying in registers meanwhile.
__device__ __forceinline__ int opaque(int number)
{
    asm volatile("" : "+r"(number));
    return number;
}

__device__ __forceinline__ exchange_word opaque(exchange_word number)
{
    asm volatile("" : "+r"(number));
    return number;
}

__device__ __forceinline__ exchange_word *opaque(exchange_word *pointer)
{
    asm volatile("" : "+l"(pointer));
    return pointer;
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
inline void store_word(exchange_word *word, float value, exchange_word bit)
{
    exchange_word bits;
    std::memcpy(&bits, &value, sizeof bits);
    *word = rounded(bits) | bit;
}

inline exchange_word load_word(const exchange_word *word) { return *word; }

inline float word_value(exchange_word word)
{
    const exchange_word bits = word & ~1u;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline exchange_word either_other(exchange_word one, exchange_word other, exchange_word bit)
{
    return (one ^ bit) | (other ^ bit);
}

inline exchange_word either(exchange_word one, exchange_word other) { return one | other; }

template <class T>
T opaque(T value)
{
    return value;
}

inline int load_flag(const int *flag) { return *flag; }
inline void release_count(unsigned *count) { ++*count; }
inline unsigned acquire_count(const unsigned *count) { return *count; }
inline unsigned long long nanoseconds() { return emulation::idle_nanoseconds(); }
inline void poll_again() { emulation::yield(); }

#endif
