/* SPDX-License-Identifier: Apache-2.0 */
/* Notices: that a rank waits, has left, or has ended the job. */
#include "connection.h"

static void note(struct seqlstm_connection *c)
{
    const struct mpi_notice *heard = &c->heard;
    int none = 0;
    if (heard->rank < 0 || heard->rank >= c->ranks)
        return;
    if (heard->kind == MPI_NOTICE_ABORT)
        atomic_compare_exchange_strong(&c->aborted, &none, 1 + heard->rank);
    else if (heard->kind == MPI_NOTICE_WAITING)
        c->peers[heard->rank].waiting = *heard;
    else
        c->peers[heard->rank].last = *heard;
}

static int receive(struct seqlstm_connection *c)
{
    return MPI_Irecv(&c->heard, (int)sizeof c->heard, MPI_BYTE, MPI_ANY_SOURCE, 0, c->notices, &c->listening);
}

seqlstm_status mpi_listen(struct seqlstm_connection *c, struct seqlstm_error *err)
{
    int code = MPI_SUCCESS, there = 1;
    pthread_mutex_lock(&c->lock);
    if (c->listening == MPI_REQUEST_NULL)
        code = receive(c);
    while (code == MPI_SUCCESS && there) {
        code = MPI_Test(&c->listening, &there, MPI_STATUS_IGNORE);
        if (code == MPI_SUCCESS && there) {
            note(c);
            code = receive(c);
        }
    }
    pthread_mutex_unlock(&c->lock);
    return mpi_check(code, "a notice", err);
}

void mpi_tell(struct seqlstm_connection *c, int32_t rank, enum mpi_notice_kind kind, const struct seqlstm_group *group)
{
    struct mpi_peer *peer = &c->peers[rank];
    const int which = kind != MPI_NOTICE_WAITING;
    int there = 1;
    if (peer->sending[which] != MPI_REQUEST_NULL)
        MPI_Test(&peer->sending[which], &there, MPI_STATUS_IGNORE);
    if (!there)
        return;
    struct mpi_notice *out = &peer->outgoing[which];
    *out = (struct mpi_notice){.kind = kind, .rank = c->rank, .sent = peer->sent, .received = peer->received};
    out->group = group ? group->number : 0;
    out->call = group ? group->calls : 0;
    out->late = c->late;
    for (int g = 0; g < MPI_GROUPS; g++)
        out->made[g] = c->made[g];
    MPI_Isend(out, (int)sizeof *out, MPI_BYTE, rank, 0, c->notices, &peer->sending[which]);
}

void mpi_tell_all(struct seqlstm_connection *c, enum mpi_notice_kind kind)
{
    pthread_mutex_lock(&c->lock);
    for (int32_t r = 0; r < c->ranks; r++)
        if (r != c->rank)
            mpi_tell(c, r, kind, NULL);
    pthread_mutex_unlock(&c->lock);
}
