/* SPDX-License-Identifier: Apache-2.0 */
/* See collectives.h. */
#include "session/record/collectives.h"

const struct seqlstm_collectives *seqlstm_comm_shm_query_v0(uint32_t host_minor);

const struct sl_collectives_builtin sl_collectives_builtins[1] = {{"comm-shm", seqlstm_comm_shm_query_v0}};
