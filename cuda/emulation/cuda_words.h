// The words of CUDA that the kernels use, for a C++ compiler: included before the .cu files.
//
// Each thread of a block is a fiber (fibers.h) that runs until it meets a barrier, ends, or
// yields in a polling loop; scheduler.h says who runs next. What this shows and what not:
//
// - barriers, warp shuffles, shared memory per block and blocks that run side by side are real;
// - shared memory starts as NaN, and threads run in an order drawn anew between two barriers,
//   so that a missing barrier gives a wrong result;
// - a barrier that some threads never reach, and polling that nobody answers, are errors;
// - built with AddressSanitizer, an access out of bounds of global or shared memory is one;
// - one thread of the host runs all, so reordering of memory accesses is never seen.
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
#define __constant__ static

// Static, and saved and restored by the scheduler whenever it changes between blocks.
#define __shared__ static __attribute__((section("emulated_shared"), used))

// Dynamic shared memory, which plain C++ cannot declare: floats of the running block.
inline float *emulated_dynamic_shared()
{
    return reinterpret_cast<float *>(emulation::current->home->dynamic.get());
}

#define threadIdx (emulation::current->index)
#define blockIdx (emulation::block_index)
#define blockDim (emulation::block_size)
#define gridDim (emulation::grid_size)
constexpr int warpSize = emulation::WARP;

inline void __syncthreads() { emulation::wait_for_block(); }
inline int __syncthreads_or(int vote)
{
    emulation::block &home = *emulation::current->home;
    home.votes = home.votes || vote;
    emulation::wait_for_block();
    return home.vote;
}
inline void __syncwarp(unsigned mask = 0xffffffffu) { emulation::wait_for_warp(mask); }
inline void __threadfence() {}
inline void __threadfence_block() {}

// In a polling loop, lets others run.
inline void __nanosleep(unsigned) { emulation::yield(); }

// ---- warps ---------------------------------------------------------------------------

template <class T>
T emulated_shuffle(unsigned mask, T value, unsigned source)
{
    static_assert(sizeof(T) <= sizeof(uint64_t), "shuffles move at most 8 bytes");
    uint64_t word = 0;
    std::memcpy(&word, &value, sizeof value);
    word = emulation::exchange(mask, word, source);
    std::memcpy(&value, &word, sizeof value);
    return value;
}

template <class T>
T __shfl_sync(unsigned mask, T value, int source)
{
    return emulated_shuffle(mask, value, (unsigned)source % warpSize);
}

// A lane whose source is beyond the warp keeps its own value.
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance)
{
    const unsigned lane = emulation::current->lane, source = lane + distance;
    return emulated_shuffle(mask, value, source < warpSize ? source : lane);
}

template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance)
{
    const unsigned lane = emulation::current->lane;
    return emulated_shuffle(mask, value, distance <= lane ? lane - distance : lane);
}

template <class T>
T __shfl_xor_sync(unsigned mask, T value, int lanes)
{
    return emulated_shuffle(mask, value, (emulation::current->lane ^ (unsigned)lanes) % warpSize);
}

// ---- arithmetic and atomics ----------------------------------------------------------

inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline unsigned __umulhi(unsigned a, unsigned b) { return (unsigned)((uint64_t)a * b >> 32); }

template <class T>
T atomicAdd(T *address, T value)
{
    const T before = *address;
    *address = before + value;
    return before;
}

template <class T>
T atomicExch(T *address, T value)
{
    const T before = *address;
    *address = value;
    return before;
}

template <class T>
T atomicCAS(T *address, T expected, T value)
{
    const T before = *address;
    if (before == expected) *address = value;
    return before;
}
