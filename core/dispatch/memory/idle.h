/* SPDX-License-Identifier: Apache-2.0 */
/* What backends say that their calls leave alone of a buffer. */
#ifndef SL_DISPATCH_MEMORY_IDLE_H
#define SL_DISPATCH_MEMORY_IDLE_H

#include <seqlstm/backend.h>

enum { SL_IDLE_ROOM = 1024 }; /* spans that a backend is asked for; 64 members with some layers each */

/* INTERNAL: the spans are not in order and apart from each other within `bytes` of the buffer `name`, or more than
 * there is room for. */
seqlstm_status sl_idle_check(const struct seqlstm_span *idle, uint32_t count, uint64_t bytes, const char *name,
                             struct seqlstm_error *err);

#endif
