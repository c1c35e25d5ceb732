/* SPDX-License-Identifier: Apache-2.0 */
/* See guard.h. */
#include "registry/guard.h"

#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/value/text.h"

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
    __asm__ volatile("fldcw %0" : : "m"(control));
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

/* Names of the locale's categories. Unlike setlocale, langinfo only reads. */
static void locale_names(char *out, size_t capacity)
{
#ifdef _NL_LOCALE_NAME
    sl_text_snprintf(out, capacity, "%s %s %s", nl_langinfo(_NL_LOCALE_NAME(LC_CTYPE)),
                     nl_langinfo(_NL_LOCALE_NAME(LC_NUMERIC)), nl_langinfo(_NL_LOCALE_NAME(LC_COLLATE)));
#else
    sl_text_snprintf(out, capacity, "%s %s", nl_langinfo(CODESET), nl_langinfo(RADIXCHAR));
#endif
}

void sl_process_guard_begin(struct sl_process_guard *guard)
{
    struct stat status;
    guard->fp = sl_fp_state_get();
    guard->folder = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (guard->folder >= 0 && fstat(guard->folder, &status) == 0) {
        guard->folder_device = (uint64_t)status.st_dev;
        guard->folder_inode = (uint64_t)status.st_ino;
    }
    locale_names(guard->locale, sizeof guard->locale);
    for (int s = 1; s < SL_GUARD_SIGNALS; s++)
        guard->has_action[s] = sigaction(s, NULL, &guard->actions[s]) == 0;
}

static bool handler_changed(const struct sigaction *a, const struct sigaction *b)
{
    if ((a->sa_flags & SA_SIGINFO) != (b->sa_flags & SA_SIGINFO))
        return true;
    if (a->sa_flags & SA_SIGINFO)
        return a->sa_sigaction != b->sa_sigaction;
    return a->sa_handler != b->sa_handler;
}

bool sl_process_guard_end(struct sl_process_guard *guard, char *text, size_t capacity_bytes)
{
    bool changed = false;
    struct sl_fp_state fp = sl_fp_state_get();
    if (fp.vector != guard->fp.vector || fp.x87 != guard->fp.x87) {
        sl_text_snprintf(text, capacity_bytes,
                         "changed the floating-point mode (MXCSR %#x to %#x, x87 %#x to %#x); build it without the "
                         "compiler's fast-math flags",
                         guard->fp.vector, fp.vector, guard->fp.x87, fp.x87);
        sl_fp_state_set(guard->fp);
        changed = true;
    }
    struct stat status;
    if (guard->folder >= 0) {
        if (stat(".", &status) != 0 || (uint64_t)status.st_dev != guard->folder_device ||
            (uint64_t)status.st_ino != guard->folder_inode) {
            int rc = fchdir(guard->folder);
            sl_text_snprintf(text, capacity_bytes, "changed the current folder%s",
                             rc == 0 ? "" : " (which could not be restored)");
            changed = true;
        }
        close(guard->folder);
        guard->folder = -1;
    }
    char locale[sizeof guard->locale];
    locale_names(locale, sizeof locale);
    if (strcmp(locale, guard->locale) != 0) {
        sl_text_snprintf(text, capacity_bytes, "changed the locale (from %s to %s)", guard->locale, locale);
        changed = true;
    }
    for (int s = 1; s < SL_GUARD_SIGNALS; s++) {
        struct sigaction now;
        if (!guard->has_action[s] || sigaction(s, NULL, &now) != 0)
            continue;
        if (handler_changed(&guard->actions[s], &now)) {
            sigaction(s, &guard->actions[s], NULL);
            sl_text_snprintf(text, capacity_bytes, "installed a handler for signal %d", s);
            changed = true;
        }
    }
    return changed;
}
