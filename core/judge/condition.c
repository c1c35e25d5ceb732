/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the reference with perturbed inputs. */
#include "judge/condition.h"

#include <math.h>
#include <string.h>

#include <seqlstm/philox.h>

enum { DRAWS = 4 };

/* 16 units of rounding in the dtype of the activations. */
static double movement(const struct sl_data *d)
{
    return 16 * sl_dtype_eps(d->c.dtype);
}

/* Copies the data and moves its floating-point inputs; the copy shares the rest. */
static struct sl_data *perturb(struct sl_arena *arena, const struct sl_data *data, uint64_t draw)
{
    struct sl_data *copy = SL_ARENA_NEW(arena, struct sl_data);
    double **values = SL_ARENA_ARRAY(arena, double *, (size_t)data->count);
    if (!copy || !values)
        return NULL;
    *copy = *data;
    copy->values = values;
    for (int32_t k = 0; k < data->count; k++) {
        const struct sl_slot *s = &data->slots[k];
        values[k] = data->values[k];
        if (!values[k] || !sl_slot_is_float(s) || (s->role != SL_SLOT_INPUT && s->role != SL_SLOT_PARAM))
            continue;
        values[k] = SL_ARENA_ARRAY(arena, double, (size_t)data->elems[k]);
        if (!values[k])
            return NULL;
        uint64_t key = seqlstm_mix64(draw, (uint64_t)k, UINT64_C(0xC0D1));
        for (int64_t i = 0; i < data->elems[k]; i++) {
            double sign = seqlstm_uniform(key, (uint64_t)i, 0, 0) < 0.5f ? -1 : 1;
            values[k][i] = data->values[k][i] * (1 + sign * movement(data));
        }
    }
    return copy;
}

static seqlstm_status run(struct sl_runner *runner, const struct sl_data *data, bool backward,
                          struct seqlstm_error *err)
{
    const uint32_t all = SEQLSTM_BIT_BACKWARD_INPUTS | SEQLSTM_BIT_BACKWARD_STATES | SEQLSTM_BIT_BACKWARD_WEIGHTS;
    sl_runner_set_data(runner, data);
    SEQLSTM_TRY(sl_runner_forward(runner, err));
    return backward ? sl_runner_backward(runner, all, false, err) : SEQLSTM_OK;
}

/* Raises `largest` to the distance between `now` and `base` where that is larger. */
static void widen(double *largest, const double *base, const double *now, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        double moved = fabs(now[i] - base[i]);
        if (isfinite(moved) && moved > largest[i])
            largest[i] = moved;
    }
}

struct reading {
    double **base[2], **largest[2]; /* [gradient][slot] */
    double *scratch;
};

static bool read_base(struct sl_arena *arena, const struct sl_runner *runner, const struct sl_data *d,
                      struct reading *r)
{
    int64_t most = 1;
    for (int g = 0; g < 2; g++) {
        r->base[g] = SL_ARENA_ARRAY(arena, double *, (size_t)d->count);
        r->largest[g] = SL_ARENA_ARRAY(arena, double *, (size_t)d->count);
        if (!r->base[g] || !r->largest[g])
            return false;
    }
    for (int32_t k = 0; k < d->count; k++) {
        most = d->elems[k] > most ? d->elems[k] : most;
        for (int g = 0; g < 2 && d->elems[k] > 0; g++) {
            double *base = SL_ARENA_ARRAY(arena, double, (size_t)d->elems[k]);
            if (!base)
                return false;
            if (!sl_runner_read(runner, k, g != 0, base))
                continue;
            r->base[g][k] = base;
            r->largest[g][k] = SL_ARENA_ARRAY(arena, double, (size_t)d->elems[k]);
            if (!r->largest[g][k])
                return false;
        }
    }
    r->scratch = SL_ARENA_ARRAY(arena, double, (size_t)most);
    return r->scratch != NULL;
}

seqlstm_status sl_condition_create(struct sl_arena *arena, const struct sl_subject *reference,
                                   const struct sl_data *data, struct sl_condition **out_condition,
                                   struct seqlstm_error *err)
{
    struct sl_condition *condition = SL_ARENA_NEW(arena, struct sl_condition);
    struct sl_runner *runner = NULL;
    struct reading r;
    bool backward = sl_op_has_backward(data->c.desc.head.op) && data->c.desc.head.mode == SEQLSTM_MODE_TRAINING;
    seqlstm_status rc = sl_runner_create(reference, data, NULL, NULL, &runner, err);
    if (rc == SEQLSTM_OK)
        rc = run(runner, data, backward, err);
    if (rc != SEQLSTM_OK)
        goto out;
    rc = SEQLSTM_NO_MEMORY;
    if (!condition || !read_base(arena, runner, data, &r))
        goto out;
    for (uint64_t draw = 0; draw < DRAWS; draw++) {
        struct sl_data *moved = perturb(arena, data, draw);
        sl_runner_move_slopes(runner, movement(data), draw);
        rc = moved ? run(runner, moved, backward, err) : SEQLSTM_NO_MEMORY;
        if (rc != SEQLSTM_OK)
            goto out;
        for (int32_t k = 0; k < data->count; k++)
            for (int g = 0; g < 2; g++)
                if (r.base[g][k] && sl_runner_read(runner, k, g != 0, r.scratch))
                    widen(r.largest[g][k], r.base[g][k], r.scratch, data->elems[k]);
    }
    condition->outputs = r.largest[0];
    condition->grads = r.largest[1];
    *out_condition = condition;
    rc = SEQLSTM_OK;
out:
    sl_runner_destroy(runner);
    if (rc == SEQLSTM_NO_MEMORY)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "out of memory for the condition of case %s", data->c.text);
    return rc;
}
