/* SPDX-License-Identifier: Apache-2.0 */
/* Some of the ranks of a training, which exchange data among themselves. */
#ifndef SL_PARALLEL_RANK_GROUP_H
#define SL_PARALLEL_RANK_GROUP_H

#include <stdint.h>

#include "registry/collectives/connection.h"

struct sl_rank_group {
    struct sl_connection *connection; /* NULL: this rank alone */
    uint32_t number;                  /* of the group in the connection */
    int32_t ranks, rank;              /* its members, and this rank's place among them */
};

/* Makes one exchange in it. Does nothing alone. */
static inline seqlstm_status sl_rank_group_run(const struct sl_rank_group *group, struct seqlstm_exchange exchange,
                                               struct seqlstm_error *err)
{
    return group->connection ? sl_connection_run(group->connection, group->number, exchange, err) : SEQLSTM_OK;
}

/* All members get the `count` bytes of member `from`. Does nothing alone. */
static inline seqlstm_status sl_rank_group_broadcast(const struct sl_rank_group *group, int32_t from, void *bytes,
                                                     int64_t count, struct seqlstm_error *err)
{
    const struct seqlstm_exchange broadcast = {
        .kind = SEQLSTM_COLLECTIVE_BROADCAST, .dtype = SEQLSTM_DTYPE_UINT8, .peer = from, .elems = count, .to = bytes};
    return sl_rank_group_run(group, broadcast, err);
}

#endif
