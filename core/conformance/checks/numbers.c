/* SPDX-License-Identifier: Apache-2.0 */
/* The passes inf, fwd and bwd: results, and the gradients of all parts together and of each part alone. */
#include "conformance/checks/checks.h"

static bool has_backward(const struct sl_check *check)
{
    return check->data->c.pass == SL_PASS_BACKWARD && sl_op_has_backward(check->data->c.desc.head.op);
}

#define ALL_PARTS (SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_STATES | SEQLSTM_BIT_BACKWARD_WEIGHTS)

static bool run_reference(struct sl_check *check, struct sl_runner *expected, bool accumulate)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    return sl_check_status(check, sl_runner_forward(expected, &err), "forward of the reference", &err) &&
           sl_check_status(check, sl_runner_backward(expected, ALL_PARTS, accumulate, &err),
                           "backward of the reference", &err);
}

/* Forward and one backward, compared with the results of the reference's last backward (of all parts). */
static bool compare_backward(struct sl_check *check, struct sl_runner *got, struct sl_runner *expected, uint32_t parts,
                             bool accumulate, const char *what)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (!sl_check_status(check, sl_runner_forward(got, &err), "forward", &err) ||
        !sl_check_status(check, sl_runner_backward(got, parts, accumulate, &err), "backward", &err))
        return false;
    sl_check_compare(check, got, expected, true, parts, what);
    return check->result->verdict == SL_VERDICT_PASS;
}

void sl_check_numbers(struct sl_check *check)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct sl_runner *got = NULL, *expected = NULL;
    if (!sl_check_status(check, sl_runner_create(&check->bench->subject, check->data, check->variant, NULL, &got, &err),
                         "creating the operation", &err))
        goto out;
    if (sl_runner_create(&check->bench->reference, check->data, NULL, NULL, &expected, &err) != SEQLSTM_OK) {
        /* it computes every operation of the contract: a case that it refuses is a mistake of the catalogue */
        sl_check_fail(check, "the reference cannot run it: %.400s", err.message);
        goto out;
    }
    if (!has_backward(check)) {
        if (sl_check_status(check, sl_runner_forward(got, &err), "forward", &err) &&
            sl_check_status(check, sl_runner_forward(expected, &err), "forward of the reference", &err))
            sl_check_compare(check, got, expected, false, 0, "forward");
        goto out;
    }
    static const char *const part_names[] = {"dx alone", "dh0 and dc0 alone", "dW alone"};
    if (!run_reference(check, expected, false) || !compare_backward(check, got, expected, ALL_PARTS, false, "backward"))
        goto out;
    for (int part = 0; part < 3; part++)
        if (!compare_backward(check, got, expected, 1u << part, false, part_names[part]))
            goto out;
    if (run_reference(check, expected, true))
        compare_backward(check, got, expected, ALL_PARTS, true, "backward, accumulating");
out:
    sl_runner_destroy(got);
    sl_runner_destroy(expected);
}
