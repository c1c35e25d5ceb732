/* SPDX-License-Identifier: Apache-2.0 */
/* The pass about bytes that an operation's calls leave untouched, by its own answer. Predicted memory leaves them
 * out. */
#include <string.h>

#include "conformance/checks/checks.h"
#include "registry/answer.h"

/* Does the backend also offer the variant in this mode? Some exist only if there is a backward pass. */
static bool is_offered(struct sl_check *check, const struct seqlstm_desc *desc)
{
    const struct sl_subject *s = &check->bench->subject;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_answer answer;
    if (!sl_check_status(check, sl_table_supports(s->table, s->device_class, desc, &answer, &err), "supports", &err))
        return false;
    for (uint32_t v = 0; answer.accepted && v < answer.variant_count; v++)
        if (strcmp(answer.variants[v], check->variant) == 0)
            return true;
    return false;
}

static void check_mode(struct sl_check *check, uint32_t mode)
{
    struct sl_data data = *check->data;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_runner *runner = NULL;
    char text[200];
    const bool training = mode == SEQLSTM_MODE_TRAINING;
    sl_case_clear_rates(&data.c);
    data.c.desc.head.mode = mode;
    if (!is_offered(check, &data.c.desc.head))
        return;
    if (!sl_check_status(check, sl_runner_create(&check->bench->subject, &data, check->variant, NULL, &runner, &err),
                         "creating the operation", &err))
        return;
    bool any = false; /* without such an answer there is nothing to check */
    if (sl_check_status(check, sl_runner_ask_idle(runner, &any, &err), "idle_ranges", &err) && any &&
        sl_check_status(check, sl_runner_forward(runner, &err), "forward", &err) &&
        (!training || sl_check_status(check,
                                      sl_runner_backward(runner,
                                                         SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_STATES |
                                                             SEQLSTM_BIT_BACKWARD_WEIGHTS,
                                                         false, &err),
                                      "backward", &err)) &&
        sl_runner_find_busy(runner, text, sizeof text))
        sl_check_fail(check, "%s: %s", training ? "training" : "inference", text);
    sl_runner_destroy(runner);
}

void sl_check_idle(struct sl_check *check)
{
    check_mode(check, SEQLSTM_MODE_TRAINING);
    if (check->result->verdict == SL_VERDICT_PASS)
        check_mode(check, SEQLSTM_MODE_INFERENCE);
}
