/* SPDX-License-Identifier: Apache-2.0 */
/* See refusal.h. */
#include "dispatch/plan/refusal.h"

void sl_refusals_write(struct sl_buf *buf, const struct sl_refusal *refusals, int32_t count)
{
    for (int32_t r = 0; r < count; r++) {
        const struct sl_refusal *refusal = &refusals[r];
        sl_buf_printf(buf, "%s%s: ", r ? "; " : "", refusal->backend);
        if (refusal->option[0])
            sl_buf_printf(buf, "%s%s%s ", refusal->option, refusal->value[0] ? " " : "", refusal->value);
        if (refusal->place.line > 0)
            sl_buf_printf(buf, "(%s:%d:%d) ", refusal->place.file, refusal->place.line, refusal->place.column);
        sl_buf_printf(buf, "%s", refusal->reason);
    }
}
