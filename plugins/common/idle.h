/* SPDX-License-Identifier: Apache-2.0 */
/* Saying in op_sizes what calls leave alone of a buffer. */
#ifndef COMMON_IDLE_H
#define COMMON_IDLE_H

#include <stdbool.h>
#include <stddef.h>

#include <seqlstm/backend.h>

/* Does the host ask? */
static inline bool idle_is_asked(const struct seqlstm_sizes *sizes)
{
    return SEQLSTM_HAS(sizes, reserve_idle_count) && sizes->workspace_idle != NULL && sizes->reserve_idle != NULL;
}

/* Behind those that were added before. */
static inline void idle_add_workspace(struct seqlstm_sizes *sizes, uint64_t begin, uint64_t end)
{
    if (begin < end && sizes->workspace_idle_count < sizes->idle_room)
        sizes->workspace_idle[sizes->workspace_idle_count++] = (struct seqlstm_span){begin, end};
}

static inline void idle_add_reserve(struct seqlstm_sizes *sizes, uint64_t begin, uint64_t end)
{
    if (begin < end && sizes->reserve_idle_count < sizes->idle_room)
        sizes->reserve_idle[sizes->reserve_idle_count++] = (struct seqlstm_span){begin, end};
}

#endif
