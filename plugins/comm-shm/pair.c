/* SPDX-License-Identifier: Apache-2.0 */
/* Sends and receives, packet by packet through the mailbox of a pair. */
#include <string.h>

#include "connection.h"

seqlstm_status shm_send(struct seqlstm_connection *connection, int32_t to, const void *from, int64_t bytes,
                        int64_t deadline_ns, struct seqlstm_error *err)
{
    struct shm_mailbox *box =
        shm_segment_mailbox(connection->ranks.memory, connection->ranks.ranks, connection->ranks.rank, to);
    uint32_t number = atomic_load_explicit(&box->sent.value, memory_order_relaxed);
    for (int64_t at = 0; at < bytes; at += SHM_PACKET_BYTES) {
        number++;
        SEQLSTM_TRY(shm_wait(connection, &box->taken, number - 2, to, deadline_ns, err));
        memcpy(box->packets[number % 2], (const char *)from + at,
               (size_t)(bytes - at < SHM_PACKET_BYTES ? bytes - at : SHM_PACKET_BYTES));
        shm_advance(&box->sent, number);
    }
    return SEQLSTM_OK;
}

seqlstm_status shm_receive(struct seqlstm_connection *connection, int32_t from, void *to, int64_t bytes,
                           int64_t deadline_ns, struct seqlstm_error *err)
{
    struct shm_mailbox *box =
        shm_segment_mailbox(connection->ranks.memory, connection->ranks.ranks, from, connection->ranks.rank);
    uint32_t number = atomic_load_explicit(&box->taken.value, memory_order_relaxed);
    for (int64_t at = 0; at < bytes; at += SHM_PACKET_BYTES) {
        number++;
        SEQLSTM_TRY(shm_wait(connection, &box->sent, number, from, deadline_ns, err));
        memcpy((char *)to + at, box->packets[number % 2],
               (size_t)(bytes - at < SHM_PACKET_BYTES ? bytes - at : SHM_PACKET_BYTES));
        shm_advance(&box->taken, number);
    }
    return SEQLSTM_OK;
}
