/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for what NCCL does, and seeing when it will never end. */
#include <time.h>

#include "connection.h"

enum { PAUSE_NS = 20 * 1000, SPINS = 200 };
static const int64_t grace_ns = INT64_C(1000000000);

struct ncc_board *ncc_get_board(const struct seqlstm_connection *c, int32_t rank)
{
    return (struct ncc_board *)(void *)((char *)c->ranks.memory + host_ranks_head_bytes(c->ranks.ranks)) + rank;
}

static bool has_come(const struct seqlstm_connection *c, const struct ncc_passage *p, int32_t rank)
{
    const uint32_t begun = atomic_load(&ncc_get_board(c, rank)->begun[p->group->number]);
    return (int32_t)(begun - p->call) >= 0;
}

/* Of an exchange of the group: the first member that has not come; -1: all have. */
static int32_t find_missing(const struct seqlstm_connection *c, const struct ncc_passage *p, bool left)
{
    for (int32_t m = 0; m < p->group->members; m++) {
        const int32_t rank = p->group->ranks[m];
        if (rank != c->ranks.rank && !has_come(c, p, rank) && (!left || host_ranks_has_left(&c->ranks, rank)))
            return rank;
    }
    return -1;
}

/* A rank whose exchange has failed ends no other, and may still wait to be noticed. It tells which rank it has waited
 * for. */
static seqlstm_status find_failure(const struct seqlstm_connection *c, const struct ncc_passage *p,
                                   struct seqlstm_error *err)
{
    for (int32_t m = 0; m < p->group->members; m++) {
        const int32_t rank = p->group->ranks[m], failed = atomic_load(&ncc_get_board(c, rank)->failed);
        if (rank == c->ranks.rank || failed == 0)
            continue;
        return failed >= NCC_LATE && failed - NCC_LATE != c->ranks.rank
                   ? host_ranks_blame(failed - NCC_LATE, SEQLSTM_DEVICE, "did not come in time", err)
                   : host_ranks_blame(rank, SEQLSTM_CANCELLED, "has failed", err);
    }
    return SEQLSTM_OK;
}

/* What NCCL says about the communicator by now: NCC_SUCCESS or NCC_IN_PROGRESS. Fails if it was aborted. */
static seqlstm_status ask(struct seqlstm_connection *c, const struct seqlstm_group *group, const char *what,
                          int *out_result, struct seqlstm_error *err)
{
    pthread_mutex_lock(&c->lock);
    seqlstm_status status = ncc_get_failure(c, err);
    if (status == SEQLSTM_OK)
        status = ncc_check(ncc.CommGetAsyncError(group->comm, out_result), what, group->comm, err);
    if (status == SEQLSTM_OK)
        status = ncc_check(*out_result, what, group->comm, err);
    pthread_mutex_unlock(&c->lock);
    return status;
}

seqlstm_status ncc_look(struct seqlstm_connection *c, const struct ncc_passage *p, struct seqlstm_error *err)
{
    int result = NCC_SUCCESS;
    SEQLSTM_TRY(host_ranks_check(&c->ranks, err));
    const int32_t gone = p->peer < 0                               ? find_missing(c, p, true)
                         : host_ranks_has_left(&c->ranks, p->peer) ? p->peer
                                                                   : -1;
    if (gone >= 0)
        return host_ranks_blame(gone, SEQLSTM_CANCELLED, "has left the job", err);
    SEQLSTM_TRY(find_failure(c, p, err));
    SEQLSTM_TRY(ask(c, p->group, "an exchange", &result, err));
    if (host_ranks_now_ns() < p->deadline_ns)
        return SEQLSTM_OK;
    const int32_t late = p->peer < 0 ? find_missing(c, p, false) : p->peer;
    if (late >= 0)
        return host_ranks_blame(late, SEQLSTM_DEVICE, "did not come in time", err);
    SEQLSTM_FAIL(err, SEQLSTM_DEVICE, "NCCL did not finish an exchange in time, though all ranks have come");
}

static void pause_briefly(int turn)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    if (turn > SPINS)
        nanosleep(&pause, NULL);
}

bool ncc_ends_by_itself(const struct seqlstm_connection *c, const struct ncc_passage *p)
{
    const int64_t end_ns = host_ranks_deadline_ns(grace_ns);
    bool happened = false;
    for (int turn = SPINS + 1; !happened && host_ranks_now_ns() < end_ns; pause_briefly(turn))
        if (gpu_event_query(c->device, p->event, &happened, NULL) != SEQLSTM_OK)
            return false;
    return happened;
}

seqlstm_status ncc_wait(struct seqlstm_connection *c, const struct ncc_passage *p, struct seqlstm_error *err)
{
    for (int turn = 0;; turn++) {
        bool happened = false;
        SEQLSTM_TRY(ncc_cuda(gpu_event_query(c->device, p->event, &happened, err), err));
        if (happened)
            return SEQLSTM_OK;
        const seqlstm_status status = turn >= SPINS ? ncc_look(c, p, err) : SEQLSTM_OK;
        if (status != SEQLSTM_OK)
            return status == SEQLSTM_CANCELLED && ncc_ends_by_itself(c, p) ? SEQLSTM_OK : status;
        pause_briefly(turn);
    }
}

seqlstm_status ncc_settle(struct seqlstm_connection *c, const struct ncc_passage *p, const char *what,
                          struct seqlstm_error *err)
{
    for (int turn = 0;; turn++) {
        int result = NCC_SUCCESS;
        SEQLSTM_TRY(ask(c, p->group, what, &result, err));
        if (result != NCC_IN_PROGRESS)
            return SEQLSTM_OK;
        if (turn >= SPINS)
            SEQLSTM_TRY(ncc_look(c, p, err));
        pause_briefly(turn);
    }
}

/* ---- failures --------------------------------------------------------------------------------------------------- */

seqlstm_status ncc_fail(struct seqlstm_connection *c, seqlstm_status status, const struct seqlstm_error *err)
{
    const bool late = status == SEQLSTM_DEVICE && err != NULL && err->native_code > 0;
    pthread_mutex_lock(&c->lock);
    if (c->status == SEQLSTM_OK) {
        c->status = status;
        if (status != SEQLSTM_CANCELLED && c->ranks.memory != NULL)
            atomic_store(&ncc_get_board(c, c->ranks.rank)->failed, late ? NCC_LATE + err->native_code - 1 : NCC_FAILED);
        if (err != NULL)
            c->failure = *err;
        for (int g = 0; g < NCC_GROUPS; g++)
            if (c->groups[g] != NULL && c->groups[g]->comm != NULL) {
                ncc.CommAbort(c->groups[g]->comm);
                c->groups[g]->comm = NULL;
            }
        pthread_cond_broadcast(&c->changed);
    }
    pthread_mutex_unlock(&c->lock);
    return status;
}

seqlstm_status ncc_get_failure(struct seqlstm_connection *c, struct seqlstm_error *err)
{
    pthread_mutex_lock(&c->lock);
    const seqlstm_status status = c->status;
    if (status != SEQLSTM_OK && err != NULL && err->struct_size >= sizeof *err)
        *err = c->failure;
    pthread_mutex_unlock(&c->lock);
    return status;
}
