/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks of a host that meet, call by call of the system: what fails is said and leaves nothing open, no file goes to
 * programs that are started, and a peer that has closed its socket ends no other. The ranks are threads. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/host_ranks.h"
#include "oom.h"

/* ---- the system ------------------------------------------------------------------------------------------------- */

enum call { NONE, MEMFD, TRUNCATE, SOCKET, MAP, BIND, LISTEN, PIDFD, SEND, SENDMSG };

static enum call failing;
static int failing_errno;
static _Thread_local int32_t own = -1; /* the rank of this thread */
static atomic_bool stranger_comes;     /* a process connects before the rank does, and says nothing */
static int stranger = -1;
static int32_t sees_another_user = -1; /* the rank that takes its peers for those of another user */
static atomic_int open_to_programs;    /* files without FD_CLOEXEC */
static atomic_bool closes_early[2];    /* the rank closes its socket once before the other has sent */
static void (*while_listening)(void);

static bool fails(enum call call)
{
    if (failing != call)
        return false;
    errno = failing_errno;
    return true;
}

static int opened(int file)
{
    if (file >= 0 && !(fcntl(file, F_GETFD) & FD_CLOEXEC))
        atomic_fetch_add(&open_to_programs, 1);
    return file;
}

/* Waits until the other end of a socket is closed. */
static void wait_for_hangup(int socket)
{
    struct pollfd look = {.fd = socket, .events = POLLHUP};
    for (int k = 0; k < 5000 && !(look.revents & (POLLHUP | POLLERR)); k++) {
        poll(&look, 1, 1);
        usleep(1000);
    }
}

/* As the system may do it, though Linux signals only for streams. */
static ssize_t signalled(ssize_t sent, int flags)
{
    if (sent < 0 && errno == EPIPE && !(flags & MSG_NOSIGNAL))
        raise(SIGPIPE);
    return sent;
}

#define WRAP(type, name, parameters)                                                                                   \
    type __real_##name parameters;                                                                                     \
    type __wrap_##name parameters;                                                                                     \
    type __wrap_##name parameters

WRAP(int, memfd_create, (const char *name, unsigned flags))
{
    return fails(MEMFD) ? -1 : opened(__real_memfd_create(name, flags));
}

/* With offsets of 64 bits the C library has other names for these. */
#define WRAP_TRUNCATE(name)                                                                                            \
    WRAP(int, name, (int file, off_t bytes))                                                                           \
    {                                                                                                                  \
        return fails(TRUNCATE) ? -1 : __real_##name(file, bytes);                                                      \
    }
#define WRAP_MAP(name)                                                                                                 \
    WRAP(void *, name, (void *at, size_t bytes, int protection, int flags, int file, off_t offset))                    \
    {                                                                                                                  \
        return fails(MAP) ? MAP_FAILED : __real_##name(at, bytes, protection, flags, file, offset);                    \
    }
WRAP_TRUNCATE(ftruncate)
WRAP_TRUNCATE(ftruncate64)
WRAP_MAP(mmap)
WRAP_MAP(mmap64)

WRAP(int, socket, (int domain, int type, int protocol))
{
    return fails(SOCKET) ? -1 : opened(__real_socket(domain, type, protocol));
}

WRAP(int, bind, (int socket, const struct sockaddr *name, socklen_t bytes))
{
    return fails(BIND) ? -1 : __real_bind(socket, name, bytes);
}

WRAP(int, listen, (int socket, int count))
{
    void (*const meanwhile)(void) = while_listening;
    while_listening = NULL;
    if (meanwhile != NULL)
        meanwhile();
    return fails(LISTEN) ? -1 : __real_listen(socket, count);
}

WRAP(int, close, (int file))
{
    const int result = file == stranger && file >= 0 ? 0 : __real_close(file);
    errno = EBADF; /* as it may be after a success, too */
    return result;
}

WRAP(int, accept4, (int socket, struct sockaddr *name, socklen_t *bytes, int flags))
{
    const int peer = opened(__real_accept4(socket, name, bytes, flags));
    if (peer < 0 || !atomic_exchange(&closes_early[0], false))
        return peer;
    __real_close(peer);
    return -1;
}

WRAP(ssize_t, send, (int socket, const void *bytes, size_t count, int flags))
{
    if (atomic_load(&closes_early[0]))
        wait_for_hangup(socket);
    return signalled(__real_send(socket, bytes, count, flags), flags);
}

WRAP(int, connect, (int socket, const struct sockaddr *name, socklen_t bytes))
{
    const int result = __real_connect(socket, name, bytes);
    if (result != 0 || !atomic_exchange(&stranger_comes, false))
        return result;
    stranger = socket; /* stays open; the rank has another one */
    errno = EAGAIN;
    return -1;
}

WRAP(ssize_t, recvmsg, (int socket, struct msghdr *message, int flags))
{
    if (atomic_load(&closes_early[1]))
        return -1; /* it is closed then, and asks anew */
    const ssize_t result = __real_recvmsg(socket, message, flags);
    struct cmsghdr *head = result > 0 ? CMSG_FIRSTHDR(message) : NULL;
    if (head != NULL) {
        int file = -1;
        memcpy(&file, CMSG_DATA(head), sizeof file);
        opened(file);
    }
    return result;
}

WRAP(ssize_t, sendmsg, (int socket, const struct msghdr *message, int flags))
{
    if (atomic_load(&closes_early[1])) {
        wait_for_hangup(socket);
        atomic_store(&closes_early[1], false);
    }
    return signalled(__real_sendmsg(socket, message, flags), flags);
}

WRAP(int, getsockopt, (int socket, int level, int name, void *value, socklen_t *bytes))
{
    const int result = __real_getsockopt(socket, level, name, value, bytes);
    if (own >= 0 && own == sees_another_user)
        ((struct ucred *)value)->uid++;
    return result;
}

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
    va_list list;
    va_start(list, number);
    const int process = va_arg(list, int), more = va_arg(list, int);
    va_end(list);
    if (number == SYS_pidfd_open && fails(PIDFD))
        return -1;
    const long result = __real_syscall(number, process, more);
    return number == SYS_pidfd_open ? opened((int)result) : result;
}

/* ---- ranks ------------------------------------------------------------------------------------------------------ */

static int blocks;

static void *allocate(void *context, uint64_t bytes)
{
    (void)context;
    __atomic_add_fetch(&blocks, 1, __ATOMIC_RELAXED);
    return malloc(bytes);
}

static void release(void *context, void *memory)
{
    (void)context;
    __atomic_sub_fetch(&blocks, memory != NULL, __ATOMIC_RELAXED);
    free(memory);
}

static const struct seqlstm_host host = {.struct_size = sizeof host, .allocate = allocate, .release = release};

struct joined {
    int32_t rank, ranks;
    const char *job;
    int64_t timeout_ms;
    uint64_t bytes; /* that the plugin wants */
    struct host_ranks ranks_of;
    seqlstm_status status;
    struct seqlstm_error err;
};

static void *join(void *context)
{
    struct joined *j = context;
    const struct seqlstm_rendezvous rendezvous = {.struct_size = (uint32_t)sizeof rendezvous,
                                                  .rank = j->rank,
                                                  .ranks = j->ranks,
                                                  .local_ranks = j->ranks,
                                                  .job = j->job,
                                                  .timeout_ns = j->timeout_ms * 1000000};
    own = j->rank;
    j->err = (struct seqlstm_error)SEQLSTM_ERROR_INIT;
    memset(&j->ranks_of, 0, sizeof j->ranks_of);
    j->status = host_ranks_open(&j->ranks_of, &host, &rendezvous, j->bytes, &j->err);
    own = -1;
    return NULL;
}

static void join_alone(struct joined *j, int32_t rank, int32_t ranks, const char *job)
{
    *j = (struct joined){.rank = rank, .ranks = ranks, .job = job, .timeout_ms = 60000, .bytes = 5000};
    join(j);
}

static void join_both_with(struct joined both[2], const char *name, int64_t timeout_ms, uint64_t bytes)
{
    static char job[80];
    pthread_t other;
    snprintf(job, sizeof job, "calls-%s-%d", name, (int)getpid());
    for (int32_t r = 0; r < 2; r++)
        both[r] =
            (struct joined){.rank = r, .ranks = 2, .job = job, .timeout_ms = timeout_ms, .bytes = r ? bytes : 5000};
    assert_int_equal(pthread_create(&other, NULL, join, &both[1]), 0);
    join(&both[0]);
    pthread_join(other, NULL);
}

static void join_both(struct joined both[2], const char *name, int64_t timeout_ms)
{
    join_both_with(both, name, timeout_ms, 5000);
}

static void leave_both(struct joined both[2])
{
    host_ranks_close(&both[0].ranks_of);
    host_ranks_close(&both[1].ranks_of);
}

/* Files that are open, and memory of ranks that is mapped. */
static int count_left(void)
{
    char line[512];
    int count = 0;
    DIR *folder = opendir("/proc/self/fd");
    FILE *maps = fopen("/proc/self/maps", "re");
    assert_true(folder != NULL && maps != NULL);
    while (readdir(folder) != NULL)
        count++;
    while (fgets(line, sizeof line, maps))
        count += strstr(line, "memfd:seqlstm-ranks") != NULL;
    closedir(folder);
    fclose(maps);
    return count;
}

/* ---- tests ------------------------------------------------------------------------------------------------------ */

static void a_call_that_fails_is_named_and_leaves_nothing(void **state)
{
    static const struct {
        enum call call;
        int error;
        int32_t rank, ranks;
        const char *message;
    } cases[] = {
        {MEMFD, ENOMEM, 0, 1, "the ranks cannot meet: no shared memory: Cannot allocate memory"},
        {TRUNCATE, ENOSPC, 0, 1, "the ranks cannot meet: no shared memory: No space left on device"},
        {SOCKET, EMFILE, 0, 1, "the ranks cannot meet: no shared memory: Too many open files"},
        {SOCKET, EMFILE, 1, 2, "the ranks cannot meet: no socket: Too many open files"},
        {MAP, ENOMEM, 0, 1, "the ranks cannot meet: the shared memory cannot be mapped: Cannot allocate memory"},
        {BIND, EADDRINUSE, 0, 1, "the ranks cannot meet: no socket for rank 0: Address already in use"},
        {LISTEN, EADDRINUSE, 0, 1, "the ranks cannot meet: no socket for rank 0: Address already in use"}};
    const int before = count_left();
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        struct joined j;
        failing = cases[k].call;
        failing_errno = cases[k].error;
        join_alone(&j, cases[k].rank, cases[k].ranks, "calls-fail");
        failing = NONE;
        host_ranks_close(&j.ranks_of);
        assert_int_equal(j.status, SEQLSTM_DEVICE);
        assert_string_equal(j.err.message, cases[k].message);
        assert_int_equal(count_left(), before);
        assert_int_equal(blocks, 0);
    }
}

/* Old kernels have no pidfd, and a rank may be gone by now; anything else is said. */
static void ranks_that_cannot_be_watched_are_named(void **state)
{
    static const int errors[] = {ENOSYS, ESRCH, EMFILE};
    const int before = count_left();
    (void)state;
    for (int k = 0; k < 3; k++) {
        struct joined both[2];
        char message[80];
        failing = PIDFD;
        failing_errno = errors[k];
        join_both(both, "watch", 60000);
        failing = NONE;
        for (int32_t r = 0; r < 2; r++) {
            snprintf(message, sizeof message, "rank %d (process %d) cannot be watched: error %d", 1 - r, (int)getpid(),
                     EMFILE);
            assert_int_equal(both[r].status, k < 2 ? SEQLSTM_OK : SEQLSTM_DEVICE);
            assert_string_equal(both[r].err.message, k < 2 ? "" : message);
            if (k < 2)
                assert_int_equal(host_ranks_check(&both[r].ranks_of, &both[r].err), SEQLSTM_OK);
        }
        leave_both(both);
        assert_int_equal(count_left(), before);
        assert_int_equal(blocks, 0);
    }
}

static void programs_that_are_started_get_no_file(void **state)
{
    struct joined both[2];
    const int before = count_left();
    (void)state;
    atomic_store(&open_to_programs, 0);
    join_both(both, "programs", 60000);
    assert_true(both[0].status == SEQLSTM_OK && both[1].status == SEQLSTM_OK);
    assert_int_equal(count_left(), before + 2 * 3); /* of each: the memory's file, its map, the process of the other */
    leave_both(both);
    assert_int_equal(count_left(), before);
    assert_int_equal(atomic_load(&open_to_programs), 0);
}

/* What it sends then is an error of that call, and no signal that ends the process. */
static void a_peer_that_closes_its_socket_ends_no_other(void **state)
{
    (void)state;
    signal(SIGPIPE, SIG_DFL);
    for (int closing = 0; closing < 2; closing++) {
        struct joined both[2];
        atomic_store(&closes_early[closing], true);
        join_both(both, closing ? "asks" : "answers", 60000);
        assert_true(both[0].status == SEQLSTM_OK && both[1].status == SEQLSTM_OK);
        assert_false(atomic_load(&closes_early[closing]));
        leave_both(both);
    }
}

/* Neither serves the other. */
static void processes_of_other_users_are_not_met(void **state)
{
    (void)state;
    for (int32_t seeing = 0; seeing < 2; seeing++) {
        struct joined both[2];
        sees_another_user = seeing;
        join_both(both, seeing ? "asking" : "serving", 200);
        sees_another_user = -1;
        for (int32_t r = 0; r < 2; r++) {
            char message[60];
            snprintf(message, sizeof message, "rank %d did not come in time", 1 - r);
            assert_int_equal(both[r].status, SEQLSTM_DEVICE);
            assert_string_equal(both[r].err.message, message);
            assert_int_equal(both[r].err.native_code, 1 + 1 - r);
        }
        leave_both(both);
    }
    assert_int_equal(blocks, 0);
}

/* It would divide the memory in another way. */
static void another_build_is_refused(void **state)
{
    struct joined both[2];
    (void)state;
    join_both_with(both, "build", 500, 9000);
    assert_int_equal(both[0].status, SEQLSTM_INVALID_CONFIG);
    assert_string_equal(both[0].err.message,
                        "a process calls itself rank 1 of 2, in a job of 2 ranks, and is of another "
                        "version of seqlstm");
    assert_int_equal(both[1].status, SEQLSTM_DEVICE);
    leave_both(both);
}

static void *end_stranger(void *context)
{
    (void)context;
    sleep(30);
    shutdown(stranger, SHUT_RDWR);
    return NULL;
}

/* A process that connects and says nothing delays the meeting by a second. */
static void a_stranger_does_not_keep_ranks_apart(void **state)
{
    struct joined both[2];
    pthread_t end;
    const int64_t before = host_ranks_now_ns();
    (void)state;
    atomic_store(&stranger_comes, true);
    assert_int_equal(pthread_create(&end, NULL, end_stranger, NULL), 0);
    join_both(both, "stranger", 60000);
    pthread_cancel(end);
    pthread_join(end, NULL);
    assert_true(stranger >= 0);
    __real_close(stranger);
    stranger = -1;
    assert_true(both[0].status == SEQLSTM_OK && both[1].status == SEQLSTM_OK);
    assert_true(host_ranks_now_ns() - before < INT64_C(20000000000));
    leave_both(both);
}

static const char long_job[] = "calls-of-a-job-whose-name-is-longer-than-a-socket's-may-be-and-ends-with-a-number-1";
static struct joined inner;

static void join_inner(void)
{
    static char job[sizeof long_job];
    memcpy(job, long_job, sizeof job);
    job[sizeof job - 2] = '2';
    join_alone(&inner, 0, 1, job);
}

static void jobs_with_long_names_are_told_apart(void **state)
{
    struct joined outer;
    (void)state;
    while_listening = join_inner;
    join_alone(&outer, 0, 1, long_job);
    assert_string_equal(inner.err.message, "");
    assert_string_equal(outer.err.message, "");
    assert_true(inner.status == SEQLSTM_OK && outer.status == SEQLSTM_OK);
    host_ranks_close(&inner.ranks_of);
    host_ranks_close(&outer.ranks_of);
}

/* Memory that ranks share later, of which each has mapped the parts of all. */
static void memory_of_all_is_given_back_whole(void **state)
{
    struct joined both[2];
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    void *memory = NULL;
    const int before = count_left();
    (void)state;
    join_both(both, "share", 60000);
    const int open = count_left();
    failing_errno = ENOSPC;
    for (enum call call = TRUNCATE; call <= MAP; call += MAP - TRUNCATE) {
        failing = call;
        assert_int_equal(host_ranks_share(&both[0].ranks_of, 100000, INT64_MAX, &memory, &err), SEQLSTM_NO_MEMORY);
        failing = NONE;
        assert_non_null(strstr(err.message, " bytes that all ranks share")); /* of this region, or of all */
        assert_null(memory);
        assert_int_equal(count_left(), open);
    }
    for (int r = 0; r < 2; r++) {
        assert_int_equal(host_ranks_share(&both[r].ranks_of, 100000, INT64_MAX, &memory, &err), SEQLSTM_OK);
        memset(memory, 1, 100000);
    }
    assert_true(count_left() > open);
    leave_both(both);
    assert_int_equal(count_left(), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_call_that_fails_is_named_and_leaves_nothing),
        cmocka_unit_test(ranks_that_cannot_be_watched_are_named),
        cmocka_unit_test(programs_that_are_started_get_no_file),
        cmocka_unit_test(a_peer_that_closes_its_socket_ends_no_other),
        cmocka_unit_test(processes_of_other_users_are_not_met),
        cmocka_unit_test(another_build_is_refused),
        cmocka_unit_test(a_stranger_does_not_keep_ranks_apart),
        cmocka_unit_test(jobs_with_long_names_are_told_apart),
        cmocka_unit_test(memory_of_all_is_given_back_whole),
    };
    return cmocka_run_group_tests(tests, oom_group_begin, oom_group_end);
}
