/* SPDX-License-Identifier: Apache-2.0 */
/* How the ranks meet: rank 0 makes the shared file, and hands it to each of the others over a socket that is named
 * after the job. The name is in the abstract namespace, so nothing is left behind; processes of other users are
 * refused. */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/host_memory.h"
#include "common/host_ranks.h"

enum { RETRY_MS = 5, LOOK_MS = 50 };

/* What a rank says first. */
struct greeting {
    uint32_t magic, minor;
    int32_t rank, ranks;
    uint64_t bytes; /* of the shared file, which another build may divide in another way */
};

/* The name has little room: a hash (FNV-1a) tells long names of jobs apart. */
static uint64_t hash_job(const char *job)
{
    uint64_t hash = 0xCBF29CE484222325u;
    for (; *job; job++)
        hash = (hash ^ (unsigned char)*job) * 0x100000001B3u;
    return hash;
}

static socklen_t name_socket(const char *job, struct sockaddr_un *out)
{
    memset(out, 0, sizeof *out);
    out->sun_family = AF_UNIX;
    const int length = snprintf(out->sun_path + 1, sizeof out->sun_path - 1, "seqlstm-%016llx-%.64s",
                                (unsigned long long)hash_job(job), job);
    const size_t most = sizeof out->sun_path - 2, used = (size_t)length < most ? (size_t)length : most;
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + used);
}

static bool is_own(int socket)
{
    struct ucred peer;
    socklen_t bytes = sizeof peer;
    return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 && peer.uid == geteuid();
}

static bool hand_over(int socket, int file)
{
    char byte = 0;
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {.bytes = {0}};
    struct iovec data = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof file);
    memcpy(CMSG_DATA(head), &file, sizeof file);
    return sendmsg(socket, &message, MSG_NOSIGNAL) == 1;
}

static int take_over(int socket)
{
    char byte;
    int file = -1;
    union {
        struct cmsghdr head;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec data = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &data, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != 1)
        return -1;
    const struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS)
        memcpy(&file, CMSG_DATA(head), sizeof file);
    return file;
}

static seqlstm_status fail(const char *what, struct seqlstm_error *err)
{
    const int code = errno;
    seqlstm_error_set(err, SEQLSTM_DEVICE, __FILE__, __LINE__, "the ranks cannot meet: %s: %s", what, strerror(code));
    return SEQLSTM_DEVICE;
}

/* Has the user stopped it, or is the time over? */
static seqlstm_status check_time(const struct host_ranks *c, int64_t deadline_ns, int32_t missing,
                                 struct seqlstm_error *err)
{
    if (c->host->cancelled && c->host->cancelled(c->host->context))
        SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "the user stopped it");
    if (host_ranks_now_ns() < deadline_ns)
        return SEQLSTM_OK;
    return host_ranks_blame(missing, SEQLSTM_DEVICE, "did not come in time", err);
}

/* Serves one rank that has connected. */
static seqlstm_status serve(const struct host_ranks *c, int peer, int file, bool *served, struct seqlstm_error *err)
{
    struct greeting said;
    struct pollfd look = {.fd = peer, .events = POLLIN};
    if (!is_own(peer) || poll(&look, 1, 1000) <= 0 || recv(peer, &said, sizeof said, 0) != sizeof said ||
        said.magic != SEQLSTM_MAGIC)
        return SEQLSTM_OK; /* not one of ours */
    const bool same_build =
        said.minor == SEQLSTM_COLLECTIVES_MINOR && (said.ranks != c->ranks || said.bytes == c->bytes);
    if (!same_build || said.ranks != c->ranks || said.rank < 1 || said.rank >= c->ranks || served[said.rank])
        SEQLSTM_FAIL(err, SEQLSTM_INVALID_CONFIG, "a process calls itself rank %d of %d, in a job of %d ranks%s",
                     said.rank, said.ranks, c->ranks, same_build ? "" : ", and is of another version of seqlstm");
    served[said.rank] = hand_over(peer, file);
    return SEQLSTM_OK;
}

static seqlstm_status serve_all(struct host_ranks *c, const struct seqlstm_rendezvous *r, int listening, int file,
                                int64_t deadline_ns, struct seqlstm_error *err)
{
    struct sockaddr_un name;
    bool served[HOST_RANKS_MOST] = {true};
    const socklen_t bytes = name_socket(r->job, &name);
    if (bind(listening, (const struct sockaddr *)&name, bytes) != 0 || listen(listening, c->ranks) != 0)
        return fail("no socket for rank 0", err);
    for (int32_t missing = 1; missing < c->ranks;) {
        struct pollfd look = {.fd = listening, .events = POLLIN};
        if (poll(&look, 1, LOOK_MS) > 0) {
            const int peer = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
            const seqlstm_status status = peer < 0 ? SEQLSTM_OK : serve(c, peer, file, served, err);
            if (peer >= 0)
                close(peer);
            SEQLSTM_TRY(status);
        }
        while (missing < c->ranks && served[missing])
            missing++;
        if (missing < c->ranks)
            SEQLSTM_TRY(check_time(c, deadline_ns, missing, err));
    }
    return SEQLSTM_OK;
}

/* Asks rank 0 for the file. */
static seqlstm_status ask(struct host_ranks *c, const struct seqlstm_rendezvous *r, int64_t deadline_ns, int *out_file,
                          struct seqlstm_error *err)
{
    struct sockaddr_un name;
    const socklen_t bytes = name_socket(r->job, &name);
    const struct timespec retry = {.tv_nsec = RETRY_MS * 1000000};
    const struct greeting own = {SEQLSTM_MAGIC, SEQLSTM_COLLECTIVES_MINOR, c->rank, c->ranks, c->bytes};
    for (;; nanosleep(&retry, NULL)) {
        const int peer = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (peer < 0)
            return fail("no socket", err);
        const bool reached = connect(peer, (const struct sockaddr *)&name, bytes) == 0;
        if (reached && is_own(peer) && send(peer, &own, sizeof own, MSG_NOSIGNAL) == sizeof own)
            *out_file = take_over(peer);
        close(peer);
        if (*out_file >= 0)
            return SEQLSTM_OK;
        SEQLSTM_TRY(check_time(c, deadline_ns, 0, err));
    }
}

/* Returns when all have mapped the file, and so can be watched. */
static seqlstm_status wait_for_all(struct host_ranks *c, int64_t deadline_ns, struct seqlstm_error *err)
{
    const struct timespec pause = {.tv_nsec = 200000};
    atomic_store(&host_ranks_get_rank(c, c->rank)->pid, (int32_t)getpid());
    for (int32_t r = 0; r < c->ranks; nanosleep(&pause, NULL)) {
        while (r < c->ranks && atomic_load(&host_ranks_get_rank(c, r)->pid) != 0)
            r++;
        if (r == c->ranks)
            break;
        SEQLSTM_TRY(check_time(c, deadline_ns, r, err));
    }
    return SEQLSTM_OK;
}

/* A new file of zeros, or -1 with errno. */
static int make_file(uint64_t bytes)
{
    const int file = memfd_create("seqlstm-ranks", MFD_CLOEXEC);
    if (file >= 0 && ftruncate(file, (off_t)bytes) != 0) {
        const int error = errno;
        close(file);
        errno = error;
        return -1;
    }
    return file;
}

static seqlstm_status map_file(struct host_ranks *c, struct seqlstm_error *err)
{
    void *memory = mmap(NULL, c->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, c->file, 0);
    if (memory == MAP_FAILED)
        return fail("the shared memory cannot be mapped", err);
    c->memory = memory;
    return SEQLSTM_OK;
}

static seqlstm_status meet(struct host_ranks *c, const struct seqlstm_rendezvous *r, struct seqlstm_error *err)
{
    const int64_t deadline_ns = host_ranks_deadline_ns(r->timeout_ns);
    seqlstm_status status = SEQLSTM_OK;
    int listening = -1;
    if (c->rank == 0) {
        c->file = make_file(c->bytes);
        listening = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        status = c->file < 0 || listening < 0 ? fail("no shared memory", err) : SEQLSTM_OK;
    } else {
        status = ask(c, r, deadline_ns, &c->file, err);
    }
    if (status == SEQLSTM_OK)
        status = map_file(c, err);
    if (status == SEQLSTM_OK && c->rank == 0)
        status = serve_all(c, r, listening, c->file, deadline_ns, err);
    if (listening >= 0)
        close(listening);
    return status == SEQLSTM_OK ? wait_for_all(c, deadline_ns, err) : status;
}

static seqlstm_status check_host(const struct seqlstm_rendezvous *rendezvous, struct seqlstm_error *err)
{
    if (rendezvous->ranks > HOST_RANKS_MOST)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "shared memory connects at most %d ranks, not %d", HOST_RANKS_MOST,
                     rendezvous->ranks);
    if (rendezvous->local_ranks > 0 && rendezvous->local_ranks < rendezvous->ranks)
        SEQLSTM_FAIL(err, SEQLSTM_UNAVAILABLE, "only %d of the %d ranks are on this host", rendezvous->local_ranks,
                     rendezvous->ranks);
    return SEQLSTM_OK;
}

/* Opens what tells the death of the other ranks. */
static seqlstm_status watch(struct host_ranks *r, struct seqlstm_error *err)
{
    for (int32_t k = 0; k < r->ranks; k++) {
        const int32_t pid = atomic_load(&host_ranks_get_rank(r, k)->pid);
        if (k != r->rank)
            r->watched[k] = (int)syscall(SYS_pidfd_open, pid, 0);
        if (k != r->rank && r->watched[k] < 0 && errno != ENOSYS && errno != ESRCH)
            SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "rank %d (process %d) cannot be watched: error %d", k, pid, errno);
    }
    return SEQLSTM_OK;
}

seqlstm_status host_ranks_open(struct host_ranks *r, const struct seqlstm_host *host,
                               const struct seqlstm_rendezvous *rendezvous, uint64_t bytes, struct seqlstm_error *err)
{
    r->host = host;
    r->file = -1;
    r->rank = rendezvous->rank;
    r->ranks = rendezvous->ranks;
    r->bytes = r->end = (bytes + HOST_RANKS_PAGE - 1) / HOST_RANKS_PAGE * HOST_RANKS_PAGE;
    SEQLSTM_TRY(check_host(rendezvous, err));
    r->watched = host_allocate(host, (uint64_t)r->ranks * sizeof *r->watched);
    if (r->watched == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a connection");
    for (int32_t k = 0; k < r->ranks; k++)
        r->watched[k] = -1;
    SEQLSTM_TRY(meet(r, rendezvous, err));
    return watch(r, err);
}
