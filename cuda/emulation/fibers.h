// Fibers have stacks of their own and switch to and from the scheduler.
//
// On x86-64 a switch is a dozen instructions; elsewhere ucontext does it. AddressSanitizer keeps
// track of stacks, so it is told about each switch.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define EMULATION_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define EMULATION_ASAN 1
#endif
#endif
#ifdef EMULATION_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace emulation
{

constexpr size_t STACK_BYTES = 128 * 1024;

struct fiber {
    char *stack = nullptr;  // lowest address; nullptr while the fiber has not started
#ifdef __x86_64__
    void *pointer = nullptr;  // stack pointer while it does not run
#else
    ucontext_t context;
#endif
    void *asan_stack = nullptr;
};

inline fiber scheduler_fiber;
inline const void *scheduler_stack;
inline size_t scheduler_stack_bytes;
inline std::vector<char *> free_stacks;

// Takes the stack that was given back last: it is still in the cache.
inline char *take_stack()
{
    if (free_stacks.empty()) {
        void *memory = mmap(nullptr, STACK_BYTES, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (memory == MAP_FAILED) abort();
        return static_cast<char *>(memory);
    }
    char *stack = free_stacks.back();
    free_stacks.pop_back();
    return stack;
}

#ifdef __x86_64__
// Saves the registers that a function must keep, and goes on where the other stack stopped.
extern "C" void emulation_switch(void **from, void *to);
asm(R"(
.text
.globl emulation_switch
.type emulation_switch, @function
emulation_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size emulation_switch, . - emulation_switch
)");
#endif

inline void jump(fiber &from, fiber &to)
{
#ifdef __x86_64__
    emulation_switch(&from.pointer, to.pointer);
#else
    swapcontext(&from.context, &to.context);
#endif
}

// Gives a fiber a stack on which `entry` will run; `entry` must not return.
inline void start(fiber &f, void (*entry)())
{
    f.stack = take_stack();
    f.asan_stack = nullptr;
#ifdef EMULATION_ASAN
    __asan_unpoison_memory_region(f.stack, STACK_BYTES);
#endif
#ifdef __x86_64__
    // Stacks start at different offsets in their pages; otherwise all share a few cache lines.
    const size_t colour = (reinterpret_cast<uintptr_t>(f.stack) / STACK_BYTES) % 32 * 128;
    void **top = reinterpret_cast<void **>(f.stack + STACK_BYTES - colour);
    *--top = nullptr;  // no caller, and the alignment of a call
    *--top = reinterpret_cast<void *>(entry);
    for (int i = 0; i < 6; i++) *--top = nullptr;
    f.pointer = top;
#else
    getcontext(&f.context);
    f.context.uc_stack.ss_sp = f.stack;
    f.context.uc_stack.ss_size = STACK_BYTES;
    f.context.uc_link = nullptr;
    makecontext(&f.context, entry, 0);
#endif
}

// Called by the scheduler: runs a fiber until it comes back.
inline void resume(fiber &f)
{
#ifdef EMULATION_ASAN
    __sanitizer_start_switch_fiber(&scheduler_fiber.asan_stack, f.stack, STACK_BYTES);
#endif
    jump(scheduler_fiber, f);
#ifdef EMULATION_ASAN
    __sanitizer_finish_switch_fiber(scheduler_fiber.asan_stack, nullptr, nullptr);
#endif
}

// Called first in a fiber.
inline void entered()
{
#ifdef EMULATION_ASAN
    __sanitizer_finish_switch_fiber(nullptr, &scheduler_stack, &scheduler_stack_bytes);
#endif
}

// Called by a fiber: goes back to the scheduler, for good when the fiber has ended.
inline void suspend(fiber &f, bool ended)
{
#ifdef EMULATION_ASAN
    __sanitizer_start_switch_fiber(ended ? nullptr : &f.asan_stack, scheduler_stack,
                                   scheduler_stack_bytes);
#endif
    (void)ended;
    jump(f, scheduler_fiber);
#ifdef EMULATION_ASAN
    __sanitizer_finish_switch_fiber(f.asan_stack, &scheduler_stack, &scheduler_stack_bytes);
#endif
}

inline void give_back(fiber &f)
{
    if (f.stack) free_stacks.push_back(f.stack);
    f.stack = nullptr;
}

}  // namespace emulation
