/* SPDX-License-Identifier: Apache-2.0 */
/* See timing.h.
 *
 * First a probe: a few steps of one profile. From it follows how many profiles, and how long ones, fit into the budget.
 * Then rounds, until the fastest op is known, the budget is spent or SL_ROUNDS_MOST are done. While rounds differ much,
 * there are more of them; and no op is dropped because of rounds in which other programs took the processor (rounds.h).
 */
#include "dispatch/cost/timing.h"

#include <stdlib.h>
#include <string.h>

#include "base/system/clock.h"
#include "dispatch/cost/rounds.h"
#include "registry/plugin.h"

enum { PROBE_STEPS = 4, PROBES_MOST = 4, ROUNDS_BEHIND = 2, ROUNDS_LEAST = 3, REPEATS_MOST = 20 };
static const double sample_ns = 100e3; /* samples that take less are repeated */
/* Factors of the best: slower ops are dropped after the first probe, after the second probe (in both if they also take
 * so long: one run of a few microseconds says little, since a page fault or a sanitizer may add hundreds), after
 * rounds. */
static const double first_drop = 30, first_drop_ns = 250e6, second_drop = 3, second_drop_ns = 500e3, round_drop = 1.5;
static const double undecided = 1.1; /* ops within this factor of the best may still turn out faster */
static const double steady = 1.2;    /* rounds of the best that differ by more are not conclusive */
static const double again_ns = 50e6; /* a probe that takes more is not repeated */

/* The timings of one op. */
struct series {
    struct sl_timed_op *timed;
    struct sl_testbed *testbed; /* in the domain of its device; shared by all series of the domain */
    struct seqlstm_binding *bindings[SL_PROFILES];
    bool dropped; /* failed, or too slow to be timed further */
    int32_t repeats;
    struct sl_rounds rounds; /* weighted sums over the profiles */
};

struct timing {
    const struct sl_timing_request *request;
    struct series *series;
    int32_t count;
    int32_t profile_first, profile_count;
    double scale; /* from the batches that are run to a mean batch */
};

static void fail(struct series *series, const struct seqlstm_error *why)
{
    series->timed->failed = series->dropped = true;
    snprintf(series->timed->failure, sizeof series->timed->failure, "it failed when it was timed: %.150s",
             why->message[0] ? why->message : "without a message");
}

/* Runs once and returns the time; drops the series if it fails. False: it did not run. */
static bool run(struct series *series, int32_t profile, double *out_forward, double *out_backward)
{
    struct seqlstm_error why = SEQLSTM_ERROR_INIT;
    struct sl_timed_op *timed = series->timed;
    if (series->dropped)
        return false;
    seqlstm_status status = SEQLSTM_OK;
    if (series->bindings[profile] == NULL)
        status = sl_testbed_bind(series->testbed, timed->backend, timed->op, profile, &series->bindings[profile], &why);
    if (status == SEQLSTM_OK)
        status = sl_testbed_run(series->testbed, timed->backend, timed->op, timed->sizes, series->bindings[profile],
                                out_forward, out_backward, &why);
    if (status != SEQLSTM_OK)
        fail(series, &why);
    return status == SEQLSTM_OK;
}

static void leave(struct timing *timing)
{
    for (int32_t r = 0; r < timing->count; r++)
        for (int32_t p = 0; p < SL_PROFILES; p++)
            if (timing->series[r].bindings[p]) {
                sl_plugin_destroy_binding(sl_backend_get_table(timing->series[r].timed->backend),
                                          timing->series[r].bindings[p]);
                timing->series[r].bindings[p] = NULL;
            }
    for (int32_t r = 0; r < timing->count; r++) {
        struct sl_testbed *testbed = timing->series[r].testbed;
        for (int32_t k = r; k < timing->count; k++)
            if (timing->series[k].testbed == testbed)
                timing->series[k].testbed = NULL;
        sl_testbed_destroy(testbed);
    }
}

static const char *get_domain(const struct series *series)
{
    return sl_backend_get_device(series->timed->backend, series->timed->device)->domain;
}

/* One testbed for each domain. */
static seqlstm_status set_up(struct timing *timing, struct sl_testbed_request *request, struct seqlstm_error *err)
{
    for (int32_t r = 0; r < timing->count; r++) {
        struct series *series = &timing->series[r];
        for (int32_t k = 0; k < r && !series->testbed; k++)
            if (strcmp(get_domain(&timing->series[k]), get_domain(series)) == 0)
                series->testbed = timing->series[k].testbed;
        request->backend = series->timed->backend;
        request->device = series->timed->device;
        if (series->testbed == NULL)
            SEQLSTM_TRY(sl_testbed_create(request, &series->testbed, err));
    }
    return SEQLSTM_OK;
}

static double get_rows(const struct sl_timing_request *request, int32_t profile)
{
    const struct sl_profile *item = &request->profiles->items[profile];
    return (double)(request->on_steps ? sl_profile_get_rows(item) : item->sequences);
}

/* Does training meet the same shapes again, and so capture its steps? Equal batches share one profile: a stream or
 * sequences of equal length have one, and one for what is left at the end. */
static bool comes_again(const struct sl_timing_request *request)
{
    return request->desc->head.mode == SEQLSTM_MODE_TRAINING && request->profiles->count <= 2;
}

static seqlstm_status enter(struct timing *timing, int32_t first, int32_t count, int64_t steps_most,
                            struct seqlstm_error *err)
{
    const struct sl_timing_request *request = timing->request;
    struct seqlstm_sizes sizes = {0};
    for (int32_t r = 0; r < timing->count; r++) {
        const struct seqlstm_sizes *own = timing->series[r].timed->sizes;
        sizes.workspace_bytes =
            own->workspace_bytes > sizes.workspace_bytes ? own->workspace_bytes : sizes.workspace_bytes;
        sizes.reserve_bytes = own->reserve_bytes > sizes.reserve_bytes ? own->reserve_bytes : sizes.reserve_bytes;
        sizes.packed_bytes = own->packed_bytes > sizes.packed_bytes ? own->packed_bytes : sizes.packed_bytes;
    }
    struct sl_testbed_request testbed = {.desc = request->desc,
                                         .on_steps = request->on_steps,
                                         .backward = request->backward,
                                         .input_grad = request->input_grad,
                                         .param_grad = request->param_grad,
                                         .replays = comes_again(request),
                                         .profiles = request->profiles,
                                         .profile_first = first,
                                         .profile_count = count,
                                         .steps_most = steps_most,
                                         .sizes = &sizes,
                                         .pool = request->pool};
    timing->profile_first = first;
    timing->profile_count = count;
    SEQLSTM_TRY(set_up(timing, &testbed, err));
    double all = 0, here = 0;
    for (int32_t p = 0; p < request->profiles->count; p++)
        all += request->profiles->items[p].weight * get_rows(request, p);
    for (int32_t p = 0; p < count; p++)
        here += request->profiles->items[first + p].weight * (double)sl_testbed_get_rows(timing->series[0].testbed, p);
    timing->scale = all / here;
    return SEQLSTM_OK;
}

static seqlstm_status check_interrupt(const struct timing *timing, struct seqlstm_error *err)
{
    if (sl_interrupt_get_stop(timing->request->interrupt))
        SEQLSTM_FAIL(err, SEQLSTM_CANCELLED, "interrupted while backends were timed");
    return SEQLSTM_OK;
}

/* ---- the probe ---- */

/* Takes the times of a probe as the result, until there are rounds. */
static void note_probe(const struct timing *timing, struct series *series, double forward, double backward)
{
    double weight = timing->request->profiles->items[timing->profile_first].weight, ns = forward + backward;
    series->timed->forward_ns = forward * weight * timing->scale;
    series->timed->backward_ns = backward * weight * timing->scale;
    double repeats = sample_ns / (ns > 1 ? ns : 1);
    series->repeats = repeats < 1 ? 1 : repeats > REPEATS_MOST ? REPEATS_MOST : (int32_t)repeats;
}

/* Runs once. If other programs took the processor, runs a few times, and the fastest counts. False: it did not run. */
static bool run_undisturbed(struct series *series, double *out_forward, double *out_backward)
{
    int64_t before = sl_rounds_count_preemptions();
    if (!run(series, 0, out_forward, out_backward))
        return false;
    for (int32_t k = 1; k < PROBES_MOST && *out_forward + *out_backward < again_ns; k++) {
        const int64_t now = sl_rounds_count_preemptions();
        double forward, backward;
        if (now == before)
            break;
        before = now;
        if (!run(series, 0, &forward, &backward))
            return false;
        if (forward + backward < *out_forward + *out_backward) {
            *out_forward = forward;
            *out_backward = backward;
        }
    }
    return true;
}

/* Runs each once, and drops those that took more than `limit` times the best and more than `limit_ns`. Returns the
 * best. */
static seqlstm_status probe_once(struct timing *timing, double limit, double limit_ns, double *out_best,
                                 struct seqlstm_error *err)
{
    double best = 0, weight = timing->request->profiles->items[timing->profile_first].weight;
    for (int32_t r = 0; r < timing->count; r++) {
        double forward = 0, backward = 0;
        SEQLSTM_TRY(check_interrupt(timing, err));
        if (!run_undisturbed(&timing->series[r], &forward, &backward))
            continue;
        note_probe(timing, &timing->series[r], forward, backward);
        best = best == 0 || forward + backward < best ? forward + backward : best;
    }
    for (int32_t r = 0; r < timing->count; r++) {
        const struct sl_timed_op *timed = timing->series[r].timed;
        double ns = (timed->forward_ns + timed->backward_ns) / (weight * timing->scale);
        if (ns > limit * best && ns > limit_ns)
            timing->series[r].dropped = true;
    }
    *out_best = best;
    return SEQLSTM_OK;
}

/* Returns the time of the best for one row. The first run warms up memory and caches and generates code; after it, only
 * extremely slow ops are dropped. */
static seqlstm_status probe(struct timing *timing, double *out_row_ns, struct seqlstm_error *err)
{
    double best;
    SEQLSTM_TRY(enter(timing, timing->request->profiles->count / 2, 1, PROBE_STEPS, err));
    SEQLSTM_TRY(probe_once(timing, first_drop, first_drop_ns, &best, err));
    SEQLSTM_TRY(probe_once(timing, second_drop, second_drop_ns, &best, err));
    *out_row_ns = best / (double)sl_testbed_get_rows(timing->series[0].testbed, 0);
    leave(timing);
    return SEQLSTM_OK;
}

/* ---- rounds ---- */

static void run_round(const struct timing *timing, struct series *series)
{
    double forward = 0, backward = 0;
    const int64_t preemptions = sl_rounds_count_preemptions();
    for (int32_t p = 0; p < timing->profile_count; p++) {
        double f, b, weight = timing->request->profiles->items[timing->profile_first + p].weight;
        for (int32_t k = 0; k < series->repeats; k++) {
            if (!run(series, p, &f, &b))
                return;
            forward += weight * f / series->repeats;
            backward += weight * b / series->repeats;
        }
    }
    sl_rounds_add(&series->rounds, forward, backward, sl_rounds_count_preemptions() > preemptions);
}

/* Drops ops that are far slower than the best. True: the result is known. */
static bool settle(struct timing *timing)
{
    const struct sl_rounds *best = NULL;
    int32_t leaders = 0, running = 0;
    bool suffice = true;
    for (int32_t r = 0; r < timing->count; r++) {
        const struct series *series = &timing->series[r];
        if (!series->dropped && series->rounds.count > 0 &&
            (!best || sl_rounds_find(&series->rounds, 0.5) < sl_rounds_find(best, 0.5)))
            best = &series->rounds;
    }
    for (int32_t r = 0; r < timing->count && best; r++) {
        struct series *series = &timing->series[r];
        const struct sl_rounds *rounds = &series->rounds;
        if (series->dropped || rounds->count == 0)
            continue;
        running++;
        suffice &= sl_rounds_suffice(rounds, ROUNDS_LEAST);
        leaders += sl_rounds_find(rounds, 0) <= undecided * sl_rounds_find(best, 0.5);
        if (sl_rounds_suffice(rounds, ROUNDS_BEHIND) &&
            sl_rounds_find(rounds, 0) > round_drop * sl_rounds_find(best, 0.5))
            series->dropped = true;
    }
    return running == 0 || (suffice && leaders <= 1 && sl_rounds_find(best, 0.5) <= steady * sl_rounds_find(best, 0));
}

static void write_results(struct timing *timing)
{
    for (int32_t r = 0; r < timing->count; r++) {
        const struct series *series = &timing->series[r];
        struct sl_timed_op *timed = series->timed;
        if (series->rounds.count == 0)
            continue; /* the times of the probe stay */
        sl_rounds_get(&series->rounds, &timed->forward_ns, &timed->backward_ns);
        timed->forward_ns *= timing->scale;
        timed->backward_ns *= timing->scale;
    }
}

/* How many profiles and steps fit into the budget, for ROUNDS_LEAST rounds and one to warm up. */
static void fit_budget(const struct timing *timing, double row_ns, int64_t budget_ns, int32_t *out_count,
                       int64_t *out_steps)
{
    const struct sl_profiles *profiles = timing->request->profiles;
    int32_t series = 0, count = profiles->count;
    double need = 0;
    for (int32_t r = 0; r < timing->count; r++)
        series += !timing->series[r].dropped;
    for (;; count = (count + 1) / 2) {
        need = 0;
        for (int32_t p = 0; p < count; p++)
            need += get_rows(timing->request, (profiles->count - count) / 2 + p) * row_ns * series * (ROUNDS_LEAST + 1);
        if (count == 1 || need <= (double)budget_ns)
            break;
    }
    const int32_t *lengths = profiles->items[(profiles->count - count) / 2].lengths;
    *out_count = count;
    *out_steps = INT64_MAX;
    if (need > (double)budget_ns && lengths && timing->request->on_steps) {
        double steps = (double)lengths[0] * (double)budget_ns / need;
        *out_steps = steps < PROBE_STEPS ? PROBE_STEPS : (int64_t)steps;
    }
}

static seqlstm_status time_rounds(struct timing *timing, int64_t end_ns, struct seqlstm_error *err)
{
    for (int32_t r = 0; r < timing->count; r++) { /* warm up */
        double forward, backward;
        for (int32_t p = 0; p < timing->profile_count; p++)
            run(&timing->series[r], p, &forward, &backward);
    }
    for (int32_t round = 0; round < SL_ROUNDS_MOST; round++) {
        for (int32_t r = 0; r < timing->count; r++) {
            SEQLSTM_TRY(check_interrupt(timing, err));
            run_round(timing, &timing->series[(r + round) % timing->count]);
        }
        if (settle(timing) || (round + 1 >= ROUNDS_LEAST && sl_clock_ns() > end_ns))
            break;
    }
    return SEQLSTM_OK;
}

static seqlstm_status time_all(struct timing *timing, struct seqlstm_error *err)
{
    int64_t start = sl_clock_ns(), end = start + timing->request->budget_ns, steps_most;
    double row_ns;
    int32_t profiles;
    SEQLSTM_TRY(probe(timing, &row_ns, err));
    int64_t left = end - sl_clock_ns();
    fit_budget(timing, row_ns, left > 0 ? left : 0, &profiles, &steps_most);
    SEQLSTM_TRY(enter(timing, (timing->request->profiles->count - profiles) / 2, profiles, steps_most, err));
    SEQLSTM_TRY(time_rounds(timing, end, err));
    write_results(timing);
    return SEQLSTM_OK;
}

seqlstm_status sl_timing_run(const struct sl_timing_request *request, struct sl_timed_op *timed_ops, int32_t count,
                             struct seqlstm_error *err)
{
    struct timing timing = {.request = request, .count = count};
    timing.series = calloc((size_t)count + 1, sizeof *timing.series);
    if (timing.series == NULL)
        SEQLSTM_FAIL(err, SEQLSTM_NO_MEMORY, "no memory to time backends");
    for (int32_t r = 0; r < count; r++) {
        timed_ops[r].failed = false;
        timing.series[r].timed = &timed_ops[r];
    }
    seqlstm_status status = time_all(&timing, err);
    leave(&timing);
    free(timing.series);
    return status;
}
