/* SPDX-License-Identifier: Apache-2.0 */
/* See fp_state.h. */
#include "registry/watch/fp_state.h"

#if defined(__x86_64__) || defined(__i386__)
#include <xmmintrin.h>
#define FP_FLAGS 0x3Fu /* exception flags of MXCSR: not a mode */

struct sl_fp_state sl_fp_state_get(void)
{
    uint16_t control;
    __asm__ volatile("fnstcw %0" : "=m"(control));
    struct sl_fp_state state = {_mm_getcsr() & ~FP_FLAGS, control};
    return state;
}

void sl_fp_state_set(struct sl_fp_state state)
{
    uint16_t control = (uint16_t)state.x87;
    __asm__ volatile("fnclex\n\tfldcw %0" : : "m"(control)); /* what is pending would be raised by fldcw */
    _mm_setcsr((_mm_getcsr() & FP_FLAGS) | state.vector);
}
#elif defined(__aarch64__)
struct sl_fp_state sl_fp_state_get(void)
{
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    struct sl_fp_state state = {(uint32_t)control, 0};
    return state;
}

void sl_fp_state_set(struct sl_fp_state state)
{
    uint64_t control = state.vector;
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
}
#else
#include <fenv.h>

struct sl_fp_state sl_fp_state_get(void)
{
    struct sl_fp_state state = {(uint32_t)fegetround(), 0};
    return state;
}

void sl_fp_state_set(struct sl_fp_state state)
{
    fesetround((int)state.vector);
}
#endif
