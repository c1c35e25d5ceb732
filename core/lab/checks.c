/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts, comparisons, and the passes that compare with the reference. */
#include "lab/checks.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/value/text.h"
#include "registry/registry.h"
#include "lab/tolerance.h"

const char *sl_verdict_name(enum sl_verdict verdict)
{
    static const char *const names[SL_VERDICT_COUNT] = {"pass",        "fail",  "crash", "skip",
                                                        "unsupported", "xfail", "xpass"};
    return (unsigned)verdict < SL_VERDICT_COUNT ? names[verdict] : "unknown";
}

bool sl_verdict_is_bad(enum sl_verdict verdict)
{
    return verdict == SL_VERDICT_FAIL || verdict == SL_VERDICT_CRASH || verdict == SL_VERDICT_XPASS;
}

void sl_check_fail(struct sl_check *check, const char *format, ...)
{
    struct sl_check_result *r = check->result;
    if (r->verdict == SL_VERDICT_FAIL)
        return;
    r->verdict = SL_VERDICT_FAIL;
    va_list args;
    va_start(args, format);
    sl_text_vsnprintf(r->detail, sizeof r->detail, format, args);
    va_end(args);
    sl_text_snprintf(r->variant, sizeof r->variant, "%s", check->variant ? check->variant : "");
}

bool sl_check_status(struct sl_check *check, seqlstm_status rc, const char *what, const struct seqlstm_error *err)
{
    if (rc == SEQLSTM_OK)
        return true;
    if (rc == SEQLSTM_UNSUPPORTED && check->result->verdict == SL_VERDICT_PASS) {
        check->result->verdict = SL_VERDICT_UNSUPPORTED;
        sl_text_snprintf(check->result->detail, sizeof check->result->detail, "%.500s", err->message);
    } else {
        sl_check_fail(check, "%s returned status %d: %.400s", what, (int)rc,
                      err->message[0] ? err->message : "(without a reason)");
    }
    return false;
}

/* ---- comparing -------------------------------------------------------------------------------- */

/* Sensitivity of a result, measured when the first element is beyond its tolerance; NULL: unknown. */
static const double *movement_of(struct sl_check *check, int32_t k, bool gradient)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (!check->condition &&
        sl_condition_create(check->arena, &check->bench->reference, check->data, &check->condition, &err) != SEQLSTM_OK)
        return NULL;
    return gradient ? check->condition->grads[k] : check->condition->outputs[k];
}

/* Do inputs moved by 16 units of rounding (2^-20) move this result by a thousandth of its size? Then rounding alone
 * decides what comes out, and neither pass nor fail would mean anything. */
static bool is_chaotic(const double *expected, const double *movement, int64_t n)
{
    double size = 0, moved = 0;
    for (int64_t i = 0; i < n; i++) {
        size += expected[i] * expected[i];
        moved += movement[i] * movement[i];
    }
    return moved > 1e-6 * size;
}

static void compare_slot(struct sl_check *check, const struct sl_runner *got, const struct sl_runner *expected,
                         int32_t k, bool gradient, const char *what)
{
    const struct sl_data *d = check->data;
    const struct sl_slot *slot = &d->slots[k];
    int64_t n = d->elems[k];
    struct sl_arena scratch;
    sl_arena_init(&scratch);
    double *a = SL_ARENA_ARRAY(&scratch, double, (size_t)n), *b = SL_ARENA_ARRAY(&scratch, double, (size_t)n);
    if (!a || !b) {
        sl_check_fail(check, "out of memory for the comparison of %s", slot->name);
    } else if (sl_runner_read(expected, k, gradient, b) && sl_runner_read(got, k, gradient, a)) {
        struct sl_comparison c;
        struct sl_tolerance tolerance = sl_tolerance_get(d, k, gradient);
        sl_compare(a, b, NULL, n, tolerance, &c);
        const double *movement = c.failed ? movement_of(check, k, gradient) : NULL;
        if (movement)
            sl_compare(a, b, movement, n, tolerance, &c);
        if (c.failed && movement && is_chaotic(b, movement, n) && isfinite(c.worst)) {
            check->result->verdict = SL_VERDICT_SKIP;
            sl_text_snprintf(check->result->detail, sizeof check->result->detail,
                             "too sensitive to judge: rounding of the inputs alone moves %s%s by a thousandth",
                             gradient ? "d" : "", slot->name);
            goto out;
        }
        if (!(c.worst <= check->result->worst)) {
            check->result->worst = c.worst;
            sl_text_snprintf(check->result->variant, sizeof check->result->variant, "%s",
                             check->variant ? check->variant : "");
        }
        if (c.failed)
            sl_check_fail(check, "%s: %s%s[%lld, %lld] is %.9g, expected %.9g (error %.3g, tolerance %.3g)", what,
                          gradient ? "d" : "", slot->name, (long long)(c.index / slot->features),
                          (long long)(c.index % slot->features), c.got, c.expected, fabs(c.got - c.expected),
                          c.tolerance);
    }
out:
    sl_arena_deinit(&scratch);
}

static bool is_asked(const struct sl_data *d, int32_t k, uint32_t parts)
{
    const struct sl_slot *s = &d->slots[k];
    if (s->role == SL_SLOT_PARAM)
        return parts & SEQLSTM_BACKWARD_WEIGHTS;
    if (s->role != SL_SLOT_INPUT)
        return false;
    if (d->c.desc.head.op == SEQLSTM_OP_RECURRENT && s->axis == SL_SLOT_ON_STATES)
        return parts & SEQLSTM_BACKWARD_STATES;
    return (parts & SEQLSTM_BACKWARD_INPUTS) && !d->c.no_input_grad;
}

void sl_check_compare(struct sl_check *check, const struct sl_runner *got, const struct sl_runner *expected,
                      bool gradients, uint32_t parts, const char *what)
{
    char damage[200];
    for (int32_t k = 0; k < check->data->count && check->result->verdict == SL_VERDICT_PASS; k++)
        if (check->data->slots[k].role == SL_SLOT_OUTPUT || check->data->slots[k].role == SL_SLOT_INOUT)
            compare_slot(check, got, expected, k, false, what);
    for (int32_t k = 0; gradients && k < check->data->count && check->result->verdict == SL_VERDICT_PASS; k++)
        if (is_asked(check->data, k, parts) && sl_slot_is_float(&check->data->slots[k]))
            compare_slot(check, got, expected, k, true, what);
    if (sl_runner_find_damage(got, damage, sizeof damage))
        sl_check_fail(check, "%s: it %s", what, damage);
}

/* ---- inf, fwd, bwd ------------------------------------------------------------------------------ */

static bool has_backward(const struct sl_check *check)
{
    return check->data->c.pass == SL_PASS_BACKWARD && sl_op_has_backward(check->data->c.desc.head.op);
}

#define ALL_PARTS (SEQLSTM_BACKWARD_INPUTS | SEQLSTM_BACKWARD_STATES | SEQLSTM_BACKWARD_WEIGHTS)

static bool run_reference(struct sl_check *check, struct sl_runner *expected, bool accumulate)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    return sl_check_status(check, sl_runner_forward(expected, &err), "forward of the reference", &err) &&
           sl_check_status(check, sl_runner_backward(expected, ALL_PARTS, accumulate, &err),
                           "backward of the reference", &err);
}

/* Forward and one backward, compared with what the reference's last backward left (all parts of it). */
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
        check->result->verdict = SL_VERDICT_SKIP;
        sl_text_snprintf(check->result->detail, sizeof check->result->detail, "the reference cannot run it: %.400s",
                         err.message);
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

/* ---- one case ------------------------------------------------------------------------------------- */

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

/* One of several variants that op_create refuses, which the detail then says: it is the others' turn. */
static bool is_refused(struct sl_check *check, const struct seqlstm_desc *desc)
{
    const struct sl_subject *s = &check->bench->subject;
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    struct seqlstm_op *op = NULL;
    const seqlstm_status status = s->table->op_create(s->instance, s->device, desc, check->variant, &op, &err);
    if (status == SEQLSTM_OK)
        s->table->op_destroy(op);
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
    sl_arena_deinit(&arena);
}
