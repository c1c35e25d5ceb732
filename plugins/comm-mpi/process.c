/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the ranks on this host, to watch their processes. */
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/host_memory.h"
#include "common/processors.h"
#include "connection.h"

/* Two processes with the same host can watch each other. */
struct place {
    char boot[40];      /* id of the running kernel */
    uint64_t processes; /* the name space of its processes */
    int32_t pid;
    int32_t reserved;
};

static void find_place(struct place *out)
{
    struct stat names;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    memset(out, 0, sizeof *out);
    if (file) {
        if (!fgets(out->boot, sizeof out->boot, file))
            out->boot[0] = 0;
        fclose(file);
    }
    if (stat("/proc/self/ns/pid", &names) == 0)
        out->processes = (uint64_t)names.st_ino;
    out->pid = (int32_t)getpid();
}

static bool is_here(const struct place *own, const struct place *other)
{
    return own->boot[0] && own->processes == other->processes && memcmp(own->boot, other->boot, sizeof own->boot) == 0;
}

static void watch(struct seqlstm_connection *c, const struct place *all)
{
    int32_t here = 0;
    for (int32_t r = 0; r < c->ranks; r++) {
        if (!is_here(&all[c->rank], &all[r]))
            continue;
        here++;
        if (r != c->rank)
            c->peers[r].process = (int)syscall(SYS_pidfd_open, all[r].pid, 0);
    }
    /* One that computes, and one that exchanges meanwhile. */
    if (processors_count() < 2 * here)
        c->spin_ns = c->patience_ns = 0;
}

seqlstm_status mpi_watch_processes(struct seqlstm_connection *c, int64_t deadline_ns, struct seqlstm_error *err)
{
    MPI_Request request;
    struct mpi_wait wait = {
        .connection = c, .peer = -1, .begin_ns = mpi_now_ns(), .deadline_ns = deadline_ns, .err = err};
    struct place *all = host_allocate(c->host, (uint64_t)c->ranks * sizeof *all);
    if (all == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the ranks");
    find_place(&all[c->rank]);
    pthread_mutex_lock(&c->lock);
    const int code = MPI_Iallgather(MPI_IN_PLACE, 0, MPI_BYTE, all, (int)sizeof *all, MPI_BYTE, c->notices, &request);
    pthread_mutex_unlock(&c->lock);
    seqlstm_status status = mpi_check(code, "the meeting of the ranks", err);
    if (status == SEQLSTM_OK)
        status = mpi_finish(&wait, &request);
    if (status == SEQLSTM_OK)
        watch(c, all);
    host_release(c->host, all);
    return status;
}
