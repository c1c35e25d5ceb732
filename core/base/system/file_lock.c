/* SPDX-License-Identifier: Apache-2.0 */
/* See file_lock.h. The file is removed while it is locked; so a process that locks it afterwards looks whether the
 * path still names it, and otherwise begins again. */
#include "base/system/file_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/system/file_error.h"
#include "base/system/clock.h"
#include "base/value/buf.h"

enum { TRIES_MOST = 100, HOST_BYTES = 65, WAIT_MOST_MS = 3000 };

struct sl_file_lock {
    char *path;
    int fd;
    struct stat taken; /* the file */
    bool held;
};

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

static bool names_file(const char *path, int fd)
{
    struct stat named, opened;
    return fstat(fd, &opened) == 0 && lstat(path, &named) == 0 && is_same_file(&named, &opened);
}

static void find_host(char host[HOST_BYTES])
{
    host[HOST_BYTES - 1] = '\0';
    if (gethostname(host, HOST_BYTES - 1) != 0 || host[0] == '\0')
        memcpy(host, "?", 2);
}

/* Does the text name a process of this host, which is *out_pid? A number that no process can have would mean several of
 * them, or all, to who sends it a signal. */
static bool names_this_host(const char *holder, long *out_pid)
{
    char host[HOST_BYTES], expected[HOST_BYTES + 8];
    int length = 0;
    find_host(host);
    snprintf(expected, sizeof expected, "on %s ", host);
    return sscanf(holder, "process %ld %n", out_pid, &length) == 1 && *out_pid > 0 && *out_pid <= INT_MAX &&
           length > 0 && strncmp(holder + length, expected, strlen(expected)) == 0;
}

/* Does the text name a process of this host that is no more? Then the holder has not written its own yet. */
static bool is_stale(const char *holder)
{
    long pid = 0;
    return holder[0] == '\0' || (names_this_host(holder, &pid) && kill((pid_t)pid, 0) != 0 && errno == ESRCH);
}

/* Has the process ended, or does it end: a zombie, whose threads may still be on their way, or one that is killed? */
static bool is_ending(long pid)
{
    char path[48], line[128];
    bool found = false, ends = false;
    snprintf(path, sizeof path, "/proc/%ld/status", pid);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        char state = 0;
        unsigned long long pending = 0;
        found = true;
        if (sscanf(line, "State: %c", &state) == 1)
            ends = ends || state == 'Z' || state == 'X';
        else if (sscanf(line, "SigPnd: %llx", &pending) == 1 || sscanf(line, "ShdPnd: %llx", &pending) == 1)
            ends = ends || (pending >> (SIGKILL - 1) & 1) != 0;
    }
    if (file)
        fclose(file);
    return found ? ends : kill((pid_t)pid, 0) != 0 && errno == ESRCH;
}

/* Is the lock of this holder about to be free, or to get the text of another one? */
static bool is_passing(const char *holder)
{
    long pid = 0;
    return holder[0] == '\0' || (names_this_host(holder, &pid) && is_ending(pid));
}

static void pause_ms(int ms)
{
    const struct timespec pause = {.tv_nsec = ms * 1000000L};
    nanosleep(&pause, NULL);
}

/* Another process has written this: only printable ASCII is shown. */
static void read_holder(int fd, char holder[SL_FILE_LOCK_HOLDER_BYTES])
{
    for (int i = 0; i < TRIES_MOST; i++) {
        ssize_t bytes = pread(fd, holder, SL_FILE_LOCK_HOLDER_BYTES - 1, 0);
        holder[bytes > 0 ? bytes : 0] = '\0';
        holder[strcspn(holder, "\n")] = '\0';
        if (!is_stale(holder))
            break;
        pause_ms(1);
    }
    for (char *c = holder; *c; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
}

static seqlstm_status refuse(const char *path, const char *holder, struct seqlstm_error *err)
{
    seqlstm_error_set(err, SEQLSTM_IO, __FILE__, __LINE__, "%s is held by %s", path,
                      holder[0] ? holder : "another process");
    if (err && err->struct_size >= sizeof *err)
        err->native_code = EAGAIN;
    return SEQLSTM_IO;
}

/* It is not lost work if this fails: the lock counts, the text is for people. */
static void write_holder(int fd)
{
    char host[HOST_BYTES], when[40] = "";
    time_t now = time(NULL);
    struct tm parts;
    struct sl_buf text = {0};
    find_host(host);
    if (gmtime_r(&now, &parts))
        strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S UTC", &parts);
    sl_buf_printf(&text, "process %ld on %s since %s\n", (long)getpid(), host, when);
    if (!text.failed && ftruncate(fd, 0) == 0)
        (void)!pwrite(fd, text.data, text.length_bytes, 0);
    sl_buf_deinit(&text);
}

/* 0: locked; ENOTSUP: there are no locks here; else another errno. */
static int lock_whole(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int reason = 0;
    while (fcntl(fd, F_OFD_SETLK, &whole) != 0 && (reason = errno) == EINTR)
        reason = 0;
    if (reason == EACCES)
        return EAGAIN;
    return reason == ENOLCK || reason == EOPNOTSUPP || reason == ENOSYS || reason == EINVAL ? ENOTSUP : reason;
}

static struct sl_file_lock *create(const char *path)
{
    struct sl_file_lock *lock = calloc(1, sizeof *lock);
    if (lock && (lock->path = strdup(path)) == NULL) {
        free(lock);
        return NULL;
    }
    return lock;
}

static void destroy(struct sl_file_lock *lock)
{
    if (lock->fd >= 0)
        close(lock->fd);
    free(lock->path);
    free(lock);
}

/* Opens the file and locks it: `lock_whole`'s result. */
static int open_locked(struct sl_file_lock *lock)
{
    for (int i = 0; i < TRIES_MOST; i++) {
        lock->fd = open(lock->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
        const int reason = lock->fd < 0 ? errno : lock_whole(lock->fd);
        if ((reason != 0 && reason != ENOTSUP) || names_file(lock->path, lock->fd))
            return reason;
        close(lock->fd); /* its last holder has removed it meanwhile */
        lock->fd = -1;
    }
    return EAGAIN;
}

seqlstm_status sl_file_lock_take(const char *path, struct sl_file_lock **out_lock, struct seqlstm_error *err)
{
    struct sl_file_lock *lock = create(path);
    if (lock == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the lock `%s`", path);
    char holder[SL_FILE_LOCK_HOLDER_BYTES] = "";
    seqlstm_status status = SEQLSTM_OK;
    int reason = open_locked(lock);
    const int64_t end_ns = sl_clock_ns() + WAIT_MOST_MS * INT64_C(1000000);
    while (lock->fd >= 0 && reason == EAGAIN) {
        read_holder(lock->fd, holder);
        if (!is_passing(holder) || sl_clock_ns() > end_ns)
            break;
        pause_ms(1);
        close(lock->fd);
        reason = open_locked(lock);
    }
    if (lock->fd >= 0 && reason == EAGAIN)
        status = refuse(path, holder, err);
    else if (reason != 0 && reason != ENOTSUP)
        status = sl_file_fail(err, reason, "cannot lock", path);
    if (status != SEQLSTM_OK) {
        destroy(lock);
        return status;
    }
    lock->held = reason == 0;
    write_holder(lock->fd);
    fstat(lock->fd, &lock->taken);
    *out_lock = lock;
    return SEQLSTM_OK;
}

bool sl_file_lock_find_holder(const char *path, char out_holder[SL_FILE_LOCK_HOLDER_BYTES])
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    out_holder[0] = '\0';
    if (fd < 0)
        return false;
    const bool has_locks = fcntl(fd, F_OFD_GETLK, &whole) == 0;
    bool held = !has_locks || whole.l_type != F_UNLCK;
    if (held)
        read_holder(fd, out_holder);
    if (held && !has_locks)
        held = !is_stale(out_holder);
    close(fd);
    return held;
}

long sl_file_lock_find_process(const char *path)
{
    char holder[SL_FILE_LOCK_HOLDER_BYTES];
    long pid = 0;
    if (!sl_file_lock_find_holder(path, holder) || !names_this_host(holder, &pid))
        return 0;
    return pid;
}

bool sl_file_lock_is_held(const struct sl_file_lock *lock)
{
    return lock->held;
}

bool sl_file_lock_is_there(const struct sl_file_lock *lock)
{
    return names_file(lock->path, lock->fd);
}

bool sl_file_lock_is_closed(const struct sl_file_lock *lock)
{
    struct stat opened;
    return fstat(lock->fd, &opened) != 0 || !is_same_file(&opened, &lock->taken);
}

void sl_file_lock_release(struct sl_file_lock *lock)
{
    if (lock == NULL)
        return;
    if (sl_file_lock_is_there(lock))
        unlink(lock->path);
    if (sl_file_lock_is_closed(lock))
        lock->fd = -1; /* it may be another's by now */
    destroy(lock);
}
