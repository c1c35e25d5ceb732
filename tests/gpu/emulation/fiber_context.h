/* SPDX-License-Identifier: Apache-2.0 */
/* What a fiber keeps while another one runs, and how a thread goes from one to the other. */
#ifndef FIBER_CONTEXT_H
#define FIBER_CONTEXT_H

#include <cstddef>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace emulation
{

#if defined(__x86_64__)

struct context {
    void *stack_pointer;
};

extern "C" void seqlstm_emulation_switch(void **save, void *load);
asm(".text\n"
    ".type seqlstm_emulation_switch, @function\n"
    "seqlstm_emulation_switch:\n"
    "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
    "    movq %rsp, (%rdi)\n"
    "    movq %rsi, %rsp\n"
    "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
    "    ret\n"
    ".size seqlstm_emulation_switch, .-seqlstm_emulation_switch\n");

inline void switch_to(context *from, context *to)
{
    seqlstm_emulation_switch(&from->stack_pointer, to->stack_pointer);
}

/* `entry` begins on this stack when the context is switched to; it never returns. */
inline void prepare(context *c, unsigned char *stack, size_t bytes, void (*entry)())
{
    void **top = reinterpret_cast<void **>(stack + bytes - 64);
    *--top = nullptr; /* its return address */
    *--top = reinterpret_cast<void *>(entry);
    for (int k = 0; k < 6; k++)
        *--top = nullptr;
    c->stack_pointer = top;
}

#else

typedef ucontext_t context;

inline void switch_to(context *from, context *to)
{
    swapcontext(from, to);
}

inline void prepare(context *c, unsigned char *stack, size_t bytes, void (*entry)())
{
    getcontext(c);
    c->uc_stack.ss_sp = stack;
    c->uc_stack.ss_size = bytes;
    c->uc_link = nullptr;
    makecontext(c, entry, 0);
}

#endif

} // namespace emulation

#endif
