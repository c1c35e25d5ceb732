/* SPDX-License-Identifier: Apache-2.0 */
/* See guard.h. */
#include "registry/watch/guard.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/value/text.h"

enum { FAR = 256 }; /* our descriptors are beyond those that a careless loop closes, where the limit allows it */

static const int limited[SL_GUARD_LIMITS] = {RLIMIT_NOFILE, RLIMIT_AS,   RLIMIT_FSIZE, RLIMIT_STACK,
                                             RLIMIT_CORE,   RLIMIT_DATA, RLIMIT_CPU,   RLIMIT_NPROC};
static const char *const limit_names[SL_GUARD_LIMITS] = {
    "number of open files", "address space", "size of files",  "stack",
    "core files",           "data segment",  "processor time", "number of processes"};

/* ---- files ------------------------------------------------------------------------------------------------------ */

static void identify(struct sl_guarded_file *file, const struct stat *status)
{
    file->device = (uint64_t)status->st_dev;
    file->inode = (uint64_t)status->st_ino;
}

static bool is_same(const struct sl_guarded_file *file, const struct stat *status)
{
    return file->device == (uint64_t)status->st_dev && file->inode == (uint64_t)status->st_ino;
}

static struct sl_guarded_file remember(int descriptor)
{
    struct sl_guarded_file file = {.duplicate = -1};
    struct stat status;
    if (descriptor < 0 || fstat(descriptor, &status) != 0)
        return file;
    identify(&file, &status);
    file.duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, FAR);
    if (file.duplicate < 0)
        file.duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    return file;
}

static void forget(struct sl_guarded_file *file)
{
    if (file->duplicate >= 0)
        close(file->duplicate);
    file->duplicate = -1;
}

static struct sl_guarded_file remember_folder(void)
{
    int descriptor = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    struct sl_guarded_file file = remember(descriptor);
    if (descriptor >= 0)
        close(descriptor);
    return file;
}

/* ---- what changed ----------------------------------------------------------------------------------------------- */

struct finding {
    uint32_t changes;
    char *text;
    size_t capacity_bytes, length_bytes;
};

static SEQLSTM_PRINTF(4, 5) void add(struct finding *f, uint32_t change, bool restored, const char *format, ...)
{
    char words[320];
    va_list args;
    va_start(args, format);
    sl_text_vsnprintf(words, sizeof words, format, args);
    va_end(args);
    if (f->length_bytes + 1 < f->capacity_bytes) {
        sl_text_snprintf(f->text + f->length_bytes, f->capacity_bytes - f->length_bytes, "%s%s%s",
                         f->changes ? ", " : "", words, restored ? "" : " (which could not be restored)");
        f->length_bytes = strlen(f->text);
    }
    f->changes |= change | (restored ? 0 : SL_CHANGED_FOR_GOOD);
}

static void check_mode(const struct sl_process_guard *guard, struct finding *f)
{
    struct sl_fp_state fp = sl_fp_state_get();
    if (sl_fp_state_is_equal(fp, guard->fp))
        return;
    sl_fp_state_set(guard->fp);
    add(f, SL_CHANGED_MODE, true,
        "changed the floating-point mode (MXCSR %#x to %#x, x87 %#x to %#x; the compiler's fast-math flags do that: "
        "build without them)",
        guard->fp.vector, fp.vector, guard->fp.x87, fp.x87);
}

/* Are the descriptors of the guard still its own? What is not, must not be closed: it may be another's. */
static void check_descriptors(struct sl_process_guard *guard, struct finding *f)
{
    struct sl_guarded_file *files[SL_GUARD_FILES + 1] = {&guard->folder};
    struct stat status;
    bool lost = false;
    for (int k = 0; k < SL_GUARD_FILES; k++)
        files[k + 1] = &guard->standard[k];
    for (int k = 0; k < SL_GUARD_FILES + 1; k++)
        if (files[k]->duplicate >= 0 && (fstat(files[k]->duplicate, &status) != 0 || !is_same(files[k], &status))) {
            files[k]->duplicate = -1;
            lost = true;
        }
    if (lost)
        add(f, SL_CHANGED_DESCRIPTOR, false, "closed files of the program");
}

static void check_folder(const struct sl_process_guard *guard, struct finding *f)
{
    struct stat status;
    if (guard->folder.duplicate >= 0 && (stat(".", &status) != 0 || !is_same(&guard->folder, &status)))
        add(f, SL_CHANGED_FOLDER, fchdir(guard->folder.duplicate) == 0, "changed the current folder");
}

static void check_files(const struct sl_process_guard *guard, struct finding *f)
{
    static const char *const names[SL_GUARD_FILES] = {"stdin", "stdout", "stderr"};
    for (int k = 0; k < SL_GUARD_FILES; k++) {
        struct stat status;
        if (guard->standard[k].duplicate < 0)
            continue;
        bool closed = fstat(k, &status) != 0;
        if (closed || !is_same(&guard->standard[k], &status))
            add(f, SL_CHANGED_FILE, dup2(guard->standard[k].duplicate, k) == k, "%s %s", closed ? "closed" : "replaced",
                names[k]);
    }
}

static void check_locale(const struct sl_process_guard *guard, struct finding *f)
{
    if (uselocale((locale_t)0) != guard->thread_locale) {
        uselocale(guard->thread_locale);
        add(f, SL_CHANGED_LOCALE, true, "changed the locale of its thread");
    }
    const char *now = setlocale(LC_ALL, NULL);
    if (!now || !guard->locale[0] || strcmp(now, guard->locale) == 0)
        return;
    char was[80], is[80];
    sl_text_snprintf(was, sizeof was, "%s", guard->locale);
    sl_text_snprintf(is, sizeof is, "%s", now);
    add(f, SL_CHANGED_LOCALE, setlocale(LC_ALL, guard->locale) != NULL, "changed the locale (from %s to %s)", was, is);
}

static bool handler_changed(const struct sigaction *a, const struct sigaction *b)
{
    if ((a->sa_flags & SA_SIGINFO) != (b->sa_flags & SA_SIGINFO))
        return true;
    if (a->sa_flags & SA_SIGINFO)
        return a->sa_sigaction != b->sa_sigaction;
    return a->sa_handler != b->sa_handler;
}

static void check_handlers(const struct sl_process_guard *guard, struct finding *f)
{
    int first = 0, more = -1;
    for (int s = 1; s < SL_GUARD_SIGNALS; s++) {
        struct sigaction now;
        if (!guard->has_action[s] || sigaction(s, NULL, &now) != 0 || !handler_changed(&guard->actions[s], &now))
            continue;
        sigaction(s, &guard->actions[s], NULL);
        first = first ? first : s;
        more++;
    }
    if (more == 0)
        add(f, SL_CHANGED_HANDLER, true, "installed a handler for signal %d (%s)", first, strsignal(first));
    else if (more > 0)
        add(f, SL_CHANGED_HANDLER, true, "installed a handler for signal %d (%s) and %d more", first, strsignal(first),
            more);
}

static void check_mask(const struct sl_process_guard *guard, struct finding *f)
{
    sigset_t now;
    bool changed = false;
    pthread_sigmask(SIG_SETMASK, NULL, &now);
    for (int s = 1; s < SL_GUARD_SIGNALS; s++)
        changed = changed || sigismember(&now, s) != sigismember(&guard->mask, s);
    if (!changed)
        return;
    pthread_sigmask(SIG_SETMASK, &guard->mask, NULL);
    add(f, SL_CHANGED_MASK, true, "changed which signals are blocked");
}

static void check_environment(const struct sl_process_guard *guard, struct finding *f)
{
    char name[80];
    if (sl_environment_find_change(&guard->environment, name, sizeof name))
        add(f, SL_CHANGED_ENVIRONMENT, sl_environment_restore(&guard->environment),
            "changed the environment (variable %s)", name);
}

/* The mask can only be read by setting it: for that moment new files are private. */
static pthread_mutex_t asking = PTHREAD_MUTEX_INITIALIZER;

static mode_t get_umask(void)
{
    pthread_mutex_lock(&asking);
    mode_t mask = umask(077);
    umask(mask);
    pthread_mutex_unlock(&asking);
    return mask;
}

void sl_process_guard_hold(void)
{
    pthread_mutex_lock(&asking);
}

void sl_process_guard_let_go(void)
{
    pthread_mutex_unlock(&asking);
}

static void check_umask(const struct sl_process_guard *guard, struct finding *f)
{
    mode_t now = get_umask();
    if (now == guard->umask)
        return;
    umask(guard->umask);
    add(f, SL_CHANGED_UMASK, true, "changed the mask of file permissions (umask %03o to %03o)", (unsigned)guard->umask,
        (unsigned)now);
}

static void check_limits(const struct sl_process_guard *guard, struct finding *f)
{
    for (int k = 0; k < SL_GUARD_LIMITS; k++) {
        const struct rlimit *was = &guard->limits[k];
        struct rlimit now;
        if (getrlimit(limited[k], &now) != 0 || (now.rlim_cur == was->rlim_cur && now.rlim_max == was->rlim_max))
            continue;
        bool restored = setrlimit(limited[k], was) == 0;
        if (!restored) { /* a lowered hard limit stays, but what is below it can be had again */
            now.rlim_cur = was->rlim_cur < now.rlim_max ? was->rlim_cur : now.rlim_max;
            setrlimit(limited[k], &now);
        }
        add(f, SL_CHANGED_LIMIT, restored, "changed the limit of the %s", limit_names[k]);
    }
}

static bool runs(const struct itimerval *timer)
{
    return timer->it_value.tv_sec != 0 || timer->it_value.tv_usec != 0;
}

static const int timed[SL_GUARD_TIMERS] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};

static void check_timers(const struct sl_process_guard *guard, struct finding *f)
{
    static const struct itimerval none;
    struct itimerval now;
    for (int k = 0; k < SL_GUARD_TIMERS; k++)
        if (!guard->timers[k] && getitimer(timed[k], &now) == 0 && runs(&now))
            add(f, SL_CHANGED_TIMER, setitimer(timed[k], &none, NULL) == 0, "started a timer that sends a signal");
}

/* ---- begin and end ---------------------------------------------------------------------------------------------- */

void sl_process_guard_begin(struct sl_process_guard *guard)
{
    int error = errno;
    guard->fp = sl_fp_state_get();
    guard->folder = remember_folder();
    for (int k = 0; k < SL_GUARD_FILES; k++)
        guard->standard[k] = remember(k);
    const char *locale = setlocale(LC_ALL, NULL);
    guard->locale[0] = 0;
    if (locale && strlen(locale) < sizeof guard->locale)
        strcpy(guard->locale, locale);
    guard->thread_locale = uselocale((locale_t)0);
    for (int s = 1; s < SL_GUARD_SIGNALS; s++)
        guard->has_action[s] = sigaction(s, NULL, &guard->actions[s]) == 0;
    pthread_sigmask(SIG_SETMASK, NULL, &guard->mask);
    sl_environment_copy(&guard->environment);
    guard->umask = get_umask();
    for (int k = 0; k < SL_GUARD_LIMITS; k++)
        if (getrlimit(limited[k], &guard->limits[k]) != 0)
            guard->limits[k] = (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
    struct itimerval timer;
    for (int k = 0; k < SL_GUARD_TIMERS; k++)
        guard->timers[k] = getitimer(timed[k], &timer) == 0 && runs(&timer);
    errno = error;
}

uint32_t sl_process_guard_end(struct sl_process_guard *guard, char *text, size_t capacity_bytes)
{
    int error = errno;
    struct finding found = {.text = text, .capacity_bytes = capacity_bytes};
    text[0] = 0;
    check_mode(guard, &found);
    check_limits(guard, &found); /* before files, which need descriptors */
    check_descriptors(guard, &found);
    check_files(guard, &found);
    check_folder(guard, &found);
    check_locale(guard, &found);
    check_handlers(guard, &found);
    check_mask(guard, &found);
    check_environment(guard, &found);
    check_umask(guard, &found);
    check_timers(guard, &found);
    forget(&guard->folder);
    for (int k = 0; k < SL_GUARD_FILES; k++)
        forget(&guard->standard[k]);
    sl_environment_release(&guard->environment);
    errno = error;
    return found.changes;
}
