/* SPDX-License-Identifier: Apache-2.0 */
/* A NCCL for the emulated device: ranks are processes that share a file of memory, and exchanges run on the threads of
 * streams. As with NCCL, an exchange waits for all ranks for ever, until its communicator is aborted; a send ends when
 * it is received; exchanges of one communicator run in the order in which they were queued, on whatever stream; and
 * buffers of the host are refused.
 *
 * FAKE_NCCL_VERSION=N          the version that it tells
 * FAKE_NCCL_LAST=TEXT          what it says about the last error; `none`: no text at all
 * FAKE_NCCL_FAIL=RANK,CALL     on that rank exchanges from this one on fail, as if another host could not be reached
 * FAKE_NCCL_SLOW=RANK,MS       that rank begins each exchange so much later
 * FAKE_NCCL_BUSY=N             every N-th exchange is still being prepared when its call returns, as may happen to NCCL
 *                              if it must not block, until its communicator has been asked three times. Meanwhile other
 *                              exchanges are refused */
#include <fcntl.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "comm-nccl/library.h"
#include "common/half.h"
#include "emulated_device.h"

#define EXPORT __attribute__((visibility("default")))

#define DECLARE(type, name, arguments) EXPORT type nccl##name arguments;
NCC_FUNCTIONS(DECLARE)
#undef DECLARE

enum { RANKS_MOST = 16, CHUNK = 64 << 10, INVALID_ARGUMENT = 4, INVALID_USAGE = 5, BUSY_FOR = 3 };

struct slot {
    alignas(64) _Atomic uint64_t phase; /* that the rank has reached */
    alignas(64) unsigned char data[CHUNK];
};

struct pair {
    alignas(64) _Atomic uint64_t sent, taken; /* chunks */
    alignas(64) unsigned char data[CHUNK];
};

struct shared {
    _Atomic int attached;
    struct slot slots[RANKS_MOST];
    struct pair pairs[RANKS_MOST][RANKS_MOST];
};

struct ncc_comm {
    struct shared *shared;
    int ranks, rank;
    uint64_t phase;
    _Atomic uint64_t given, done; /* exchanges */
    _Atomic int aborted, error;
    _Atomic int holders; /* of this struct: its user, and each exchange */
    /* FAKE_NCCL_BUSY */
    struct exchange *prepared;
    void *stream; /* of it */
    int asked;
};

enum kind { ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, SEND, RECEIVE };

struct exchange {
    struct ncc_comm *comm;
    enum kind kind;
    const unsigned char *from;
    unsigned char *to;
    size_t elems;
    int dtype, reduction, peer;
    uint64_t number;
};

/* ---- waiting ---------------------------------------------------------------------------------------------------- */

static void pause_ms(long ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms > 0 ? ms % 1000 * 1000000 : 20000};
    nanosleep(&pause, NULL);
}

/* False: the communicator was aborted. */
static bool wait_for(const struct ncc_comm *comm, const _Atomic uint64_t *counter, uint64_t value)
{
    while (atomic_load(counter) < value && !atomic_load(&comm->aborted))
        pause_ms(0);
    return !atomic_load(&comm->aborted); /* also where the others come after the abort */
}

static bool meet(struct ncc_comm *comm)
{
    atomic_store(&comm->shared->slots[comm->rank].phase, ++comm->phase);
    for (int r = 0; r < comm->ranks; r++)
        if (!wait_for(comm, &comm->shared->slots[r].phase, comm->phase))
            return false;
    return true;
}

/* ---- elements --------------------------------------------------------------------------------------------------- */

static size_t count_bytes(int dtype)
{
    return dtype == NCC_FLOAT64                            ? 8
           : dtype == NCC_FLOAT32 || dtype == NCC_INT32    ? 4
           : dtype == NCC_FLOAT16 || dtype == NCC_BFLOAT16 ? 2
                                                           : 1;
}

static double load(const unsigned char *at, int dtype)
{
    double wide;
    float single;
    int32_t integer;
    uint16_t narrow;
    memcpy(&wide, at, dtype == NCC_FLOAT64 ? 8 : 0);
    memcpy(&single, at, dtype == NCC_FLOAT32 ? 4 : 0);
    memcpy(&integer, at, dtype == NCC_INT32 ? 4 : 0);
    memcpy(&narrow, at, count_bytes(dtype) == 2 ? 2 : 0);
    switch (dtype) {
    case NCC_FLOAT64:
        return wide;
    case NCC_FLOAT32:
        return (double)single;
    case NCC_INT32:
        return integer;
    case NCC_FLOAT16:
        return (double)gpu_from_f16(narrow);
    case NCC_BFLOAT16:
        return (double)gpu_from_bf16(narrow);
    case NCC_INT8:
        return (int8_t)*at;
    default:
        return *at;
    }
}

static void store(unsigned char *at, int dtype, double value)
{
    const float single = (float)value;
    const int32_t integer = dtype == NCC_INT32 ? (int32_t)value : 0;
    const uint16_t narrow = dtype == NCC_FLOAT16 ? gpu_to_f16(single) : dtype == NCC_BFLOAT16 ? gpu_to_bf16(single) : 0;
    if (dtype == NCC_FLOAT64)
        memcpy(at, &value, sizeof value);
    else if (dtype == NCC_FLOAT32)
        memcpy(at, &single, sizeof single);
    else if (dtype == NCC_INT32)
        memcpy(at, &integer, sizeof integer);
    else if (count_bytes(dtype) == 2)
        memcpy(at, &narrow, sizeof narrow);
    else
        *at = (unsigned char)(int)value;
}

/* Adds in the order of the ranks, rounding each time. */
static void reduce(const struct exchange *e, unsigned char *to, size_t first, size_t elems)
{
    const size_t bytes = count_bytes(e->dtype);
    for (size_t i = 0; i < elems; i++) {
        double result = load(e->comm->shared->slots[0].data + (first + i) * bytes, e->dtype);
        for (int r = 1; r < e->comm->ranks; r++) {
            const double x = load(e->comm->shared->slots[r].data + (first + i) * bytes, e->dtype);
            if (e->reduction == NCC_SUM)
                result = e->dtype == NCC_FLOAT32 ? (double)((float)result + (float)x) : result + x;
            else if (e->reduction == NCC_MAX ? x > result : x < result)
                result = x;
        }
        store(to + i * bytes, e->dtype, result);
    }
}

/* ---- exchanges -------------------------------------------------------------------------------------------------- */

/* Elements [at, at + n) of each vector. */
static bool run_chunk(const struct exchange *e, size_t at, size_t n)
{
    struct ncc_comm *c = e->comm;
    struct slot *own = &c->shared->slots[c->rank];
    const size_t bytes = count_bytes(e->dtype);
    if (e->kind == REDUCE_SCATTER)
        for (int r = 0; r < c->ranks; r++)
            memcpy(own->data + (size_t)r * n * bytes, e->from + ((size_t)r * e->elems + at) * bytes, n * bytes);
    else if (e->kind != BROADCAST || e->peer == c->rank)
        memcpy(own->data, e->from + at * bytes, n * bytes);
    if (!meet(c))
        return false;
    if (e->kind == ALL_REDUCE)
        reduce(e, e->to + at * bytes, 0, n);
    else if (e->kind == REDUCE_SCATTER)
        reduce(e, e->to + at * bytes, (size_t)c->rank * n, n);
    else if (e->kind == BROADCAST)
        memcpy(e->to + at * bytes, c->shared->slots[e->peer].data, n * bytes);
    for (int r = 0; e->kind == ALL_GATHER && r < c->ranks; r++)
        memcpy(e->to + ((size_t)r * e->elems + at) * bytes, c->shared->slots[r].data, n * bytes);
    return meet(c);
}

static bool pass(const struct exchange *e)
{
    struct ncc_comm *c = e->comm;
    const size_t bytes = e->elems * count_bytes(e->dtype);
    struct pair *pair = e->kind == SEND ? &c->shared->pairs[c->rank][e->peer] : &c->shared->pairs[e->peer][c->rank];
    for (size_t at = 0; at < bytes; at += CHUNK) {
        const size_t now = bytes - at < CHUNK ? bytes - at : CHUNK;
        if (e->kind == SEND) {
            memcpy(pair->data, e->from + at, now);
            if (!wait_for(c, &pair->taken, atomic_fetch_add(&pair->sent, 1) + 1))
                return false;
        } else {
            const uint64_t taken = atomic_load(&pair->taken);
            if (!wait_for(c, &pair->sent, taken + 1))
                return false;
            memcpy(e->to + at, pair->data, now);
            atomic_store(&pair->taken, taken + 1);
        }
    }
    return true;
}

/* Two numbers of a variable. */
static bool read_pair(const char *name, long *out_first, long *out_second)
{
    const char *text = getenv(name);
    return text != NULL && sscanf(text, "%ld,%ld", out_first, out_second) == 2;
}

static int work(void *context, char *failure, size_t capacity)
{
    const struct exchange *e = context;
    struct ncc_comm *c = e->comm;
    const size_t parts = e->kind == REDUCE_SCATTER ? (size_t)c->ranks : 1;
    const size_t most = CHUNK / count_bytes(e->dtype) / parts;
    long rank, number;
    (void)failure, (void)capacity;
    bool fine = wait_for(c, &c->done, e->number);
    if (fine && read_pair("FAKE_NCCL_SLOW", &rank, &number) && rank == c->rank)
        pause_ms(number);
    if (fine && read_pair("FAKE_NCCL_FAIL", &rank, &number) && rank == c->rank && e->number >= (uint64_t)number) {
        atomic_store(&c->error, NCC_REMOTE_ERROR);
        fine = wait_for(c, &c->done, UINT64_MAX);
    }
    if (fine && (e->kind == SEND || e->kind == RECEIVE))
        fine = pass(e);
    for (size_t at = 0; fine && e->kind != SEND && e->kind != RECEIVE && at < e->elems; at += most)
        fine = run_chunk(e, at, e->elems - at < most ? e->elems - at : most);
    atomic_store(&c->done, e->number + 1);
    return 0; /* an aborted exchange ends, and its stream goes on */
}

static void drop(struct ncc_comm *comm)
{
    if (atomic_fetch_sub(&comm->holders, 1) > 1)
        return;
    munmap(comm->shared, sizeof *comm->shared);
    free(comm);
}

static void release(void *context)
{
    drop(((struct exchange *)context)->comm);
    free(context);
}

static bool is_busy(uint64_t number)
{
    const char *text = getenv("FAKE_NCCL_BUSY");
    return text != NULL && (number + 1) % (uint64_t)atoi(text) == 0;
}

static int submit(struct exchange made, void *stream)
{
    struct ncc_comm *c = made.comm;
    if (c->prepared != NULL)
        return INVALID_USAGE;
    const size_t bytes = made.elems * count_bytes(made.dtype);
    const size_t from = made.kind == REDUCE_SCATTER ? bytes * (size_t)c->ranks : bytes;
    const size_t to = made.kind == ALL_GATHER ? bytes * (size_t)c->ranks : bytes;
    if ((made.from != NULL && !emulated_owns(made.from, from)) || (made.to != NULL && !emulated_owns(made.to, to)))
        return INVALID_ARGUMENT;
    if (emulated_spoil("an exchange"))
        return INVALID_ARGUMENT;
    struct exchange *e = malloc(sizeof *e);
    if (e == NULL)
        return INVALID_ARGUMENT;
    *e = made;
    e->number = atomic_fetch_add(&c->given, 1);
    atomic_fetch_add(&c->holders, 1);
    if (is_busy(e->number)) {
        c->prepared = e;
        c->stream = stream;
        c->asked = 0;
        return NCC_IN_PROGRESS;
    }
    emulated_submit(stream, work, e, release);
    return NCC_SUCCESS;
}

EXPORT int ncclAllReduce(const void *from, void *to, size_t elems, int dtype, int reduction, struct ncc_comm *comm,
                         void *stream)
{
    return submit((struct exchange){comm, ALL_REDUCE, from, to, elems, dtype, reduction, 0, 0}, stream);
}

EXPORT int ncclReduceScatter(const void *from, void *to, size_t elems, int dtype, int reduction, struct ncc_comm *comm,
                             void *stream)
{
    return submit((struct exchange){comm, REDUCE_SCATTER, from, to, elems, dtype, reduction, 0, 0}, stream);
}

EXPORT int ncclAllGather(const void *from, void *to, size_t elems, int dtype, struct ncc_comm *comm, void *stream)
{
    return submit((struct exchange){comm, ALL_GATHER, from, to, elems, dtype, 0, 0, 0}, stream);
}

EXPORT int ncclBroadcast(const void *from, void *to, size_t elems, int dtype, int root, struct ncc_comm *comm,
                         void *stream)
{
    return submit((struct exchange){comm, BROADCAST, from, to, elems, dtype, 0, root, 0}, stream);
}

EXPORT int ncclSend(const void *from, size_t elems, int dtype, int peer, struct ncc_comm *comm, void *stream)
{
    return submit((struct exchange){comm, SEND, from, NULL, elems, dtype, 0, peer, 0}, stream);
}

EXPORT int ncclRecv(void *to, size_t elems, int dtype, int peer, struct ncc_comm *comm, void *stream)
{
    return submit((struct exchange){comm, RECEIVE, NULL, to, elems, dtype, 0, peer, 0}, stream);
}

/* ---- life ------------------------------------------------------------------------------------------------------- */

EXPORT int ncclGetVersion(int *version)
{
    const char *text = getenv("FAKE_NCCL_VERSION");
    *version = text != NULL ? atoi(text) : 22304;
    return NCC_SUCCESS;
}

EXPORT const char *ncclGetErrorString(int result)
{
    return result == NCC_REMOTE_ERROR ? "remote process exited or there was a network error" : "invalid argument";
}

EXPORT const char *ncclGetLastError(struct ncc_comm *comm)
{
    const char *text = getenv("FAKE_NCCL_LAST");
    (void)comm;
    return text == NULL ? "said the fake" : strcmp(text, "none") == 0 ? NULL : text;
}

/* The file stays open as long as the process lives; the others open it through /proc. */
EXPORT int ncclGetUniqueId(struct ncc_id *id)
{
    const int file = memfd_create("fake-nccl", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, (off_t)sizeof(struct shared)) != 0)
        return INVALID_ARGUMENT;
    snprintf(id->bytes, sizeof id->bytes, "/proc/%d/fd/%d", (int)getpid(), file);
    return NCC_SUCCESS;
}

EXPORT int ncclCommInitRankConfig(struct ncc_comm **comm, int ranks, struct ncc_id id, int rank,
                                  struct ncc_config *config)
{
    if (config->size != sizeof *config || config->magic != NCC_CONFIG_MAGIC || config->version < NCC_CONFIG_VERSION ||
        config->blocking != 0 || ranks > RANKS_MOST)
        return INVALID_ARGUMENT;
    struct ncc_comm *made = calloc(1, sizeof *made);
    const int file = open(id.bytes, O_RDWR | O_CLOEXEC);
    void *shared =
        file < 0 ? MAP_FAILED : mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file >= 0)
        close(file);
    if (made == NULL || shared == MAP_FAILED) {
        free(made);
        return NCC_REMOTE_ERROR;
    }
    made->shared = shared;
    made->ranks = ranks;
    made->rank = rank;
    made->holders = 1;
    atomic_fetch_add(&made->shared->attached, 1);
    *comm = made;
    return NCC_IN_PROGRESS;
}

EXPORT int ncclCommGetAsyncError(struct ncc_comm *comm, int *result)
{
    *result = atomic_load(&comm->error);
    if (comm->prepared != NULL && ++comm->asked < BUSY_FOR) {
        *result = NCC_IN_PROGRESS;
        return NCC_SUCCESS;
    }
    if (comm->prepared != NULL)
        emulated_submit(comm->stream, work, comm->prepared, release);
    comm->prepared = NULL;
    if (*result == NCC_SUCCESS && atomic_load(&comm->shared->attached) < comm->ranks)
        *result = NCC_IN_PROGRESS;
    return NCC_SUCCESS;
}

EXPORT int ncclCommFinalize(struct ncc_comm *comm)
{
    (void)comm;
    return NCC_IN_PROGRESS;
}

EXPORT int ncclCommDestroy(struct ncc_comm *comm)
{
    drop(comm);
    return NCC_SUCCESS;
}

EXPORT int ncclCommAbort(struct ncc_comm *comm)
{
    atomic_store(&comm->aborted, 1);
    if (comm->prepared != NULL)
        release(comm->prepared);
    drop(comm);
    return NCC_SUCCESS;
}
