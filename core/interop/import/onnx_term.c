/* SPDX-License-Identifier: Apache-2.0 */
/* See onnx_term.h. */
#include "interop/import/onnx_term.h"

#include <string.h>

struct sl_onnx_term *sl_onnx_lift_add_term(struct sl_onnx_lift *lift, enum sl_onnx_term_kind kind,
                                           const struct sl_onnx_node *node, int64_t width)
{
    if ((lift->term_count & (lift->term_count - 1)) == 0) { /* full: double it */
        size_t room = lift->term_count ? 2 * (size_t)lift->term_count : 1;
        struct sl_onnx_term *grown = SL_ARENA_ARRAY(lift->arena, struct sl_onnx_term, room);
        if (grown == NULL)
            return NULL;
        if (lift->term_count)
            memcpy(grown, lift->terms, (size_t)lift->term_count * sizeof *grown);
        lift->terms = grown;
    }
    struct sl_onnx_term *term = &lift->terms[lift->term_count++];
    *term = (struct sl_onnx_term){.kind = kind, .node = node, .width = width, .cell = -1};
    return term;
}

struct sl_onnx_features sl_onnx_lift_take_all(struct sl_onnx_lift *lift, const struct sl_onnx_node *node)
{
    int32_t term = lift->term_count - 1;
    int64_t count = lift->terms[term].width;
    struct sl_onnx_channel *list = SL_ARENA_ARRAY(lift->arena, struct sl_onnx_channel, (size_t)count + 1);
    for (int64_t k = 0; list && k < count; k++)
        list[k] = (struct sl_onnx_channel){term, (int32_t)k};
    return (struct sl_onnx_features){list, list ? count : 0, node};
}

struct sl_onnx_term *sl_onnx_lift_get_whole(const struct sl_onnx_lift *lift, const struct sl_onnx_features *features)
{
    if (features->count == 0)
        return NULL;
    struct sl_onnx_term *term = &lift->terms[features->list[0].term];
    bool is_whole = term->width == features->count;
    for (int64_t k = 0; is_whole && k < features->count; k++)
        is_whole = features->list[k].term == features->list[0].term && features->list[k].channel == k;
    return is_whole ? term : NULL;
}
