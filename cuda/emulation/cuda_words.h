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
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "scheduler.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

// The scheduler saves and restores static shared memory when it changes to another block.
#define __shared__ static __attribute__((section("emulated_shared"), used))

// The dynamic shared memory of the running block; plain C++ cannot declare it as CUDA does.
inline float *emulated_dynamic_shared()
{
    return reinterpret_cast<float *>(emulation::current->home->dynamic.get());
}

#define threadIdx (emulation::current->index)
#define blockIdx (emulation::block_index)
#define blockDim (emulation::block_size)

inline void __syncthreads() { emulation::wait_for_block(); }
inline int __syncthreads_or(int vote)
{
    emulation::block &home = *emulation::current->home;
    home.votes = home.votes || vote;
    emulation::wait_for_block();
    return home.vote;
}

// In a polling loop, lets other threads run.
inline void __nanosleep(unsigned) { emulation::yield(); }

// ---- warps ---------------------------------------------------------------------------

template <class T>
T shuffle_from(unsigned mask, T value, unsigned source)
{
    static_assert(sizeof(T) <= sizeof(uint64_t), "shuffles move at most 8 bytes");
    uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    word = emulation::exchange(mask, word, source);
    std::memcpy(&value, &word, sizeof value);
    return value;
}

// A lane whose source is beyond the warp keeps its own value.
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance)
{
    const unsigned lane = emulation::current->lane, source = lane + distance;
    return shuffle_from(mask, value, source < emulation::WARP ? source : lane);
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, unsigned bits)
{
    return shuffle_from(mask, value, emulation::current->lane ^ bits);
}

// ---- arithmetic and atomics ----------------------------------------------------------

inline int min(int a, int b) { return a < b ? a : b; }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }

template <class T>
T atomicCAS(T *address, T expected, T value)
{
    const T before = *address;
    if (before == expected) *address = value;
    return before;
}
