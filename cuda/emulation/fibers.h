// Fibers have stacks of their own and switch to and from the scheduler.
//
// On x86-64 a switch is a dozen instructions; elsewhere ucontext does it. AddressSanitizer keeps
// track of stacks, so it is told about each switch.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <vector>

#ifdef EMULATION_ASAN
#include <sanitizer/common_interface_defs.h>
#endif
#ifndef __x86_64__
#include <ucontext.h>
#endif

namespace emulation
{

struct fiber {
    const void *stack = nullptr;  // lowest address
    size_t stack_bytes = 0;
#ifdef __x86_64__
    void *pointer = nullptr;  // stack pointer while it does not run
#else
    ucontext_t context;
#endif
    void *asan_stack = nullptr;
    void (*body)() = nullptr;  // what it runs next
};

inline fiber scheduler_fiber;
inline fiber *running;
inline std::vector<fiber *> idle_fibers;  // which have ended a body

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

// Called in a fiber that goes on: learns where the scheduler's stack is.
inline void finish_switch(fiber &to)
{
#ifdef EMULATION_ASAN
    const bool back = &to == &scheduler_fiber;
    __sanitizer_finish_switch_fiber(to.asan_stack, back ? nullptr : &scheduler_fiber.stack,
                                    back ? nullptr : &scheduler_fiber.stack_bytes);
#endif
    (void)to;
}

inline void jump(fiber &from, fiber &to)
{
#ifdef EMULATION_ASAN
    __sanitizer_start_switch_fiber(&from.asan_stack, to.stack, to.stack_bytes);
#endif
#ifdef __x86_64__
    emulation_switch(&from.pointer, to.pointer);
#else
    swapcontext(&from.context, &to.context);
#endif
    finish_switch(from);
}

// Called by a fiber: goes back to the scheduler until it is resumed.
inline void suspend() { jump(*running, scheduler_fiber); }

// Called by the scheduler: runs a fiber until it suspends itself.
inline void resume(fiber &f)
{
    running = &f;
    jump(scheduler_fiber, f);
}

inline void run_bodies()
{
    finish_switch(*running);
    while (true) {
        running->body();
        suspend();
    }
}

// A fiber that will run a body: the one that ended last, whose stack is still in the cache, or a
// new one.
inline fiber *take_fiber(void (*body)())
{
    if (idle_fibers.empty()) {
        fiber *made = new fiber;
        made->stack_bytes = 128 * 1024;
        char *stack = static_cast<char *>(std::malloc(made->stack_bytes));
        made->stack = stack;
#ifdef __x86_64__
        void **top = reinterpret_cast<void **>(stack + made->stack_bytes);
        *--top = nullptr;  // no caller, and the alignment of a call
        *--top = reinterpret_cast<void *>(run_bodies);
        for (int i = 0; i < 6; i++) *--top = nullptr;
        made->pointer = top;
#else
        getcontext(&made->context);
        made->context.uc_stack.ss_sp = stack;
        made->context.uc_stack.ss_size = made->stack_bytes;
        made->context.uc_link = nullptr;
        makecontext(&made->context, run_bodies, 0);
#endif
        idle_fibers.push_back(made);
    }
    fiber *taken = idle_fibers.back();
    idle_fibers.pop_back();
    taken->body = body;
    return taken;
}

}  // namespace emulation
