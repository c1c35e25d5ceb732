/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the ranges of a buffer that calls leave untouched (ext/footprint.h). */
#ifndef COMMON_IDLE_H
#define COMMON_IDLE_H

#include <seqlstm/ext/footprint.h>

/* Appends [begin, end), unless it is empty or there is no room. */
static inline void idle_add(struct seqlstm_ranges *ranges, uint64_t begin, uint64_t end)
{
    if (begin < end && ranges->count < ranges->room)
        ranges->at[ranges->count++] = (struct seqlstm_range){begin, end};
}

#endif
