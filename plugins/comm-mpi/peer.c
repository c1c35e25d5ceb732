/* SPDX-License-Identifier: Apache-2.0 */
/* Is another rank still there? The death of processes is seen on this host. On other hosts it is the launcher of MPI
 * that notices it, and ends the job. */
#include <poll.h>

#include "connection.h"

bool mpi_is_gone(const struct mpi_peer *peer)
{
    return peer->last.kind == MPI_NOTICE_LEFT || peer->last.kind == MPI_NOTICE_FAILED;
}

bool mpi_has_died(const struct seqlstm_connection *c, int32_t rank)
{
    struct pollfd look = {.fd = c->peers[rank].process, .events = POLLIN};
    return look.fd >= 0 && poll(&look, 1, 0) > 0;
}
