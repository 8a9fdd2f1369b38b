// Fibers have stacks of their own and switch to and from the scheduler.
// AddressSanitizer keeps track of stacks, so it is told about each switch.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <cstdlib>
#include <vector>

#ifdef EMULATION_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace emulation
{

struct fiber {
    const void *stack = nullptr;  // lowest address
    size_t stack_bytes = 0;
    ucontext_t context;  // in which it starts
    bool has_started = false;
    jmp_buf place;  // where it goes on
    void *asan_stack = nullptr;
    void (*body)() = nullptr;  // what it runs next
};

inline fiber scheduler_fiber;
inline fiber *running;
inline std::vector<fiber *> idle_fibers;  // which have ended a body

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
    from.has_started = true;
    if (_setjmp(from.place) == 0) {  // which makes no system call, as swapcontext does
        if (to.has_started) _longjmp(to.place, 1);
        setcontext(&to.context);
    }
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
        getcontext(&made->context);
        made->context.uc_stack.ss_sp = stack;
        made->context.uc_stack.ss_size = made->stack_bytes;
        made->context.uc_link = nullptr;
        makecontext(&made->context, run_bodies, 0);
        idle_fibers.push_back(made);
    }
    fiber *taken = idle_fibers.back();
    idle_fibers.pop_back();
    taken->body = body;
    return taken;
}

}  // namespace emulation
