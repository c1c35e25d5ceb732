/* SPDX-License-Identifier: Apache-2.0 */
/* See check.h. */
#include "judge/check.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#include "base/value/text.h"
#include "registry/registry.h"
#include "judge/tolerance.h"

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
        check->no_memory |= rc == SEQLSTM_NO_MEMORY;
        sl_check_fail(check, "%s returned status %d: %.400s", what, (int)rc,
                      err->message[0] ? err->message : "(without a reason)");
    }
    return false;
}

/* ---- comparing -------------------------------------------------------------------------------- */

/* The sensitivity of a result, measured when its first element is beyond the tolerance; NULL: unknown. */
static const double *movement_of(struct sl_check *check, int32_t k, bool gradient)
{
    struct seqlstm_error err = SEQLSTM_ERROR_INIT;
    if (!check->condition) {
        const seqlstm_status status =
            sl_condition_create(check->arena, &check->bench->reference, check->data, &check->condition, &err);
        check->no_memory |= status == SEQLSTM_NO_MEMORY;
        if (status != SEQLSTM_OK)
            return NULL;
    }
    return gradient ? check->condition->grads[k] : check->condition->outputs[k];
}

/* Returns true if moving the inputs by 16 units of rounding (2^-20) moves this result by a thousandth of its size.
 * Then rounding alone decides the result, and neither pass nor fail would mean anything. */
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
        check->no_memory = true;
        sl_check_fail(check, "out of memory for the comparison of %s", slot->name);
    } else if (sl_runner_read(expected, k, gradient, b) && sl_runner_read(got, k, gradient, a)) {
        struct sl_comparison c;
        struct sl_tolerance tolerance = sl_tolerance_get(d, k, gradient);
        sl_compare(a, b, NULL, n, tolerance, &c);
        const double *movement = c.failed ? movement_of(check, k, gradient) : NULL;
        if (movement)
            sl_compare(a, b, movement, n, tolerance, &c);
        if (c.failed && check->no_memory) {
            sl_check_fail(check, "out of memory for the sensitivity of %s", slot->name);
            goto out;
        }
        if (c.failed && movement && is_chaotic(b, movement, n) && isfinite(c.worst)) {
            check->result->verdict = SL_VERDICT_SKIP;
            sl_text_snprintf(check->result->detail, sizeof check->result->detail,
                             "too sensitive to judge: rounding of the inputs alone moves %s%s by a thousandth",
                             gradient ? "d" : "", slot->name);
            goto out;
        }
        if (!(c.worst <= check->result->worst)) {
            check->result->worst = sl_text_unsign_nan(c.worst);
            sl_text_snprintf(check->result->variant, sizeof check->result->variant, "%s",
                             check->variant ? check->variant : "");
        }
        if (c.failed)
            sl_check_fail(check, "%s: %s%s[%lld, %lld] is %.9g, expected %.9g (error %.3g, tolerance %.3g)", what,
                          gradient ? "d" : "", slot->name, (long long)(c.index / slot->features),
                          (long long)(c.index % slot->features), sl_text_unsign_nan(c.got),
                          sl_text_unsign_nan(c.expected), sl_text_unsign_nan(fabs(c.got - c.expected)), c.tolerance);
    }
out:
    sl_arena_deinit(&scratch);
}

static bool is_asked(const struct sl_data *d, int32_t k, uint32_t parts)
{
    const struct sl_slot *s = &d->slots[k];
    if (s->role == SL_SLOT_PARAM)
        return parts & SEQLSTM_BIT_BACKWARD_WEIGHTS;
    if (s->role != SL_SLOT_INPUT)
        return false;
    if (d->c.desc.head.op == SEQLSTM_OP_RECURRENT && s->axis == SL_SLOT_ON_STATES)
        return parts & SEQLSTM_BIT_BACKWARD_STATES;
    return (parts & SEQLSTM_BIT_BACKWARD_INPUTS) && !d->c.no_input_grad;
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
