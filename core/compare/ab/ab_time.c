/* SPDX-License-Identifier: Apache-2.0 */
/* See ab_time.h.
 *
 *   round   both sides get new weights, buffers and bindings, in a random order: addresses of memory are then part of
 *           the noise, not of the difference. Two steps warm up
 *   block   A B B A or B A A B
 *   turn    consecutive steps of one side, for at least 2 ms. If there is more than one, a step without timing comes
 *           first: caches and threads are then as in training, where a backend runs after itself */
#include "compare/ab/ab_time.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <seqlstm/philox.h>

#include "base/system/clock.h"
#include "base/value/median.h"

enum { ROUNDS_GOAL = 200, SECONDS_TIMES = 5, BLOCKS_MOST = 64, STEPS_MOST = 256 };
static const double turn_ns_least = 2e6;

struct timer {
    const struct sl_ab_time_request *request;
    int32_t columns;                  /* 1 + calls */
    double *turn[2];                  /* [columns] of the current turn */
    double *logs, *ns[2];             /* [columns][SL_AB_ROUNDS_MOST] */
    double *block_logs, *block_ns[2]; /* [columns][BLOCKS_MOST] of the current round */
    int64_t rounds, next_look;        /* next_look: the round after which the interval is checked again */
    struct seqlstm_error *err;
};

/* How a round is divided. */
struct pace {
    int32_t lead, steps, blocks;
};

static seqlstm_status start_both(struct timer *t, bool b_first, int32_t batch, double *out_step_ns)
{
    struct sl_compare_side *const *sides = t->request->sides;
    *out_step_ns = 0;
    for (int i = 0; i < 2; i++)
        SEQLSTM_TRY(sides[i]->table->stop(sides[i], t->err));
    for (int i = 0; i < 2; i++) {
        struct sl_compare_side *side = sides[i != b_first];
        struct sl_compare_side_result result;
        int64_t ns;
        SEQLSTM_TRY(side->table->start(side, batch, &result, &ns, t->err));
        *out_step_ns += 0.5 * (double)ns;
    }
    return SEQLSTM_OK;
}

static struct pace choose_pace(const struct timer *t, double step_ns, double setup_ns)
{
    struct pace pace = {.steps = 1};
    double steps = ceil(turn_ns_least / fmax(step_ns, 1));
    pace.steps = steps > STEPS_MOST ? STEPS_MOST : (int32_t)steps;
    pace.lead = pace.steps > 1;
    double block_ns = 4 * step_ns * (pace.steps + pace.lead);
    double blocks = fmax(setup_ns / block_ns, 1e9 * t->request->seconds / ROUNDS_GOAL / block_ns);
    pace.blocks = blocks < 1 ? 1 : blocks > BLOCKS_MOST ? BLOCKS_MOST : (int32_t)blocks;
    return pace;
}

/* Runs one block: both orders, so that drift and the position in the order cancel. */
static seqlstm_status run_block(struct timer *t, const struct pace *pace, bool b_first, int32_t block)
{
    for (int32_t c = 0; c < t->columns; c++)
        t->block_logs[c * BLOCKS_MOST + block] = 0;
    for (int i = 0; i < 4; i++) {
        int is_b = (i == 1 || i == 2) != b_first;
        struct sl_compare_side *side = t->request->sides[is_b];
        SEQLSTM_TRY(side->table->take_turn(side, pace->lead, pace->steps, t->turn[is_b], t->err));
        for (int32_t c = 0; c < t->columns; c++) {
            double ns = fmax(t->turn[is_b][c], 1);
            t->block_logs[c * BLOCKS_MOST + block] += (is_b ? 0.5 : -0.5) * log(ns);
            double *sum = &t->block_ns[is_b][c * BLOCKS_MOST + block];
            *sum = i < 2 ? 0.5 * ns : *sum + 0.5 * ns;
        }
    }
    return SEQLSTM_OK;
}

static seqlstm_status run_round(struct timer *t)
{
    uint64_t key = seqlstm_mix64(t->request->seed, 0xAB, (uint64_t)t->rounds);
    double step_ns;
    int64_t begin = sl_clock_ns();
    SEQLSTM_TRY(start_both(t, key & 1, (int32_t)(t->rounds % t->request->batches), &step_ns));
    struct pace pace = choose_pace(t, step_ns, (double)(sl_clock_ns() - begin));
    for (int32_t block = 0; block < pace.blocks; block++)
        SEQLSTM_TRY(run_block(t, &pace, key >> (1 + block % 63) & 1, block));
    for (int32_t c = 0; c < t->columns; c++) {
        int64_t at = (int64_t)c * SL_AB_ROUNDS_MOST + t->rounds;
        t->logs[at] = sl_median(t->block_logs + (int64_t)c * BLOCKS_MOST, pace.blocks);
        for (int i = 0; i < 2; i++)
            t->ns[i][at] = sl_median(t->block_ns[i] + (int64_t)c * BLOCKS_MOST, pace.blocks);
    }
    t->rounds++;
    return SEQLSTM_OK;
}

/* Returns true if the interval of the whole step is narrow enough. Only its width is checked, never its position. So
 * it contains the true ratio as often as an interval after a fixed number of rounds. There are few checks: each
 * comes after a third more rounds. */
static bool is_narrow(struct timer *t)
{
    struct sl_interval i;
    if (t->request->within <= 0)
        return true;
    if (t->rounds < t->next_look)
        return false;
    t->next_look = t->rounds + (t->rounds + 2) / 3;
    return sl_interval_compute(t->logs, t->rounds, t->request->confidence, t->request->seed, &i, NULL) == SEQLSTM_OK &&
           i.high <= i.ratio * (1 + t->request->within) && i.low >= i.ratio / (1 + t->request->within);
}

/* Returns true if there are enough rounds, or no time is left. An interval needs the least number of rounds, and its
 * width. */
static bool is_over(struct timer *t, double gone)
{
    const struct sl_ab_time_request *r = t->request;
    if (t->rounds == SL_AB_ROUNDS_MOST)
        return true;
    if (r->rounds > 0)
        return t->rounds >= r->rounds;
    return gone >= SECONDS_TIMES * r->seconds ||
           (gone >= r->seconds && t->rounds >= SL_INTERVAL_ROUNDS_LEAST && is_narrow(t));
}

static seqlstm_status run(struct timer *t)
{
    int64_t begin = sl_clock_ns();
    for (double gone = 0; !is_over(t, gone); gone = 1e-9 * (double)(sl_clock_ns() - begin)) {
        if (sl_interrupt_get_stop(t->request->interrupt))
            SEQLSTM_FAIL(t->err, SEQLSTM_CANCELLED, "interrupted");
        if (t->request->on_progress)
            t->request->on_progress(t->request->context, gone);
        SEQLSTM_TRY(run_round(t));
    }
    if (sl_interrupt_get_stop(t->request->interrupt)) /* in the last round */
        SEQLSTM_FAIL(t->err, SEQLSTM_CANCELLED, "interrupted");
    return SEQLSTM_OK;
}

static seqlstm_status summarise(struct timer *t, struct sl_ab_time *out_times)
{
    for (int32_t c = 0; c < t->columns; c++) {
        int64_t at = (int64_t)c * SL_AB_ROUNDS_MOST;
        SEQLSTM_TRY(sl_interval_compute(t->logs + at, t->rounds, t->request->confidence, t->request->seed,
                                        &out_times[c].interval, t->err));
        out_times[c].a_ns = sl_median(t->ns[0] + at, t->rounds);
        out_times[c].b_ns = sl_median(t->ns[1] + at, t->rounds);
    }
    return SEQLSTM_OK;
}

seqlstm_status sl_ab_time_run(const struct sl_ab_time_request *request, struct sl_ab_time *out_times,
                              struct seqlstm_error *err)
{
    struct timer t = {.request = request, .columns = 1 + request->calls, .err = err};
    size_t columns = (size_t)t.columns, rounds = columns * SL_AB_ROUNDS_MOST, blocks = columns * BLOCKS_MOST;
    double *room = malloc((2 * columns + 3 * rounds + 3 * blocks) * sizeof *room);
    if (!room)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory for the times");
    t.turn[0] = room;
    t.turn[1] = t.turn[0] + columns;
    t.logs = t.turn[1] + columns;
    t.ns[0] = t.logs + rounds;
    t.ns[1] = t.ns[0] + rounds;
    t.block_logs = t.ns[1] + rounds;
    t.block_ns[0] = t.block_logs + blocks;
    t.block_ns[1] = t.block_ns[0] + blocks;
    seqlstm_status status = run(&t);
    if (status == SEQLSTM_OK)
        status = summarise(&t, out_times);
    free(room);
    return status;
}
