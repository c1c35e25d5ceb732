/* SPDX-License-Identifier: Apache-2.0 */
/* See choice.h. */
#include "dispatch/choice.h"

#include <string.h>

bool sl_choice_find_device(const struct sl_backend *backend, uint32_t *out_device)
{
    uint32_t count = sl_backend_get_device_count(backend);
    const int32_t wished = sl_backend_get_wished_device(backend);
    *out_device = wished > 0 ? (uint32_t)wished - 1 : 0;
    if (wished > 0)
        return true;
    for (uint32_t d = 0; d < count; d++)
        if (strcmp(sl_backend_get_device(backend, d)->domain, "host") == 0) {
            *out_device = d;
            return true;
        }
    return count > 0;
}

void sl_choice_write_refusals(struct sl_buf *buf, const struct sl_refusal *refusals, int32_t count)
{
    for (int32_t r = 0; r < count; r++) {
        const struct sl_refusal *refusal = &refusals[r];
        sl_buf_printf(buf, "%s%s: ", r ? "; " : "", refusal->backend);
        if (refusal->option[0])
            sl_buf_printf(buf, "%s %s ", refusal->option, refusal->value);
        if (refusal->place.line > 0)
            sl_buf_printf(buf, "(%s:%d:%d) ", refusal->place.file, refusal->place.line, refusal->place.column);
        sl_buf_printf(buf, "%s", refusal->reason);
    }
}
