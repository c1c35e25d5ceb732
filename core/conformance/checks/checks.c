/* SPDX-License-Identifier: Apache-2.0 */
/* See checks.h. */
#include "conformance/checks/checks.h"

#include <string.h>

#include "base/value/text.h"
#include "conformance/checks/allocations.h"
#include "registry/answer.h"
#include "registry/plugin.h"

static void run_pass(struct sl_check *check)
{
    switch (check->data->c.pass) {
    case SL_PASS_RANGES:
        sl_check_ranges(check);
        break;
    case SL_PASS_DIFFERENCES:
        sl_check_differences(check);
        break;
    case SL_PASS_REPEAT:
        sl_check_repeat(check);
        break;
    case SL_PASS_SAME:
        sl_check_same(check);
        break;
    case SL_PASS_MEMORY:
        sl_check_memory(check);
        break;
    case SL_PASS_THREADS:
        sl_check_threads(check);
        break;
    case SL_PASS_ALTERNATE:
        sl_check_alternate(check);
        break;
    case SL_PASS_CLAIM:
        sl_check_claim(check);
        break;
    case SL_PASS_IDLE:
        sl_check_idle(check);
        break;
    default:
        sl_check_numbers(check);
    }
}

/* op_create refuses one of several variants. The detail says so, and the other variants are tested. */
static bool is_refused(struct sl_check *check, const struct seqlstm_desc *desc)
{
    const struct sl_subject *s = &check->bench->subject;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_op *op = NULL;
    const seqlstm_status status =
        sl_plugin_create_op(s->table, s->instance, s->device, desc, check->variant, &op, &err);
    if (status == SEQLSTM_OK)
        sl_plugin_destroy_op(s->table, op);
    if (status == SEQLSTM_UNSUPPORTED)
        sl_text_snprintf(check->result->detail, sizeof check->result->detail, "%s: %.400s", check->variant,
                         err.message);
    return status == SEQLSTM_UNSUPPORTED;
}

void sl_check_case(struct sl_bench *bench, const struct sl_case *c, struct sl_check_result *out_result)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_arena arena;
    struct sl_data *data;
    struct seqlstm_answer answer;
    sl_arena_init(&arena);
    memset(out_result, 0, sizeof *out_result);
    struct sl_check check = {.bench = bench, .arena = &arena, .result = out_result};
    if (bench->misdeed)
        bench->misdeed[0] = 0;
    sl_allocations_take_own();
    if (bench->outlet)
        sl_outlet_begin(bench->outlet);
    if (!sl_check_status(&check, sl_data_create(&arena, c, bench->seed, bench->seed, &data, &err), "making the data",
                         &err))
        goto out;
    check.data = data;
    if (!sl_check_status(
            &check, sl_table_supports(bench->subject.table, bench->subject.device_class, &c->desc.head, &answer, &err),
            "supports", &err))
        goto out;
    if (!answer.accepted && strstr(answer.reason, " is faulty: ")) {
        sl_check_fail(&check, "%s", answer.reason);
        goto out;
    }
    if (!answer.accepted) {
        out_result->verdict = SL_VERDICT_UNSUPPORTED;
        sl_text_snprintf(out_result->detail, sizeof out_result->detail, "%s", answer.reason);
        goto out;
    }
    bool found = false, ran = false;
    for (uint32_t v = 0; v < answer.variant_count && out_result->verdict == SL_VERDICT_PASS; v++) {
        if (bench->variant && strcmp(bench->variant, answer.variants[v]) != 0)
            continue;
        found = true;
        check.variant = answer.variants[v];
        if (answer.variant_count > 1 && is_refused(&check, &c->desc.head))
            continue;
        out_result->detail[0] = '\0';
        ran = true;
        run_pass(&check);
    }
    if (found && !ran)
        out_result->verdict = SL_VERDICT_UNSUPPORTED;
    else if (ran && out_result->verdict == SL_VERDICT_PASS)
        out_result->detail[0] = '\0';
    if (!found) {
        out_result->verdict = SL_VERDICT_SKIP;
        sl_text_snprintf(out_result->detail, sizeof out_result->detail, "the case has no variant %s", bench->variant);
    }
out:
    if (bench->outlet) {
        char wrote[160];
        if (sl_outlet_end(bench->outlet, wrote, sizeof wrote))
            sl_check_fail(&check, "it %s", wrote);
    }
    const int64_t own = sl_allocations_take_own();
    if (own > 0)
        sl_check_fail(&check,
                      "forward and backward allocated %lld times past the host (malloc or its like), expected never",
                      (long long)own);
    if (bench->misdeed && bench->misdeed[0])
        sl_check_fail(&check, "%s", bench->misdeed);
    sl_arena_deinit(&arena);
}
