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
T shuffle_from(T value, unsigned source)
{
    static_assert(sizeof(T) <= 4 || std::is_same_v<T, double>, "a double keeps it");
    return static_cast<T>(emulation::exchange(static_cast<double>(value), source));
}

// A lane whose source is beyond the warp keeps its own value.
template <class T>
T __shfl_down_sync(unsigned, T value, unsigned distance)
{
    const unsigned lane = emulation::current->lane, source = lane + distance;
    return shuffle_from(value, source < emulation::WARP ? source : lane);
}

template <class T>
T __shfl_xor_sync(unsigned, T value, unsigned bits)
{
    return shuffle_from(value, emulation::current->lane ^ bits);
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
