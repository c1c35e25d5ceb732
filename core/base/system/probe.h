/* SPDX-License-Identifier: Apache-2.0 */
/* Static probes (USDT), which perf, bpftrace and SystemTap list and watch without help of the program.
 *
 * A probe is an instruction that does nothing, and a note in the file of the program, of owner `stapsdt` and type 3:
 * the addresses of the instruction, of the section .stapsdt.base (tools compare it with where that section lies) and of
 * a semaphore, then three texts: the provider, the name, and where the arguments are. While a tool watches the probe,
 * the kernel raises its semaphore, so that the program can leave out what only the probe needs.
 */
#ifndef SL_BASE_SYSTEM_PROBE_H
#define SL_BASE_SYSTEM_PROBE_H

#include <stdint.h>

#if defined(__x86_64__) && defined(__linux__)

/* Defines the semaphore. Tools look for it in the section .probes. */
#define SL_PROBE_SEMAPHORE(symbol)                                                                                     \
    __attribute__((section(".probes"), visibility("hidden"), used)) volatile uint16_t symbol

/* The probe `seqlstm:name`: a number (int) and two texts (const char *), which may be NULL. */
#define SL_PROBE(name, semaphore, number, text, other)                                                                 \
    __asm__ volatile("1: nop\n"                                                                                        \
                     ".pushsection .note.stapsdt, \"\", @note\n"                                                       \
                     ".balign 4\n"                                                                                     \
                     ".long 3f - 2f, 5f - 4f, 3\n"                                                                     \
                     "2: .asciz \"stapsdt\"\n"                                                                         \
                     "3: .balign 4\n"                                                                                  \
                     "4: .quad 1b, _.stapsdt.base, " #semaphore "\n"                                                   \
                     ".asciz \"seqlstm\"\n"                                                                            \
                     ".asciz \"" #name "\"\n"                                                                          \
                     ".asciz \"-4@%0 8@%1 8@%2\"\n"                                                                    \
                     "5: .balign 4\n"                                                                                  \
                     ".popsection\n"                                                                                   \
                     ".ifndef _.stapsdt.base\n"                                                                        \
                     ".pushsection .stapsdt.base, \"aG\", @progbits, .stapsdt.base, comdat\n"                          \
                     ".weak _.stapsdt.base\n"                                                                          \
                     ".hidden _.stapsdt.base\n"                                                                        \
                     "_.stapsdt.base: .space 1\n"                                                                      \
                     ".size _.stapsdt.base, 1\n"                                                                       \
                     ".popsection\n"                                                                                   \
                     ".endif\n"                                                                                        \
                     :                                                                                                 \
                     : "r"(number), "r"(text), "r"(other)                                                              \
                     : "memory")

#else

#define SL_PROBE_SEMAPHORE(symbol)                     __attribute__((visibility("hidden"))) volatile uint16_t symbol
#define SL_PROBE(name, semaphore, number, text, other) ((void)(number), (void)(text), (void)(other))

#endif

#endif
