// Decides which thread runs. Between two barriers, the threads of a block run in random order.
// Blocks also run in random order. While all threads of a block poll, other blocks start beside it.
#pragma once

#include <cmath>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "fibers.h"

namespace emulation
{

constexpr unsigned WARP = 32;

// Threads that may be resident at once, as on a device of eight full multiprocessors.
constexpr size_t MAX_RESIDENT_THREADS = 8 * 2048;

// After so many polls without any other event, nobody will answer.
constexpr uint64_t MAX_POLLS = 1u << 26;

struct triple {
    unsigned x, y, z;
    uint64_t volume() const { return static_cast<uint64_t>(x) * y * z; }
    triple nth(uint64_t i) const
    {
        return {static_cast<unsigned>(i % x), static_cast<unsigned>(i / x % y),
                static_cast<unsigned>(i / x / y)};
    }
};

enum class state : unsigned char { ready, waiting, ended };

struct block;

struct thread {
    fiber *stack = nullptr;  // nullptr before it starts
    triple index;
    unsigned lane, warp;
    state now = state::ready;
    block *home;
};

struct warp {
    unsigned members = 0, arrived = 0;
    double values[WARP];
};

struct block {
    triple index;
    std::vector<thread> threads;
    std::vector<warp> warps;
    std::vector<unsigned> order;  // the order in which the threads run next
    unsigned waiting = 0, ended = 0;
    bool votes = false, vote = false;  // of the next barrier, and of the last
    std::vector<float> dynamic_shared;
};

inline thread *current;
inline triple block_size;
inline void (*kernel)();  // called with the arguments of the launch
inline uint64_t events;   // barriers reached, words arrived and threads ended
inline uint64_t random_state = 0x9E3779B97F4A7C15u;

inline unsigned random_below(size_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return static_cast<unsigned>((random_state >> 32) * n >> 32);
}

// A clock that stands still while anything happens, because a slow host is no reason to give up.
inline uint64_t idle_nanoseconds()
{
    static uint64_t now = 1, seen = 0;
    if (events == seen) now += 1000;
    seen = events;
    return now;
}

// ---- words for other blocks -----------------------------------------------------------

// A word that is stored is on its way for a random time, as on a device. So words arrive in any
// order, except those for the same place.
struct word_on_its_way {
    unsigned *place, value;
};
inline std::vector<word_on_its_way> on_their_way;

// About half of the places get their words.
inline void let_words_arrive()
{
    const uint64_t factor = (static_cast<uint64_t>(random_below(1u << 31)) << 32) | 1;
    std::vector<word_on_its_way> late;
    for (const word_on_its_way &each : on_their_way) {
        if (reinterpret_cast<uintptr_t>(each.place) / sizeof each.value * factor >> 63) {
            *each.place = each.value;
            events++;
        } else {
            late.push_back(each);
        }
    }
    on_their_way.swap(late);
}

// ---- barriers --------------------------------------------------------------------------

inline void wait()
{
    current->now = state::waiting;
    suspend();
}

// All threads of the block must come. It is an error if one has ended and never comes.
inline void wait_for_block()
{
    block &home = *current->home;
    events++;
    if (++home.waiting < home.threads.size()) return wait();
    home.waiting = 0;
    home.vote = home.votes;
    home.votes = false;
    for (thread &t : home.threads) t.now = state::ready;
}

// All threads of the warp must come.
inline void wait_for_warp()
{
    block &home = *current->home;
    warp &own = home.warps[current->warp];
    events++;
    if (++own.arrived < own.members) return wait();
    own.arrived = 0;
    for (unsigned lane = 0; lane < own.members; lane++)
        home.threads[current->warp * WARP + lane].now = state::ready;
}

// The value of another lane. All are there before any is read, and all are read before any thread
// goes on.
inline double exchange(double value, unsigned source)
{
    warp &own = current->home->warps[current->warp];
    own.values[current->lane] = value;
    wait_for_warp();
    value = own.values[source];
    wait_for_warp();
    return value;
}

// ---- blocks --------------------------------------------------------------------------

// All static shared variables lie between these two, which are absent if there are none.
extern "C" float __start_emulated_shared[] __attribute__((weak));
extern "C" float __stop_emulated_shared[] __attribute__((weak));

// Float by float: AddressSanitizer forbids memset to touch the memory between variables.
__attribute__((no_sanitize("address"), noinline)) inline void clear_static_shared()
{
    for (volatile float *at = __start_emulated_shared; at < __stop_emulated_shared; at++) *at = NAN;
}

inline std::unique_ptr<block> make_block(triple index, size_t dynamic_floats)
{
    auto made = std::make_unique<block>();
    const unsigned n = static_cast<unsigned>(block_size.volume());
    made->index = index;
    made->threads.resize(n);
    made->warps.resize((n + WARP - 1) / WARP);
    made->order.resize(n);
    std::iota(made->order.begin(), made->order.end(), 0u);
    for (unsigned i = 0; i < n; i++) {
        thread &t = made->threads[i];
        t.index = block_size.nth(i);
        t.lane = i % WARP;
        t.warp = i / WARP;
        t.home = made.get();
        made->warps[t.warp].members++;
    }
    made->dynamic_shared.assign(dynamic_floats, NAN);
    clear_static_shared();
    return made;
}

inline void run_thread()
{
    kernel();
    events++;
    current->home->ended++;
    current->now = state::ended;
}

// Runs every thread that can run, once; false when there was none.
inline bool run_pass(block &b)
{
    bool ran = false;
    for (size_t i = b.order.size(); i > 1; i--) std::swap(b.order[i - 1], b.order[random_below(i)]);
    for (unsigned i : b.order) {
        current = &b.threads[i];
        if (current->now != state::ready) continue;
        ran = true;
        if (!current->stack) current->stack = take_fiber(run_thread);
        resume(*current->stack);
        if (current->now == state::ended) idle_fibers.push_back(current->stack);
    }
    return ran;
}

// Runs a block until it ends or all its threads poll. Among others it now and then stops earlier,
// so that blocks which exchange data meet each other in all states. False when no thread can run.
inline bool run(block &b, bool among_others)
{
    while (b.ended < b.threads.size()) {
        const uint64_t before = events;
        if (!run_pass(b)) return false;
        if (events == before || (among_others && random_below(16) == 0)) break;
    }
    return true;
}

// Runs a whole grid; returns what went wrong, or an empty string.
inline std::string run_grid(triple grid, size_t dynamic_floats)
{
    const uint64_t n = grid.volume(), first = random_below(n), step = random_below(2) ? 1 : n - 1;
    std::vector<std::unique_ptr<block>> resident;
    on_their_way.clear();
    uint64_t started = 0, polls = 0;
    while (started < n || !resident.empty()) {
        const uint64_t before = events;
        if (started < n && resident.size() * block_size.volume() < MAX_RESIDENT_THREADS)
            resident.push_back(
                make_block(grid.nth((first + started++ * step) % n), dynamic_floats));
        if (resident.size() > 1 && __start_emulated_shared)
            return "blocks that poll cannot have static shared memory here";
        for (size_t k = resident.size(); k-- > 0;) {
            block &b = *resident[k];
            let_words_arrive();
            if (!run(b, resident.size() > 1))
                return "deadlock: " + std::to_string(b.threads.size() - b.ended) + " of " +
                       std::to_string(b.threads.size()) +
                       " threads of a block wait for others that never come";
            if (b.ended == b.threads.size())
                resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(k));
        }
        polls = events == before ? polls + resident.size() * block_size.volume() : 0;
        if (polls > MAX_POLLS) return "deadlock: blocks poll, and nobody answers";
    }
    while (!on_their_way.empty()) let_words_arrive();
    return "";
}

}  // namespace emulation
