// Decides which thread runs. Between two barriers, the threads of a block run in random order.
// Blocks also run in random order. While all threads of a block poll, other blocks start beside it.
#pragma once

#include <cstdio>
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
};

enum class state : unsigned char { ready, polling, at_barrier, at_warp_barrier, ended };

struct block;

struct thread {
    fiber stack;
    triple index;
    unsigned lane, warp;
    state now = state::ready;
    unsigned mask;  // of the warp barrier at which it waits
    block *home;
};

struct warp {
    unsigned members = 0, arrived = 0;
    uint64_t slots[WARP];
};

struct block {
    triple index;
    std::vector<thread> threads;
    std::vector<warp> warps;
    std::vector<unsigned> order;  // the order in which the threads run next
    unsigned waiting = 0, ended = 0;
    bool votes = false, vote = false;          // of the next barrier, and of the last
    std::vector<unsigned char> shared;         // static shared memory while others run
    std::unique_ptr<unsigned char[]> dynamic;  // dynamic shared memory
};

inline thread *current;
inline triple block_index, block_size, grid_size;
inline void (*body)();   // calls the kernel with its arguments
inline uint64_t events;  // barriers reached and threads ended
inline uint64_t random_state = 0x9E3779B97F4A7C15u;

inline unsigned random_below(size_t n)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return static_cast<unsigned>((random_state >> 32) * n >> 32);
}

inline void shuffle(std::vector<unsigned> &order)
{
    for (size_t i = order.size(); i > 1; i--) std::swap(order[i - 1], order[random_below(i)]);
}

// ---- waiting -------------------------------------------------------------------------

inline void wait_as(state reason)
{
    thread *self = current;
    self->now = reason;
    suspend(self->stack, reason == state::ended);
}

inline void yield() { wait_as(state::polling); }

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

inline void send_word(unsigned *place, unsigned value) { on_their_way.push_back({place, value}); }

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

// All threads of the block must come. It is an error if one has ended and never comes.
inline void wait_for_block()
{
    block &home = *current->home;
    events++;
    if (++home.waiting < home.threads.size()) return wait_as(state::at_barrier);
    home.waiting = 0;
    home.vote = home.votes;
    home.votes = false;
    for (thread &t : home.threads) t.now = state::ready;
}

inline void wait_for_warp(unsigned mask)
{
    thread *self = current;
    block &home = *self->home;
    warp &own = home.warps[self->warp];
    mask &= own.members;
    events++;
    own.arrived |= 1u << self->lane;
    if ((own.arrived & mask) != mask) {
        self->mask = mask;
        return wait_as(state::at_warp_barrier);
    }
    own.arrived &= ~mask;
    for (unsigned lane = 0; lane < WARP; lane++)
        if (mask >> lane & 1) home.threads[self->warp * WARP + lane].now = state::ready;
}

// All words are there before any is read, and all are read before any thread goes on.
inline uint64_t exchange(unsigned mask, uint64_t word, unsigned source)
{
    warp &own = current->home->warps[current->warp];
    own.slots[current->lane] = word;
    wait_for_warp(mask);
    word = own.slots[source];
    wait_for_warp(mask);
    return word;
}

inline void run_thread()
{
    entered();
    body();
    events++;
    current->home->ended++;
    wait_as(state::ended);
}

// ---- shared memory -------------------------------------------------------------------

// All static shared variables lie between these two, which are absent if there are none.
extern "C" unsigned char __start_emulated_shared[] __attribute__((weak));
extern "C" unsigned char __stop_emulated_shared[] __attribute__((weak));

#define EMULATION_UNCHECKED __attribute__((no_sanitize("address"), noinline))

// Copies word by word: AddressSanitizer forbids memcpy to touch the memory between variables.
EMULATION_UNCHECKED inline void copy_words(void *to, const void *from, size_t n)
{
    volatile uint32_t *target = static_cast<volatile uint32_t *>(to);
    const uint32_t *source = static_cast<const uint32_t *>(from);
    for (size_t i = 0; i < n / 4; i++) target[i] = source[i];
}

EMULATION_UNCHECKED inline void fill_with_nan(void *to, size_t n)
{
    volatile uint32_t *target = static_cast<volatile uint32_t *>(to);
    for (size_t i = 0; i < n / 4; i++) target[i] = 0x7fbadbadu;
}

inline size_t shared_bytes()
{
    return static_cast<size_t>(__stop_emulated_shared - __start_emulated_shared) / 4 * 4;
}

// ---- blocks --------------------------------------------------------------------------

inline std::unique_ptr<block> make_block(triple index, size_t dynamic_bytes)
{
    auto made = std::make_unique<block>();
    const unsigned n = block_size.x * block_size.y * block_size.z;
    made->index = index;
    made->threads.resize(n);
    made->warps.resize((n + WARP - 1) / WARP);
    made->order.resize(n);
    std::iota(made->order.begin(), made->order.end(), 0u);
    for (unsigned i = 0; i < n; i++) {
        thread &t = made->threads[i];
        t.index = {i % block_size.x, i / block_size.x % block_size.y,
                   i / (block_size.x * block_size.y)};
        t.lane = i % WARP;
        t.warp = i / WARP;
        t.home = made.get();
        made->warps[t.warp].members |= 1u << t.lane;
    }
    if (dynamic_bytes) {
        made->dynamic = std::make_unique<unsigned char[]>(dynamic_bytes);
        fill_with_nan(made->dynamic.get(), dynamic_bytes);
    }
    return made;
}

// Runs every thread that can run, once; false when there was none.
inline bool run_pass(block &b)
{
    bool ran = false;
    shuffle(b.order);
    for (unsigned i : b.order) {
        thread &t = b.threads[i];
        if (t.now != state::ready && t.now != state::polling) continue;
        ran = true;
        t.now = state::ready;
        if (!t.stack.stack) start(t.stack, run_thread);
        current = &t;
        resume(t.stack);
        if (t.now == state::ended) give_back(t.stack);
    }
    return ran;
}

inline std::string describe_deadlock(const block &b, const char *what)
{
    unsigned counts[5] = {};
    for (const thread &t : b.threads) counts[static_cast<int>(t.now)]++;
    char text[256];
    snprintf(text, sizeof text,
             "deadlock in block (%u, %u, %u): %s; of %zu threads %u wait at a barrier, %u at a "
             "warp's, %u poll, %u have ended",
             b.index.x, b.index.y, b.index.z, what, b.threads.size(), counts[2], counts[3],
             counts[1], counts[4]);
    return text;
}

// The resident blocks, and the one whose shared memory is in place.
struct residents {
    std::vector<std::unique_ptr<block>> blocks;
    block *in_place = nullptr;

    void switch_to(block &next)
    {
        if (in_place == &next) return;
        const size_t n = shared_bytes();
        if (in_place) {
            in_place->shared.resize(n);
            copy_words(in_place->shared.data(), __start_emulated_shared, n);
        }
        if (next.shared.empty())
            fill_with_nan(__start_emulated_shared, n);
        else
            copy_words(__start_emulated_shared, next.shared.data(), n);
        in_place = &next;
        block_index = next.index;
    }

    // Runs a block until it ends or all its threads poll. Now and then it stops earlier, so that
    // blocks which exchange data meet each other in all states. If no thread can run, that is an
    // error.
    std::string run(block &b)
    {
        switch_to(b);
        while (b.ended < b.threads.size()) {
            const uint64_t before = events;
            if (!run_pass(b)) return describe_deadlock(b, "some threads never come");
            if (events == before || (blocks.size() > 1 && random_below(16) == 0)) break;
        }
        return "";
    }

    void remove(size_t i)
    {
        if (in_place == blocks[i].get()) in_place = nullptr;
        blocks.erase(blocks.begin() + static_cast<std::ptrdiff_t>(i));
    }

    ~residents()
    {
        for (auto &b : blocks)
            for (thread &t : b->threads) give_back(t.stack);
    }
};

inline triple nth_block(uint64_t i)
{
    return {static_cast<unsigned>(i % grid_size.x),
            static_cast<unsigned>(i / grid_size.x % grid_size.y),
            static_cast<unsigned>(i / grid_size.x / grid_size.y)};
}

// Runs a whole grid; returns what went wrong, or an empty string.
inline std::string run_grid(size_t dynamic_bytes)
{
    const uint64_t n = static_cast<uint64_t>(grid_size.x) * grid_size.y * grid_size.z;
    const uint64_t first = random_below(n), forward = random_below(2);
    const size_t threads = static_cast<size_t>(block_size.x) * block_size.y * block_size.z;
    residents resident;
    on_their_way.clear();
    uint64_t started = 0, polls = 0;
    while (started < n || !resident.blocks.empty()) {
        const uint64_t before = events;
        const bool room = (resident.blocks.size() + 1) * threads <= MAX_RESIDENT_THREADS;
        if (started < n && (room || resident.blocks.empty())) {
            const uint64_t i = forward ? first + started : first + n - started;
            resident.blocks.push_back(make_block(nth_block(i % n), dynamic_bytes));
            started++;
        }
        for (size_t k = resident.blocks.size(); k-- > 0;) {
            block &b = *resident.blocks[k];
            let_words_arrive();
            std::string error = resident.run(b);
            if (!error.empty()) return error;
            if (b.ended == b.threads.size()) resident.remove(k);
        }
        polls = events == before ? polls + resident.blocks.size() * threads : 0;
        if (polls > MAX_POLLS) return describe_deadlock(*resident.blocks[0], "nobody answers");
    }
    while (!on_their_way.empty()) let_words_arrive();
    return "";
}

}  // namespace emulation
