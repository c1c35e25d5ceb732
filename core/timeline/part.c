/* SPDX-License-Identifier: Apache-2.0 */
/* See part.h. */
#include "timeline/part.h"

#include "base/value/text.h"

double sl_timeline_part_get_cost(const struct sl_timeline_part *part)
{
    return part->device_ns > 0 ? part->device_ns : part->ns;
}

void sl_timeline_part_format(const struct sl_timeline_part *part, char *out, size_t capacity_bytes)
{
    const char *kind = sl_activity_kind_get_name(part->kind);
    if (part->name && (part->kind == SL_ACTIVITY_BACKEND || part->kind == SL_ACTIVITY_STEP))
        sl_text_snprintf(out, capacity_bytes, "%s", part->name);
    else if (!part->name)
        sl_text_snprintf(out, capacity_bytes, "%s", kind);
    else if (sl_timeline_part_is_call(part))
        sl_text_snprintf(out, capacity_bytes, "%s %s", part->name, kind);
    else
        sl_text_snprintf(out, capacity_bytes, "%s: %s", kind, part->name);
}

void sl_timeline_part_format_limit(const struct sl_timeline_part *part, char *out, size_t capacity_bytes)
{
    static const char *const names[] = {"", "compute-bound, ", "waits for memory, ", "", "too small, ", ""};
    out[0] = 0;
    if (part->limit == SL_LIMIT_CACHE)
        sl_text_snprintf(out, capacity_bytes, "works in the caches");
    else if (part->limit != SL_LIMIT_NONE)
        sl_text_snprintf(out, capacity_bytes, "%s%.0f %% of peak", names[part->limit], 100 * part->of_peak);
}
