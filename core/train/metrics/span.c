/* SPDX-License-Identifier: Apache-2.0 */
/* Goes through both taggings step by step: a span is found if it begins and ends at the same steps in both. */
#include "train/metrics/span.h"

#include <string.h>

bool sl_span_tag_parse(const char *const *names, int32_t index, struct sl_span_tag *out)
{
    const char *name = names[index];
    *out = (struct sl_span_tag){.part = SL_SPAN_OUTSIDE};
    if (strcmp(name, "O") == 0)
        return true;
    if ((name[0] != 'B' && name[0] != 'I') || name[1] != '-')
        return false;
    out->part = name[0] == 'B' ? SL_SPAN_BEGIN : SL_SPAN_INSIDE;
    while (out->type < index &&
           (strlen(names[out->type]) < 2 || names[out->type][1] != '-' || strcmp(names[out->type] + 2, name + 2) != 0))
        out->type++;
    return true;
}

/* Does a span end before this tag? A new one may begin here. */
static bool advance(struct sl_span_side *side, enum sl_span_rule rule, struct sl_span_tag tag, int64_t step)
{
    if (side->open && tag.part == SL_SPAN_INSIDE && tag.type == side->type)
        return false;
    const bool ended = side->open;
    side->open = tag.part == SL_SPAN_BEGIN || (tag.part == SL_SPAN_INSIDE && rule == SL_SPAN_CONLLEVAL);
    side->type = tag.type;
    side->start = step;
    return ended;
}

void sl_span_walk_step(struct sl_span_walk *walk, enum sl_span_rule rule, struct sl_span_tag said,
                       struct sl_span_tag meant, struct sl_span_sums *sums)
{
    const struct sl_span_side before = walk->said, right = walk->meant;
    const bool said_ended = advance(&walk->said, rule, said, walk->step);
    const bool meant_ended = advance(&walk->meant, rule, meant, walk->step);
    sums->said += said_ended;
    sums->meant += meant_ended;
    sums->found += said_ended && meant_ended && before.start == right.start && before.type == right.type;
    walk->step++;
}

void sl_span_walk_end(struct sl_span_walk *walk, enum sl_span_rule rule, struct sl_span_sums *sums)
{
    const struct sl_span_tag outside = {.part = SL_SPAN_OUTSIDE};
    sl_span_walk_step(walk, rule, outside, outside, sums);
}

double sl_span_compute_f1(const struct sl_span_sums *sums)
{
    return sums->said + sums->meant > 0 ? 2 * sums->found / (sums->said + sums->meant) : 0;
}
