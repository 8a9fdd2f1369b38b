// The words of CUDA that the kernels use, for a C++ compiler. Included before the .cu files.
//
// Each thread of a block is a fiber (fibers.h). It runs until it meets a barrier, ends, or yields
// in a polling loop; scheduler.h decides which thread runs next. What this shows and what not:
//
// - barriers, warp shuffles, shared memory per block and blocks that run side by side are real;
// - shared memory starts as NaN, and threads run in a new random order after every barrier, so a
//   missing barrier gives a wrong result;
// - a barrier that some threads never reach is an error, and so is polling that nobody answers;
// - with AddressSanitizer, accesses outside global or shared memory are errors;
// - words that blocks exchange (exchange.cuh) arrive late and in any order;
// - one thread of the host runs everything, so other reordered memory accesses are never seen.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <tuple>

#include "scheduler.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

// Blocks run one after another, unless they poll. So one place is enough for all of them.
#define __shared__ static __attribute__((section("emulated_shared"), used))

// The dynamic shared memory of the running block; plain C++ cannot declare it as CUDA does.
inline float *emulated_dynamic_shared() { return emulation::current->home->dynamic_shared.data(); }

#define threadIdx (emulation::current->index)
#define blockIdx (emulation::current->home->index)

inline void __syncthreads() { emulation::wait_for_block(); }
inline int __syncthreads_or(int vote)
{
    emulation::block &home = *emulation::current->home;
    home.votes = home.votes || vote;
    emulation::wait_for_block();
    return home.vote;
}

// ---- warps: all lanes take part ------------------------------------------------------

template <class T>
T __shfl_xor_sync(unsigned, T value, unsigned bits)
{
    static_assert(sizeof(T) <= 4 || std::is_same_v<T, double>, "a double keeps it");
    const unsigned source = emulation::current->lane ^ bits;
    return static_cast<T>(emulation::exchange(static_cast<double>(value), source));
}

// ---- arithmetic and atomics ----------------------------------------------------------

inline int min(int a, int b) { return a < b ? a : b; }
inline unsigned __float_as_uint(float value) { return __builtin_bit_cast(unsigned, value); }
inline float __uint_as_float(unsigned bits) { return __builtin_bit_cast(float, bits); }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }

template <class T>
T atomicCAS(T *address, T expected, T value)
{
    const T before = *address;
    if (before == expected) *address = value;
    return before;
}

// ---- for the host: kernels by number, launched as a driver would launch them ------------

namespace emulation
{

inline const char *arguments;  // packed as a C struct

template <class T>
T next_argument(size_t &offset)
{
    offset = (offset + alignof(T) - 1) / alignof(T) * alignof(T);
    T value;
    std::memcpy(&value, arguments + offset, sizeof value);
    offset += sizeof value;
    return value;
}

template <class... P>
void call(void (*kernel)(P...))
{
    size_t offset = 0;
    std::tuple<P...> values{next_argument<P>(offset)...};
    std::apply(kernel, values);
}

extern void (*const kernels[])();  // in the file that the build writes

}  // namespace emulation

// Everything else is hidden, because one process loads several such libraries.
#define EMULATION_EXPORT extern "C" __attribute__((visibility("default")))

EMULATION_EXPORT void emulation_seed(uint64_t seed) { emulation::random_state = seed | 1; }

// Returns a line that says what went wrong, or nullptr.
EMULATION_EXPORT const char *emulation_launch(int i, const unsigned grid[3],
                                              const unsigned block[3], size_t shared_floats,
                                              const char *arguments)
{
    static std::string wrong;
    emulation::block_size = {block[0], block[1], block[2]};
    const emulation::triple blocks = {grid[0], grid[1], grid[2]};
    if (blocks.volume() == 0 || grid[0] > 0x7fffffffu || grid[1] > 65535 || grid[2] > 65535)
        return "a grid that no device runs";
    if (emulation::block_size.volume() - 1 >= 1024) return "a block that no device runs";
    emulation::arguments = arguments;
    emulation::kernel = emulation::kernels[i];
    wrong = emulation::run_grid(blocks, shared_floats);
    return wrong.empty() ? nullptr : wrong.c_str();
}
