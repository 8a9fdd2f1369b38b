// How blocks that run side by side hand each other numbers: a few words of PTX, and the same for
// the emulation.
//
// Every sample has a ticket, its number. A word of 4 bytes is a value whose last bit is bit 1 of
// its ticket. Tickets t and t + 2 share a buffer (see resident.cu), and this bit tells them apart.
// One bit is enough: a word is stored for every ticket of its buffer, and the same threads read it
// for every ticket. A thread that has read ticket t - 2 cannot find ticket t - 4 again, which has
// the bit of t. So a thread that finds the bit has the value of its ticket in its hands. No other
// access has to be ordered before or after, so neither fences nor acquire and release are needed.
//
// `relaxed.gpu` is the weakest access that other multiprocessors are sure to see. It goes to L2,
// never to a copy in L1. A word is overwritten only after it has been read: the reader's next store
// depends on what it has loaded, and the writer's next store depends on that.
//
// The bit takes the place of the value's last bit. A value that ends in 1 becomes the neighbour
// that ends in 10, so the result is the same for every ticket. Values go up as often as down.
// Nothing is carried, so a NaN stays a NaN.
#pragma once

#include <cstdint>

typedef unsigned exchange_word;

__device__ inline exchange_word ticket_bit(unsigned ticket) { return ticket >> 1 & 1; }

// A value whose last bit is free.
__device__ inline exchange_word rounded(exchange_word bits)
{
    return (bits | (bits & 1) << 1) & ~1u;
}

#ifdef __CUDACC__

__device__ __forceinline__ void store_bits(exchange_word *word, exchange_word bits)
{
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(word), "r"(bits));
}

__device__ __forceinline__ exchange_word load_word(const exchange_word *word)
{
    exchange_word both;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(both) : "l"(word));
    return both;
}

// The last bit is set if one of two words has another ticket. This and `either` are assembler,
// because the compiler would make a predicate of each word, and look at the first before it has
// asked for the last.
__device__ __forceinline__ exchange_word either_other(exchange_word one, exchange_word other,
                                                      exchange_word bit)
{
    exchange_word differ;
    asm("lop3.b32 %0, %1, %2, %3, 0x7e;"  // whether the words and the bit differ
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

// The same value, but the compiler knows nothing about it. It stays in a register and is not
// computed again. Results computed from it before a long loop do not stay in registers during
// the loop: they are computed again behind it.
template <class T>
__device__ __forceinline__ T opaque(T value)
{
    if constexpr (sizeof(T) == 8)
        asm volatile("" : "+l"(value));
    else
        asm volatile("" : "+r"(value));
    return value;
}

__device__ __forceinline__ int load_flag(const int *flag)
{
    int value;
    asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(flag));
    return value;
}

__device__ __forceinline__ unsigned long long nanoseconds()
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// Between two polls nothing has to be done: each goes to L2 and back.
__device__ __forceinline__ void poll_again() {}

#else

// One thread of the host runs all. It changes to another CUDA thread only in `poll_again` and at
// barriers, so plain loads are whole. Stored words arrive late, and in any order.
inline void store_bits(exchange_word *word, exchange_word bits)
{
    emulation::on_their_way.push_back({word, bits});
}
inline exchange_word load_word(const exchange_word *word) { return *word; }

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
inline unsigned long long nanoseconds() { return emulation::idle_nanoseconds(); }
inline void poll_again() { emulation::suspend(); }

#endif

__device__ __forceinline__ void store_word(exchange_word *word, float value, exchange_word bit)
{
    store_bits(word, rounded(__float_as_uint(value)) | bit);
}

__device__ __forceinline__ float word_value(exchange_word word)
{
    return __uint_as_float(word & ~1u);
}
