// What the library offers to the host: kernels by number, launched as a driver would launch them.
//
// The build writes a file that includes the .cu files, then this header, and lists the kernels:
//
//     void (*const emulation::kernels[])() = {[] { call(forward_partial_kernel); }, ...};
#pragma once

#include <tuple>

#include "cuda_words.h"

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

extern void (*const kernels[])();

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
