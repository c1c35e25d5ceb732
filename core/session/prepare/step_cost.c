/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the cost of a step of training on the backends that the plan chose: runs batches of equal lengths, short and
 * long ones, of increasing width. The slope between the lengths is the cost of a step. For pairs, one side has its two
 * lengths while the other has the average length of the data. */
#include "session/prepare/step_cost.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "session/measure/made_batch.h"
#include "session/prepare/stage.h"
#include "session/record/session_record.h"

enum {
    LONG_STEPS = 15, /* of the longer batch; the shorter one has a third */
    ROUNDS = 4       /* runs of a shape, all shapes in turn; the first is a warm-up, the fastest of the others counts */
};

/* A width with its two lengths; for pairs also the length of the other side. */
struct probe {
    int64_t width, steps[2], other;
    bool is_source;
    double ns[2], first_ns;
};

/* A batch of the probe's width whose targets count; `length` 0 or 1: which of its two lengths. */
static seqlstm_status make_batch(const struct sl_data_facts *facts, const struct probe *probe, int length,
                                 struct sl_batch **out_batch, struct seqlstm_error *err)
{
    int64_t width = probe->width, steps = probe->is_source ? probe->other : probe->steps[length];
    int32_t *lengths = malloc(2 * (size_t)width * sizeof *lengths);
    if (lengths == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for a batch");
    for (int64_t k = 0; k < width; k++) {
        lengths[k] = (int32_t)steps;
        lengths[width + k] = (int32_t)(probe->is_source ? probe->steps[length] : probe->other);
    }
    seqlstm_status status = sl_session_make_batch(
        facts, width, lengths, facts->source.kind != SL_FIELD_NONE ? lengths + width : NULL, out_batch, err);
    free(lengths);
    return status;
}

/* Runs one batch of the shape and keeps the fastest time; returns the time of this run. */
static seqlstm_status time_shape(struct sl_exec *exec, const struct sl_data_facts *facts, const struct probe *probe,
                                 int length, double *best_ns, double *out_ns, struct seqlstm_error *err)
{
    struct sl_batch *batch = NULL;
    struct sl_exec_result result;
    struct sl_exec_step step = {.normaliser = 1.0 / (double)(probe->width * probe->steps[length])};
    SEQLSTM_TRY(make_batch(facts, probe, length, &batch, err));
    int64_t start = sl_clock_ns();
    seqlstm_status status = sl_exec_run(exec, batch, &step, &result, err);
    *out_ns = (double)(sl_clock_ns() - start);
    *best_ns = fmin(*best_ns, *out_ns);
    sl_batch_destroy(batch);
    return status;
}

/* An update that changes nothing: learning rate and gradients are 0, and the optimizer's state stays zero. */
static seqlstm_status time_update(struct sl_exec *exec, const struct sl_params *params, double *out_ns,
                                  struct seqlstm_error *err)
{
    const struct sl_exec_update update = {.count = 1};
    double squares;
    *out_ns = INFINITY;
    SEQLSTM_TRY(sl_exec_vector(exec, SEQLSTM_KIND_VECTOR_FILL, params->grads, NULL, params->trainable_elems, 0, err));
    for (int i = 0; i < 3; i++) {
        int64_t start = sl_clock_ns();
        SEQLSTM_TRY(sl_exec_update(exec, &update, &squares, err));
        *out_ns = fmin(*out_ns, (double)(sl_clock_ns() - start));
    }
    return SEQLSTM_OK;
}

/* Powers of two and the widest batch, for a side with at most `most` steps and `rows` rows. Widths whose batches have
 * at most one step are left out. */
static int32_t list_probes(int64_t most, int64_t rows, int64_t sequences, struct probe *probes)
{
    int64_t longest = most < LONG_STEPS ? most : LONG_STEPS;
    int32_t count = 0;
    for (int64_t width = 1; count < SL_STEP_COST_MOST; width *= 2) {
        bool last = width >= sequences || count == SL_STEP_COST_MOST - 1;
        width = last ? sequences : width;
        int64_t steps = rows / width < longest ? rows / width : longest;
        if (steps >= 2)
            probes[count++] = (struct probe){.width = width, .steps = {(steps + 2) / 3, steps}};
        if (last || steps < 2)
            break;
    }
    return count;
}

/* Steps of the other side: the average length of the data, as far as it fits. */
static int64_t choose_other(int64_t all_rows, int64_t records, int64_t rows, int64_t width)
{
    int64_t mean = records > 0 ? (all_rows + records - 1) / records : 1;
    int64_t fitting = rows / width;
    return mean < 1 ? 1 : mean < fitting || fitting < 1 ? mean : fitting;
}

/* The probes of both sides, first those of the decoder (or of the only side). */
static int32_t list_sides(const struct sl_data_facts *facts, const struct sl_envelope *e, struct probe *probes,
                          int32_t *out_own)
{
    int32_t count = *out_own = list_probes(e->steps, e->rows, e->sequences, probes);
    bool pairs = facts->source.kind != SL_FIELD_NONE;
    count += pairs ? list_probes(e->source_steps, e->source_rows, e->sequences, probes + count) : 0;
    for (int32_t p = 0; p < count && pairs; p++) {
        struct probe *probe = &probes[p];
        probe->is_source = p >= *out_own;
        int64_t all_rows = probe->is_source ? facts->rows : facts->source_rows;
        probe->other =
            choose_other(all_rows, facts->records, probe->is_source ? e->rows : e->source_rows, probe->width);
    }
    return count;
}

static struct sl_step_cost_point find_slope(const struct probe *probe)
{
    double more = (double)(probe->steps[1] - probe->steps[0]);
    return (struct sl_step_cost_point){probe->width, fmax((probe->ns[1] - probe->ns[0]) / more, 1)};
}

static seqlstm_status measure(struct sl_exec *exec, const struct sl_params *params, const struct sl_data_facts *facts,
                              const struct sl_envelope *envelope, struct sl_step_cost *out, struct seqlstm_error *err)
{
    struct sl_step_cost cost = {0};
    struct probe probes[2 * SL_STEP_COST_MOST];
    double update, ns, ignored = INFINITY;
    int32_t all = list_sides(facts, envelope, probes, &cost.count);
    cost.source_count = all - cost.count;
    for (int round = 0; round < ROUNDS; round++) {
        for (int32_t p = 0; p < 2 * all; p++) {
            struct probe *probe = &probes[p / 2];
            probe->ns[p % 2] = round == 0 ? INFINITY : probe->ns[p % 2];
            double *best = round == 0 ? &ignored : &probe->ns[p % 2];
            SEQLSTM_TRY(time_shape(exec, facts, probe, p % 2, best, &ns, err));
            probe->first_ns = round == 0 ? ns : probe->first_ns;
        }
    }
    for (int32_t p = 0; p < cost.count; p++)
        cost.points[p] = find_slope(&probes[p]);
    for (int32_t p = cost.count; p < all; p++)
        cost.source_points[p - cost.count] = find_slope(&probes[p]);
    sl_step_cost_smooth(&cost);
    SEQLSTM_TRY(time_update(exec, params, &update, err));
    if (cost.count > 0) {
        const struct probe *widest = &probes[cost.count - 1];
        double steps_ns = (double)widest->steps[1] * cost.points[cost.count - 1].step_ns;
        if (cost.source_count > 0)
            steps_ns += (double)widest->other * sl_step_cost_source_at(&cost, (double)widest->width);
        cost.batch_ns = update + fmax(widest->ns[1] - steps_ns, 0);
        cost.shape_ns = fmax(widest->first_ns - widest->ns[1], 0);
    }
    *out = cost;
    return SEQLSTM_OK;
}

seqlstm_status sl_session_measure_steps(struct sl_session *session, const struct sl_envelope *envelope,
                                        struct sl_step_cost *out, struct seqlstm_error *err)
{
    const struct sl_data_facts *facts = sl_data_state_get_facts(session->state);
    struct sl_stage probe = {0};
    *out = (struct sl_step_cost){0};
    if (!facts->has_steps)
        return SEQLSTM_OK;
    seqlstm_status status = sl_session_prepare(session, SL_PHASE_TRAIN, envelope, false, true, NULL, &probe, err);
    if (status == SEQLSTM_OK)
        status = measure(probe.exec, session->params, facts, envelope, out, err);
    sl_stage_deinit(&probe);
    return status;
}
