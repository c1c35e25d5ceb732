/* SPDX-License-Identifier: Apache-2.0 */
/* Asks backends about one operation. See choice.h. */
#include "dispatch/choice.h"

#include <stdio.h>
#include <string.h>

#include "base/op_signature.h"

bool sl_choice_find_device(const struct sl_backend *backend, uint32_t *out_device)
{
    uint32_t count = sl_backend_get_device_count(backend);
    *out_device = 0;
    for (uint32_t d = 0; d < count; d++)
        if (strcmp(sl_backend_get_device(backend, d)->domain, "host") == 0) {
            *out_device = d;
            return true;
        }
    return count > 0;
}

static seqlstm_status keep_refusal(struct sl_arena *arena, const struct sl_graph *graph,
                                   const struct sl_node *node, const struct sl_backend *backend,
                                   const struct seqlstm_answer *answer, struct sl_choice *choice,
                                   struct seqlstm_error *err)
{
    struct sl_option_place option = sl_graph_find_option(graph, node, answer->option);
    struct sl_refusal *refusal = &choice->refusals[choice->refusal_count];
    *refusal = (struct sl_refusal){
        .backend = sl_backend_get_id(backend),
        .code = answer->code,
        .option = answer->option == SEQLSTM_OPTION_NONE ? "" : option.key,
        .value = sl_arena_strdup(arena, answer->value),
        .reason = sl_arena_strdup(arena, answer->reason),
        .hint = sl_arena_strdup(arena, answer->hint),
        .place = option.place,
    };
    if (!refusal->value || !refusal->reason || !refusal->hint)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
    choice->refusal_count++;
    return SEQLSTM_OK;
}

/* Tries the accepted variants. On refusal by op_create the answer becomes a no with that reason. */
static seqlstm_status try_create(struct sl_arena *arena, struct sl_backend *backend, uint32_t device,
                                 const union seqlstm_any_desc *desc, const char *variant,
                                 struct seqlstm_answer *answer, struct sl_choice *choice,
                                 struct seqlstm_error *err)
{
    struct seqlstm_error refused = SEQLSTM_ERROR_INIT;
    for (uint32_t v = 0; v < answer->variant_count; v++) {
        if (variant && strcmp(variant, answer->variants[v]) != 0)
            continue;
        seqlstm_status status =
            sl_backend_get_table(backend)->op_create(sl_backend_get_instance(backend), device,
                                                     &desc->head, answer->variants[v], &choice->op,
                                                     &refused);
        if (status == SEQLSTM_OK) {
            choice->found = true;
            choice->backend = backend;
            choice->device = device;
            choice->variant = sl_arena_strdup(arena, answer->variants[v]);
            if (choice->variant)
                return SEQLSTM_OK;
            sl_backend_get_table(backend)->op_destroy(choice->op);
            SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
        }
        if (status != SEQLSTM_UNSUPPORTED) {
            if (err)
                *err = refused;
            return status;
        }
    }
    answer->accepted = 0;
    answer->code = SEQLSTM_REFUSED_OPTION;
    answer->option = SEQLSTM_OPTION_NONE;
    if (refused.message[0])
        snprintf(answer->reason, sizeof answer->reason, "%.255s", refused.message);
    else
        snprintf(answer->reason, sizeof answer->reason, "it has no variant `%s` for this operation",
                 variant);
    return SEQLSTM_OK;
}

seqlstm_status sl_choice_make(struct sl_arena *arena, const struct sl_graph *graph,
                              const struct sl_node *node, const union seqlstm_any_desc *desc,
                              const struct sl_candidates *candidates, struct sl_choice *out,
                              struct seqlstm_error *err)
{
    memset(out, 0, sizeof *out);
    out->refusals = SL_ARENA_ARRAY(arena, struct sl_refusal, candidates->count);
    if (out->refusals == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the plan");
    for (uint32_t c = 0; c < candidates->count; c++) {
        struct sl_backend *backend = candidates->backends[c];
        struct seqlstm_answer answer;
        uint32_t device;
        if (!sl_choice_find_device(backend, &device))
            continue;
        SEQLSTM_TRY(sl_backend_supports(backend, device, &desc->head, &answer, err));
        if (answer.accepted)
            SEQLSTM_TRY(try_create(arena, backend, device, desc, candidates->variant, &answer, out, err));
        if (out->found) {
            out->rank = c;
            return SEQLSTM_OK;
        }
        SEQLSTM_TRY(keep_refusal(arena, graph, node, backend, &answer, out, err));
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_choice_rank(const union seqlstm_any_desc *desc,
                              const struct sl_candidates *candidates, uint32_t *out_rank,
                              struct seqlstm_error *err)
{
    uint32_t c, device;
    for (c = 0; c < candidates->count; c++) {
        struct seqlstm_answer answer;
        if (!sl_choice_find_device(candidates->backends[c], &device))
            continue;
        SEQLSTM_TRY(sl_backend_supports(candidates->backends[c], device, &desc->head, &answer, err));
        if (answer.accepted)
            break;
    }
    *out_rank = c;
    return SEQLSTM_OK;
}

void sl_choice_write_refusals(struct sl_buf *buf, const struct sl_refusal *refusals, int32_t count)
{
    for (int32_t r = 0; r < count; r++) {
        const struct sl_refusal *refusal = &refusals[r];
        sl_buf_printf(buf, "%s%s: ", r ? "; " : "", refusal->backend);
        if (refusal->option[0])
            sl_buf_printf(buf, "%s %s ", refusal->option, refusal->value);
        if (refusal->place.line > 0)
            sl_buf_printf(buf, "(%s:%d:%d) ", refusal->place.file, refusal->place.line,
                          refusal->place.column);
        sl_buf_printf(buf, "%s", refusal->reason);
    }
}
