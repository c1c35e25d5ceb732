/* SPDX-License-Identifier: Apache-2.0 */
/* Saying what calls leave untouched of a buffer (ext/footprint.h). */
#ifndef COMMON_IDLE_H
#define COMMON_IDLE_H

#include <seqlstm/ext/footprint.h>

/* Adds [begin, end), if it is not empty and there is room, behind the spans that were added before. */
static inline void idle_add(struct seqlstm_spans *spans, uint64_t begin, uint64_t end)
{
    if (begin < end && spans->count < spans->room)
        spans->at[spans->count++] = (struct seqlstm_span){begin, end};
}

#endif
