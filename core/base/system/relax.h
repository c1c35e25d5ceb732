/* SPDX-License-Identifier: Apache-2.0 */
/* Between two looks of a thread that waits without sleeping. */
#ifndef SL_BASE_SYSTEM_RELAX_H
#define SL_BASE_SYSTEM_RELAX_H

static inline void sl_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

#endif
