// What the library offers to the host: kernels by name, launched as a driver would launch them.
//
// The build writes a file that includes the .cu files, then this header, and lists the kernels:
//
//     const emulation::entry emulation::table[] = {KERNEL(forward_partial_kernel), ...};
#pragma once

#include <cstring>
#include <tuple>
#include <utility>

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

template <class T>
constexpr char format()
{
    if (std::is_pointer_v<T>) return 'P';
    if (std::is_same_v<T, int>) return 'i';
    if (std::is_same_v<T, unsigned>) return 'I';
    if (std::is_same_v<T, double>) return 'd';
    return std::is_same_v<T, float> ? 'f' : '?';
}

template <auto kernel>
struct caller;

template <class... P, void (*kernel)(P...)>
struct caller<kernel> {
    static constexpr char formats[] = {format<P>()..., '\0'};
    static void call()
    {
        size_t offset = 0;
        std::tuple<P...> values{next_argument<P>(offset)...};
        std::apply(kernel, values);
    }
};

struct entry {
    const char *name;
    const char *formats;
    void (*call)();
};

extern const entry table[];
extern const int table_size;

inline const char *check_limits(const unsigned grid[3], const unsigned block[3])
{
    for (int i = 0; i < 3; i++)
        if (grid[i] == 0 || block[i] == 0) return "a grid or block without threads";
    if (grid[0] > 0x7fffffffu || grid[1] > 65535 || grid[2] > 65535) return "a grid too large";
    if (static_cast<uint64_t>(block[0]) * block[1] * block[2] > 1024) return "a block too large";
    return nullptr;
}

}  // namespace emulation

// Everything else is hidden, because one process loads several such libraries.
#define EMULATION_EXPORT __attribute__((visibility("default")))

#define KERNEL(name) {#name, emulation::caller<&name>::formats, emulation::caller<&name>::call}

extern "C" {

EMULATION_EXPORT int emulation_size() { return emulation::table_size; }
EMULATION_EXPORT const char *emulation_name(int i) { return emulation::table[i].name; }
EMULATION_EXPORT const char *emulation_formats(int i) { return emulation::table[i].formats; }
EMULATION_EXPORT void emulation_seed(uint64_t seed) { emulation::random_state = seed | 1; }

// Device memory of exactly this size, so that AddressSanitizer sees accesses beyond it.
EMULATION_EXPORT void *emulation_allocate(size_t n)
{
    void *memory = std::malloc(n);
    if (memory) std::memset(memory, 0xff, n);  // NaN
    return memory;
}
EMULATION_EXPORT void emulation_free(void *memory) { std::free(memory); }

// Returns 0, or -1 and a line that says what went wrong.
EMULATION_EXPORT int emulation_launch(int i, const unsigned grid[3], const unsigned block[3],
                                      size_t shared, const char *arguments, char *error,
                                      size_t error_size)
{
    using namespace emulation;
    const char *limit = check_limits(grid, block);
    std::string wrong = limit ? limit : "";
    if (!limit) {
        grid_size = {grid[0], grid[1], grid[2]};
        block_size = {block[0], block[1], block[2]};
        emulation::arguments = arguments;
        body = table[i].call;
        wrong = run_grid(shared);
    }
    if (wrong.empty()) return 0;
    snprintf(error, error_size, "%s: %s", table[i].name, wrong.c_str());
    return -1;
}
}
